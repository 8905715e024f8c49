"""What the Chroma store needs of Chroma, whether it runs in this process or as a server."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from leadline.errors import ConfigError, StoreError


class Vanished(StoreError):
    """The collection isn't there: dropped by somebody else, or never made."""


class ChromaClient(Protocol):
    """Chroma's own client, opened. Collections are Chroma's own objects, whose methods go through `call`.

    Raises StoreError and its kinds, nothing of a client's own.
    """

    @property
    def place(self) -> str:
        """Where it is, for messages; without anything secret."""
        ...

    async def open(self) -> None:
        """Connects, and finds the tenant and the database."""
        ...

    async def close(self) -> None: ...

    async def batch_limit(self) -> int:
        """How many vectors it takes at once; below 1 where it doesn't say."""
        ...

    async def find(self, name: str) -> Any | None:
        """The collection, or None if there is none."""
        ...

    async def create(self, name: str, configuration: Mapping[str, Any], metadata: Mapping[str, Any]) -> Any:
        """Makes the collection; gives that of somebody else who was faster."""
        ...

    async def drop(self, name: str) -> None:
        """Removes the collection; legal where there is none."""
        ...

    async def call(self, method: Callable[..., Any], **arguments: Any) -> Any:
        """What a method of a collection gives. Raises Vanished where the collection is gone."""
        ...

    def check_room(self, size: int) -> None:
        """Raises StoreError where so many bytes can't be written."""
        ...


def address(url: str) -> SplitResult:
    """The parts of a server's address. Raises ConfigError for anything else."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError("`url` isn't the address of a Chroma server.", hint="Write e.g. http://localhost:8000.")
    return parts


def no_database(place: str, tenant: str, database: str) -> StoreError:
    """The error for a tenant or database that isn't there."""
    return StoreError(
        f"Chroma at {place} has no database {database!r} of a tenant {tenant!r}.",
        hint="Make it with chromadb.AdminClient, or set `tenant` and `database` to ones that are there.",
    )
