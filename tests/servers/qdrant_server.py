"""Qdrant over REST for the tests: a real server where one is given, and a stand-in for where there is none.

The stand-in is not a Qdrant server. It speaks the REST interface of one for exactly the calls that our store makes:
the bodies are checked against the models of Qdrant's published OpenAPI description, everything else is refused with
400, 401 or 404, and what is asked is answered by Qdrant's own segment engine. So it proves the shape of our requests
and what they mean to the engine, not how a server behaves under load, in a cluster, or after its own crash.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pydantic
import pytest
import qdrant_edge as edge
from qdrant_client.http import models
from tests.servers.http_servers import Handler, running

# Read before a test's environment is cleaned.
REAL_URL = os.environ.get("LEADLINE_TEST_QDRANT_URL")
REAL_KEY = os.environ.get("LEADLINE_TEST_QDRANT_API_KEY")
HOW_TO_START = (
    "no Qdrant server: start one with `docker run --rm -p 127.0.0.1:6333:6333 qdrant/qdrant` and set "
    "LEADLINE_TEST_QDRANT_URL=http://127.0.0.1:6333"
)
API_KEY = "key-of-the-stand-in"
PATH = re.compile(r"/collections/(?P<name>[^/]+)(?P<call>(/index|/points(/(delete|scroll|count|query))?)?)")
LARGEST_BODY = 32 * 1024 * 1024


class Refused(Exception):
    """A request that a server would not take: its status and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass
