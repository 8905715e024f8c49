"""What a Milvus server sees of us, and what we see of one that fails.

The engine is the real Milvus Lite. It has no users and no TLS: for those a gate stands before it, which asks for a
token as a server does, passes everything on, and keeps what was sent.
"""

import asyncio
import itertools
import socket
import sys
import time
from pathlib import Path

import pytest
from pymilvus.grpc_gen import common_pb2, milvus_pb2
from tests.servers.certificates import self_signed
from tests.servers.milvus_lite import gate, new_server
from tests.stores.test_milvus import Options, ids, unit

from leadline.errors import ConfigError, MissingExtra, StoreError
from leadline.stores.base import ChunkRecord
from leadline.stores.milvus import MilvusVectorStore


class TestServer:
    """What a server sees of us, and what we see of one that fails."""

    async def test_requests(self, milvus_options: Options) -> None:
        """Each carries the token; no text is ever asked for; searches see what was written before."""
        with gate(milvus_options["url"], "root:s3cret") as wire:
            access = {"url": wire.url, "user": "root", "password": "s3cret", "collection": milvus_options["collection"]}
            async with MilvusVectorStore(**access, enable_bm25=True) as store:
                await store.upsert([ChunkRecord("a", "d", "the wombat", (unit(1, 0),), {"n": 1})])
                assert ids(await store.search(unit(1, 0), k=1, where={"n": 1})) == ["a"]
                assert ids(await store.lexical_search("wombat", k=1)) == ["a"]
                assert await store.existing_ids(["a"]) == await store.all_ids() == {"a"}
                assert await store.count() == await store.delete(["a"]) == 1
        indexes = {
            request.field_name: {pair.key: pair.value for pair in request.extra_params}
            for request in wire.sent("CreateIndex", milvus_pb2.CreateIndexRequest)
        }
        assert indexes == {
            "vector": {"index_type": "AUTOINDEX", "metric_type": "COSINE"},
            "words": {"index_type": "SPARSE_INVERTED_INDEX", "metric_type": "BM25"},
        }
        searches = wire.sent("Search", milvus_pb2.SearchRequest)
        assert [search.dsl for search in searches] == ['(part >= 0) and (fields["n"] == 1)', ""]
        reads = [*searches, *wire.sent("Query", milvus_pb2.QueryRequest)]
        for request in [*reads, *wire.sent("Delete", milvus_pb2.DeleteRequest)]:
            assert request.consistency_level == common_pb2.ConsistencyLevel.Strong
        for request in reads:
            assert not {"terms", "words", "vector", "*"} & set(request.output_fields)

    async def test_secrets_are_not_shown(self, milvus_options: Options) -> None:
        """Neither a password nor the user info of a URL is in messages, stats or what a store looks like."""
        with gate(milvus_options["url"], "root:right") as wire:
            for access in (
                {"url": wire.url, "user": "root", "password": "s3cret"},
                {"url": wire.url.replace("://", "://root:s3cret@")},
            ):
                store = MilvusVectorStore(**access, timeout=5)
                with pytest.raises(StoreError, match="user and password") as caught:
                    await store.__aenter__()
                assert "s3cret" not in f"{caught.value!r}{caught.value}{store!r}{store.__dict__['_place'].shown}"
            url = wire.url.replace("://", "://root:right@")
            async with MilvusVectorStore(url=url, collection=milvus_options["collection"]) as store:
                assert "right" not in str(await store.stats())

    async def test_certificates_are_checked(self, milvus_options: Options) -> None:
        """A server whose certificate nobody vouches for is refused, and is sent no password."""
        with gate(milvus_options["url"], "root:s3cret", self_signed()) as wire:
            with pytest.raises(StoreError, match="could not be reached"):
                async with MilvusVectorStore(url=wire.url, user="root", password="s3cret", timeout=2):
                    pass
            assert wire.requests == []

    async def test_server_that_is_not_there(self) -> None:
        """It is named, within the time given."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(StoreError, match=f"Milvus at {url} could not be reached"):
            async with MilvusVectorStore(url=url, timeout=1):
                pass
        assert time.monotonic() - began < 5

    async def test_package_that_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The extra is named."""
        monkeypatch.setitem(sys.modules, "pymilvus", None)
        with pytest.raises(MissingExtra, match=r"leadline\[milvus\]"):
            async with MilvusVectorStore(url="http://127.0.0.1:1"):
                pass

    async def test_nothing_is_named(self) -> None:
        """Neither a server nor a folder, or both of them, is an error of the settings."""
        for place in ({}, {"url": "http://127.0.0.1:1", "path": "x"}):
            with pytest.raises(ConfigError, match="url of a server or a path"):
                MilvusVectorStore(**place)

    async def test_killed_server_loses_nothing(self, tmp_path: Path) -> None:
        """Killed amid writes, it has every acknowledged chunk when started again, and an open store goes on with it."""
        server = new_server(tmp_path)
        server.start()
        acknowledged: set[str] = set()
        try:
            async with MilvusVectorStore(url=server.url, enable_bm25=True, timeout=2) as store:
                await store.ensure_ready(2)
                enough = asyncio.Event()
                writer = asyncio.create_task(_write_until_it_fails(store, acknowledged, enough))
                await enough.wait()
                server.kill()
                with pytest.raises(StoreError, match=r"could not be (read|written)"):
                    await writer
                server.start()
                assert acknowledged <= await store.all_ids()
            async with MilvusVectorStore(url=server.url, enable_bm25=True) as store:
                assert acknowledged <= await store.all_ids()
                for name in acknowledged:
                    assert name in ids(await store.lexical_search(f"word{name}", k=5))
                assert len(await store.search(unit(1, 0), k=5000)) == await store.count()
        finally:
            server.end()


async def _write_until_it_fails(store: MilvusVectorStore, acknowledged: set[str], enough: asyncio.Event) -> None:
    for n in itertools.count():
        names = [f"{n}x{i}" for i in range(20)]
        await store.upsert([ChunkRecord(name, "d", f"word{name} wombat", (unit(1, n),)) for name in names])
        acknowledged.update(names)
        if n == 10:
            enough.set()
