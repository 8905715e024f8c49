"""The one module that calls pymilvus: a collection made, read, written and searched, its errors as Leadline's own.

Knows rows and expressions; nothing of chunks. Searches and look-ups see every write that was acknowledged before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from leadline.errors import ConfigError, MissingExtra, StoreError
from leadline.stores.milvus_rows import (
    CHUNK,
    FIELDS,
    MAX_ID_BYTES,
    MAX_TERMS_BYTES,
    PAGE,
    PART,
    ROW,
    TERMS,
    VECTOR,
    WORDS,
    Row,
    Shape,
    both,
)

if TYPE_CHECKING:
    from pymilvus import AsyncMilvusClient

# The most rows Milvus returns at once.
WINDOW: Final = 16_384
STRONG: Final = "Strong"


SCHEMES: Final = ("http://", "https://", "tcp://", "unix:")


class Place:
    """Where Milvus is: a server's URL, or a file for Milvus Lite. Shown without user info."""

    def __init__(self, url: str | None, path: Path | str | None) -> None:
        if (url is None) == (path is None):
            raise ConfigError("Milvus needs either the url of a server or a path.", hint="http://localhost:19530")
        self._file: Path | None = None
        self._url, self.token = "", ""
        if url is None or not url.startswith(SCHEMES):
            if url is not None and not url.endswith(".db"):
                raise _bad_url()
            self._file = Path(path or url or "")
            self.shown = str(self._file)
            return
        try:
            parts = urlsplit(url)
            valid = url.startswith("unix:") or (bool(parts.hostname) and parts.port != 0)
        except ValueError:
            valid = False
        if not valid:
            raise _bad_url()
        if parts.username:
            self.token = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        self._url = self.shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def start(self) -> str:
        """The address to connect to, of Milvus Lite where this is a file: then each `start` needs a `stop`."""
        if self._file is None:
            return self._url
        from leadline.stores import milvus_lite  # not for every system

        return milvus_lite.start(self._file)

    def stop(self) -> None:
        """What was started is not needed any more."""
        if self._file is not None:
            from leadline.stores import milvus_lite

            milvus_lite.stop(self._file)


def _bad_url() -> ConfigError:
    return ConfigError(
        "`url` is neither the address of a Milvus server nor a file of Milvus Lite.",
        hint="Write e.g. http://localhost:19530, or the path of a file that ends in .db.",
    )


class Connection:
    """An open connection and the name of one collection."""

    def __init__(self, client: AsyncMilvusClient, place: Place, name: str, access: Mapping[str, Any]) -> None:
        self._client = client
        self._place = place
        self._name = name
        self._access = access
        self._timeout_s: float = access["timeout"]

    @classmethod
    async def open(cls, place: Place, name: str, *, token: str, timeout_s: float) -> Connection:
        """Connects, and starts Milvus Lite first where the place is a file. Raises StoreError, MissingExtra."""
        client_class = await asyncio.to_thread(_client_class)
        url = await asyncio.to_thread(place.start)
        # A connection of its own, also below: else one that failed a moment ago makes a new one fail unasked.
        own = {"dedicated": True, "grpc_options": {"grpc.use_local_subchannel_pool": 1}}
        access = {"uri": url, "token": token or place.token, "timeout": timeout_s, **own}
        try:
            with _errors_named(place, "be reached"):
                client = client_class(**access)
                await client.list_collections(timeout=timeout_s)
        except BaseException:
            await asyncio.to_thread(place.stop)
            raise
        return cls(client, place, name, access)

    async def close(self) -> None:
        """Ends the connection, and Milvus Lite with its last one."""
        with _errors_named(self._place, "be closed"):
            await self._client.close()
        await asyncio.to_thread(self._place.stop)

    async def shape(self) -> Shape | None:
        """The shape of the collection, made whole and loaded; None where there is none.

        Raises StoreError for a collection that isn't ours.
        """
        with _errors_named(self._place, "be read"):
            if not await self._client.has_collection(self._name, timeout=self._timeout_s):
                return None
            told = await self._client.describe_collection(self._name, timeout=self._timeout_s)
            shape = Shape.read(str(told.get("description", "")))
            if shape is None:
                raise StoreError(
                    f"The Milvus collection {self._name} at {self._place.shown} was not made by Leadline.",
                    hint="Choose another collection.",
                )
            there = await self._client.list_indexes(self._name)
            await self._make_usable(shape, there)
        return shape

    async def create(self, shape: Shape) -> None:
        """Makes the collection. It has `fields`, a JSON field to filter on, and what the shape says."""
        with _errors_named(self._place, "be made ready"):
            await self._client.create_collection(
                self._name, schema=_schema(shape), consistency_level=STRONG, timeout=self._timeout_s
            )
            await self._make_usable(shape, [])

    async def drop(self) -> None:
        """Removes the collection with all that is in it."""
        with _errors_named(self._place, "be cleared"):
            await self._client.drop_collection(self._name, timeout=self._timeout_s)

    async def upsert(self, rows: list[Row]) -> None:
        """Inserts or replaces by row id, all of them or none."""
        with _errors_named(self._place, "be written"):
            await self._client.upsert(self._name, rows, timeout=self._timeout_s)

    async def delete(self, expression: str) -> None:
        """Removes the rows an expression holds for."""
        with _errors_named(self._place, "be written"):
            await self._client.delete(self._name, filter=expression, consistency_level=STRONG, timeout=self._timeout_s)

    async def count(self, expression: str) -> int:
        """How many rows an expression holds for."""
        rows = await self._query(expression, ["count(*)"])
        return int(rows[0]["count(*)"])

    async def pages(self, expression: str, fields: Sequence[str]) -> AsyncIterator[list[Row]]:
        """The rows an expression holds for, in pages by row id, however many there are."""
        after = expression
        while True:
            page = await self._query(after, [ROW, *fields], limit=PAGE, iterator="True", reduce_stop_for_best="True")
            if not page:
                return
            yield page
            after = both([expression, f'{ROW} > "{max(row[ROW] for row in page)}"'])

    async def nearest(self, field: str, query: object, *, expression: str, limit: int, metric: str) -> list[Row]:
        """The best rows for a vector or, in WORDS, for terms: best first, `distance` as Milvus gives it."""
        with _errors_named(self._place, "be searched"):
            found = await self._client.search(
                self._name,
                data=[query],
                anns_field=field,
                filter=expression,
                limit=min(limit, WINDOW),
                output_fields=[CHUNK, FIELDS],
                search_params={"metric_type": metric},
                consistency_level=STRONG,
                timeout=self._timeout_s,
            )
        return [{**hit["entity"], "distance": float(hit["distance"])} for hit in found[0]]

    async def _query(self, expression: str, fields: list[str], **options: Any) -> list[Row]:
        with _errors_named(self._place, "be read"):
            rows = await self._client.query(
                self._name,
                filter=expression,
                output_fields=fields,
                consistency_level=STRONG,
                timeout=self._timeout_s,
                **options,
            )
        return [dict(row) for row in rows]

    async def _make_usable(self, shape: Shape, there: Sequence[str]) -> None:
        """Makes the indexes that aren't there (a crash may have come between) and loads the collection."""
        indexes = self._client.prepare_index_params()
        wanted = {VECTOR: ("AUTOINDEX", shape.metric)} if shape.dimension else {}
        if shape.analyzer:
            wanted[WORDS] = ("SPARSE_INVERTED_INDEX", "BM25")  # Milvus Lite takes no AUTOINDEX here
        missing = [field for field in wanted if field not in there]
        for field in missing:
            kind, metric = wanted[field]
            indexes.add_index(field, index_name=field, index_type=kind, metric_type=metric)
        if missing:
            await asyncio.to_thread(self._make_indexes, indexes)
        await self._client.load_collection(self._name, timeout=self._timeout_s)

    def _make_indexes(self, indexes: Any) -> None:
        """By the other client: the asynchronous one waits half a second for each, and fails with milvus-lite 3."""
        from pymilvus import MilvusClient

        client = MilvusClient(**self._access)
        try:
            client.create_index(self._name, indexes, timeout=self._timeout_s, sync=False)
        finally:
            client.close()


