"""What every test has: no way out to the network, and an environment without the settings of whoever runs it."""

import gc
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests import shared_models
from tests.servers.certificates import trust_one_authority

# Threads of torch, faiss and llama.cpp that wait for each other sleep. By default they spin, and where several workers
# share the cores a reply of the local LLM took ten times the processor's time.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
shared_models.share()
# The libraries under test leave a million objects that stay. Looking through them as often as Python does by default
# took a sixth of the time of tests that import LiteLLM.
gc.set_threshold(50_000)

pytest_plugins = (
    "tests.servers.chat_server",
    "tests.servers.guarded_server",
    "tests.servers.search_server",
    "tests.servers.qdrant_server",
    "tests.servers.chroma_server",
    "tests.servers.milvus_lite",
    "tests.servers.opensearch_server",
    "tests.servers.pinecone_server",
    "tests.servers.postgres",
    "tests.servers.s3",
)


# The files with the longest tests: a worker that begins one of them last is waited for by all the others.
_LONGEST = (
    "tests/project/test_readme.py",
    "tests/project/test_serve_benchmark.py",
    "tests/notebooks/",
    "tests/graph/test_local_llm_run.py",
    "tests/models/test_cross_encoder.py",
    "tests/knowledge/test_crash.py",
    "tests/knowledge/test_processes.py",
    "tests/stores/test_chroma_killed.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the longest tests; else the order stays."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


@pytest.fixture(autouse=True, scope="module")
def garbage_collected() -> Iterator[None]:
    """What a file leaves is collected with it: a complaint about it is never another file's."""
    yield
    gc.collect(1)


def _named_servers() -> Iterator[str]:
    """The servers that LEADLINE_TEST_… names, and their addresses: the tests made for them may reach them."""
    for name, value in os.environ.items():
        if name.startswith("LEADLINE_TEST_") and name.endswith(("_URL", "_HOST")):
            host = urlsplit(value if "//" in value else f"//{value}").hostname
            if host:
                yield host
                yield from (str(found[4][0]) for found in socket.getaddrinfo(host, None))


_NAMED = {*_named_servers()}
_REACHABLE = {"localhost", "127.0.0.1", "::1", "", None, *_NAMED}
_KEYS = ("LEADLINE_", "OPENAI_", "ANTHROPIC_", "LITELLM_", "LANGCHAIN_", "LANGSMITH_", "DDGS_", "PINECONE_")
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}


if not _NAMED:
    trust_one_authority()


class NetworkBlocked(AssertionError):
    """A test tried to leave the machine."""


def _only_loopback(call: Callable[..., Any], host_of: Callable[..., object]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        host = host_of(*args)
        if host not in _REACHABLE:
            raise NetworkBlocked(f"no test may reach {host!r}")
        return call(*args, **kwargs)

    return guarded


def _host_of_address(sock: socket.socket, address: Any, *_: Any) -> object:
    return "" if sock.family == getattr(socket, "AF_UNIX", None) else address[0]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections and name look-ups go to this machine, or to a server named for tests, or fail."""
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _only_loopback(getattr(socket.socket, name), _host_of_address))
    monkeypatch.setattr(socket, "getaddrinfo", _only_loopback(socket.getaddrinfo, lambda host, *_: host))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting, key or proxy of the person who runs the tests."""
    for name in list(os.environ):
        if name != "LEADLINE_SHARED" and (name.startswith(_KEYS) or name.lower() in _PROXIES):
            monkeypatch.delenv(name)
