"""Texts on object storage: what a server that refuses, is away, is killed or can't be trusted leads to."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store
from tests.servers.certificates import self_signed_context
from tests.servers.http_servers import Handler, HttpServer, running
from tests.servers.s3 import BUCKET, S3Server

from leadline.errors import ConfigError, MissingExtra, StoreError
from leadline.stores import open_content_store
from leadline.stores.base import ChunkRecord
from leadline.stores.catalog import Catalog
from leadline.stores.s3 import ObjectChunkStore

CALLS = {
    "ready": lambda store: store.ensure_ready(),
    "upsert": lambda store: store.upsert([ChunkRecord("a", "d", "text")]),
    "fetch": lambda store: store.fetch(["a"]),
    "existing": lambda store: store.existing_ids(["a"]),
    "all": lambda store: store.all_ids(),
    "delete": lambda store: store.delete(["a"]),
}


async def refused(call: str, *secrets: str, **options: Any) -> str:
    """What a call says that fails, which holds none of the secrets; neither does anything a traceback shows."""
    async with ObjectChunkStore(**{"timeout": 1.0, **options}) as store:
        with pytest.raises(StoreError) as caught:
            await CALLS[call](store)
    error = caught.value
    assert error.__suppress_context__
    assert error.__cause__ is None
    shown = f"{error!r} {error} {store!r} {vars(store)}"
    assert not [secret for secret in secrets if secret in shown]
    return str(error)


@pytest.mark.parametrize("call", CALLS)
async def test_wrong_keys_are_said_without_them(s3: S3Server, call: str) -> None:
    """Every call tells that the server refuses, and which one it is."""
    options = {**s3.options("p"), "secret_key": "sk-wrong-secret"}
    message = await refused(call, "sk-wrong-secret", s3.secret_key, **options)
    assert f"s3://{BUCKET}/p at {s3.endpoint} refuses our credentials" in message


@pytest.mark.parametrize("call", CALLS)
async def test_a_missing_bucket_is_no_empty_store(s3: S3Server, call: str) -> None:
    """A text that isn't there is told from a bucket that isn't."""
    message = await refused(call, s3.secret_key, **{**s3.options(), "url": "s3://nowhere/p"})
    assert "has no bucket nowhere" in message


@pytest.mark.parametrize("call", CALLS)
async def test_a_server_that_is_away_is_named(call: str) -> None:
    """After as long as the time-out says."""
    options = {"url": "s3://b", "endpoint": "http://127.0.0.1:1", "allow_http": True, "timeout": 0.3}
    message = await refused(call, "hidden", access_key="AK", secret_key="hidden", **options)
    assert "s3://b at http://127.0.0.1:1 can't be reached within 0.3 s" in message


async def test_a_killed_server_keeps_what_was_acknowledged(own_s3: S3Server) -> None:
    """Meanwhile there is a clear error; afterwards the same open store goes on."""
    ids = [f"c{number}" for number in range(200)]
    async with ObjectChunkStore(**own_s3.options(), timeout=20.0) as store:
        await store.upsert([ChunkRecord(chunk_id, "d", f"text of {chunk_id}") for chunk_id in ids])
        own_s3.kill()
        async with ObjectChunkStore(**own_s3.options(), timeout=0.3) as hasty:
            with pytest.raises(StoreError, match="can't be reached"):
                await hasty.fetch(ids)
        own_s3.start()
        assert await store.fetch(ids) == {chunk_id: f"text of {chunk_id}" for chunk_id in ids}
        assert await store.all_ids() == set(ids)


async def test_what_others_keep_there_is_left_alone(s3: S3Server) -> None:
    """Objects that are no texts of ours are neither ids nor removed; nor is another prefix."""
    options = s3.options("shared")
    raw = S3Store(
        BUCKET,
        endpoint=s3.endpoint,
        region="us-east-1",
        access_key_id=s3.access_key,
        secret_access_key=s3.secret_key,
        client_options={"allow_http": True},
    )
    others = ("shared/c/read me.txt", "shared/c/b.!!", "shared/c/b.AA", "shared/c/b._w.", "shared2/c/a")
    for path in others:
        await obstore.put_async(raw, path, b"theirs")
    async with ObjectChunkStore(**options, collection="c") as store:
        await store.upsert([ChunkRecord("a", "d", "ours")])
        assert await store.all_ids() == {"a"}
        await store.clear()
    for path in others:
        await obstore.head_async(raw, path)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"url": "https://host/bucket"}, "s3://bucket/prefix"),
        ({"url": "s3://AK:hidden@bucket"}, "s3://bucket/prefix"),
        ({"url": "s3://b", "endpoint": "http://host"}, "not encrypted"),
        ({"url": "s3://b", "endpoint": "https://AK:hidden@host"}, "address of a server"),
        ({"url": "s3://b", "endpoint": "host:9000"}, "address of a server"),
        ({"url": "s3://b", "access_key": "AK"}, "only one is set"),
        ({"url": "s3://b", "colour": "red"}, "no option colour"),
        ({"url": "s3://b", "timeout": "soon"}, "option timeout"),
    ],
)
def test_options_that_can_not_be_are_refused(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    """When the store is made, before anything is sent, and without repeating a key."""
    with pytest.raises(ConfigError, match=problem) as caught:
        open_content_store("s3", catalog=Catalog(tmp_path), collection="c", options=options)
    assert "hidden" not in str(caught.value)


async def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that installs it."""
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingExtra, match=r"leadline\[s3\]"):
        async with ObjectChunkStore(url="s3://b"):
            pass


async def test_a_closed_store_says_so() -> None:
    """Nothing is sent by a store that isn't open."""
    with pytest.raises(StoreError, match="is not open"):
        await ObjectChunkStore(url="s3://b").fetch(["a"])


class _Listing(Handler):
    def respond(self) -> None:
        """Answers a listing; a client that comes so far has trusted the certificate."""
        self.served.append(self.path)
        self.answer(200, b"")


@pytest.fixture
def https_server(tmp_path: Path) -> Iterator[HttpServer]:
    """A server with a certificate that nobody vouches for; it keeps what it is asked."""
    with running(_Listing, self_signed_context(tmp_path)) as server:
        server.served = []
        yield server


async def test_certificates_are_verified(https_server: HttpServer) -> None:
    """A server that can't prove who it is is sent nothing, also where plain http would be allowed."""
    options = {"url": "s3://b", "endpoint": https_server.url, "access_key": "AK", "secret_key": "hidden"}
    for allow_http in (False, True):
        assert "certificate" in await refused("ready", "hidden", allow_http=allow_http, timeout=0.5, **options)
    assert https_server.served == []