def _schema(shape: Shape) -> Any:
    from pymilvus import AsyncMilvusClient, DataType, Function, FunctionType

    schema = AsyncMilvusClient.create_schema(auto_id=False, enable_dynamic_field=False, description=shape.described())
    schema.add_field(ROW, DataType.VARCHAR, is_primary=True, max_length=MAX_ID_BYTES)
    schema.add_field(CHUNK, DataType.VARCHAR, max_length=MAX_ID_BYTES)
    schema.add_field(PART, DataType.INT64)
    schema.add_field(FIELDS, DataType.JSON)
    if shape.dimension:
        schema.add_field(VECTOR, DataType.FLOAT_VECTOR, dim=shape.dimension)
    if shape.analyzer:
        # The terms come from our own analyser: here they are only told apart.
        split = {"tokenizer": "whitespace"}
        schema.add_field(
            TERMS, DataType.VARCHAR, max_length=MAX_TERMS_BYTES, enable_analyzer=True, analyzer_params=split
        )
        schema.add_field(WORDS, DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(Function("bm25", FunctionType.BM25, input_field_names=[TERMS], output_field_names=[WORDS]))
    return schema


def _client_class() -> type[AsyncMilvusClient]:
    try:
        from pymilvus import AsyncMilvusClient
    except ImportError:
        raise MissingExtra(
            "The backend milvus needs the package pymilvus.", hint="pip install 'leadline[milvus]'"
        ) from None
    for name in ("decorators", "client.connection_manager"):  # they print what is also raised, with a traceback
        logging.getLogger(f"pymilvus.{name}").setLevel(logging.CRITICAL)
    found: type[AsyncMilvusClient] = AsyncMilvusClient
    return found


@contextmanager
def _errors_named(place: Place, what: str) -> Iterator[None]:
    from grpc import RpcError
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except MilvusException as error:
        raise _failed(place, what, str(error.message)) from error
    except RpcError as error:
        details = getattr(error, "details", None)
        raise _failed(place, what, str(details() if callable(details) else error)) from error
    except (TypeError, ValueError, OSError) as error:  # what its checks of arguments raise
        raise _failed(place, what, str(error)) from error


def _failed(place: Place, what: str, why: str) -> StoreError:
    return StoreError(
        f"Milvus at {place.shown} could not {what}: {why.strip()[:300] or 'no reason given'}.",
        hint="Check that it runs" + (", and its url, user and password." if what == "be reached" else "."),
    )
