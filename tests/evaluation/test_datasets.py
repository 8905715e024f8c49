"""Reading judged collections, and saying exactly what is wrong with a bad one."""

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import DatasetError
from leadline.evaluation.datasets import load_dataset

CORPUS: list[dict[str, Any]] = [
    {"_id": "d1", "title": "Tides", "text": "The moon pulls the sea."},
    {"_id": "d2", "title": "", "text": "Soil."},
]
Rows = list[dict[str, Any]]
QUERIES: Rows = [
    {"_id": "q1", "text": "why tides"},
    {"_id": "q2", "text": "unjudged"},
    {"_id": "q3", "text": "soil", "metadata": {"answerable": True}},
]
NO_ANSWER: Rows = [
    {"_id": "u1", "text": "who", "metadata": {"answerable": False}},
    {"_id": "u2", "text": "when"},
    {"_id": "u3", "text": "where", "metadata": {"answerable": False}},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq3\td2\t1\n"


def write(folder: Path, *, corpus: Rows = CORPUS, queries: Rows = QUERIES, qrels: str = QRELS) -> Path:
    """A dataset folder."""
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return folder


def test_only_judged_queries_and_positive_grades_are_kept(tmp_path: Path) -> None:
    """A query without a relevant document is left out, and a grade of 0 is not a judgement of relevance."""
    dataset = load_dataset(write(tmp_path))
    assert dataset.queries == {"q1": "why tides", "q3": "soil"}
    assert dataset.qrels == {"q1": {"d1": 2}, "q3": {"d2": 1}}
    assert [document.searchable for document in dataset.documents] == ["Tides The moon pulls the sea.", "Soil."]


def test_questions_known_to_have_no_answer_are_kept_apart(tmp_path: Path) -> None:
    """Marked so or judged with no grade above 0; one that nobody judged is not taken for unanswerable."""
    dataset = load_dataset(write(tmp_path, queries=[*QUERIES, *NO_ANSWER], qrels=QRELS + "u2\td1\t0\n"))
    assert dataset.unanswerable == {"u1": "who", "u2": "when", "u3": "where"}
    assert dataset.queries == {"q1": "why tides", "q3": "soil"}
    assert dataset.qrels.keys() == dataset.queries.keys()


def test_a_relevant_document_outweighs_the_mark(tmp_path: Path) -> None:
    """A question with a relevant document is answerable whatever its mark: retrieval is measured on it."""
    dataset = load_dataset(write(tmp_path, queries=NO_ANSWER, qrels=QRELS + "u1\td1\t1\n"))
    assert (dataset.queries, dataset.unanswerable) == ({"u1": "who"}, {"u3": "where"})


def test_questions_without_an_answer_alone_can_be_read_but_not_ranked(tmp_path: Path) -> None:
    """They are enough to measure abstention; retrieval needs a relevant document and says so."""
    dataset = load_dataset(write(tmp_path, queries=NO_ANSWER, qrels="query-id\tcorpus-id\tscore\n"))
    assert not dataset.queries
    with pytest.raises(DatasetError, match="no query is judged"):
        dataset.require_judged()


@pytest.mark.parametrize("metadata", [{"answerable": "no"}, {"answerable": 0}, ["answerable"], "none"])
def test_a_mark_that_says_neither_is_refused(tmp_path: Path, metadata: object) -> None:
    """A mark that is not true or false would be read either way."""
    with pytest.raises(DatasetError, match=r"queries\.jsonl, line 4: metadata"):
        load_dataset(write(tmp_path, queries=[*QUERIES, {"_id": "u", "text": "who", "metadata": metadata}]))


def test_sampling_is_repeatable_and_keeps_the_documents(tmp_path: Path) -> None:
    """The same seed draws the same queries; the corpus stays whole, so that the task gets no easier."""
    dataset = load_dataset(write(tmp_path))
    assert dataset.sampled(1, seed=3) == dataset.sampled(1, seed=3)
    assert len(dataset.sampled(1, seed=3).queries) == 1
    assert dataset.sampled(1, seed=3).documents == dataset.documents
    assert dataset.sampled(9, seed=3) == dataset


def test_sampling_draws_from_both_kinds(tmp_path: Path) -> None:
    """As many of each; which answerable ones are drawn doesn't depend on the unanswerable ones."""
    plain = load_dataset(write(tmp_path))
    both = load_dataset(write(tmp_path, queries=[*QUERIES, *NO_ANSWER]))
    drawn = both.sampled(1, seed=3)
    assert len(drawn.unanswerable) == 1
    assert drawn.queries == plain.sampled(1, seed=3).queries
    assert both.sampled(1, seed=3) == drawn
    assert {query for seed in range(20) for query in both.sampled(1, seed=seed).unanswerable} == {"u1", "u3"}


@pytest.mark.parametrize(
    ("corpus", "qrels", "said"),
    [
        ([*CORPUS, CORPUS[0]], QRELS, "repeats a document id"),
        (CORPUS[:1], QRELS, "1 judged documents are not in the corpus"),
        ([{"_id": "d1"}], QRELS, "line 1 has no text under 'text'"),
        (CORPUS, "query-id\tcorpus-id\tscore\nq1\td1\tyes\n", "qrels.tsv, line 2"),
        (CORPUS, "query-id\tcorpus-id\tscore\n", "no query is judged"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, corpus: Rows, qrels: str, said: str) -> None:
    """A broken collection is refused with the file and the line, never measured half."""
    with pytest.raises(DatasetError, match=said):
        load_dataset(write(tmp_path, corpus=corpus, qrels=qrels))


def test_a_question_stands_once(tmp_path: Path) -> None:
    """Of two with one id only one would be asked, and the judgements could be of either."""
    with pytest.raises(DatasetError, match=r"queries\.jsonl repeats a question's id"):
        load_dataset(write(tmp_path, queries=[*QUERIES, {**QUERIES[0], "text": "another one"}]))


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_file_in_another_encoding_is_refused(tmp_path: Path, name: str) -> None:
    """With its name, and no traceback."""
    path = write(tmp_path) / name
    path.write_bytes(path.read_bytes() + "{}\tä\t1\n".encode("latin-1"))
    with pytest.raises(DatasetError, match=f"{name}.* is not text in UTF-8"):
        load_dataset(tmp_path)


def test_a_field_without_end_in_the_judgements_is_refused(tmp_path: Path) -> None:
    """Longer than a reader of tables takes: a message, and no traceback."""
    path = write(tmp_path) / "qrels.tsv"
    path.write_text(path.read_text(encoding="utf-8") + "q1\t" + "d" * 200_000 + "\t1\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"qrels\.tsv.* (?:field larger|field of over 100,000)"):
        load_dataset(tmp_path)


def test_a_missing_folder_says_what_a_dataset_is(tmp_path: Path) -> None:
    """A wrong path gives one message with the three files a dataset needs."""
    with pytest.raises(DatasetError, match=r"corpus\.jsonl, queries\.jsonl and qrels\.tsv"):
        load_dataset(tmp_path / "nowhere")


def test_damaged_json_is_refused(tmp_path: Path) -> None:
    """A line that isn't JSON is named."""
    write(tmp_path)
    (tmp_path / "queries.jsonl").write_text("{not json\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"queries\.jsonl, line 1 is not JSON"):
        load_dataset(tmp_path)
