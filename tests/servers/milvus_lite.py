"""Milvus for the tests: Milvus Lite started on loopback, and a server where the environment names one."""

import base64
import fcntl
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import grpc
import pytest

from leadline.errors import MissingExtra
from leadline.stores import milvus_lite as engine

# Read at once: no test sees the settings of whoever runs it.
SERVER_URL = os.environ.get("LEADLINE_TEST_MILVUS_URL")
START_TIMEOUT_S = 30


@dataclass
class LiteServer:
    """Milvus Lite over one file, on a port of this machine. `start` it again after `kill`."""

    file: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    lock: IO[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it and waits until it can be connected to; what it said is in the error where it can't."""
        arguments, environment = engine.command(self.file, f"127.0.0.1:{self.port}", self.file.parent)
        log = self.file.with_suffix(".log")
        if self.lock is None:  # whose end it waits for: it doesn't outlive the tests
            self.lock = self.file.with_suffix(".lock").open("ab")
            fcntl.lockf(self.lock, fcntl.LOCK_EX)
        arguments.append(self.lock.name)
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                arguments, cwd=self.file.parent, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                pytest.fail(f"Milvus Lite did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it in order, for good."""
        if self.process is not None and self.lock is not None:
            self.lock.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Ends it at once, whatever it is doing."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _answers(self) -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self.port)) == 0


def new_server(folder: Path) -> LiteServer:
    """A server over a file in `folder`, not yet started. Skips where milvus-lite isn't installed."""
    try:
        engine.binary()
    except MissingExtra as error:
        pytest.skip(str(error))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return LiteServer(folder / "milvus.db", free.getsockname()[1])


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
    server.stop()


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
