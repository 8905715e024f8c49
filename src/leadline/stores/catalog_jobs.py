"""Jobs in the catalog: uploads waiting to be taken in, who is at one, and what became of each file.

A job is claimed by one process at a time. The claim has an end, which its holder puts off again and again: what a dead
process left is taken up by any other, as soon as it is known to be dead or the claim has ended. Jobs for one document
are done in the order they came, others in turns (`catalog_job_turns`). Any process may write here, so no lease of the
data folder is needed; a claim that was lost can write nothing. What is read of jobs is in `catalog_job_rows`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, insert, select, update

from leadline.stores.catalog import Catalog
from leadline.stores.catalog_job_rows import ACTIVE, JobItem, JobRow, UploadedFile, item_of, read_job
from leadline.stores.catalog_job_turns import in_turn, waits_for_another
from leadline.stores.catalog_schema import job_items, jobs
from leadline.stores.lease import Owner, may_take

LEASE_S: Final = 30.0
MAX_ATTEMPTS: Final = 3
KEPT_S: Final = 30 * 24 * 3600.0  # how long a finished job can be asked about
LONGEST_WAIT_S: Final = 300.0  # of a job before its next try
_NOBODY: Final = {"claim": None, "host": None, "realm": None, "pid": None, "process_start": None}
DELETED: Final = "The document was deleted before it was indexed."


class ClaimLost(Exception):
    """Another process has the job by now: nothing was written."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job that this process is to do, and the files of it that are left.

    `why_not` is set where it was tried often enough: it is to be given back with that error, which ends it.
    """

    claim: str
    job: JobRow
    left: tuple[JobItem, ...]

    @property
    def why_not(self) -> str | None:
        """Why it isn't to be tried once more."""
        ended = f"The server ended each of the {MAX_ATTEMPTS} times it was at this."
        return (self.job.error or ended) if self.job.attempts > MAX_ATTEMPTS else None


def add_job(
    catalog: Catalog,
    collection: str,
    files: Sequence[UploadedFile],
    store: Callable[[], None],
    *,
    now: float | None = None,
) -> JobRow:
    """A new job, queued. `store` puts the bytes in place, in the same transaction: nobody sweeps them as unused."""
    now = time.time() if now is None else now
    row = {"id": token_hex(16), "collection": collection, "status": "queued", "attempts": 0, "expires": 0.0}
    with catalog.write_cache() as connection:
        _forget_old(connection, now - KEPT_S)
        done = connection.execute(insert(jobs).values(row | {"created": now, "updated": now}).returning(jobs.c.number))
        number = done.scalar_one()
        fresh: dict[str, Any] = {"job": number, "status": "queued", "chunks": 0, "notes": [], "deleted": 0}
        rows = [
            fresh | {"place": n, **{name: getattr(file, name) for name in UploadedFile.__slots__}}
            for n, file in enumerate(files)
        ]
        connection.execute(insert(job_items), rows)
        store()
        return read_job(connection, number)


def claim_job(catalog: Catalog, owner: Owner, *, now: float | None = None, lease_s: float = LEASE_S) -> Claimed | None:
    """The job that nobody is at and whose turn it is, now claimed for `lease_s` seconds; None if there is none.

    Writes only where there is one.
    """
    now = time.time() if now is None else now
    with catalog.read() as connection:
        if _free(connection, owner, now) is None:
            return None
    with catalog.write_cache() as connection:
        row = _free(connection, owner, now)
        return None if row is None else _claimed(connection, row, owner, now, lease_s)


def another_waits(catalog: Catalog, owner: Owner, *, now: float | None = None) -> bool:
    """Whether there is a job that could be claimed now."""
    with catalog.read() as connection:
        return _free(connection, owner, time.time() if now is None else now) is not None


def keep_claim(catalog: Catalog, claim: str, *, now: float | None = None, lease_s: float = LEASE_S) -> None:
    """Puts off the end of the claim. Raises ClaimLost."""
    now = time.time() if now is None else now
    with catalog.write_cache() as connection:
        _update_claimed(connection, claim, expires=now + lease_s)


def begin_item(catalog: Catalog, claim: str, place: int) -> None:
    """The file is being read. Raises ClaimLost."""
    with catalog.write_cache() as connection:
        number = _update_claimed(connection, claim, updated=time.time())
        _set_item(connection, number, place, status="running")


def end_item(catalog: Catalog, claim: str, place: int, **what: Any) -> bool:
    """What became of a file: its status, chunks, notes, error. Whether its document was deleted meanwhile.

    That file counts as failed, and what of it is in the collection is for the caller to take out. Raises ClaimLost.
    """
    with catalog.write_cache() as connection:
        number = _update_claimed(connection, claim, updated=time.time())
        mine = (job_items.c.job == number) & (job_items.c.place == place)
        deleted = bool(connection.execute(select(job_items.c.deleted).where(mine)).scalar_one())
        if deleted:
            what = {"status": "failed", "chunks": 0, "error": DELETED}
        _set_item(connection, number, place, **what)
        return deleted


def finish_job(catalog: Catalog, claim: str) -> JobRow:
    """Every file is through: the job is done, partial or failed, by those of its files that weren't deleted.

    Raises ClaimLost.
    """
    with catalog.write_cache() as connection:
        number = _update_claimed(connection, claim, error=None)
        _end(connection, number, time.time(), "The file was not read.")
        return read_job(connection, number)


