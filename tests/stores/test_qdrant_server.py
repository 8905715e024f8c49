"""Qdrant over REST: what is asked of a server, and what becomes of its errors.

The server here is a stand-in that speaks Qdrant's REST interface over its segment engine (see
`tests/servers/qdrant_server.py`); a real one runs the contract suite when its address is in the environment.
"""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.servers.certificates import self_signed_context
from tests.servers.qdrant_server import API_KEY, QdrantStandIn

from leadline.drafts import FieldValue
from leadline.errors import ConfigError, ManifestMismatch, StoreError
from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.qdrant import QdrantVectorStore

WIDTH = 12


def records(count: int, width: int = WIDTH) -> list[ChunkRecord]:
    """Chunks with one vector each, the same ones every time."""
    vectors = np.random.default_rng(3).normal(size=(count, width)).astype(np.float32)
    return [ChunkRecord(f"c{n:05}", "d", vectors=(vector,), fields={"n": n}) for n, vector in enumerate(vectors)]


def question(width: int = WIDTH) -> Vector:
    """A vector that is none of the stored ones."""
    return np.random.default_rng(4).normal(size=width).astype(np.float32)


@pytest.fixture
def stand_in(qdrant_stand_in: QdrantStandIn) -> Iterator[QdrantStandIn]:
    """The stand-in, with no request of an earlier test in its books."""
    qdrant_stand_in.requests.clear()
    yield qdrant_stand_in
    qdrant_stand_in.failures.clear()


async def test_payload_on_a_server_is_ids_and_fields(stand_in: QdrantStandIn) -> None:
    """No text leaves for the server; the chunk id is in the payload under its own name; the key is in the header."""
    async with QdrantVectorStore(collection="payload", **stand_in.options) as store:
        await store.upsert([ChunkRecord("a", "d", "the secret text", (question(),), {"page": 3, "ok": True})])
    (upsert,) = [body for method, path, body in stand_in.requests if path == "/collections/payload/points?wait=true"]
    (point,) = upsert["points"]
    assert point["payload"] == {
        "chunk_id": "a",
        "strings": {"doc_id": "d"},
        "numbers": {"page": 3},
        "booleans": {"ok": "true"},
    }
    assert "secret" not in str(stand_in.requests)


async def test_fields_are_indexed_once(stand_in: QdrantStandIn) -> None:
    """Each field of the records has an index by its kind, asked for once."""
    first: dict[str, FieldValue] = {"lang": "de", "a.b": 1.5, "ok": True, 'q"': 1}
    async with QdrantVectorStore(collection="indexed", **stand_in.options) as store:
        for fields in (first, {"lang": "en"}, {"lang": 7}):
            await store.upsert([ChunkRecord("a", "d", "", (question(),), fields)])
    asked = [
        (b["field_name"], b["field_schema"]) for _, path, b in stand_in.requests if path.endswith("/index?wait=true")
    ]
    assert asked == [
        ("chunk_id", "keyword"),
        ('strings."doc_id"', "keyword"),
        ('strings."lang"', "keyword"),
        ('numbers."a.b"', "float"),
        ('booleans."ok"', "keyword"),
        ('numbers."lang"', "float"),
    ]


async def test_large_upserts_to_a_server_are_split(stand_in: QdrantStandIn) -> None:
    """No request carries more numbers than a server takes; a call of nothing asks nothing."""
    async with QdrantVectorStore(collection="large", **stand_in.options) as store:
        await store.upsert(records(300, 2000))
        assert await store.count() == 300
        sizes = [len(body["points"]) for _, path, body in stand_in.requests if path.endswith("/points?wait=true")]
        assert sizes == [100, 100, 100]
        stand_in.requests.clear()
        assert await store.delete([]) == 0
        assert await store.upsert([]) == 0
        assert stand_in.requests == []


async def test_exact_is_passed_on_and_hnsw_is_wide(stand_in: QdrantStandIn) -> None:
    """`exact` has the server compare everything; otherwise its graph is searched wider than usual."""
    for exact, expected in ((True, {"exact": True}), (False, {"hnsw_ef": 200})):
        async with QdrantVectorStore(collection="exact", exact=exact, **stand_in.options) as store:
            await store.upsert(records(3))
            await store.search(question(), k=2)
        asked = stand_in.requests[-1][2]["params"]
        assert {key: value for key, value in asked.items() if value is not None} == expected


