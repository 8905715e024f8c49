"""The text of chunks on S3-compatible object storage: an object for each chunk, under prefix/collection/.

Knows how an id becomes a key. A text is stored when `upsert` returns: the server has said so. Reads and writes go in
parallel. Two writers that store the same chunk store the same text.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from leadline.errors import StoreError
from leadline.stores import steps
from leadline.stores.base import ChunkRecord, Failed, Policy, Stats
from leadline.stores.s3_bucket import Address, Bucket, parse_url

if TYPE_CHECKING:
    from leadline.stores.steps import Step

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_CODED: Final = "b."  # before an id in base64; no plain id has a dot
_SEGMENT: Final = 200  # longest piece of a key between two slashes: servers over a file system take 255


class ObjectChunkStore:
    """The texts of one collection as a ChunkStore, in the bucket and under the prefix of `url`, s3://bucket/prefix.

    `endpoint` is the server's address, https://host:port, where it isn't Amazon's; `allow_http` lets it be http.
    Without keys those of the environment (AWS_ACCESS_KEY_ID …) or of the machine are used. A server that is away is
    waited for `timeout` seconds. Raises ConfigError.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        *,
        url: str,
        collection: str = "default",
        endpoint: str | None = None,
        region: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        allow_http: bool = False,
        timeout: float = 10.0,
        policy: Policy | None = None,
    ) -> None:
        self._address = Address(*parse_url(url), endpoint, region, access_key, secret_key, allow_http, timeout)
        self._address.check()
        self._folder = _key_of(collection)
        self._policy = policy
        self._open: Bucket | None = None

    async def __aenter__(self) -> Self:
        self._open = Bucket(self._address)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._open = None

    async def ensure_ready(self, dimension: int = 0) -> None:  # noqa: ARG002 - a width means nothing here
        """Raises StoreError if there is no such bucket, or it can't be used."""
        await self._bucket.ensure_there()

    async def upsert(self, records: Sequence[ChunkRecord]) -> int:
        """Stores the texts; refuses nothing, so returns 0. If one fails, others may be stored."""
        await self._bucket.put({self._key(r.chunk_id): r.text.encode("utf-8", "surrogatepass") for r in records})
        return 0

    async def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of `ids` have a text: a request each, in parallel."""
        keys = {self._key(chunk_id): chunk_id for chunk_id in ids}
        return {keys[key] for key in await self._bucket.there(keys)}

    async def all_ids(self) -> set[str]:
        """Every id that has a text: a request for each thousand of them, one after the other."""
        return {chunk_id async for page in self._bucket.pages(self._folder) for chunk_id in _ids_of(page)}

    async def fetch(self, ids: Sequence[str]) -> dict[str, str]:
        """Chunk id → text, in the order of `ids`, read in parallel; those without one are left out."""
        keys = {self._key(chunk_id): chunk_id for chunk_id in ids}
        found = await self._bucket.get(keys)
        return {keys[key]: text.decode("utf-8", "surrogatepass") for key, text in found.items()}

    async def delete(self, ids: Sequence[str]) -> int:
        """Removes texts; returns how many were there."""
        there = await self.existing_ids(ids)
        await self._bucket.delete([self._key(chunk_id) for chunk_id in there])
        return len(there)

    async def count(self) -> int:
        """How many texts there are; costs as much as `all_ids`."""
        return len(await self.all_ids())

    async def clear(self) -> None:
        """Removes every text of the collection."""
        await self._bucket.delete([self._key(chunk_id) for chunk_id in await self.all_ids()])

    async def stats(self) -> Stats:
        """The backend, where it is, and how many texts."""
        return {"backend": "s3", "place": self._address.label, "count": await self.count()}

    def save(self, upstream: AsyncIterable[ChunkRecord | Failed], *, skip_existing: bool = False) -> Step:
        """See `Store.save`."""
        return steps.save(self, upstream, self._policy, skip_existing=skip_existing)

    def sync(
        self,
        upstream: AsyncIterable[ChunkRecord | Failed],
        *,
        skip_existing: bool = False,
        allow_empty: bool = False,
    ) -> Step:
        """See `Store.sync`."""
        return steps.sync(self, upstream, self._policy, skip_existing=skip_existing, allow_empty=allow_empty)

    @property
    def _bucket(self) -> Bucket:
        if self._open is None:
            raise StoreError(f"The object storage {self._address.label} is not open.")
        return self._open

    def _key(self, chunk_id: str) -> str:
        return f"{self._folder}/{_key_of(chunk_id)}"


def _key_of(name: str) -> str:
    """A key for any name: as it is where every server takes it so, else in base64, cut into pieces.

    The dot at the end keeps a key from being the folder of another.
    """
    if _PLAIN.fullmatch(name):
        return name
    coded = urlsafe_b64encode(name.encode("utf-8", "surrogatepass")).decode("ascii").rstrip("=")
    pieces = [coded[start : start + _SEGMENT] for start in range(0, len(coded), _SEGMENT)]
    return f"{_CODED}{'/'.join(pieces)}."


def _ids_of(keys: Sequence[str]) -> list[str]:
    """The ids of keys, without what someone else has put there."""
    return [chunk_id for chunk_id in map(_id_of, keys) if chunk_id is not None]


def _id_of(key: str) -> str | None:
    if _PLAIN.fullmatch(key):
        return key
    coded = key.removeprefix(_CODED).removesuffix(".").replace("/", "")
    try:
        chunk_id = urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
    return chunk_id if _key_of(chunk_id) == key else None
