"""The lease of a data folder: one holder at a time, named to the others, never taken from a process that lives."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import select, update
from tests.servers.postgres import PostgresServer

from leadline.errors import LeaseHeld, LeaseLost, StoreError
from leadline.stores import lease as lease_module
from leadline.stores.catalog import Catalog, begin_immediate
from leadline.stores.catalog_collections import collection_names, create_collection
from leadline.stores.catalog_schema import lease as table
from leadline.stores.lease import Owner, hold_lease, process_start, this_process, try_acquire

HOLDER = """
import asyncio, pathlib, sys
from leadline.stores.catalog import Catalog
from leadline.stores.lease import hold_lease

async def main():
    catalog = Catalog(pathlib.Path(sys.argv[1]), sys.argv[2] or None)
    catalog.open()
    async with hold_lease(catalog, 5):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    catalog.close()

asyncio.run(main())
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Where the catalog is: in a file, or in a PostgreSQL database of the test's own."""
    if request.param == "sqlite":
        return None
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture
def catalog(tmp_path: Path, url: str | None) -> Iterator[Catalog]:
    """An open, empty catalog."""
    catalog = Catalog(tmp_path / "data", url)
    catalog.open()
    yield catalog
    catalog.close()


@contextmanager
def another_holder(folder: Path, url: str | None) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lease of the folder until it reads a line."""
    command = [sys.executable, "-c", HOLDER, str(folder), url or ""]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def stored(catalog: Catalog, **values: object) -> None:
    """Changes the stored lease behind its holder's back."""
    with begin_immediate(catalog.engine) as connection:
        connection.execute(update(table).values(**values))


async def test_a_second_process_is_told_who_holds_the_folder(catalog: Catalog, url: str | None) -> None:
    """The error names the command, the process, the host, since when, and the folder."""
    with another_holder(catalog.path.parent, url) as holder, pytest.raises(LeaseHeld) as caught:
        async with hold_lease(catalog, 0.2):
            pass
    message = str(caught.value)
    assert f"process {holder.pid} on {this_process().host}" in message
    assert catalog.place in message
    assert time.strftime("%Y-%m-%d") in message
    assert "waited 0.2 s" in message


async def test_a_second_process_waits_for_the_first_to_end(catalog: Catalog, url: str | None) -> None:
    """Whoever waits long enough gets the folder when it is given back."""
    with another_holder(catalog.path.parent, url) as holder:
        waiting = asyncio.create_task(_fence(catalog, 20))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        assert holder.stdin is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert await waiting == 2


