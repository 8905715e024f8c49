"""A Qdrant server, spoken to over REST by the official client."""

from __future__ import annotations

import asyncio
import math
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import numpy as np

from leadline.errors import ConfigError, ManifestMismatch, MissingExtra, StoreError
from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.qdrant_engine import DISTANCES, METRICS, Row, Shape
from leadline.stores.qdrant_payloads import CHUNK_ID, Expression, Kind, Payload, payload, point_id

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient
    from qdrant_client.http.models import CollectionInfo

PAGE = 5000
NOT_FOUND, CONFLICT, DENIED = 404, 409, (401, 403)
# Kilobytes of vectors in one segment up to which the server compares all of them instead of using a graph.
EXACT_UP_TO_KB = 100_000
# Beyond it: measured on 20,000 clustered vectors of width 384, recall@10 is 1.0.
HNSW_EF = 200
LONGEST_REASON = 300


class ServerEngine:
    """An Engine over one collection of a server."""

    def __init__(
        self,
        url: str,
        collection: str,
        *,
        api_key: str | None,
        headers: Mapping[str, str],
        exact: bool,
        timeout_s: float,
    ) -> None:
        parts = _address(url)
        host = parts.netloc.rpartition("@")[2]
        self._url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        # The client takes 6333 where an address has no port.
        self._port = parts.port or (443 if parts.scheme == "https" else 6333)
        self._name = collection
        self._api_key = api_key
        self._headers = {**_login(parts.username, parts.password), **headers}
        self._secrets = [secret for secret in (api_key, parts.password, *self._headers.values()) if secret]
        self._exact = exact
        self._timeout_s = timeout_s
        self._client: AsyncQdrantClient | None = None

    @property
    def place(self) -> str:
        """The collection and the server's address."""
        return f"{self._name} at {self._url}"

    @property
    def most_indexes(self) -> int:
        """More than most sources have fields."""
        return 50

    async def open(self) -> Shape | None:
        """Connects and looks the collection up."""
        await asyncio.to_thread(_import_client)  # takes a second
        from qdrant_client import AsyncQdrantClient

        self._client = AsyncQdrantClient(
            url=self._url,
            port=self._port,
            api_key=self._api_key,
            headers=self._headers,
            timeout=math.ceil(self._timeout_s),
            check_compatibility=False,  # would ask the server from a thread of its own
        )
        try:
            return await self._stored_shape()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Ends the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def create(self, shape: Shape) -> Shape:
        """Makes the collection, or takes the one that somebody else made meanwhile."""
        from qdrant_client.http import models
        from qdrant_client.http.exceptions import UnexpectedResponse

        async with self._calling() as client:
            try:
                await client.create_collection(
                    self._name,
                    vectors_config=models.VectorParams(
                        size=shape.dimension,
                        distance=models.Distance(DISTANCES[shape.metric]),
                        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
                    ),
                    hnsw_config=models.HnswConfigDiff(ef_construct=HNSW_EF, full_scan_threshold=EXACT_UP_TO_KB),
                    optimizers_config=models.OptimizersConfigDiff(indexing_threshold=EXACT_UP_TO_KB),
                )
            except UnexpectedResponse as error:
                if error.status_code != CONFLICT:
                    raise
        return await self._stored_shape() or shape

    async def index(self, path: str, kind: Kind) -> None:
        """Has a part of the payload indexed, and waits for it."""
        from qdrant_client.http.models import PayloadSchemaType

        async with self._calling() as client:
            await client.create_payload_index(self._name, path, field_schema=PayloadSchemaType(kind), wait=True)

    async def upsert(self, records: Sequence[ChunkRecord]) -> None:
        """Inserts or replaces points; waits until they are stored."""
        from qdrant_client.http.models import PointStruct

        points = [
            PointStruct(id=point_id(r.chunk_id), vector=[_floats(v) for v in r.vectors], payload=payload(r))
            for r in records
        ]
        async with self._calling() as client:
            await client.upsert(self._name, points, wait=True)

    async def existing(self, point_ids: Sequence[str]) -> set[str]:
        """Which of the points there are."""
        async with self._calling() as client:
            found = await client.retrieve(self._name, list(point_ids), with_payload=False, with_vectors=False)
        return {str(point.id) for point in found}

    async def delete(self, point_ids: Sequence[str]) -> None:
        """Removes points; waits until they are gone."""
        from qdrant_client.http.models import PointIdsList

        async with self._calling() as client:
            await client.delete(self._name, PointIdsList(points=list(point_ids)), wait=True)

    async def page(self, after: str | None) -> tuple[list[Payload], str | None]:
        """A page of chunk ids."""
        async with self._calling() as client:
            points, following = await client.scroll(
                self._name, limit=PAGE, offset=after, with_payload=[CHUNK_ID], with_vectors=False
            )
        return [point.payload or {} for point in points], None if following is None else str(following)

    async def count(self) -> int:
        """How many points there are."""
        async with self._calling() as client:
            return (await client.count(self._name, exact=True)).count

    async def clear(self) -> None:
        """Removes all points; what else was set up of the collection stays."""
        from qdrant_client.http.models import Filter, FilterSelector

        async with self._calling() as client:
            await client.delete(self._name, FilterSelector(filter=Filter()), wait=True)

    async def search(self, vector: Vector, n: int, expression: Expression | None, *, whole: bool) -> list[Row]:
        """The nearest points; all are compared, or as many as make recall near to 1."""
        from qdrant_client.http.models import Filter, SearchParams

        async with self._calling() as client:
            found = await client.query_points(
                self._name,
                query=[_floats(vector)],
                limit=n,
                query_filter=None if expression is None else Filter.model_validate(expression),
                search_params=SearchParams(exact=True) if self._exact else SearchParams(hnsw_ef=max(HNSW_EF, n)),
                with_payload=True if whole else [CHUNK_ID],
            )
        return [Row(point.payload or {}, point.score) for point in found.points]

    async def _stored_shape(self) -> Shape | None:
        from qdrant_client.http.exceptions import UnexpectedResponse

        async with self._calling() as client:
            try:
                info = await client.get_collection(self._name)
            except UnexpectedResponse as error:
                if error.status_code == NOT_FOUND:
                    return None
                raise
        return self._shape(info)

    def _shape(self, info: CollectionInfo) -> Shape:
        from qdrant_client.http.models import MultiVectorComparator, VectorParams

        vectors = info.config.params.vectors
        if not isinstance(vectors, VectorParams) or (
            getattr(vectors.multivector_config, "comparator", None) is not MultiVectorComparator.MAX_SIM
        ):
            raise ManifestMismatch(
                f"The Qdrant collection {self.place} was not made by Leadline: its vectors are no MaxSim multivectors.",
                hint="Use another collection.",
            )
        return Shape(METRICS.get(vectors.distance.value, vectors.distance.value), vectors.size)

    @asynccontextmanager
    async def _calling(self) -> AsyncIterator[AsyncQdrantClient]:
        """The client, with its errors named."""
        if self._client is None:
            raise StoreError(f"The Qdrant store {self.place} isn't open.", hint="Use it inside `async with`.")
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

        try:
            yield self._client
        except UnexpectedResponse as error:
            raise self._refused(error.status_code, error.content) from error
        except ResponseHandlingException as error:
            reason = self._clean(str(error.source) or type(error.source).__name__)
            raise StoreError(
                f"The Qdrant server of {self.place} gave no answer: {reason}.",
                hint="Is it running, and is the url right?",
            ) from error
        except (ApiException, QdrantException) as error:
            raise StoreError(f"The Qdrant server of {self.place} refused: {self._clean(str(error))}.") from error

    def _refused(self, status: int | None, content: bytes) -> StoreError:
        reason = self._clean(content.decode(errors="replace"))
        hint = "Check `api_key` and `headers`." if status in DENIED else ""
        return StoreError(f"The Qdrant server of {self.place} answered {status}: {reason}.", hint=hint)

    def _clean(self, text: str) -> str:
        """A server's words without the secrets that it may have repeated."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"


def _import_client() -> Any:
    try:
        import qdrant_client
    except ImportError:
        raise MissingExtra(
            "A Qdrant server needs the package qdrant-client.", hint="pip install 'leadline[qdrant]'"
        ) from None
    return qdrant_client


def _address(url: str) -> SplitResult:
    """The parts of a server's address. Raises ConfigError for anything else."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(
            "The url of a Qdrant server starts with http:// or https:// and names a host.",
            hint="Write `url` like http://localhost:6333.",
        )
    return parts


def _login(user: str | None, password: str | None) -> dict[str, str]:
    """The header that stands for the user info of a url."""
    if not user:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _floats(vector: Vector) -> list[float]:
    numbers: list[float] = np.asarray(vector, dtype=np.float64).tolist()
    return numbers
