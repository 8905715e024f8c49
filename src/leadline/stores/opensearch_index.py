"""The requests that the OpenSearch store makes to its index, and what their answers mean.

An answer that is not whole (a shard that failed, one item of a bulk that was refused) is an error. Knows the documents
of `opensearch_schema`; knows nothing of records, legs or policies.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leadline.errors import InvalidFilter, ManifestMismatch, StoreError
from leadline.stores import opensearch_client, opensearch_schema
from leadline.stores.opensearch_client import Address
from leadline.stores.opensearch_schema import Metric, Query

if TYPE_CHECKING:
    from opensearchpy import AsyncOpenSearch

# What a bulk does: its action line, and the document where it writes one.
Action = tuple[dict[str, Any], str | None]

WINDOW = 10_000  # index.max_result_window, and the largest k of a knn query
BULK_BYTES = 8 * 2**20
BULK_RETRIES = 3
IDS_AT_ONCE = 5000
SNAPSHOT_LASTS = "2m"


class OpenSearchIndex:
    """One index on a server, by name. `dimension` is the width of its vectors: 0 for words alone, None for no index."""

    def __init__(
        self, client: AsyncOpenSearch, at: Address, name: str, metric: Metric, analyzer: str, timeout: float
    ) -> None:
        self.client = client
        self.dimension: int | None = None
        self._at = at
        self._name = name
        self._metric = metric
        self._analyzer = analyzer
        self._timeout = timeout

    async def look(self) -> None:
        """Reads the mapping. Raises ManifestMismatch for one of another metric, analyser or kind."""
        # Ignored, because the client library would warn of it, and on first use there is none.
        ask = {"ignore": 404}
        found = await self._ask(lambda client: client.indices.get_mapping(index=self._name, params=ask))
        if "error" in found and not opensearch_client.is_missing_index(found):
            raise opensearch_client.refusal(self._at, 404, found)
        self.dimension = None if "error" in found else self._checked(next(iter(found.values()))["mappings"])

    async def create(self, dimension: int) -> None:
        """Makes the index, unless another process just did."""
        from opensearchpy import RequestError

        body = opensearch_schema.index_body(dimension=dimension, metric=self._metric, analyzer=self._analyzer)
        with opensearch_client.errors_named(self._at, self._timeout):
            try:
                await self.client.indices.create(index=self._name, body=body)
            except RequestError as error:
                if error.error != "resource_already_exists_exception":
                    raise
        await self.look()

    async def drop(self) -> None:
        """Removes the index with all it holds."""
        await self._ask(lambda client: client.indices.delete(index=self._name))
        self.dimension = None

    def mismatch(self, what: str) -> ManifestMismatch:
        """The index is not of the kind that was asked for."""
        return ManifestMismatch(
            f"The OpenSearch index {self._name} at {self._at.shown} {what}.",
            hint="Set the settings back, or use another index.",
        )

    async def bulk(self, actions: Sequence[Action]) -> None:
        """Applies all actions, in order, and makes them visible. Raises StoreError if one of them failed."""
        from opensearchpy.helpers import async_streaming_bulk

        if not actions:
            return
        outcomes = async_streaming_bulk(
            self.client,
            actions,
            max_chunk_bytes=BULK_BYTES,
            raise_on_error=False,
            expand_action_callback=tuple,
            max_retries=BULK_RETRIES,
            initial_backoff=0.5,
            index=self._name,
            refresh="true",
        )
        refused: list[dict[str, Any]] = []
        with opensearch_client.errors_named(self._at, self._timeout):
            async for done, item in outcomes:
                [(kind, outcome)] = item.items()
                if not done and not (kind == "delete" and outcome.get("status") == 404):
                    refused.append(outcome)
        if refused:
            raise StoreError(
                f"OpenSearch at {self._at.shown} refused {len(refused)} of {len(actions)} documents; the first is "
                f"{refused[0].get('_id')}: {opensearch_client.reason(refused[0])}.",
                hint="The others are written; run it again once the cause is gone.",
            )

    async def vector_counts(self, chunk_ids: Iterable[str]) -> dict[str, int]:
        """Chunk id → how many vectors it has, of those stored. Real time: sees what isn't refreshed yet."""
        unique = list(dict.fromkeys(chunk_ids))
        found: dict[str, int] = {}
        for start in range(0, len(unique), IDS_AT_ONCE):
            for document in await self._documents(unique[start : start + IDS_AT_ONCE]):
                if document.get("found"):
                    found[document["_id"]] = int(document["_source"]["vectors"])
                elif "error" in document and not opensearch_client.is_missing_index(document):
                    raise opensearch_client.refusal(self._at, "mget", document)
        return found

    async def _documents(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        answer = await self._ask(
            lambda client: client.mget(index=self._name, body={"ids": ids}, params={"_source": "vectors"})
        )
        return list(answer["docs"]) if answer else []

    async def chunk_ids(self, query: Query) -> AsyncIterator[str]:
        """The chunk ids of the documents that `query` lets through, of one point in time, in pages."""
        snapshot = await self._ask(
            lambda client: client.create_pit(index=self._name, params={"keep_alive": SNAPSHOT_LASTS})
        )
        if snapshot is None:
            return
        pit_id = snapshot["pit_id"]
        try:
            after: list[str] = []
            while True:
                hits = await self._page(pit_id, query, after)
                for hit in hits:
                    yield hit["_id"]
                if len(hits) < WINDOW:
                    return
                after = hits[-1]["sort"]
        finally:
            await self._ask(lambda client: client.delete_pit(body={"pit_id": [pit_id]}))

    async def _page(self, pit_id: str, query: Query, after: list[str]) -> list[dict[str, Any]]:
        body = {
            "size": WINDOW,
            "query": query,
            "sort": [{"chunk_id": "asc"}],
            "pit": {"id": pit_id, "keep_alive": SNAPSHOT_LASTS},
            "_source": False,
            "track_total_hits": False,
            **({"search_after": after} if after else {}),
        }
        answer = await self._ask(lambda client: client.search(body=body))
        return self._whole(answer) if answer else []

    async def count(self, query: Query) -> int:
        """How many documents `query` lets through."""
        answer = await self._ask(lambda client: client.count(index=self._name, body={"query": query}))
        if answer and answer["_shards"]["failed"]:
            raise self._partial()
        return int(answer["count"]) if answer else 0

    async def search(self, query: Query, size: int, *, native: bool) -> list[tuple[str, float]]:
        """(chunk id, score) of the best `size` documents. `native`: a fault in the query is the caller's filter."""
        from opensearchpy import RequestError

        body = {
            "size": size,
            "query": query,
            "sort": [{"_score": "desc"}, {"chunk_id": "asc"}],
            "_source": False,
            "track_total_hits": False,
        }

        async def ask(client: AsyncOpenSearch) -> Any:
            try:
                return await client.search(index=self._name, body=body)
            except RequestError as error:
                if not native:
                    raise
                raise InvalidFilter(
                    f"OpenSearch doesn't take the native filter: {opensearch_client.reason(error.info)}.",
                    hint="A native filter is one Query DSL object.",
                ) from error

        answer = await self._ask(ask)
        hits = self._whole(answer) if answer else []
        return [(opensearch_schema.chunk_of(hit["_id"]), float(hit["_score"])) for hit in hits]

    async def _ask(self, request: Callable[[AsyncOpenSearch], Coroutine[Any, Any, Any]]) -> Any:
        """The answer to a request; None where it says that there is no such index."""
        from opensearchpy import NotFoundError

        with opensearch_client.errors_named(self._at, self._timeout):
            try:
                return await request(self.client)
            except NotFoundError as error:
                if not opensearch_client.is_missing_index(error.info):
                    raise
                return None

    def _whole(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        if answer.get("timed_out") or answer["_shards"]["failed"]:
            raise self._partial()
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

    def _partial(self) -> StoreError:
        return StoreError(
            f"Parts of the OpenSearch index {self._name} at {self._at.shown} gave no answer.",
            hint="Look at the health of the cluster.",
        )

    def _checked(self, mapping: Mapping[str, Any]) -> int:
        """The width of the vectors that the mapping has."""
        properties = mapping.get("properties", {})
        if (mapping.get("_meta") or {}).get("leadline") != opensearch_schema.FORMAT or "text" not in properties:
            raise self.mismatch("wasn't made by this version of Leadline")
        if (analyzer := properties["text"].get("analyzer", "standard")) != self._analyzer:
            raise self.mismatch(f"cuts words by the analyser {analyzer}, not {self._analyzer}")
        vector = properties.get("vector")
        if vector is None:
            return 0
        space = vector.get("method", {}).get("space_type") or vector.get("space_type")
        if space != opensearch_schema.SPACES[self._metric]:
            raise self.mismatch(f"measures by {space}, not by {opensearch_schema.SPACES[self._metric]}")
        return int(vector["dimension"])
