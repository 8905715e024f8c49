"""The lease of a data folder: who may write its catalog and its indexes.

One process at a time, for the length of one change. The lease is a row of the catalog with a number, the fence, that
rises with every taker; each write transaction checks it. Knows processes and clocks; doesn't know what is written.
"""

import asyncio
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, Row, Update, select, update
from sqlalchemy.exc import DBAPIError

from leadline.errors import LeaseHeld, LeaseLost, StoreError
from leadline.stores.catalog import Catalog, begin_immediate, upsert
from leadline.stores.catalog_schema import lease as table

log = logging.getLogger(__name__)

TTL_S: Final = 30.0  # after so long without a heartbeat, another host may take over
HEARTBEAT_S: Final = 5.0
POLL_S: Final = 0.1
RETRY_S: Final = 0.2  # between two tries to give it back
GIVE_WAY_S: Final = 0.15  # longer than the others sleep between two tries
_ROW: Final = 1


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, as others can tell it from all other processes.

    `realm` is where `pid` means something: one run of one machine, one namespace of process ids in it (a container).
    Empty where the system doesn't say.
    """

    command: str
    host: str
    realm: str
    pid: int
    process_start: str


def this_process() -> Owner:
    """The owner this process would be. The command is its name only: arguments may be private."""
    program = Path(sys.argv[0]).name if sys.argv else "python"
    if program == "leadline" and len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        program = f"{program} {sys.argv[1]}"
    pid = os.getpid()
    return Owner(program or "python", socket.gethostname(), _realm(), pid, process_start(pid) or "")


def process_start(pid: int) -> str | None:
    """When process `pid` started, in the system's own terms; empty if it can't be known; None if there is none.

    A process that has ended but was not waited for counts as none.
    """
    try:
        # The name of a program, in parentheses, may hold spaces and parentheses itself.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None if Path("/proc/self/stat").exists() else _signalled(pid)
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _signalled(pid: int) -> str | None:
    if os.name == "nt":  # there signal 0 would end the process
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""


def _realm() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def may_take(holder: Row[Any], asking: Owner, now: float) -> bool:
    """Whether the lease in `holder` may be taken by `asking`.

    Free: yes. Of a process that can be looked up from here: as soon as it is gone, never while it runs, however late
    its heartbeat. Of any other: when its time is up.
    """
    if holder.pid is None:
        return True
    if holder.host != asking.host or holder.realm != asking.realm:
        return bool(holder.expires < now)
    started = process_start(holder.pid)
    if started == "":  # it runs, or another process has its number by now
        return bool(holder.expires < now)
    return bool(started != holder.process_start)


class Lease:
    """The lease as this process holds it: kept alive by a thread, checked by every write."""

    def __init__(self, catalog: Catalog, fence: int, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        self.fence = fence
        self._catalog = catalog
        self._heartbeat_s = heartbeat_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="leadline-lease", daemon=True)
        self._lost = False

    def start(self) -> None:
        """Starts the heartbeat."""
        self._thread.start()

    def check(self, connection: Connection) -> None:
        """Raises LeaseLost if another process has the lease."""
        found = connection.execute(select(table.c.fence, table.c.pid).where(table.c.id == _ROW)).one()
        if found.fence != self.fence or found.pid is None:
            self._lost = True
        self.ensure_held()

    def ensure_held(self) -> None:
        """Raises LeaseLost if the lease is known to be lost; asks nobody."""
        if self._lost:
            raise LeaseLost(
                f"Another process took over the catalog {self._catalog.place}.",
                hint="Nothing more was written. Start again.",
            )

    def release(self) -> bool:
        """Ends the heartbeat and gives the lease back. Whether another process has been waiting for it.

        The fence stays, for the next taker to raise.
        """
        self._stop.set()
        self._thread.join()
        engine = self._catalog.engine
        try:
            return self._give_back(engine)
        except DBAPIError as error:  # such as a full disk: nobody else could write either
            log.warning("The lease of %s could not be given back yet: %s", self._catalog.place, error.orig)
            threading.Thread(target=self._give_back_later, args=(engine,), name="leadline-lease", daemon=True).start()
            return False

    def _give_back(self, engine: Engine) -> bool:
        with begin_immediate(engine) as connection:
            wanted = select(table.c.id).where(table.c.id == _ROW, table.c.wanted >= table.c.acquired)
            is_wanted = connection.execute(wanted).first() is not None
            connection.execute(self._mine().values(pid=None, command=None, expires=0.0))
            return is_wanted

    def _give_back_later(self, engine: Engine) -> None:
        """Tries until it has worked: this process may go on for long, and would keep everybody out."""
        while True:
            time.sleep(RETRY_S)
            try:
                if not self._catalog.is_missing():  # deleted meanwhile, it is nobody's
                    self._give_back(engine)
            except (DBAPIError, StoreError):
                continue
            engine.dispose()  # the catalog may be closed by now, and this have opened a connection again
            return

    def _keep_alive(self) -> None:
        while not self._stop.wait(self._heartbeat_s):
            try:
                with begin_immediate(self._catalog.engine) as connection:
                    now = time.time()
                    kept = connection.execute(self._mine().values(heartbeat=now, expires=now + TTL_S))
            except DBAPIError as error:  # the next beat makes up for it, and check() sees a lost lease
                log.warning("The lease of %s could not be renewed: %s", self._catalog.place, error.orig)
                continue
            if kept.rowcount == 0:
                self._lost = True
                return

    def _mine(self) -> Update:
        return update(table).where(table.c.id == _ROW, table.c.fence == self.fence)


def try_acquire(catalog: Catalog, owner: Owner) -> int | Row[Any]:
    """Takes the lease if it may be taken: its fence. Otherwise the row of who holds it."""
    with begin_immediate(catalog.engine) as connection:
        holder = connection.execute(select(table).where(table.c.id == _ROW)).one_or_none()
        now = time.time()
        if holder is not None and not may_take(holder, owner, now):
            connection.execute(update(table).where(table.c.id == _ROW).values(wanted=now))
            return holder
        fence = 1 if holder is None else holder.fence + 1
        row = {"id": _ROW, "fence": fence, "acquired": now, "heartbeat": now, "expires": now + TTL_S}
        who = {name: getattr(owner, name) for name in ("command", "host", "realm", "pid", "process_start")}
        connection.execute(upsert(connection, table), row | who)
        return fence


@asynccontextmanager
async def hold_lease(catalog: Catalog, timeout_s: float, *, heartbeat_s: float = HEARTBEAT_S) -> AsyncIterator[Lease]:
    """Holds the lease of the catalog's folder for the length of the block, and lets the catalog be written.

    Waits `timeout_s` at most, then raises LeaseHeld, which names the owner. A second taker in the same process waits
    like any other. Whoever gives the lease back while others wait lets them come first.
    """
    lease = Lease(catalog, await _acquire(catalog, timeout_s), heartbeat_s=heartbeat_s)
    lease.start()
    catalog.guard(lease)
    try:
        yield lease
    finally:
        catalog.guard(None)
        if await asyncio.to_thread(lease.release):
            await asyncio.sleep(GIVE_WAY_S)


async def _acquire(catalog: Catalog, timeout_s: float) -> int:
    owner = await asyncio.to_thread(this_process)  # reads files
    deadline = time.monotonic() + timeout_s
    while True:
        taken = await asyncio.to_thread(try_acquire, catalog, owner)
        if isinstance(taken, int):
            return taken
        if time.monotonic() >= deadline:
            raise _held(catalog, taken, owner, timeout_s)
        await asyncio.sleep(POLL_S)


def _held(catalog: Catalog, holder: Row[Any], asking: Owner, timeout_s: float) -> StoreError:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.acquired))
    mine = holder.pid == asking.pid and holder.realm == asking.realm
    who = "this process itself" if mine else f"`{holder.command}` (process {holder.pid} on {holder.host})"
    return LeaseHeld(
        f"The catalog {catalog.place} is being changed by {who} since {since}; waited {timeout_s:g} s.",
        hint="Wait until it has ended, raise LEADLINE_LOCK_TIMEOUT_S, or use another --data-dir.",
    )