def give_back(
    catalog: Catalog, claim: str, *, error: str | None = None, wait_s: float = 0.0, now: float | None = None
) -> JobRow:
    """The job is queued again, after a wait of `LONGEST_WAIT_S` at most.

    With an `error` the try counts, and the last one ends the job as failed; without, it is as if it had not been made.
    Raises ClaimLost.
    """
    now = time.time() if now is None else now
    with catalog.write_cache() as connection:
        number = _update_claimed(connection, claim, updated=now)
        job = read_job(connection, number)
        if error is not None and job.attempts >= MAX_ATTEMPTS:
            _end(connection, number, now, error)
        else:
            again = {"status": "queued", "expires": now + min(wait_s, LONGEST_WAIT_S), **_NOBODY}
            kept = {"attempts": job.attempts - 1} if error is None else {"error": error}
            connection.execute(update(jobs).where(jobs.c.number == number).values(again | kept))
        return read_job(connection, number)


def forget_uploads(catalog: Catalog, doc_id: str) -> list[str]:
    """Takes a document out of the jobs: what waits is not taken in, what failed is no more shown among the documents.

    Returns the hashes of its files, whose bytes nobody may need any more.
    """
    now = time.time()
    with catalog.write_cache() as connection:
        rows = connection.execute(
            update(job_items)
            .where(job_items.c.doc_id == doc_id, job_items.c.deleted == 0)
            .values(deleted=1)
            .returning(job_items.c.job, job_items.c.place, job_items.c.status, job_items.c.file_hash)
        ).all()
        for row in rows:
            if row.status == "queued":
                _set_item(connection, row.job, row.place, status="failed", error=DELETED)
        for number in {row.job for row in rows}:
            _end_if_through(connection, number, now)
        return [row.file_hash for row in rows]


def _free(connection: Connection, owner: Owner, now: float) -> Row[Any] | None:
    """Of the jobs that may be claimed and have no earlier one about their documents, the one whose turn it is."""
    for row in in_turn(connection, now):
        if _is_free(row, owner, now) and not waits_for_another(connection, row.number):
            return row
    return None


def _is_free(row: Row[Any], owner: Owner, now: float) -> bool:
    if row.status == "queued":  # a wait that is longer than any is one that a clock has made, when it was put back
        return bool(row.expires <= now) or bool(row.expires > now + LONGEST_WAIT_S)
    # A process that lives but let its claim end has stopped working: it would have put it off.
    return bool(row.expires < now) or may_take(row, owner, now)


def _claimed(connection: Connection, row: Row[Any], owner: Owner, now: float, lease_s: float) -> Claimed:
    claim = token_hex(16)
    who = {name: getattr(owner, name) for name in ("host", "realm", "pid", "process_start")}
    values = {"status": "running", "claim": claim, "expires": now + lease_s, "updated": now, **who}
    connection.execute(update(jobs).where(jobs.c.number == row.number).values(values | {"attempts": row.attempts + 1}))
    job = read_job(connection, row.number)
    return Claimed(claim, job, tuple(item for item in job.items if item.status in ACTIVE))


def _update_claimed(connection: Connection, claim: str, **values: Any) -> int:
    """Changes the claimed job, and returns its number."""
    done = connection.execute(update(jobs).where(jobs.c.claim == claim).values(**values).returning(jobs.c.number))
    number = done.scalar_one_or_none()
    if number is None:
        raise ClaimLost
    return int(number)


def _set_item(connection: Connection, number: int, place: int, **values: Any) -> None:
    mine = (job_items.c.job == number) & (job_items.c.place == place)
    connection.execute(update(job_items).where(mine).values(**values))


def _end(connection: Connection, number: int, now: float, why_left: str) -> None:
    """Ends a job; files that were not taken in failed, and say why."""
    left = (job_items.c.job == number) & job_items.c.status.in_(ACTIVE)
    connection.execute(update(job_items).where(left, job_items.c.deleted != 0).values(status="failed", error=DELETED))
    gone = connection.execute(update(job_items).where(left).values(status="failed", error=why_left)).rowcount
    rows = connection.execute(select(job_items).where(job_items.c.job == number).order_by(job_items.c.place)).all()
    items = [item_of(row) for row in rows]
    items = [item for item in items if not item.deleted] or items  # what nobody wants any more is no failure
    failed = [item for item in items if item.status == "failed"]
    status = "done" if not failed else "failed" if len(failed) == len(items) else "partial"
    error = why_left if gone else failed[0].error if len(failed) == len(items) else None
    values = {"status": status, "error": error, "updated": now, "expires": 0.0, **_NOBODY}
    connection.execute(update(jobs).where(jobs.c.number == number).values(values))
    tried = update(jobs).where(jobs.c.number == number, jobs.c.attempts > MAX_ATTEMPTS)
    connection.execute(tried.values(attempts=MAX_ATTEMPTS))  # the last claim only found that


def _end_if_through(connection: Connection, number: int, now: float) -> None:
    """Ends a waiting job that has nothing left to do; one that somebody is at ends by itself."""
    job = read_job(connection, number)
    if job.status == "queued" and not any(item.status in ACTIVE for item in job.items):
        _end(connection, number, now, DELETED)


def _forget_old(connection: Connection, before: float) -> None:
    old = select(jobs.c.number).where(jobs.c.updated < before, jobs.c.status.not_in(ACTIVE))
    connection.execute(delete(job_items).where(job_items.c.job.in_(old)))
    connection.execute(delete(jobs).where(jobs.c.updated < before, jobs.c.status.not_in(ACTIVE)))
