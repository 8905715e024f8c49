"""What the knowledge base says of what it did: plain data for tables and JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

PutStatus = Literal["added", "replaced", "unchanged", "restored", "failed"]


@dataclass(frozen=True, slots=True)
class PutReport:
    """What became of one draft.

    `unchanged`: every index has it as it is. `restored`: it is as it was, but an index lacked it. `new_chunks` are
    those its source did not have before. `copy_of` names another source with the same bytes. `error` is set exactly
    where `status` is `failed`; then the version from before is still the live one.
    """

    doc_id: str
    uri: str
    file_name: str
    status: PutStatus
    chunks: int
    new_chunks: int = 0
    notes: tuple[str, ...] = ()
    copy_of: str | None = None
    error: str | None = None
    chunk_ids: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """What a deletion removed: `legs` is index → chunks that were really there, `content` their texts.

    `owed` names those that could not follow yet (leg → why); nothing deleted is shown meanwhile, and they follow
    when the collection is next opened.
    """

    doc_ids: tuple[str, ...]
    file_names: tuple[str, ...]
    chunks: int
    legs: Mapping[str, int]
    owed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LegReport:
    """How one index, or the content store, compares with the catalog. `missing` and `extra` are chunk ids.

    A text that isn't the one that was put in counts as missing.
    """

    expected: int
    found: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """How a collection's catalog, indexes and texts compare: `legs` is index → report, `content` that of the texts.

    `problems` names every difference in words; empty: none.
    """

    collection: str
    sources: int
    chunks: int
    legs: Mapping[str, LegReport]
    pending: int
    owed: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """No difference was found."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did, or in a dry run would do: leg → chunks added and removed. Texts can only be removed."""

    added: Mapping[str, int]
    removed: Mapping[str, int]
    dry_run: bool
    before: VerifyReport
    after: VerifyReport


@dataclass(frozen=True, slots=True)
class ReindexReport:
    """What was built anew, or in a dry run would be.

    `legs` are the indexes concerned; none: they are as the settings say. `recut`: the sources were cut into chunks
    anew. `uncut` names those that could not be, since they came in chunks of the caller's own. `left` names what of the
    old indexes could not be removed.
    """

    collection: str
    legs: tuple[str, ...]
    recut: bool
    sources: int
    chunks: int
    dry_run: bool = False
    uncut: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
