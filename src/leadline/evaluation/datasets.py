"""Judged collections in the layout of BEIR, read from a folder.

Knows the files (`corpus.jsonl`, `queries.jsonl`, `qrels.tsv`) and their rows. Doesn't know how anything is searched
or scored.
"""

import csv
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from leadline.errors import DatasetError

Qrels = dict[str, dict[str, int]]

TOGETHER = "Check that the three files belong together."

MAX_FIELD_CHARS = 100_000  # of a line of judgements: ids are short


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One document of a collection; `title` may be empty."""

    id: str
    title: str
    text: str

    @property
    def searchable(self) -> str:
        """Title and text as one string: what published figures are measured on."""
        return f"{self.title} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A collection with its judged queries.

    `queries` maps query ids to texts and holds only those with at least one relevant document: the others say
    nothing about retrieval. `qrels` maps query id to document id to grade, grades above 0 only. `unanswerable` holds
    the queries that are known to have no relevant document: marked with `"answerable": false` in their metadata, or
    judged with no grade above 0. A query that nobody judged is in neither: many collections judge only a part of
    their queries.
    """

    name: str
    documents: tuple[CorpusDocument, ...]
    queries: dict[str, str]
    qrels: Qrels
    unanswerable: dict[str, str] = field(default_factory=dict)

    def sampled(self, n: int, *, seed: int) -> "Dataset":
        """The same documents with `n` of `queries` and `n` of `unanswerable` (all where there are fewer).

        Drawn without replacement, the same ones for the same seed.
        """
        return replace(self, queries=_drawn(self.queries, n, seed), unanswerable=_drawn(self.unanswerable, n, seed))

    def require_judged(self) -> None:
        """Raises DatasetError unless some query has a relevant document: without, retrieval can't be measured."""
        if not self.queries:
            raise DatasetError(f"{self.name}: no query is judged.", hint=TOGETHER)


def load_datasets(folders: Sequence[Path]) -> list[Dataset]:
    """Reads several folders. Raises DatasetError as `load_dataset` does, and if two have the same name."""
    datasets = [load_dataset(folder) for folder in folders]
    if len({dataset.name for dataset in datasets}) < len(datasets):
        raise DatasetError("Two datasets have the same name.", hint="Rename one of the folders.")
    return datasets


def load_dataset(folder: Path) -> Dataset:
    """Reads a folder. Raises DatasetError naming the file and line of the first thing that is wrong.

    A collection without any query that is judged or marked as unanswerable is wrong too.
    """
    documents = tuple(
        CorpusDocument(_text(row, "_id", at), _text(row, "title", at, required=False), _text(row, "text", at))
        for row, at in _json_lines(folder / "corpus.jsonl")
    )
    known = {document.id for document in documents}
    if len(known) < len(documents):
        raise DatasetError(f"{folder / 'corpus.jsonl'} repeats a document id.", hint="Each _id may stand once.")
    dataset = replace(load_questions(folder), documents=documents)
    missing = {document for query in dataset.queries for document in dataset.qrels[query]} - known
    if missing:
        raise DatasetError(f"{folder}: {len(missing)} judged documents are not in the corpus.", hint=TOGETHER)
    return dataset


def load_questions(folder: Path) -> Dataset:
    """Reads the judged queries alone, which may be about documents that are elsewhere: `documents` is empty.

    Raises DatasetError as `load_dataset` does.
    """
    rows = [(row, at) for row, at in _json_lines(folder / "queries.jsonl")]
    texts = {_text(row, "_id", at): _text(row, "text", at) for row, at in rows}
    if len(texts) < len(rows):
        raise DatasetError(f"{folder / 'queries.jsonl'} repeats a question's id.", hint="Each _id may stand once.")
    marked = {row["_id"] for row, at in rows if _answerable(row, at) is False}
    graded = _read_qrels(folder / "qrels.tsv")
    qrels = {query: relevant for query, grades in graded.items() if (relevant := _relevant(grades))}
    queries = {query: text for query, text in texts.items() if query in qrels}
    nothing = {query: text for query, text in texts.items() if query not in qrels and query in marked | graded.keys()}
    if not (queries or nothing):
        raise DatasetError(f"{folder}: no query is judged.", hint=TOGETHER)
    return Dataset(folder.resolve().name, (), queries, qrels, nothing)


def _drawn(queries: dict[str, str], n: int, seed: int) -> dict[str, str]:
    if n >= len(queries):
        return queries
    drawn = set(random.Random(seed).sample(sorted(queries), n))  # noqa: S311 - a sample, not a secret
    return {query: text for query, text in queries.items() if query in drawn}


def _relevant(grades: dict[str, int]) -> dict[str, int]:
    return {document: grade for document, grade in grades.items() if grade > 0}


def _json_lines(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            at = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise DatasetError(f"{at} is not JSON: {error}.") from None
            if not isinstance(row, dict):
                raise DatasetError(f"{at} is not a JSON object.")
            yield row, at


def _text(row: dict[str, Any], key: str, at: str, *, required: bool = True) -> str:
    value = row.get(key, "")
    if not isinstance(value, str) or (required and not value):
        raise DatasetError(f"{at} has no text under {key!r}.")
    return value


def _answerable(row: dict[str, Any], at: str) -> bool | None:
    """What the row says of itself; None where it says nothing."""
    metadata = row.get("metadata") or {}
    said = metadata.get("answerable") if isinstance(metadata, dict) else metadata
    if said is None or isinstance(said, bool):
        return said
    raise DatasetError(f"{at}: metadata is no object, or its 'answerable' neither true nor false.")


def _read_qrels(path: Path) -> Qrels:
    """All grades, those of 0 and below too."""
    qrels: Qrels = {}
    with _opened(path) as lines:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows, None)  # the header
        for number, row in enumerate(rows, 2):
            if any(len(field) > MAX_FIELD_CHARS for field in row):  # csv's own limit is raised by whoever reads tables
                raise DatasetError(f"{path}, line {number} has a field of over {MAX_FIELD_CHARS:,} characters.")
            try:
                query, document, grade = row
                qrels.setdefault(query, {})[document] = int(grade)
            except ValueError:
                raise DatasetError(f"{path}, line {number} is not query, document and a whole grade.") from None
    return qrels


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file; what it raises while it is read becomes a DatasetError."""
    try:
        with path.open(encoding="utf-8", newline="" if path.suffix == ".tsv" else None) as lines:
            yield lines
    except OSError as error:
        hint = "A dataset folder holds corpus.jsonl, queries.jsonl and qrels.tsv."
        raise DatasetError(f"{path} can't be read: {error.strerror}.", hint=hint) from None
    except UnicodeDecodeError:
        raise DatasetError(f"{path} is not text in UTF-8.") from None
    except csv.Error as error:
        raise DatasetError(f"{path} is no table: {error}.") from None
