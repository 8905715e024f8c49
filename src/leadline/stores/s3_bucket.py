"""A bucket of S3-compatible storage: objects by key, many requests at once, and errors that name no secret.

Knows obstore. A server answers 404 both for an object and for a bucket that isn't there; here only the first one is
"not there". What servers write into their errors (keys, signatures, requests) is not passed on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from leadline.errors import ConfigError, MissingExtra, StoreError

if TYPE_CHECKING:
    from obstore.store import S3Store

T = TypeVar("T")
CONCURRENCY: Final = 64  # requests at once
PAGE: Final = 1000  # keys in one listing or one bulk deletion
_CONNECT_S: Final = 5.0
_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_REFUSED: Final = ("PermissionDeniedError", "UnauthenticatedError")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a bucket is and how it is asked. `timeout` is in seconds: for one request, and for all tries of it."""

    bucket: str
    prefix: str
    endpoint: str | None
    region: str | None
    access_key: str | None = field(repr=False)
    secret_key: str | None = field(repr=False)
    allow_http: bool
    timeout: float

    @property
    def label(self) -> str:
        """As it is shown."""
        at = "" if self.endpoint is None else f" at {self.endpoint}"
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/") + at

    def check(self) -> None:
        """Raises ConfigError if this can't be the address of a bucket."""
        if (self.access_key is None) != (self.secret_key is None):
            raise ConfigError("Of the access key and the secret key of the object storage only one is set.")
        if self.endpoint is None:
            return
        parts = urlsplit(self.endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ConfigError(
                "The endpoint of the object storage is not the address of a server.",
                hint="It looks like https://s3.example.org; keys are options of their own.",
            )
        if parts.scheme == "http" and not self.allow_http:
            raise ConfigError(
                f"The endpoint {self.endpoint} is not encrypted.", hint="Use https, or set the option allow_http."
            )


def parse_url(url: str) -> tuple[str, str]:
    """Bucket and prefix of s3://bucket/prefix. Raises ConfigError."""
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError("The url of the object storage looks like s3://bucket/prefix.")
    return parts.netloc, parts.path.strip("/")


class Bucket:
    """The objects under an address. Nothing is asked before the first call."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._store = _made(address)

    async def put(self, objects: dict[str, bytes]) -> None:
        """Stores all objects, each whole or not at all."""
        import obstore

        async def put(key: str) -> None:
            with self._explained():
                await obstore.put_async(self._store, key, objects[key])

        await _in_parallel(put, objects)

    async def get(self, keys: Collection[str]) -> dict[str, bytes]:
        """Key → object, for those that are there, in the order of `keys`."""
        import obstore

        async def get(key: str) -> bytes | None:
            with self._explained():
                try:
                    found = await obstore.get_async(self._store, key)
                except FileNotFoundError:
                    return None
                return bytes(await found.bytes_async())

        found = await _in_parallel(get, keys)
        if None in found.values():
            await self.ensure_there()
        return {key: content for key in keys if (content := found[key]) is not None}

    async def there(self, keys: Collection[str]) -> set[str]:
        """Which of the objects are there."""
        import obstore

        async def is_there(key: str) -> bool:
            with self._explained():
                try:
                    await obstore.head_async(self._store, key)
                except FileNotFoundError:
                    return False
                return True

        found = await _in_parallel(is_there, keys)
        if False in found.values():
            await self.ensure_there()
        return {key for key, is_there in found.items() if is_there}

    async def pages(self, folder: str) -> AsyncIterator[list[str]]:
        """The keys in a folder, page by page, without the folder."""
        import obstore

        with self._explained():
            async for page in obstore.list(self._store, folder, chunk_size=PAGE):
                yield [each["path"].removeprefix(f"{folder}/") for each in page]

    async def delete(self, keys: Sequence[str]) -> None:
        """Removes objects that are there."""
        import obstore

        for start in range(0, len(keys), PAGE):
            with self._explained():
                await obstore.delete_async(self._store, list(keys[start : start + PAGE]))

    async def ensure_there(self) -> None:
        """Raises StoreError if there is no such bucket, or it can't be asked."""
        import obstore

        with self._explained():
            # Of what comes after all of our keys: an answer without content.
            async for _ in obstore.list(self._store, offset="\U0010ffff", chunk_size=1):
                break

    @contextmanager
    def _explained(self) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            # Not as its cause either: it has the server's answer and the request in it.
            raise self._explanation(error) from None

    def _explanation(self, error: Exception) -> StoreError:
        message = str(error)
        code = (_CODE.search(message) or [None, ""])[1]
        status = (_STATUS.search(message) or [None, ""])[1]
        where = f"The object storage {self._address.label}"
        if isinstance(error, FileNotFoundError) or code == "NoSuchBucket" or status == "404":
            return StoreError(f"{where} has no bucket {self._address.bucket}.", hint="Make it, or correct the url.")
        if type(error).__name__ in _REFUSED or status in ("401", "403"):
            named = f" ({code})" if code else ""
            return StoreError(
                f"{where} refuses our credentials{named}.", hint="Check the access key and the secret key."
            )
        if status:
            return StoreError(f"{where} answered with the status {status}{f' ({code})' if code else ''}.")
        return StoreError(
            f"{where} can't be reached within {self._address.timeout:g} s.",
            hint="Is the server running, is the endpoint right, and is its certificate one that can be verified?",
        )


async def _in_parallel(work: Callable[[str], Awaitable[T]], items: Collection[str]) -> dict[str, T]:
    """Item → result; so many at once. The first failure ends the others."""
    waiting = iter(items)
    done: dict[str, T] = {}

    async def worker() -> None:
        for item in waiting:
            done[item] = await work(item)

    workers = [asyncio.ensure_future(worker()) for _ in range(min(CONCURRENCY, len(items)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for each in workers:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return done


def _made(address: Address) -> S3Store:
    try:
        from obstore.store import S3Store
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "Texts on object storage need the package obstore.", hint="Install it with `pip install 'leadline[s3]'`."
        ) from error
    limit = timedelta(seconds=address.timeout)
    config: dict[str, Any] = {
        "endpoint": address.endpoint,
        "region": address.region,
        "access_key_id": address.access_key,
        "secret_access_key": address.secret_key,
    }
    return S3Store(
        address.bucket,
        prefix=address.prefix or None,
        virtual_hosted_style_request=False,  # servers of one's own have no name for each bucket
        client_options={
            "allow_http": address.allow_http,
            "timeout": limit,
            "connect_timeout": timedelta(seconds=min(_CONNECT_S, address.timeout)),
        },
        retry_config={"max_retries": 10, "retry_timeout": limit},
        **{key: value for key, value in config.items() if value is not None},
    )
