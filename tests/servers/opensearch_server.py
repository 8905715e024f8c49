"""OpenSearch on loopback, three ways: a stand-in for its k-NN, the fake `osmem-server` for words, and a real one.

The stand-in answers the documented form of the requests that the store makes, from the documents it was given, and
refuses every other form with a 400: what passes is what the documentation says, not what a real server would do with
it. It computes k-NN exactly; of words it only counts those shared. `osmem-server` analyses and ranks text, and knows no
k-NN.
"""

import base64
import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from osmem_server import resolve_binary  # type: ignore[import-untyped]  # it has no types
from tests.servers.http_servers import Handler, running
from tests.servers.opensearch_query import SCORES, WINDOW, Document, Refused, bad, nearest, only, passes, sharing
from tests.servers.programs import Program, free_port, is_open

REAL_URL = os.environ.get("LEADLINE_TEST_OPENSEARCH_URL", "")
HOW_TO_START = (
    "no OpenSearch here: start one with `docker run --rm -p 127.0.0.1:9200:9200 -e discovery.type=single-node "
    "-e DISABLE_SECURITY_PLUGIN=true opensearchproject/opensearch:3` "
    "and set LEADLINE_TEST_OPENSEARCH_URL=http://localhost:9200"
)


@dataclass
class Index:
    """`written` is what a get by id sees, `visible` what a search sees: the same after a refresh."""

    name: str
    body: Document
    written: dict[str, Document] = field(default_factory=dict)
    visible: dict[str, Document] = field(default_factory=dict)

    @property
    def properties(self) -> Document:
        found: Document = self.body["mappings"]["properties"]
        return found


@dataclass
class OpenSearchStandIn:
    """Requests are kept as (method, path, body). The rest makes it fail in one way or another: `refused_ids` has the
    statuses that a document is answered with before it is taken, `status` what every request is."""

    url: str = ""
    indexes: dict[str, Index] = field(default_factory=dict)
    snapshots: dict[str, list[Document]] = field(default_factory=dict)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    credentials: str = ""
    refused_ids: dict[str, list[int]] = field(default_factory=dict)
    failed_shards: int = 0
    status: int = 0
    delay_s: float = 0.0

    def answer(self, method: str, path: str, raw: str, authorization: str) -> Any:
        """The body of the answer. Raises Refused."""
        parts = urlsplit(path)
        body: Any = raw if parts.path.endswith("_bulk") else json.loads(raw or "null")
        self.requests.append((method, path, body))
        time.sleep(self.delay_s)
        expected = f"Basic {base64.b64encode(self.credentials.encode()).decode()}"
        if self.credentials and authorization != expected:
            raise Refused(401, "security_exception", "Unauthorized")
        if self.status:
            raise Refused(self.status, "cluster_block_exception", "said to fail")
        options = {key: values[0] for key, values in parse_qs(parts.query).items()}
        return self.route(method, parts.path.strip("/").split("/"), body, options)

    def route(self, method: str, path: list[str], body: Any, options: Mapping[str, str]) -> Any:  # noqa: C901 - a table
        """One line or two for each endpoint."""
        match method, *path:
            case "PUT", name:
                return self.create(name, body)
            case "DELETE", "_search", "point_in_time":
                return {
                    "pits": [{"pit_id": each, "successful": bool(self.snapshots.pop(each))} for each in body["pit_id"]]
                }
            case "DELETE", name:
                del self.indexes[self.index(name).name]
                return {"acknowledged": True}
            case "GET", name, "_mapping":
                return {name: {"mappings": self.index(name).body["mappings"]}}
            case "POST", name, "_bulk":
                return self.bulk(self.index(name), body, options)
            case "GET" | "POST", name, "_mget":
                return self.mget(self.index(name), body, options)
            case "POST", name, "_search", "point_in_time":
                pit_id = f"pit-{len(self.requests)}"
                self.snapshots[pit_id] = list(self.index(name).visible.values())
                return {"pit_id": pit_id, "_shards": self.shards()}
            case "GET" | "POST", name, "_count":
                hits = [each for each in self.index(name).visible.values() if passes(body["query"], each)]
                return {"count": len(hits), "_shards": self.shards()}
            case "GET" | "POST", "_search":
                return self.search(None, body)
            case "GET" | "POST", name, "_search":
                return self.search(self.index(name), body)
        raise bad(f"no such endpoint: {method} {path}")

    def shards(self) -> Document:
        return {"total": 2, "successful": 2 - self.failed_shards, "skipped": 0, "failed": self.failed_shards}

    def index(self, name: str) -> Index:
        if name not in self.indexes:
            raise Refused(404, "index_not_found_exception", f"no such index [{name}]")
        return self.indexes[name]

    def create(self, name: str, body: Document) -> Document:
        if name in self.indexes:
            raise Refused(400, "resource_already_exists_exception", f"index [{name}] already exists")
        only(body, "settings", "mappings")
        only(body["mappings"], "dynamic", "_meta", "_source", "properties")
        for key, mapping in body["mappings"]["properties"].items():
            if mapping["type"] == "knn_vector":
                only(mapping, "type", "dimension", "method")
                only(mapping["method"], "name", "engine", "space_type")
                if mapping["method"]["space_type"] not in SCORES or not body["settings"]["index"]["knn"]:
                    raise bad(f"[{key}] isn't a k-NN field")
            else:
                only(mapping, "type", "analyzer")
        self.indexes[name] = Index(name, body)
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def bulk(self, index: Index, raw: str, options: Mapping[str, str]) -> Document:
        if not raw.endswith("\n"):
            raise Refused(400, "illegal_argument_exception", "The bulk request must be terminated by a newline")
        lines = iter(raw.removesuffix("\n").split("\n"))
        items = []
        for line in lines:
            [(kind, action)] = json.loads(line).items()
            only(action, "_id")
            document = json.loads(next(lines)) if kind == "index" else None
            items.append({kind: self.apply(index, kind, action["_id"], document)})
        if options.get("refresh") == "true":
            index.visible = dict(index.written)
        return {"took": 1, "errors": any(next(iter(each.values()))["status"] > 299 for each in items), "items": items}

    def apply(self, index: Index, kind: str, document_id: str, document: Document | None) -> Document:
        outcome = {"_index": index.name, "_id": document_id}
        try:
            if statuses := self.refused_ids.get(document_id):
                raise Refused(statuses.pop(0), "said_to_fail", f"no [{document_id}]")
            if document is None:
                found = index.written.pop(document_id, None)
                return {**outcome, "result": "deleted" if found else "not_found", "status": 200 if found else 404}
            check(index, document_id, document)
        except Refused as refused:
            return {**outcome, "error": refused.error, "status": refused.status}
        index.written[document_id] = {**document, "_id": document_id}
        return {**outcome, "result": "created", "status": 201}

    def mget(self, index: Index, body: Document, options: Mapping[str, str]) -> Document:
        only(body, "ids")
        wanted = options["_source"].split(",")
        documents = []
        for each in body["ids"]:
            found = index.written.get(each)
            source = {"_source": {key: found[key] for key in wanted if key in found}} if found else {}
            documents.append({"_index": index.name, "_id": each, "found": bool(found), **source})
        return {"docs": documents}

    def search(self, index: Index | None, body: Document) -> Document:
        only(body, "size", "query", "sort", "_source", "track_total_hits", "pit", "search_after")
        if body["size"] > WINDOW or body["_source"] is not False or (index is None) != ("pit" in body):
            raise bad("a search within the window, without sources, of an index or of a point in time")
        if index is None:
            hits = [(each, 0.0) for each in self.snapshots[body["pit"]["id"]] if passes(body["query"], each)]
        else:
            hits = (
                nearest(index.visible.values(), index.properties, body["query"])
                if "knn" in body["query"]
                else sharing(index.visible.values(), body["query"])
            )
        by_score = body["sort"] == [{"_score": "desc"}, {"chunk_id": "asc"}]
        if not by_score and body["sort"] != [{"chunk_id": "asc"}]:
            raise bad(f"an unknown order: {body['sort']}")
        hits.sort(key=lambda hit: (-hit[1], hit[0]["chunk_id"]))
        after = body.get("search_after")
        hits = [hit for hit in hits if after is None or [hit[0]["chunk_id"]] > after][: body["size"]]
        found = [
            {"_id": each["_id"], "_score": score if by_score else None, "sort": [each["chunk_id"]]}
            for each, score in hits
        ]
        return {"took": 1, "timed_out": False, "_shards": self.shards(), "hits": {"hits": found}}


