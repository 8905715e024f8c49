"""Who is asking, and what they may see.

Every route takes a `Who`. What a caller may not see is answered exactly like what isn't there, so that guessing tells
nothing.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.types import Scope

from leadline.errors import CollectionUnknown, Forbidden
from leadline.knowledge import Library

LOCAL: Final = "local"  # whoever is at this machine, where no tokens are


@dataclass(frozen=True, slots=True)
class Caller:
    """One who asks. `collections`: those that they may see; None: all."""

    name: str = LOCAL
    collections: frozenset[str] | None = None
    may_write: bool = True

    def sees(self, collection: str) -> bool:
        """Whether the collection is there for this caller."""
        return self.collections is None or collection in self.collections

    def default(self, collection: str) -> str:
        """The collection of a request that names none: the server's own, else the first that this caller sees."""
        return collection if self.sees(collection) else min(self.collections or {collection})

    def need(self, collection: str) -> None:
        """Raises CollectionUnknown unless this caller may see the collection."""
        if not self.sees(collection):
            raise CollectionUnknown(f"There is no collection {collection}.")

    def need_write(self) -> None:
        """Raises Forbidden unless this caller may change documents."""
        if not self.may_write:
            raise Forbidden("This token may read only.", hint="Use a token that may write.")

    def thread(self, thread_id: str) -> str:
        """The id under which this caller's conversation is stored: no client can write another's."""
        return thread_id if self.name == LOCAL else f"@{self.name}/{thread_id}"

    def own_thread(self, stored_id: str) -> str | None:
        """The client's id of a stored conversation; None where it is another's."""
        mark = "" if self.name == LOCAL else f"@{self.name}/"
        mine = stored_id.startswith(mark) if mark else not stored_id.startswith("@")
        return stored_id.removeprefix(mark) if mine else None


NOBODY: Final = Caller("", frozenset(), may_write=False)  # without a token, where one is needed for all but a page


def caller_of(scope: Scope) -> Caller:
    """Who is asking: found by the middleware that checks tokens, else whoever is at this machine."""
    found = scope.get("state", {}).get("caller")
    return found if isinstance(found, Caller) else Caller()


def caller(request: Request) -> Caller:
    """`caller_of`, for a route."""
    return caller_of(request.scope)


async def need_existing(who: Caller, library: Library, collection: str) -> None:
    """Raises CollectionUnknown unless the collection is there and this caller may see it: in the same words."""
    who.need(collection)
    if collection not in await library.collections():
        Caller("", frozenset()).need(collection)


Who = Annotated[Caller, Depends(caller)]
