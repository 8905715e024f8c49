"""Milvus for the tests: Milvus Lite started on loopback, and a server where the environment names one."""

import base64
import fcntl
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import grpc
import pytest
from tests.servers.programs import Program, free_port, is_open

from leadline.errors import MissingExtra
from leadline.stores import milvus_lite as engine

# Read at once: no test sees the settings of whoever runs it.
SERVER_URL = os.environ.get("LEADLINE_TEST_MILVUS_URL")


class LiteServer(Program):
    """Milvus Lite over one file, on a port of this machine."""

    def __init__(self, file: Path) -> None:
        super().__init__("Milvus Lite", file.with_suffix(".log"))
        self._file, self._port = file, free_port()
        self._lock: IO[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts it and waits until it can be connected to."""
        arguments, environment = engine.command(self._file, f"127.0.0.1:{self._port}", self._file.parent)
        if self._lock is None:  # whose end it waits for: it doesn't outlive the tests
            self._lock = self._file.with_suffix(".lock").open("ab")
            fcntl.lockf(self._lock, fcntl.LOCK_EX)
        arguments.append(self._lock.name)
        options = {"cwd": self._file.parent, "env": environment, "start_new_session": True}
        self.run(arguments, lambda: is_open(self._port), **options)

    def end(self) -> None:
        """Ends it in order, for good: the lock it waits for is free."""
        if self._lock is not None:
            self._lock.close()
            self.wait()


def new_server(folder: Path) -> LiteServer:
    """A server over a file in `folder`, not yet started. Skips where milvus-lite isn't installed."""
    try:
        engine.binary()
    except MissingExtra as error:
        pytest.skip(str(error))
    return LiteServer(folder / "milvus.db")


@dataclass
class Wire:
    """A gate on the way to a server: it asks for a token, as a server with users does, and keeps what was sent."""

    url: str
    token: str
    requests: list[tuple[str, bytes]] = field(default_factory=list)

    def sent(self, name: str, message: type[Any]) -> list[Any]:
        """The requests of one kind, as messages."""
        return [message.FromString(body) for method, body in self.requests if method.endswith(f"/{name}")]


@contextmanager
def gate(server: str, token: str, certificate: tuple[bytes, bytes] | None = None) -> Iterator[Wire]:
    """A gate before the server at `server`; with a key and its certificate, over TLS."""

    def forward(call: Any) -> Any:
        def answer(body: bytes, context: Any) -> Any:
            wire.requests.append((call.method, body))
            if ("authorization", base64.b64encode(token.encode()).decode()) not in context.invocation_metadata():
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "auth check failure, please check username and password")
            try:
                return channel.unary_unary(call.method)(body)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())
                raise

        return grpc.unary_unary_rpc_method_handler(answer)

    class Forward(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
        def service(self, handler_call_details: Any) -> Any:
            return forward(handler_call_details)

    front = grpc.server(ThreadPoolExecutor(4), handlers=[Forward()])
    if certificate:
        port = front.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([certificate]))
    else:
        port = front.add_insecure_port("127.0.0.1:0")
    wire = Wire(f"{'https' if certificate else 'http'}://127.0.0.1:{port}", token)
    with grpc.insecure_channel(server.removeprefix("http://")) as channel:
        front.start()
        try:
            yield wire
        finally:
            front.stop(0).wait()


@pytest.fixture(scope="session")
def milvus_lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The options of a store on Milvus Lite, one for all tests."""
    server = new_server(tmp_path_factory.mktemp("milvus"))
    server.start()
    yield {"url": server.url}
    server.end()


@pytest.fixture
def milvus_options(milvus_lite: Mapping[str, str]) -> Mapping[str, str]:
    """The same, with a collection of the test's own."""
    return {**milvus_lite, "collection": f"t{uuid4().hex}"}


@pytest.fixture(scope="session")
def milvus() -> Mapping[str, str]:
    """The options of a store on the Milvus server that LEADLINE_TEST_MILVUS_URL names."""
    if SERVER_URL is None:
        pytest.skip(
            "No Milvus server. Start one, for example with its standalone_embed.sh script and Docker, and set "
            "LEADLINE_TEST_MILVUS_URL=http://127.0.0.1:19530 (with user:password@ before the host if it asks for them)."
        )
    return {"url": SERVER_URL}
