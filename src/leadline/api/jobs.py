"""`GET /jobs`: what becomes of uploads. And the task of the server that takes them in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from fastapi import APIRouter, Request
from pydantic import BaseModel

from leadline.api.access import Who
from leadline.api.collections import Collection, known_collection
from leadline.api.ids import Id, IdRoute
from leadline.errors import JobUnknown
from leadline.graph.run import App
from leadline.ingest.jobs import JobRunner
from leadline.stores.catalog_job_rows import ItemStatus, JobItem, JobRow, JobStatus, find_job, list_jobs

router = APIRouter(tags=["documents"], route_class=IdRoute)

MOST_LISTED: Final = 100


class Item(BaseModel):
    """A file of a job."""

    file_name: str
    status: ItemStatus
    doc_id: str
    chunks: int
    notes: list[str]
    error: str | None


class Job(BaseModel):
    """An upload that is taken in, or was. `error` is the last one, also while it is tried again."""

    id: str
    collection: str
    status: JobStatus
    created_at: datetime
    updated_at: datetime
    attempts: int
    error: str | None
    items: list[Item]


class Jobs(BaseModel):
    """The jobs of a collection, the newest first."""

    jobs: list[Job]


@router.get("/jobs")
async def jobs(request: Request, who: Who, collection: Collection = None) -> Jobs:
    """The newest hundred jobs of a collection. Finished ones are forgotten after thirty days."""
    name = await known_collection(request, who, collection)
    catalog = request.app.state.leadline.library.catalog
    return Jobs(jobs=[wire_job(job) for job in await asyncio.to_thread(list_jobs, catalog, name, MOST_LISTED)])


@router.get("/jobs/{job_id}")
async def job(request: Request, who: Who, job_id: Id) -> Job:
    """What became of an upload so far."""
    found = await asyncio.to_thread(find_job, request.app.state.leadline.library.catalog, job_id)
    if found is None or not who.sees(found.collection):
        raise JobUnknown(f"There is no job {job_id}.")
    return wire_job(found)


def wire_job(job: JobRow) -> Job:
    """A job as clients see it."""
    return Job(
        id=job.id,
        collection=job.collection,
        status=job.status,
        created_at=moment(job.created),
        updated_at=moment(job.updated),
        attempts=job.attempts,
        error=job.error,
        items=[_wire_item(item) for item in job.items],
    )


def moment(seconds: float) -> datetime:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def _wire_item(item: JobItem) -> Item:
    return Item(
        file_name=item.file_name,
        status=item.status,
        doc_id=item.doc_id,
        chunks=item.chunks,
        notes=list(item.notes),
        error=item.error,
    )


@asynccontextmanager
async def running_jobs(app: App) -> AsyncIterator[JobRunner]:
    """Jobs are done while the block runs. At its end the one under way is given back, for whoever is next."""
    runner = await asyncio.to_thread(JobRunner, app.library, app.settings, app.forget_deleted)
    task = asyncio.create_task(runner.run(), name="leadline-jobs")
    try:
        yield runner
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
