"""Makes the searches of a recorded run again and says what is different. No LLM is called, nothing leaves the machine.

Knows which differences matter: what is found, in which order, by which models and settings. That other documents have
come or gone, and nothing that was found is different, is told beside them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leadline.config import RunContext
from leadline.errors import RecordError
from leadline.graph.differences import TOLERANCE, Difference, chunk_differences
from leadline.graph.opening import dependencies
from leadline.graph.recorded import HINT, Recorded
from leadline.graph.searching import Ghost, Searched, search_again
from leadline.graph.vanished import absences, check_library, replaced_files
from leadline.knowledge import Library
from leadline.nodes.candidates import context_rows
from leadline.nodes.outcome import Facts
from leadline.nodes.record import retrieval_settings, settings_hash
from leadline.ranking import evidence_sign
from leadline.records import Found

# Knobs of a run that are the installation's own settings, so that another value there is another setting.
OF_SETTINGS = ("top_k", "rerank_top_k", "max_retries", "max_context_tokens")


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay found. `notes` change nothing of what is found."""

    question: str
    collection: str
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    candidates: int

    @property
    def same(self) -> bool:
        """Whether the run would find the same now, in the same order."""
        return not self.differences

    def to_json(self) -> dict[str, Any]:
        """As `leadline replay --json` prints it."""
        return {
            "question": self.question,
            "collection": self.collection,
            "same": self.same,
            "differences": [difference.to_json() for difference in self.differences],
            "notes": list(self.notes),
            "candidates": self.candidates,
            "logit_tolerance": TOLERANCE,
        }


async def replay(recorded: Recorded, library: Library, *, collection: str | None = None) -> Replay:
    """Searches `collection` (the recorded one, if None is given) as the recorded run did, and compares.

    Raises CollectionUnknown, StoreError, InvalidFilter, RerankerRefused, and RecordError where the record's knobs are
    out of bounds, or none of its documents is in this library.
    """
    run = recorded.record
    name = collection or run.collection
    context = _context(recorded, name)
    deps = dependencies(library.settings, library)
    await library.collection(name)
    elsewhere = await check_library(recorded, library)
    searched = await search_again(deps, context, run.searches(), run.judged_by, _ghosts(recorded))
    rows = context_rows(searched.state, [])
    facts = await deps.facts()
    differences = [
        *_of_record(recorded),
        *_of_collection(recorded, name),
        *_of_settings(recorded, library),
        *_of_models(recorded, facts),
        *_of_parts(recorded, searched),
        *_of_signs(recorded, searched),
        *chunk_differences(recorded.context, rows, await absences(recorded, rows, library, name)),
    ]
    notes = [*elsewhere, *_generation(recorded, facts), *await replaced_files(recorded, rows, library), *_web(recorded)]
    if not run.passes:
        notes.append("The run searched nothing: it was answered directly.")
    return Replay(recorded.question, name, tuple(differences), tuple(notes), len(rows))


def _context(recorded: Recorded, collection: str) -> RunContext:
    knobs = {name: value for name, value in recorded.record.knobs.items() if name in {*OF_SETTINGS, "filters"}}
    try:
        return RunContext.model_validate({**knobs, "collection": collection, "web": "never"})
    except ValueError:
        raise RecordError("The record is damaged: its knobs are not those of a run.", hint=HINT) from None


def _ghosts(recorded: Recorded) -> list[Ghost]:
    """What the web gave, which isn't asked again. Logits are taken back to before the zero point was taken off."""
    return [
        Ghost(
            metadata={
                **{key: getattr(row, key) for key in ("chunk_id", "doc_id", "file_name", "source_type")},
                "file_hash": "",
                "chunk_index": row.chunk_index or 0,
            },
            found=Found(rank=row.found_by["web"].rank, score=row.found_by["web"].score),
            logit=row.rerank_score + recorded.record.zero_point if row.rerank_score else 0.0,
            in_pass=row.found_by["web"].in_pass,
        )
        for row in recorded.context
        if row.source_type == "web" and "web" in row.found_by
    ]


def _of_record(recorded: Recorded) -> Iterator[Difference]:
    was, now = recorded.record.result_hash, recorded.hash_now
    if not was:
        text = "The record has no hash of itself, so that nobody can say if it was changed since it was written."
        yield Difference("record", text, None, now)
    elif was != now:
        yield Difference("record", "The record was changed since it was written: its hash is another one.", was, now)


def _of_collection(recorded: Recorded, name: str) -> Iterator[Difference]:
    if name != (was := recorded.record.collection):
        yield Difference("collection", f"The record is of the collection {was}, this is {name}.", was, name)


def _of_settings(recorded: Recorded, library: Library) -> Iterator[Difference]:
    run, settings = recorded.record, retrieval_settings(library.settings)
    knobs = library.settings.run.model_dump()
    pairs = [(key, run.settings.get(key), settings.get(key)) for key in sorted({*run.settings, *settings})]
    named = [Difference("setting", _other(key, was, now), was, now) for key, was, now in pairs if was != now]
    yield from named
    if not named and run.settings_hash != (now := settings_hash(settings)):
        yield Difference("setting", "The hash of the settings is another one.", run.settings_hash, now)
    for key in OF_SETTINGS:
        if key in run.knobs and run.knobs[key] != knobs[key]:
            was, now = run.knobs[key], knobs[key]
            yield Difference("setting", f"{_other(key, was, now)[:-1]} (replayed with {was}).", was, now)


def _of_models(recorded: Recorded, facts: Facts) -> Iterator[Difference]:
    for part in ("embedder", "reranker"):
        was, now = recorded.models.get(part), facts.models.get(part)
        if was != now:
            yield Difference("model", _other(f"The {part}", was, now), was, now)


def _of_parts(recorded: Recorded, searched: Searched) -> Iterator[Difference]:
    was, now = recorded.record.zero_point, searched.state.get("zero_point", 0.0)
    if abs(was - now) > TOLERANCE:
        yield Difference("zero_point", _other("The reranker's zero point", f"{was:.2f}", f"{now:.2f}"), was, now)
    legs = {"vector", "bm25", "graph", "reranker"} | {leg for row in recorded.context for leg in row.found_by}
    for part in sorted(legs - {"web"}):
        if part in searched.failed and part not in recorded.degraded:
            yield Difference("part", f"The {part} failed now and did not then: {searched.failed[part]}", None, part)
        if part in recorded.degraded and part not in searched.failed:
            yield Difference("part", f"The {part} had failed in the recorded run and works now.", part, None)


def _of_signs(recorded: Recorded, searched: Searched) -> Iterator[Difference]:
    was, now = recorded.evidence, evidence_sign(searched.state.get("context", []))
    if recorded.record.passes and was != now:
        yield Difference("evidence", _other("What the sign of the passages says", was, now), was, now)


def _generation(recorded: Recorded, facts: Facts) -> Iterator[str]:
    if (was := recorded.generation) != (now := facts.generation):
        yield f"The documents have changed since: generation {now} instead of {was}."


def _web(recorded: Recorded) -> Iterator[str]:
    if count := sum(row.source_type == "web" for row in recorded.context):
        stand = "1 passage from there stands" if count == 1 else f"{count} passages from there stand"
        yield f"The web isn't asked again: {stand} for it."


def _other(what: str, was: object, now: object) -> str:
    return f"{what} was {_shown(was)}, it is now {_shown(now)}."


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)
