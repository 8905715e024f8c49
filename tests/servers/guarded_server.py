"""A real server with tokens, and what each caller has there."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

SECRETS = {"ana": "quokka", "ben": "axolotl"}  # a word of each one's only document


@dataclass(frozen=True)
class Guarded:
    """A server with tokens: `admin` sees all, `ana` and `ben` each the collection of that name, `reader` reads ana's.

    Each of the two collections has a document, put in by the one whose it is, a job that did it, and a conversation.
    """

    url: str
    folder: Path
    tokens: dict[str, str]

    def client(self, name: str | None) -> httpx.Client:
        """A client that is known by this name; None: by none."""
        headers = {"Authorization": f"Bearer {self.tokens[name]}"} if name else {}
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, headers=headers)


@pytest.fixture(scope="session")
def guarded(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """That server. Tests add nothing that another one would see."""
    from tests.api.conftest import running_server  # imported here: most tests need no server

    from leadline import load_settings
    from leadline.api.tokens import add_token

    folder = shutil.copytree(copied, tmp_path_factory.mktemp("guarded") / "data")
    seen: dict[str, list[str] | None] = {"admin": None, "ana": ["ana"], "ben": ["ben"], "reader": ["ana"]}
    tokens = {name: add_token(folder, name, which, may_write=name != "reader") for name, which in seen.items()}
    run = {"web": "never", "max_retries": 0, "top_k": 2, "rerank_top_k": 1}
    settings = load_settings(data_dir=folder, rate_per_minute=10_000, run=run)
    with running_server(settings) as url:
        server = Guarded(url, folder, tokens)
        for name in SECRETS:
            with server.client(name) as client:
                _settle(client, name)
        yield server


def _settle(client: httpx.Client, name: str) -> None:
    """Puts one's document in and begins a conversation about it."""
    text = f"The code word of {name} is {SECRETS[name]}."
    job = client.post("/documents", params={"collection": name}, files={"files": (f"{name}.txt", text)}).json()
    limit = time.monotonic() + 60
    while client.get(f"/jobs/{job['id']}").json()["status"] in ("queued", "running"):
        assert time.monotonic() < limit
        time.sleep(0.05)
    asked = {
        "question": f"What is the code word of {name}?",
        "collection": name,
        "thread_id": f"of-{name}",
        "stream": False,
    }
    assert SECRETS[name] in client.post("/chat", json=asked).json()["answer"]
