"""What can be read of jobs: one, those of a collection, what waits, and what the newest upload of a document came to.

See `catalog_jobs` for who may do one, and how it changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, Row, func, select

from leadline.stores.catalog import Catalog, batched
from leadline.stores.catalog_schema import PENDING, job_items, jobs, sources, versions

JobStatus = Literal["queued", "running", "done", "partial", "failed"]
ItemStatus = Literal["queued", "running", "done", "unchanged", "failed"]
ACTIVE: Final = ("queued", "running")


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that was received: the document it is to be, and the hash of its bytes."""

    doc_id: str
    file_name: str
    file_hash: str
    bytes: int


@dataclass(frozen=True, slots=True)
class JobItem:
    """A file of a job, and what became of it. `deleted`: somebody deleted its document since."""

    place: int
    doc_id: str
    file_name: str
    file_hash: str
    bytes: int
    status: ItemStatus
    chunks: int
    notes: tuple[str, ...]
    error: str | None
    deleted: bool


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job. Times are seconds since 1970. `error` is the last one, also while it is to be tried again."""

    id: str
    collection: str
    status: JobStatus
    created: float
    updated: float
    attempts: int
    error: str | None
    items: tuple[JobItem, ...]


@dataclass(frozen=True, slots=True)
class LatestUpload:
    """The newest upload of a document, which may be older than what is live."""

    item: JobItem
    created: float
    collection: str


def jobs_by_status(catalog: Catalog) -> dict[str, int]:
    """How many jobs of all collections there are, by their status."""
    with catalog.read() as connection:
        counted = connection.execute(select(jobs.c.status, func.count()).group_by(jobs.c.status))
        return {str(status): int(number) for status, number in counted}


def find_job(catalog: Catalog, job_id: str) -> JobRow | None:
    """The job with this id."""
    with catalog.read() as connection:
        number = connection.execute(select(jobs.c.number).where(jobs.c.id == job_id)).scalar_one_or_none()
        return None if number is None else read_job(connection, number)


def list_jobs(catalog: Catalog, collection: str, limit: int = 100) -> list[JobRow]:
    """Those of a collection, the newest first."""
    with catalog.read() as connection:
        newest = select(jobs).where(jobs.c.collection == collection).order_by(jobs.c.number.desc()).limit(limit)
        rows = connection.execute(newest).all()
        items = _items(connection, [row.number for row in rows])
    return [_job(row, items.get(row.number, [])) for row in rows]


def read_job(connection: Connection, number: int) -> JobRow:
    """Inside a transaction: the job with this number."""
    row = connection.execute(select(jobs).where(jobs.c.number == number)).one()
    return _job(row, _items(connection, [number]).get(number, []))


def being_indexed(catalog: Catalog, collection: str) -> list[str]:
    """The names of the files that wait or are being taken in, by whatever way, each once."""
    waiting = (
        select(job_items.c.file_name)
        .join_from(job_items, jobs, jobs.c.number == job_items.c.job)
        .where(jobs.c.status.in_(ACTIVE), jobs.c.collection == collection)
        .where(job_items.c.status.in_(ACTIVE), job_items.c.deleted == 0)
        .order_by(jobs.c.number, job_items.c.place)
    )
    pending = (
        select(versions.c.file_name)
        .join_from(versions, sources, sources.c.doc_id == versions.c.doc_id)
        .where(versions.c.status == PENDING, sources.c.collection == collection)
        .order_by(versions.c.id)
    )
    with catalog.read() as connection:
        names = [*connection.execute(waiting).scalars(), *connection.execute(pending).scalars()]
    return list(dict.fromkeys(names))


def latest_uploads(
    catalog: Catalog, collection: str | None = None, doc_ids: Sequence[str] | None = None
) -> dict[str, LatestUpload]:
    """doc_id → its newest upload, of a collection or of these documents. None of documents deleted since."""
    query = (
        select(job_items, jobs.c.created, jobs.c.collection)
        .join_from(job_items, jobs, jobs.c.number == job_items.c.job)
        .where(job_items.c.deleted == 0)
        .order_by(jobs.c.number, job_items.c.place)
    )
    if collection is not None:
        query = query.where(jobs.c.collection == collection)
    queries = [query] if doc_ids is None else [query.where(job_items.c.doc_id.in_(ids)) for ids in batched(doc_ids)]
    with catalog.read() as connection:
        rows = [row for each in queries for row in connection.execute(each)]
    return {row.doc_id: LatestUpload(item_of(row), row.created, row.collection) for row in rows}


def active_collections(catalog: Catalog) -> set[str]:
    """The collections that something is to be taken into; they need not be there yet."""
    with catalog.read() as connection:
        return set(connection.execute(select(jobs.c.collection).where(jobs.c.status.in_(ACTIVE)).distinct()).scalars())


def item_of(row: Row[Any]) -> JobItem:
    """A row of `job_items` as the record it is."""
    return JobItem(
        place=row.place,
        doc_id=row.doc_id,
        file_name=row.file_name,
        file_hash=row.file_hash,
        bytes=row.bytes,
        status=row.status,
        chunks=row.chunks,
        notes=tuple(row.notes),
        error=row.error,
        deleted=bool(row.deleted),
    )


def _items(connection: Connection, numbers: Sequence[int]) -> dict[int, list[JobItem]]:
    found: dict[int, list[JobItem]] = {}
    for batch in batched(numbers):
        query = select(job_items).where(job_items.c.job.in_(batch)).order_by(job_items.c.job, job_items.c.place)
        for row in connection.execute(query):
            found.setdefault(row.job, []).append(item_of(row))
    return found


def _job(row: Row[Any], items: Sequence[JobItem]) -> JobRow:
    return JobRow(
        id=row.id,
        collection=row.collection,
        status=row.status,
        created=row.created,
        updated=row.updated,
        attempts=row.attempts,
        error=row.error,
        items=tuple(items),
    )
