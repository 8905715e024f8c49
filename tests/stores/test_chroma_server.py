"""What is a Chroma server's own: where it is, what it is sent, and what happens when it goes away."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from tests.servers.certificates import self_signed_context
from tests.servers.chroma_server import ChromaProcess
from tests.servers.http_servers import Handler, running

from leadline.errors import ConfigError, InvalidFilter, ManifestMismatch, StoreError
from leadline.stores import chroma_server as client
from leadline.stores import open_vector_store
from leadline.stores.base import ChunkRecord, Vector
from leadline.stores.chroma import ChromaVectorStore

X: Vector = np.array([1, 0, 0, 0], dtype=np.float32)


def chunk(chunk_id: str, **fields: int) -> ChunkRecord:
    """A chunk with one vector."""
    return ChunkRecord(chunk_id, "d", vectors=(X,), fields=fields)


@dataclass
class Recorder:
    """An HTTP server that says `status` and `body` to everything; `headers` are those of the requests that came."""

    url: str = ""
    status: int = 500
    body: bytes = b"no"
    headers: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A recording server on loopback. It is no Chroma: what is sent to it is looked at, nothing else."""
    with running(_Recording) as http:
        http.served = Recorder(http.url)
        yield http.served


class _Recording(Handler):
    def respond(self) -> None:
        recorder: Recorder = self.served
        recorder.headers.append({key.lower(): value for key, value in self.headers.items()})
        self.answer(recorder.status, recorder.body, {})


@pytest.mark.parametrize(
    "options", [{}, {"url": "http://localhost:8000", "path": "x"}, {"url": "localhost:8000"}, {"url": "http://"}]
)
def test_place_is_given_once(options: dict[str, str]) -> None:
    """A store is at an address or in a folder; both, neither or something else is an error before anything is done."""
    with pytest.raises(ConfigError, match="url"):
        ChromaVectorStore(**options)  # type: ignore[arg-type]  # parametrised


async def test_headers_are_sent_and_kept_to_their_server(recorder: Recorder, chroma_server: dict[str, str]) -> None:
    """Headers and login go with every request to their own server, and are in no message; a refusal says what to do."""
    recorder.status = 401
    url = recorder.url.replace("http://", "http://ann:hunter2@")
    async with ChromaVectorStore(**chroma_server, headers={"X-Chroma-Token": "other"}):
        with pytest.raises(StoreError, match=r"401.*headers") as refused:
            async with ChromaVectorStore(url=url, headers={"X-Chroma-Token": "secret"}):
                pass
    assert [sent["x-chroma-token"] for sent in recorder.headers] == ["secret"]
    assert recorder.headers[0]["authorization"].startswith("Basic ")
    assert "secret" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(("status", "body"), [(502, b"Bad gateway"), (200, b"<html>hello</html>"), (200, b"[]")])
async def test_other_servers_are_not_taken_for_chroma(status: int, body: bytes, recorder: Recorder) -> None:
    """A proxy's error page and another web server are errors that name the address."""
    recorder.status, recorder.body = status, body
    with pytest.raises(StoreError, match=f"{recorder.url}.*Check `url`"):
        async with ChromaVectorStore(url=recorder.url):
            pass


async def test_certificates_are_checked(tmp_path: Path) -> None:
    """A server whose certificate nobody vouches for is sent no request, and no header."""
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read(1))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=self_signed_context(tmp_path)) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
            async with ChromaVectorStore(url=f"https://127.0.0.1:{port}", headers={"X-Token": "secret"}):
                pass
    assert got == []


async def test_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes the connection and says nothing is an error, not a wait without end."""
    monkeypatch.setattr(client, "TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections without an accept
        store = ChromaVectorStore(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(StoreError, match="ReadTimeout"):
            await store.__aenter__()


@pytest.mark.parametrize("option", ["tenant", "database"])
@pytest.mark.parametrize("embedded", [False, True])
async def test_missing_tenant_or_database(
    option: str, embedded: bool, chroma_server: dict[str, str], tmp_path: Path
) -> None:
    """A tenant or database that isn't there is an error, never a new or another one."""
    place: dict[str, Any] = {"path": tmp_path} if embedded else chroma_server
    with pytest.raises(StoreError, match=r"nowhere.*set `tenant` and `database`"):
        async with ChromaVectorStore(**place, **{option: "nowhere"}):
            pass


