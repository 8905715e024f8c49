"""OpenSearch: a failure is never read as success, says what to do, and tells no secret.

The server is a stand-in (`tests/servers/opensearch_server.py`) that is told how to fail.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers.certificates import self_signed_context
from tests.servers.opensearch_server import OpenSearchStandIn, serving
from tests.stores.width_two import EAST, chunk, vector

from leadline.errors import ConfigError, ManifestMismatch, StoreError
from leadline.stores import open_vector_store
from leadline.stores.opensearch import OpenSearchVectorStore


async def test_refused_document_is_an_error(opensearch_standin: OpenSearchStandIn) -> None:
    """One item of a bulk that failed fails the call, naming it; the others are written."""
    opensearch_standin.refused_ids["b"] = [400]
    async with OpenSearchVectorStore(url=opensearch_standin.url, index="i") as store:
        with pytest.raises(StoreError, match=r"refused 1 of 2 documents; the first is b: said_to_fail"):
            await store.upsert([chunk("a", EAST), chunk("b", EAST)])
        assert await store.all_ids() == {"a"}


async def test_document_refused_for_haste_is_sent_again(opensearch_standin: OpenSearchStandIn) -> None:
    """429 for an item means later."""
    opensearch_standin.refused_ids["b"] = [429]
    async with OpenSearchVectorStore(url=opensearch_standin.url, index="i") as store:
        assert await store.upsert([chunk("a", EAST), chunk("b", EAST)]) == 0
        assert await store.all_ids() == {"a", "b"}


async def test_partial_answer_is_an_error(opensearch_standin: OpenSearchStandIn) -> None:
    """Hits of some shards alone are not the best hits, and a count of some is no count."""
    async with OpenSearchVectorStore(url=opensearch_standin.url, index="i") as store:
        await store.upsert([chunk("a", EAST)])
        opensearch_standin.failed_shards = 1
        for asked in (store.search(vector(EAST), k=1), store.count(), store.all_ids()):
            with pytest.raises(StoreError, match="gave no answer"):
                await asked


async def test_wrong_password_is_said_and_not_shown(opensearch_standin: OpenSearchStandIn) -> None:
    """Neither in the message nor in the error behind it."""
    opensearch_standin.credentials = "me:right"
    url = opensearch_standin.url
    for store in (
        OpenSearchVectorStore(url=url, user="me", password="wr0ng"),
        OpenSearchVectorStore(url=url.replace("//", "//me:wr0ng@")),
    ):
        with pytest.raises(StoreError, match="user and password") as caught:
            async with store:
                pass
        shown = f"{caught.value} {caught.value.__cause__!r} {vars(store)}"
        assert "wr0ng" not in shown
        assert url in shown
    async with OpenSearchVectorStore(url=url.replace("//", "//me:right@")) as opened:
        await opened.ensure_ready(2)


@pytest.mark.parametrize(("status", "told"), [(403, "may not do this"), (400, "refused a request"), (409, "409")])
async def test_refusals_are_named(opensearch_standin: OpenSearchStandIn, status: int, told: str) -> None:
    """By what the server says."""
    opensearch_standin.status = status
    with pytest.raises(StoreError, match=told):
        async with OpenSearchVectorStore(url=opensearch_standin.url):
            pass


async def test_dead_server_is_said(unused_tcp_port: int) -> None:
    """With its address, on opening."""
    with pytest.raises(StoreError, match=f"127.0.0.1:{unused_tcp_port} can't be reached"):
        async with OpenSearchVectorStore(url=f"http://127.0.0.1:{unused_tcp_port}"):
            pass


async def test_slow_server_is_said(opensearch_standin: OpenSearchStandIn) -> None:
    """After the time-out."""
    opensearch_standin.delay_s = 0.5
    with pytest.raises(StoreError, match=r"no answer within 0\.1 s"):
        async with OpenSearchVectorStore(url=opensearch_standin.url, timeout=0.1):
            pass


async def test_other_width_metric_and_owner_are_refused(opensearch_standin: OpenSearchStandIn) -> None:
    """An index that was built otherwise is not written to."""
    url = opensearch_standin.url
    async with OpenSearchVectorStore(url=url, index="i") as store:
        await store.upsert([chunk("a", EAST)])
        with pytest.raises(ManifestMismatch, match="width 2, not vectors of width 3"):
            await store.ensure_ready(3)
        with pytest.raises(ManifestMismatch, match="width 3"):
            await store.upsert([chunk("b", [1.0, 0.0, 0.0])])
        with pytest.raises(ManifestMismatch, match="width 3"):
            await store.search(vector([1.0, 0.0, 0.0]), k=1)
    with pytest.raises(ManifestMismatch, match="cosinesimil, not by l2"):
        async with OpenSearchVectorStore(url=url, index="i", metric_type="l2"):
            pass
    opensearch_standin.indexes["i"].body["mappings"].pop("_meta")
    with pytest.raises(ManifestMismatch, match="wasn't made by this version"):
        async with OpenSearchVectorStore(url=url, index="i"):
            pass


@pytest.mark.parametrize("url", ["", "localhost:9200", "ftp://h", "http://h:x", "http://"])
def test_wrong_address_is_refused(url: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError, match="address"):
        OpenSearchVectorStore(url=url)


def test_settings_have_to_say_where() -> None:
    """A server's index is in no data folder."""
    with pytest.raises(ConfigError, match="url"):
        open_vector_store("opensearch", path=Path())


async def test_closed_store_says_so(opensearch_standin: OpenSearchStandIn) -> None:
    """Outside `async with` nothing works."""
    store = OpenSearchVectorStore(url=opensearch_standin.url)
    with pytest.raises(StoreError, match="isn't open"):
        await store.count()


@pytest.fixture
def https_standin(tmp_path: Path) -> Iterator[OpenSearchStandIn]:
    """A stand-in behind a certificate that nobody trusts."""
    with serving(self_signed_context(tmp_path)) as standin:
        yield standin


async def test_certificates_are_verified_unless_told_otherwise(https_standin: OpenSearchStandIn) -> None:
    """An unknown certificate is refused, and nothing is sent."""
    with pytest.raises(StoreError, match="no certificate that can be verified"):
        async with OpenSearchVectorStore(url=https_standin.url, user="me", password="secret"):
            pass
    assert https_standin.requests == []
    async with OpenSearchVectorStore(url=https_standin.url, verify_certs=False) as store:
        await store.ensure_ready(2)