def check(index: Index, document_id: str, document: Document) -> None:
    """Refuses what a strict mapping does."""
    if unknown := set(document) - set(index.properties):
        raise Refused(400, "strict_dynamic_mapping_exception", f"introduction of {sorted(unknown)} is not allowed")
    if len(document_id.encode()) > 512:
        raise Refused(400, "illegal_argument_exception", "id is too long")
    if any(len(term.encode()) > 32766 for term in document["fields"]):
        raise Refused(400, "illegal_argument_exception", "immense term")
    if "vector" in document and len(document["vector"]) != index.properties["vector"]["dimension"]:
        raise Refused(400, "mapper_parsing_exception", "Vector dimension mismatch")


class _Handler(Handler):
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        standin: OpenSearchStandIn = self.served
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        try:
            status, answer = 200, standin.answer(self.command, self.path, raw, self.headers.get("Authorization", ""))
        except Refused as refused:
            status, answer = refused.status, refused.body()
        except (KeyError, TypeError, ValueError) as error:
            status, answer = 400, bad(f"not in the documented form: {error!r}").body()
        self.answer(status, json.dumps(answer).encode())


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[OpenSearchStandIn]:
    """A stand-in while the block runs, over HTTPS where `tls` has a certificate."""
    with running(_Handler, tls) as http:
        http.served = OpenSearchStandIn(http.url)
        yield http.served


@pytest.fixture
def opensearch_standin() -> Iterator[OpenSearchStandIn]:
    """A stand-in of the test's own."""
    with serving() as standin:
        yield standin


@pytest.fixture(scope="session")
def opensearch_standin_options() -> Iterator[dict[str, Any]]:
    """What opens a store on a stand-in for the contract suite."""
    with serving() as standin:
        yield {"url": standin.url}


@pytest.fixture(scope="session")
def opensearch_words_options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What opens a store on `osmem-server`, which is started for the session and ended after it."""
    port = free_port()
    program = Program("osmem-server", tmp_path_factory.mktemp("osmem") / "log")
    command = [resolve_binary(), "--addr", f"127.0.0.1:{port}", "--parent-pid", str(os.getpid())]
    program.run(command, lambda: is_open(port), stdin=subprocess.PIPE)  # it ends when that is closed
    yield {"url": f"http://127.0.0.1:{port}"}
    program.stop()


@pytest.fixture(scope="session")
def opensearch_options() -> dict[str, Any]:
    """What opens a store on a real server; skips where there is none."""
    if not REAL_URL:
        pytest.skip(HOW_TO_START)
    return {"url": REAL_URL}
