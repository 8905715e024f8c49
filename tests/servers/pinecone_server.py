"""Pinecone on loopback: a stand-in that speaks the documented REST format, and a real index by its key.

The stand-in keeps the documented limits and answers any other form of a request with a 400: what passes is what the
documentation says, not what Pinecone would do with it. Like Pinecone it acknowledges a write before reads see it.
Where the documentation is silent (whether `$ne` lets a record without the field through) it says no.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from tests.servers.http_servers import JSON, Handler, running
from tests.servers.pinecone_query import Body, Refused, only, passes, score

REAL_KEY = os.environ.get("LEADLINE_TEST_PINECONE_API_KEY", "")
REAL_HOST = os.environ.get("LEADLINE_TEST_PINECONE_HOST", "")
HOW_TO_START = (
    "no Pinecone here: make a serverless index of 16 dimensions with the cosine metric, to be deleted afterwards, and "
    "set LEADLINE_TEST_PINECONE_API_KEY and LEADLINE_TEST_PINECONE_HOST"
)
KEY = "stand-in-key"
LIMIT_BYTES = 2 * 10**6
METADATA_BYTES = 40 * 1024
DEFAULT = "__default__"


@dataclass
class Index:
    """Vectors by namespace and id, and the writes that reads don't see yet as (when they do, what they do)."""

    dimension: int
    metric: str
    vectors: dict[str, dict[str, Body]] = field(default_factory=dict)
    waiting: list[tuple[float, Any]] = field(default_factory=list)
    written: int = 0
    seen: int = 0


@dataclass
class PineconeStandIn:
    """Requests are kept as (method, path, body). A write is seen `lag_s` after it was acknowledged."""

    url: str = ""
    indexes: dict[str, Index] = field(default_factory=dict)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    lag_s: float = 0.01
    has_log: bool = True
    statuses: list[int] = field(default_factory=list)

    def answer(self, method: str, address: str, raw: bytes, headers: Mapping[str, str]) -> tuple[Body, dict[str, str]]:
        """The body and the headers of the answer. Raises Refused."""
        parts = urlsplit(address)
        body = json.loads(raw or b"null")
        self.requests.append((method, address, body))
        if headers.get("Api-Key") != KEY:
            raise Refused(401, f"Invalid API key {headers.get('Api-Key')}")
        if self.statuses:
            raise Refused(self.statuses.pop(0), "said to fail")
        if not headers.get("X-Pinecone-Api-Version") or len(raw) > LIMIT_BYTES or len(address) > 8000:
            raise Refused(400, "no version, or too long")
        match method, parts.path.strip("/").split("/"):
            case "POST", ["indexes"]:
                return self.create(body), {}
            case "GET", ["indexes", name]:
                return self.describe(name), {}
            case _, [name, *path]:
                return self.data(self.indexes[name], method, "/".join(path), body, parse_qs(parts.query))
        raise Refused(404, f"no such endpoint: {method} {address}")

    def create(self, body: Body) -> Body:
        only(body, "name", "schema", "deployment")
        only(body["deployment"], "deployment_type", "cloud", "region")
        only(body["schema"]["fields"], "_values")
        vector = body["schema"]["fields"]["_values"]
        only(vector, "type", "dimension", "metric")
        self.indexes[body["name"]] = Index(vector["dimension"], vector["metric"])
        return self.describe(body["name"])

    def describe(self, name: str) -> Body:
        if name not in self.indexes:
            raise Refused(404, f"Resource {name} not found")
        index = self.indexes[name]
        vector = {"type": "dense_vector", "dimension": index.dimension, "metric": index.metric}
        return {
            "name": name,
            "host": f"{self.url}/{name}",
            "status": {"ready": True, "state": "Ready"},
            "schema": {"fields": {"_values": vector}},
            "deployment": {"deployment_type": "managed", "cloud": "aws", "region": "us-east-1"},
            "deletion_protection": "disabled",
        }

    def data(
        self, index: Index, method: str, path: str, body: Body, query: Mapping[str, list[str]]
    ) -> tuple[Body, dict[str, str]]:
        """One request to the data plane: writes wait in a log, reads see what is due of it."""
        while index.waiting and index.waiting[0][0] <= time.monotonic():
            index.waiting.pop(0)[1]()
            index.seen += 1
        name = (query["namespace"][0] if "namespace" in query else "") if body is None else body.get("namespace", "")
        stored = index.vectors.get(name or DEFAULT, {})
        match method, path:
            case "POST", "vectors/upsert":
                answer: Body = self.upsert(index, body, name or DEFAULT)
            case "POST", "vectors/delete":
                answer = self.delete(index, body, name or DEFAULT)
            case "GET", "vectors/fetch":
                ids = query["ids"]
                if len(ids) > 1000:
                    raise Refused(400, "at most 1000 ids")
                return {"namespace": name, "vectors": {each: stored[each] for each in ids if each in stored}}, {}
            case "GET", "vectors/list":
                return listed(stored, {key: values[0] for key, values in query.items()}), {}
            case "POST", "query":
                seen = {"x-pinecone-max-indexed-lsn": str(index.seen)} if self.has_log else {}
                return {"namespace": name, "matches": nearest(index, stored, body)}, seen
            case "POST", "describe_index_stats":
                counts = {key: {"vectorCount": len(found)} for key, found in index.vectors.items() if found}
                total = sum(each["vectorCount"] for each in counts.values())
                shape = {"dimension": index.dimension, "metric": index.metric, "totalVectorCount": total}
                return {**shape, "indexFullness": 0, "namespaces": counts}, {}
            case _:
                raise Refused(404, f"no such endpoint: {method} {path}")
        return answer, {"x-pinecone-request-lsn": str(index.written)} if self.has_log else {}

    def write(self, index: Index, change: Any) -> None:
        index.written += 1
        index.waiting.append((time.monotonic() + self.lag_s, change))

    def upsert(self, index: Index, body: Body, namespace: str) -> Body:
        only(body, "vectors", "namespace")
        if not 0 < len(body["vectors"]) <= 1000:
            raise Refused(400, "1 to 1000 vectors")
        for vector in body["vectors"]:
            only(vector, "id", "values", "metadata")
            check_vector(vector, index.dimension)
        new = {each["id"]: each for each in body["vectors"]}
        self.write(index, lambda: index.vectors.setdefault(namespace, {}).update(new))
        return {"upsertedCount": len(body["vectors"])}

    def delete(self, index: Index, body: Body, namespace: str) -> Body:
        only(body, "ids", "deleteAll", "namespace")
        if namespace not in index.vectors and not index.waiting:
            raise Refused(404, "Namespace not found")
        if len(body.get("ids", [])) > 1000 or ("ids" in body) == ("deleteAll" in body):
            raise Refused(400, "at most 1000 ids, or all")
        ids = body.get("ids")

        def apply() -> None:
            stored = index.vectors.setdefault(namespace, {})
            for each in list(stored) if ids is None else ids:
                stored.pop(each, None)

        self.write(index, apply)
        return {}