async def test_key_is_sent_and_a_wrong_one_is_named_without_showing_it(stand_in: QdrantStandIn) -> None:
    """The `api-key` header carries it; the server's refusal is a StoreError in which neither key nor login stands."""
    keyed = QdrantVectorStore(url=stand_in.url, collection="key", api_key=API_KEY)
    with pytest.warns(UserWarning, match="insecure"):
        await keyed.__aenter__()
    await keyed.upsert(records(1))
    assert await keyed.count() == 1
    await keyed.__aexit__(None, None, None)
    address = stand_in.url.replace("http://", "http://user:pass-word@")
    wrong = QdrantVectorStore(url=address, collection="key", headers={"api-key": "wrong-key"})
    with pytest.raises(StoreError, match="api_key") as raised:
        async with wrong:
            pass
    shown = f"{raised.value} {wrong!r} {vars(wrong)!r}"
    assert "401" in shown
    assert "wrong-key" not in shown
    assert "pass-word" not in shown


async def test_server_trouble_is_a_store_error(stand_in: QdrantStandIn) -> None:
    """A server that fails, one that isn't there and one that isn't Qdrant: each says where and what, and goes on."""
    async with QdrantVectorStore(collection="trouble", **stand_in.options) as store:
        await store.upsert(records(2))
        for status in (500, 503, 429):
            stand_in.failures.append((status, "out of disk"))
            with pytest.raises(StoreError, match=f"{status}.*out of disk"):
                await store.search(question(), k=1)
        assert len(await store.search(question(), k=1)) == 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(StoreError, match="gave no answer"):
        async with QdrantVectorStore(url=address):
            pass


async def test_silent_server_is_given_up_after_the_timeout() -> None:
    """A server that takes the connection and says nothing is an error, not a wait without end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections without an accept
        store = QdrantVectorStore(url=f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.5)
        with pytest.raises(StoreError, match="gave no answer"):
            await store.__aenter__()


async def test_certificates_are_checked(tmp_path: Path) -> None:
    """A server whose certificate nobody vouches for is sent no request, and no key."""
    context = self_signed_context(tmp_path)
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read(1))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        store = QdrantVectorStore(url=f"https://127.0.0.1:{port}", api_key="secret", timeout=5)
        with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
            await store.__aenter__()
    assert got == []


async def test_foreign_collection_is_refused(stand_in: QdrantStandIn) -> None:
    """A collection of plain vectors, or by another metric, isn't written into."""
    plain = {"vectors": {"size": 12, "distance": "Cosine"}}
    key = {"api-key": API_KEY}
    async with httpx.AsyncClient(base_url=stand_in.url, headers=key) as client:
        (await client.put("/collections/foreign", json=plain)).raise_for_status()
    with pytest.raises(ManifestMismatch, match="not made by Leadline"):
        async with QdrantVectorStore(collection="foreign", **stand_in.options):
            pass
    async with QdrantVectorStore(collection="metric", metric_type="ip", **stand_in.options) as store:
        await store.ensure_ready(WIDTH)
    with pytest.raises(ManifestMismatch, match="by ip, not by cosine"):
        async with QdrantVectorStore(collection="metric", **stand_in.options):
            pass


async def test_stand_in_refuses_what_we_do_not_ask(stand_in: QdrantStandIn) -> None:
    """A call, a body or a write that isn't in the documented form of ours is refused, so that it can't pass a test."""
    async with httpx.AsyncClient(base_url=stand_in.url, headers={"api-key": API_KEY}) as client:
        await client.put("/collections/r", json={"vectors": {"size": 2, "distance": "Cosine"}})
        assert (await client.get("/collections/r/points/1")).status_code == 404
        assert (await client.post("/collections/none/points/count", json={})).status_code == 404
        assert (await client.post("/collections/r/points/count", json={"surplus": 1})).status_code == 400
        assert (await client.put("/collections/r/points", json={"points": []})).status_code == 400
        assert (await client.get("/collections/r", headers={"api-key": "no"})).status_code == 401


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"url": "http://127.0.0.1:1", "path": "x"},
        {"url": "127.0.0.1:6333"},
        {"path": "x", "collection": "../y"},
        {"path": "x", "collection": ".."},
        {"path": "x", "collection": ""},
    ],
)
def test_wrong_options_are_refused_at_once(options: dict[str, Any]) -> None:
    """One place, a whole address, and a collection name that can be one."""
    with pytest.raises(ConfigError):
        QdrantVectorStore(**options)