class QdrantStandIn:
    """`url` and `api_key` are what a client needs; `requests` are (method, path, body) as they came; a status put into
    `failures` is the answer to the next request."""

    folder: Path
    url: str = ""
    api_key: str | None = API_KEY
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)
    collections: dict[str, tuple[models.VectorParams, edge.EdgeShard]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def options(self) -> dict[str, Any]:
        """What `open_vector_store` is given. As a header: with `api_key` the client warns of the plain connection."""
        return {"url": self.url, "headers": {"api-key": self.api_key}}

    def answer(self, method: str, target: str, key: str | None, body: Any) -> Any:
        """The result of one call. Raises Refused."""
        self.requests.append((method, target, body))
        if self.failures:
            raise Refused(*self.failures.pop(0))
        if self.api_key is not None and key != self.api_key:
            raise Refused(401, f"Must provide an API key or an Authorization bearer token, not {key}")
        parts = urlsplit(target)
        found = PATH.fullmatch(parts.path)
        call = CALLS.get((method, found["call"])) if found else None
        if found is None or call is None:
            raise Refused(404, f"no such call: {method} {parts.path}")
        if (method, found["call"]) in WRITES and parse_qs(parts.query) != {"wait": ["true"]}:
            raise Refused(400, f"a write of ours waits, and says nothing else: {parts.query!r}")
        with self.lock:
            try:
                return call(self, unquote(found["name"]), body)
            except pydantic.ValidationError as error:
                raise Refused(400, f"Format error in JSON body: {error}") from error

    def collection(self, name: str) -> tuple[models.VectorParams, edge.EdgeShard]:
        """What is stored under a name. Raises Refused."""
        if name not in self.collections:
            raise Refused(404, f"Not found: Collection `{name}` doesn't exist!")
        return self.collections[name]


def _info(server: QdrantStandIn, name: str, _: Any) -> Any:
    params, shard = server.collection(name)
    config = {
        "params": {"vectors": params.model_dump(mode="json", exclude_none=True), "shard_number": 1},
        "hnsw_config": {"m": 16, "ef_construct": 200, "full_scan_threshold": 10000, "max_indexing_threads": 0},
        "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5},
    }
    return {
        "status": "green",
        "optimizer_status": "ok",
        "indexed_vectors_count": 0,
        "points_count": shard.count(edge.CountRequest(exact=True)),
        "segments_count": 1,
        "config": config,
        "payload_schema": {},
    }


def _create(server: QdrantStandIn, name: str, body: Any) -> Any:
    if name in server.collections:
        raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
    params = models.CreateCollection.model_validate(body).vectors
    if not isinstance(params, models.VectorParams):
        raise Refused(400, "our collections have one unnamed vector")
    multi = params.multivector_config and edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
    vectors = edge.EdgeVectorParams(
        size=params.size, distance=getattr(edge.Distance, params.distance.value), multivector_config=multi or None
    )
    folder = server.folder / name
    folder.mkdir()
    server.collections[name] = (params, edge.EdgeShard.create(str(folder), edge.EdgeConfig(vectors=vectors)))
    return True


def _index(server: QdrantStandIn, name: str, body: Any) -> Any:
    _, shard = server.collection(name)
    request = models.CreateFieldIndex.model_validate(body)
    types = {"keyword": edge.PayloadSchemaType.Keyword, "float": edge.PayloadSchemaType.Float}
    shard.update(edge.UpdateOperation.create_field_index(request.field_name, types[str(body["field_schema"])]))
    return _DONE


def _upsert(server: QdrantStandIn, name: str, body: Any) -> Any:
    params, shard = server.collection(name)
    points = []
    for point in models.PointsList.model_validate(body).points:
        vectors = point.vector
        if not isinstance(vectors, list) or not all(isinstance(v, list) and len(v) == params.size for v in vectors):
            raise Refused(400, f"Wrong input: Vector dimension error: expected dim: {params.size}")
        points.append(edge.Point(point.id, vectors, point.payload))
    shard.update(edge.UpdateOperation.upsert_points(points))
    return _DONE


def _retrieve(server: QdrantStandIn, name: str, body: Any) -> Any:
    _, shard = server.collection(name)
    request = models.PointRequest.model_validate(body)
    _without_vectors(request.with_vector)
    found = shard.retrieve(list(request.ids), with_payload=_selected(request.with_payload), with_vector=False)
    return [{"id": str(point.id), "payload": point.payload} for point in found]


def _delete(server: QdrantStandIn, name: str, body: Any) -> Any:
    _, shard = server.collection(name)
    if "filter" in body:
        wanted = models.FilterSelector.model_validate(body).filter
        shard.update(edge.UpdateOperation.delete_points_by_filter(_filter(wanted.model_dump(exclude_none=True))))
    else:
        ids = models.PointIdsList.model_validate(body).points
        shard.update(edge.UpdateOperation.delete_points(list(ids)))
    return _DONE


def _scroll(server: QdrantStandIn, name: str, body: Any) -> Any:
    _, shard = server.collection(name)
    request = models.ScrollRequest.model_validate(body)
    _without_vectors(request.with_vector)
    points, following = shard.scroll(
        edge.ScrollRequest(
            offset=request.offset, limit=request.limit, with_payload=_selected(request.with_payload), with_vector=False
        )
    )
    found = [{"id": str(point.id), "payload": point.payload} for point in points]
    return {"points": found, "next_page_offset": None if following is None else str(following)}


def _count(server: QdrantStandIn, name: str, body: Any) -> Any:
    _, shard = server.collection(name)
    request = models.CountRequest.model_validate(body)
    return {"count": shard.count(edge.CountRequest(exact=bool(request.exact)))}


def _query(server: QdrantStandIn, name: str, body: Any) -> Any:
    params, shard = server.collection(name)
    request = models.QueryRequest.model_validate(body)
    _without_vectors(request.with_vector)
    question = request.query.nearest if isinstance(request.query, models.NearestQuery) else None
    if not isinstance(question, list) or [len(v) for v in question if isinstance(v, list)] != [params.size]:
        raise Refused(400, f"Wrong input: Vector dimension error: expected dim: {params.size}")
    wanted = request.params or models.SearchParams()
    found = shard.search(
        edge.SearchRequest(
            edge.Query.Nearest(question),
            limit=request.limit or 10,
            filter=_filter(request.filter.model_dump(exclude_none=True)) if request.filter else None,
            params=edge.SearchParams(hnsw_ef=wanted.hnsw_ef, exact=bool(wanted.exact)),
            with_payload=_selected(request.with_payload),
        )
    )
    return {"points": [{"id": str(p.id), "version": p.version, "score": p.score, "payload": p.payload} for p in found]}


_DONE = {"operation_id": 0, "status": "completed"}
CALLS: dict[tuple[str, str], Callable[[QdrantStandIn, str, Any], Any]] = {
    ("GET", ""): _info,
    ("PUT", ""): _create,
    ("PUT", "/index"): _index,
    ("PUT", "/points"): _upsert,
    ("POST", "/points"): _retrieve,
    ("POST", "/points/delete"): _delete,
    ("POST", "/points/scroll"): _scroll,
    ("POST", "/points/count"): _count,
    ("POST", "/points/query"): _query,
}
WRITES = {("PUT", "/index"), ("PUT", "/points"), ("POST", "/points/delete")}


def _without_vectors(asked: Any) -> None:
    if asked:
        raise Refused(400, "our store never asks for vectors")


def _selected(asked: Any) -> Any:
    if not isinstance(asked, bool | list):
        raise Refused(400, f"our store says which payload it wants, not {asked!r}")
    return asked


def _filter(clauses: dict[str, Any]) -> edge.Filter:
    if not clauses.keys() <= {"must", "should", "must_not"}:
        raise Refused(400, f"our filters have three clauses, not {sorted(clauses)}")
    converted: dict[str, Any] = {name: [_condition(part) for part in parts] for name, parts in clauses.items()}
    return edge.Filter(**converted)


def _condition(part: dict[str, Any]) -> Any:
    if "key" not in part:
        return _filter(part)
    if part.keys() == {"key", "range"}:
        return edge.FieldCondition(part["key"], range=edge.RangeFloat(**part["range"]))
    if part.keys() == {"key", "match"} and part["match"].keys() == {"any"}:
        return edge.FieldCondition(part["key"], match=edge.MatchAny(part["match"]["any"]))
    raise Refused(400, f"not a condition of ours: {part}")


class _Handler(Handler):
    def respond(self) -> None:
        server: QdrantStandIn = self.served
        try:
            length = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length)
            if length > LARGEST_BODY:
                raise Refused(413, f"Payload reached size limit: {length}")
            body = json.loads(sent) if sent else None
            result = server.answer(self.command, self.path, self.headers.get("api-key"), body)
            status, answer = 200, {"result": result, "status": "ok", "time": 0.001}
        except Refused as refused:
            status, answer = refused.status, {"status": {"error": str(refused)}, "time": 0.001}
        self.answer(status, json.dumps(answer).encode())


@pytest.fixture(scope="session")
def qdrant_stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantStandIn]:
    """The stand-in, running until the end of the tests."""
    server = QdrantStandIn(tmp_path_factory.mktemp("qdrant"))
    with running(_Handler) as http:
        http.served, server.url = server, http.url
        yield server
    for _, shard in server.collections.values():
        shard.close()


@pytest.fixture
def qdrant_standin_options(qdrant_stand_in: QdrantStandIn) -> dict[str, Any]:
    """Where the stand-in is."""
    return qdrant_stand_in.options


@pytest.fixture
def qdrant_server_options() -> dict[str, Any]:
    """Where a real server is; skips without one."""
    if REAL_URL is None:
        pytest.skip(HOW_TO_START)

    return {"url": REAL_URL, "headers": {"api-key": REAL_KEY} if REAL_KEY else {}}
