"""When a run may delete what it did not yield: one rule for the stores and for the knowledge base."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from leadline.events import DocumentsPruned
from leadline.stores.lazy import Tell

T = TypeVar("T")
STOPPED: Final = "the run was stopped early"
DELETING: Final = "the run was stopped while it deleted, so more may be gone than is counted here"


@dataclass(frozen=True, slots=True)
class Pruning(Generic[T]):
    """How a run prunes.

    `key` is what an item keeps from being deleted, None where it keeps nothing. `failures` counts the failed items so
    far. `prune` deletes all but the given keys, and tells after each call to the store what it has done by then.
    """

    key: Callable[[T], str | None]
    failures: Callable[[], int]
    prune: Callable[[set[str]], AsyncIterator[DocumentsPruned]]
    allow_empty: bool


async def then_prune(items: AsyncGenerator[T, None], pruning: Pruning[T], tell: Tell) -> AsyncGenerator[T, None]:
    """The items; after the last one what they did not keep is deleted, unless there is a reason not to.

    Nothing is deleted when the run raised, was closed or cancelled before its end, had a failed item, or kept nothing.
    In every case one DocumentsPruned says what was done and why.
    """
    kept: set[str] = set()
    outcome = DocumentsPruned(deleted=0, kept=0, skipped=True, reason=STOPPED)
    try:
        async with aclosing(items):
            async for item in items:
                if (key := pruning.key(item)) is not None:
                    kept.add(key)
                yield item
        if reason := _why_not(pruning.failures(), bool(kept) or pruning.allow_empty):
            outcome = outcome.model_copy(update={"reason": reason})
        else:
            outcome = done = outcome.model_copy(update={"skipped": False, "reason": DELETING})
            async for done in pruning.prune(kept):
                outcome = done.model_copy(update={"reason": DELETING})
            outcome = done
    except Exception as error:
        outcome = outcome.model_copy(update={"reason": f"the run failed: {error}"})
        raise
    finally:
        tell(outcome.model_copy(update={"kept": len(kept)}))


def _why_not(failed: int, may_prune: bool) -> str:
    if failed:
        return f"{failed} items failed, so what is missing may not be gone"
    return "" if may_prune else "empty run"
