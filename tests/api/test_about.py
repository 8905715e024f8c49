"""What a server says of itself and of what it holds."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
from tests.servers.guarded_server import Guarded

import leadline
from leadline import Settings, load_settings

Serving = Callable[[Settings], AbstractContextManager[str]]


def test_a_page_learns_what_it_needs(client: httpx.Client, api_settings: Settings) -> None:
    """Version, what a question gets that names nothing, the limits in force, and who is asking."""
    about = client.get("/about").json()
    assert about["version"] == leadline.__version__
    assert (about["collection"], about["web"], about["web_consent"]) == ("default", "auto", "ask")
    assert about["caller"] == {"name": "local", "may_write": True, "collections": None}
    assert about["token_needed"] is False
    limits = about["limits"]
    assert limits["rate_per_minute"] == api_settings.rate_per_minute
    assert (limits["max_file_mb"], limits["max_upload_files"]) == (200, 100)


def test_no_path_of_the_server_is_told(tmp_path: Path, serving: Serving) -> None:
    """The file of a local LLM is nobody's business."""
    settings = load_settings(data_dir=tmp_path / "data", run={"llm": f"local:{tmp_path}/weights.gguf"})
    with serving(settings) as url:
        about = httpx.get(f"{url}/about", trust_env=False)
    assert about.json()["llm"] == "local"
    assert str(tmp_path) not in about.text


def test_figures_of_each_collection(client: httpx.Client) -> None:
    """As many documents and passages as are listed, in every index the same number, and how the reranker stands."""
    stats = client.get("/stats", params={"collection": "default"}).json()["collections"]["default"]
    documents = client.get("/documents").json()["documents"]
    assert stats["documents"] == len(documents)
    assert stats["chunks"] == sum(document["chunks"] for document in documents)
    assert set(stats["indexes"]) == {"vector", "bm25", "graph"}
    assert stats["problems"] == []
    assert stats["calibration"]["reranker"]
    unknown = client.get("/stats", params={"collection": "nothing"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "collection_unknown")


def test_figures_are_of_what_one_sees(guarded: Guarded) -> None:
    """A token of one collection gets that one's; one of all gets all."""
    with guarded.client("ana") as ana, guarded.client("admin") as admin:
        assert set(ana.get("/stats").json()["collections"]) == {"ana"}
        assert {"ana", "ben", "default"} <= set(admin.get("/stats").json()["collections"])


def test_readiness_tells_strangers_to_the_collection_little(guarded: Guarded) -> None:
    """A token that may not see the server's own collection learns that it is ready, not how often it changed."""
    with guarded.client("ana") as ana, guarded.client("admin") as admin:
        assert ana.get("/ready").json() == {"status": "ready"}
        assert set(admin.get("/ready").json()) == {"status", "generation"}