def check_vector(vector: Body, dimension: int) -> None:
    """The documented limits of a record."""
    if not vector["id"].isascii() or not 0 < len(vector["id"]) <= 512:
        raise Refused(400, "an id has 1 to 512 ASCII characters")
    if len(vector["values"]) != dimension or not any(vector["values"]):
        raise Refused(400, f"Vector dimension {len(vector['values'])} does not match {dimension}, or all zeros")
    if len(json.dumps(vector["metadata"]).encode()) > METADATA_BYTES:
        raise Refused(400, "metadata size exceeds the limit of 40960 bytes per vector")
    for key, value in vector["metadata"].items():
        if not key or key.startswith("$") or not isinstance(value, str | int | float):
            raise Refused(400, f"bad metadata: {key}")
        if isinstance(value, int) and not isinstance(value, bool):
            vector["metadata"][key] = float(value)


def listed(stored: Mapping[str, Body], query: Mapping[str, str]) -> Body:
    """A page of ids, in order."""
    only(dict(query), "namespace", "prefix", "paginationToken")
    after = query.get("paginationToken", "")
    ids = sorted(each for each in stored if each > after and each.startswith(query.get("prefix", "")))
    more = {"pagination": {"next": ids[99]}} if len(ids) > 100 else {}
    return {"vectors": [{"id": each} for each in ids[:100]], **more}


def nearest(index: Index, stored: Mapping[str, Body], body: Body) -> list[Body]:
    """The best matches of a query."""
    only(body, "namespace", "vector", "topK", "filter", "includeMetadata", "includeValues")
    if not 0 < body["topK"] <= 10_000 or len(body["vector"]) != index.dimension:
        raise Refused(400, "topK is 1 to 10000, and the vector as wide as the index")
    vector = np.array(body["vector"], dtype=np.float32)
    passing = [each for each in stored.values() if passes(body.get("filter", {}), each["metadata"])]
    scored = [(score(index.metric, vector, np.array(each["values"], dtype=np.float32)), each) for each in passing]
    scored.sort(key=lambda item: item[0] if index.metric == "euclidean" else -item[0])
    shown = ("id", "metadata") if body.get("includeMetadata") else ("id",)
    return [{"score": found, **{key: each[key] for key in shown}} for found, each in scored[: body["topK"]]]


class _Handler(Handler):
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        standin: PineconeStandIn = self.served
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, extra = 200, dict[str, str]()
        try:
            answer, extra = standin.answer(self.command, self.path, raw, dict(self.headers.items()))
        except Refused as refused:
            status, answer = refused.status, {"code": refused.status, "message": refused.message, "details": []}
        except (KeyError, TypeError, ValueError) as error:
            status, answer = 400, {"code": 3, "message": f"not in the documented form: {error!r}", "details": []}
        self.answer(status, json.dumps(answer).encode(), {**JSON, **extra})


@contextmanager
def _serving() -> Iterator[PineconeStandIn]:
    with running(_Handler) as http:
        http.served = PineconeStandIn(http.url)
        yield http.served


@pytest.fixture
def pinecone_standin() -> Iterator[PineconeStandIn]:
    """A stand-in of the test's own, without an index."""
    with _serving() as standin:
        yield standin


@pytest.fixture(scope="session")
def pinecone_standin_options() -> Iterator[dict[str, Any]]:
    """What opens a store on a stand-in for the contract suite."""
    with _serving() as standin:
        standin.indexes["contract"] = Index(16, "cosine")
        yield {"api_key": KEY, "host": f"{standin.url}/contract"}


@pytest.fixture(scope="session")
def pinecone_options() -> dict[str, Any]:
    """What opens a store on a real index; skips where there is none."""
    if not (REAL_KEY and REAL_HOST):
        pytest.skip(HOW_TO_START)
    return {"api_key": REAL_KEY, "host": REAL_HOST}
