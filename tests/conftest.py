"""What every test has: no way out to the network, and an environment without the settings of whoever runs it."""

import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

pytest_plugins = (
    "tests.servers.chat_server",
    "tests.servers.search_server",
    "tests.servers.qdrant_server",
    "tests.servers.chroma_server",
    "tests.servers.milvus_lite",
    "tests.servers.opensearch_server",
    "tests.servers.pinecone_server",
)
_LOOPBACK = {"localhost", "127.0.0.1", "::1", "", None}
_KEYS = ("LEADLINE_", "OPENAI_", "ANTHROPIC_", "LITELLM_", "LANGCHAIN_", "LANGSMITH_", "DDGS_")
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}


class NetworkBlocked(AssertionError):
    """A test tried to leave the machine."""


def _only_loopback(call: Callable[..., Any], host_of: Callable[..., object]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        host = host_of(*args)
        if host not in _LOOPBACK:
            raise NetworkBlocked(f"no test may reach {host!r}")
        return call(*args, **kwargs)

    return guarded


def _host_of_address(sock: socket.socket, address: Any, *_: Any) -> object:
    return "" if sock.family == getattr(socket, "AF_UNIX", None) else address[0]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections and name look-ups go to this machine or fail."""
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _only_loopback(getattr(socket.socket, name), _host_of_address))
    monkeypatch.setattr(socket, "getaddrinfo", _only_loopback(socket.getaddrinfo, lambda host, *_: host))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting, key or proxy of the person who runs the tests."""
    for name in list(os.environ):
        if name != "LEADLINE_SHARED" and (name.startswith(_KEYS) or name.lower() in _PROXIES):
            monkeypatch.delenv(name)