async def test_a_killed_holder_is_followed_at_once(catalog: Catalog, url: str | None) -> None:
    """No waiting for a time-out when the holder's process is gone, though nobody gave the lease back."""
    with another_holder(catalog.path.parent, url) as holder:
        os.kill(holder.pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while process_start(holder.pid) is not None:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        assert await _fence(catalog, 0) == 2


async def test_a_process_id_used_again_is_not_the_holder(catalog: Catalog) -> None:
    """A running process with the holder's number, started at another time, doesn't keep the lease alive."""
    await _fence(catalog, 0)
    stored(catalog, pid=os.getppid(), process_start="1", expires=time.time() + 1000)
    assert await _fence(catalog, 0) == 2


async def test_a_living_process_keeps_its_lease_however_late_its_heartbeat(catalog: Catalog) -> None:
    """A stopped or swapped-out process on this host is not robbed of an index it has open."""
    await _fence(catalog, 0)
    parent = os.getppid()
    stored(catalog, pid=parent, process_start=process_start(parent), command="leadline ingest", expires=1.0)
    with pytest.raises(LeaseHeld, match="`leadline ingest`"):
        await _fence(catalog, 0)


@pytest.mark.parametrize("foreign", [{"host": "elsewhere"}, {"realm": "another container"}])
async def test_another_hosts_lease_is_taken_when_its_time_is_up(catalog: Catalog, foreign: dict[str, str]) -> None:
    """A process that can't be looked up from here holds until its heartbeat has been missing long enough."""
    await _fence(catalog, 0)
    stored(catalog, pid=1, expires=time.time() + 1000, **foreign)
    with pytest.raises(LeaseHeld):
        await _fence(catalog, 0)
    stored(catalog, expires=time.time() - 1)
    assert await _fence(catalog, 0) == 2


async def test_one_process_can_not_open_a_folder_twice(catalog: Catalog) -> None:
    """A second opening in the same process is refused like one from outside, and says that it is our own."""
    async with hold_lease(catalog, 0):
        with pytest.raises(LeaseHeld, match="this process itself"):
            await _fence(catalog, 0)


async def test_nothing_is_written_after_the_lease_was_taken_over(catalog: Catalog) -> None:
    """A holder that was declared dead while it slept finds out at its next write, which doesn't happen."""
    async with hold_lease(catalog, 0) as held:
        create_collection(catalog, "before", {})
        stored(catalog, fence=held.fence + 1)
        with pytest.raises(LeaseLost, match="took over"):
            create_collection(catalog, "after", {})
        with pytest.raises(LeaseLost):
            held.ensure_held()
    assert collection_names(catalog) == ["before"]


async def test_a_taken_lease_is_not_given_back_by_its_former_holder(catalog: Catalog) -> None:
    """Closing after a take-over leaves the new holder's lease alone."""
    async with hold_lease(catalog, 0) as held:
        stored(catalog, fence=held.fence + 1, pid=os.getppid(), process_start=process_start(os.getppid()))
    with pytest.raises(LeaseHeld):
        await _fence(catalog, 0)


async def test_the_lease_is_given_back_when_the_work_fails(catalog: Catalog) -> None:
    """An exception inside the block frees the folder for the next."""
    with pytest.raises(RuntimeError, match="work failed"):
        async with hold_lease(catalog, 0):
            raise RuntimeError("work failed")
    assert await _fence(catalog, 0) == 2


async def test_the_heartbeat_moves_the_expiry(catalog: Catalog) -> None:
    """While the block runs, other hosts see the lease renewed; a beat that finds it taken says so."""
    async with hold_lease(catalog, 0, heartbeat_s=0.02) as held:
        stored(catalog, expires=1.0)
        await _until(lambda: _expires(catalog) > time.time())
        stored(catalog, fence=held.fence + 1)
        await _until(lambda: _is_lost(held))


async def test_nothing_can_be_written_without_the_lease(catalog: Catalog) -> None:
    """A catalog whose lease was never taken, or was given back, refuses writes in so many words."""
    with pytest.raises(StoreError, match="holder of its lease"):
        create_collection(catalog, "a", {})
    await _fence(catalog, 0)
    with pytest.raises(StoreError, match="holder of its lease"):
        create_collection(catalog, "a", {})


def test_the_owner_tells_the_command_but_not_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question on the command line is nobody else's business."""
    monkeypatch.setattr(sys, "argv", ["/usr/bin/leadline", "ask", "what does Dana earn?"])
    assert this_process().command == "leadline ask"
    monkeypatch.setattr(sys, "argv", ["/home/x/script.py", "private"])
    assert this_process().command == "script.py"


def test_processes_are_told_apart_by_number_and_start() -> None:
    """This process runs since a known time; a number nobody has belongs to no process."""
    assert process_start(os.getpid()) == process_start(os.getpid()) != ""
    assert process_start(2**22 + 1) is None


def test_without_a_proc_file_system_a_signal_tells_who_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the start of a process can't be read, running or not is still known."""
    assert lease_module._signalled(os.getpid()) == ""
    assert lease_module._signalled(2**22 + 1) is None


def test_where_starts_are_unknown_a_silent_holder_loses_the_lease(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running process may only have the holder's number there, so its heartbeat decides."""
    monkeypatch.setattr(lease_module, "process_start", lambda _: "")
    asking = Owner("leadline ls", "here", "", 1, "")
    try_acquire(catalog, asking)
    assert not isinstance(try_acquire(catalog, asking), int)
    stored(catalog, expires=time.time() - 1)
    assert try_acquire(catalog, asking) == 2


async def _fence(catalog: Catalog, timeout_s: float) -> int:
    async with hold_lease(catalog, timeout_s) as held:
        return held.fence


def _expires(catalog: Catalog) -> float:
    with catalog.read() as connection:
        return float(connection.execute(select(table.c.expires)).scalar_one())


def _is_lost(held: lease_module.Lease) -> bool:
    try:
        held.ensure_held()
    except LeaseLost:
        return True
    return False


async def _until(holds: object) -> None:
    assert callable(holds)
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