async def test_databases_do_not_mix(chroma_server: dict[str, str]) -> None:
    """The same collection in two databases is two collections."""
    port = int(chroma_server["url"].rpartition(":")[2])
    settings = Settings(
        anonymized_telemetry=False,
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_server_host="127.0.0.1",
        chroma_server_http_port=port,
    )
    admin = await asyncio.to_thread(chromadb.AdminClient, settings)
    await asyncio.to_thread(admin.create_tenant, "acme")
    await asyncio.to_thread(admin.create_database, "archive", "acme")
    own = ChromaVectorStore(**chroma_server, collection="same")
    async with own, ChromaVectorStore(**chroma_server, collection="same", tenant="acme", database="archive") as other:
        await own.upsert([chunk("a")])
        await other.upsert([chunk("b")])
        assert await own.all_ids() == {"a"}
        assert await other.all_ids() == {"b"}


async def test_server_may_go_and_come_back(tmp_path: Path) -> None:
    """While the server is dead calls say so and what to do; once it is back, the same store works, with everything that
    was acknowledged."""
    server = ChromaProcess(tmp_path)
    server.start()
    try:
        async with ChromaVectorStore(url=server.url) as store:
            await store.upsert([chunk(f"c{n}") for n in range(1200)])
            server.kill()
            for call in (store.count(), store.search(X, k=1), store.upsert([chunk("z")]), store.delete(["c1"])):
                with pytest.raises(StoreError, match=f"{server.url} can't be reached.*chroma run"):
                    await call
            server.start()
            assert await store.all_ids() == {f"c{n}" for n in range(1200)}
            await store.upsert([chunk("z")])
            assert await store.count() == 1201
        server.kill()
        with pytest.raises(StoreError, match="can't be reached"):
            async with ChromaVectorStore(url=server.url):
                pass
    finally:
        server.kill()


async def test_two_clients_see_each_other(chroma_server: dict[str, str]) -> None:
    """What one store makes, writes and clears the other one sees, though it was open before."""
    one = ChromaVectorStore(**chroma_server, collection="both")
    async with one, ChromaVectorStore(**chroma_server, collection="both") as two:
        assert await two.count() == 0
        await one.upsert([chunk("a")])
        assert await two.all_ids() == {"a"}
        await one.clear()
        assert await two.search(X, k=3) == []
        await two.upsert([chunk("b")])
        assert [hit.chunk_id for hit in await one.search(X, k=3)] == ["b"]
    with pytest.raises(ManifestMismatch, match="by cosine, not by l2"):
        async with ChromaVectorStore(**chroma_server, collection="both", metric_type="l2"):
            pass


@pytest.mark.parametrize("embedded", [False, True])
async def test_native_filter(embedded: bool, chroma_server: dict[str, str], tmp_path: Path) -> None:
    """A text is Chroma's own `where` in JSON; one that isn't is refused by name."""
    place: dict[str, Any] = {"path": tmp_path} if embedded else {**chroma_server, "collection": "native"}
    async with ChromaVectorStore(**place) as store:
        await store.upsert([chunk(f"c{n}", page=n) for n in range(9)])
        where = '{"$or": [{"page": 7}, {"$and": [{"page": {"$gte": 2}}, {"page": {"$lt": 4}}]}]}'
        assert {hit.chunk_id for hit in await store.search(X, k=5, where=where)} == {"c2", "c3", "c7"}
        for wrong in ("page = 3", "[]", '{"page": {"$near": 1}}', "{}"):
            with pytest.raises(InvalidFilter, match="where"):
                await store.search(X, k=5, where=wrong)


async def test_chosen_by_settings(chroma_server: dict[str, str], tmp_path: Path) -> None:
    """With `url` among a backend's options nothing is kept in the data folder."""
    async with open_vector_store("chroma", path=tmp_path / "v", index="settings", options=chroma_server) as store:
        await store.ensure_ready(4)
        await store.upsert([chunk("a")])
    assert not (tmp_path / "v").exists()
