"""The record of an answer as it is read again: somebody's file, so every part of it is checked before it is used.

What a record holds is said in `records.RunRecord`; the JSON of `leadline ask --json`, the final event of a stream and
the result in a notebook are all one.
"""

import json
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leadline.config import COLLECTION_PATTERN
from leadline.errors import RecordError
from leadline.graph.seal import hash_of_result
from leadline.nodes.record import FORMAT
from leadline.records import Found, Pass

MAX_CHARS = 16_000_000
SHOWN_PROBLEMS = 3
HINT = "A record is what `leadline ask --json` or `--record FILE` writes."

Name = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]  # a database takes no NUL
Finite = Annotated[float, Field(allow_inf_nan=False)]
Rank = Annotated[int, Field(ge=0, le=1_000_000)]


class _Part(BaseModel):
    """What is known of it is checked, what isn't is left alone: later versions may say more."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class RecordedFound(_Part):
    """See `records.Found`."""

    rank: Rank
    score: Finite
    in_pass: Annotated[int, Field(ge=1, le=1000)] = 1


class RecordedRow(_Part):
    """See `records.ContextRow`."""

    chunk_id: Name
    doc_id: Name
    file_name: Name
    chunk_index: int | None
    page: int | None
    source_type: Name
    content_hash: Name
    rerank_score: Finite
    found_by: dict[Name, RecordedFound]
    kept: bool
    fate: Name
    fused_rank: Rank | None
    rank: Rank | None
    same_as: Name | None

    def found(self) -> dict[str, Found]:
        """As the run's own rows have it."""
        return {leg: Found(rank=f.rank, score=f.score, in_pass=f.in_pass) for leg, f in self.found_by.items()}


class RecordedPass(_Part):
    """See `records.Pass`."""

    query: Annotated[str, Field(max_length=20_000)]
    width: Annotated[int, Field(ge=0, le=1000)]
    sources: list[Name]
    web_query: Annotated[str, Field(max_length=20_000)] = ""
    hops: Annotated[list[Name], Field(max_length=100)] = []
    hops_from: Name = ""


class RecordedSource(_Part):
    """See `records.SourceSeen`."""

    file_name: Name
    file_hash: Name


class RecordedVerdict(_Part):
    """See `records.Verdict`."""

    evidence: Name
    grounding: Name
    action: Name
    reason: Name


class RecordedRun(_Part):
    """See `records.RunRecord`."""

    leadline: Name
    library: Name
    collection: Annotated[str, Field(pattern=COLLECTION_PATTERN)]
    settings: dict[Name, Any]
    settings_hash: Name
    knobs: dict[Name, Any]
    passes: Annotated[list[RecordedPass], Field(max_length=100)]
    path: list[RecordedVerdict]
    judged_by: Annotated[list[Annotated[str, Field(max_length=20_000)]], Field(max_length=100)]
    zero_point: Finite
    sources: dict[Name, RecordedSource]
    result_hash: Name = ""

    def searches(self) -> list[Pass]:
        """The passes as the run's state has them."""
        return [cast(Pass, each.model_dump(exclude_unset=True)) for each in self.passes]


class Recorded(_Part):
    """An answer and its record. `hash_now` is counted when it is read: an edited record has another `result_hash`."""

    question: Annotated[str, Field(max_length=20_000)]
    status: Name
    context: Annotated[list[RecordedRow], Field(max_length=100_000)]
    models: dict[Name, Name]
    degraded: list[Name]
    generation: int
    record: RecordedRun
    hash_now: str

    @property
    def evidence(self) -> str:
        """What the sign of the passages said in the end."""
        return self.record.path[-1].evidence if self.record.path else "nothing"


def read_record(text: str) -> Recorded:
    """The record in `text`: a result, or an event that holds one. Raises RecordError."""
    if len(text) > MAX_CHARS:
        raise RecordError(f"The record has {len(text)} characters; at most {MAX_CHARS} are read.", hint=HINT)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"The record isn't JSON: {_first_line(error)}.", hint=HINT) from None
    if isinstance(given, dict) and isinstance(given.get("result"), dict):
        given = given["result"]
    _check_kind(given)
    try:
        return Recorded.model_validate({**given, "hash_now": hash_of_result(given)})
    except RecursionError:
        raise RecordError("The record is damaged: it is nested too deep.", hint=HINT) from None
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        told = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in found[:SHOWN_PROBLEMS]]
        more = f" and {len(found) - SHOWN_PROBLEMS} more" if len(found) > SHOWN_PROBLEMS else ""
        raise RecordError(f"The record is damaged: {'; '.join(told)}{more}.", hint=HINT) from None


def _check_kind(given: object) -> None:
    if not isinstance(given, dict) or not {"question", "context"} <= given.keys():
        raise RecordError("This is JSON, but not the record of an answer.", hint=HINT)
    record = given.get("record")
    if not isinstance(record, dict):
        raise RecordError(
            "This answer has no record: its run failed before it had one, or an earlier version made it.", hint=HINT
        )
    if record.get("format") != FORMAT:
        raise RecordError(
            f"The record has format {str(record.get('format'))[:20]}; this version of leadline reads {FORMAT}.",
            hint="Use the version that made it, or ask again.",
        )


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
