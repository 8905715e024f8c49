"""The runner of jobs over a real library: what an earlier process left, what stops a job, and what is told of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from leadline import Settings, load_settings, open_library
from leadline.errors import LeaseHeld, StoreError
from leadline.ingest.jobs import LOST, TURN_S, JobRunner
from leadline.ingest.uploads import uploaded_file
from leadline.knowledge import KnowledgeBase, Library
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_job_rows import JobRow, find_job
from leadline.stores.catalog_jobs import DELETED, add_job, begin_item, claim_job, forget_uploads
from leadline.stores.lease import this_process
from leadline.stores.uploads import Incoming, path_of

# A page of one tag, which takes longer to read than any limit here.
HOLDS_UP = "<p " + " ".join(f"a{n}=x" for n in range(400_000)) + ">tide"
TEXT = "# Tide\n\nThe tide turns at six.\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A data folder of the test's own."""
    return load_settings(data_dir=tmp_path / "data")


@pytest.fixture
async def library(settings: Settings) -> AsyncIterator[Library]:
    """An open library."""
    async with open_library(settings) as library:
        yield library


def enqueue(library: Library, *names: str, text: str = TEXT, collection: str = "default") -> JobRow:
    """Uploads files of these names, each with a text of its own."""
    received = []
    for name in names:
        incoming = Incoming(library.catalog).__enter__()
        incoming.write(text.replace("tide", f"tide of {name}").encode())
        incoming.close()
        received.append((name, incoming))

    def store() -> None:
        for _, incoming in received:
            incoming.keep()

    return add_job(
        library.catalog, collection, [uploaded_file(collection, name, file) for name, file in received], store
    )


@asynccontextmanager
async def runner(
    library: Library,
    settings: Settings,
    after: Callable[[], Awaitable[object]] | None = None,
    retry_s: float = 0.0,
    turn_s: float = TURN_S,
) -> AsyncIterator[None]:
    """Jobs are done while the block runs."""

    async def nothing() -> None:
        pass

    task = asyncio.create_task(JobRunner(library, settings, after or nothing, retry_s=retry_s, turn_s=turn_s).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def past(library: Library, job: JobRow, *statuses: str) -> JobRow:
    """The job once it has none of these any more."""
    async with asyncio.timeout(60):
        while (found := find_job(library.catalog, job.id)) is None or found.status in statuses:  # noqa: ASYNC110 - it is in a database
            await asyncio.sleep(0.05)
        return found


async def ended(library: Library, job: JobRow) -> JobRow:
    """The job at its end."""
    return await past(library, job, "queued", "running")


async def test_a_file_that_an_earlier_try_put_in_is_done_not_unchanged(library: Library, settings: Settings) -> None:
    """What a killed process had stored but not noted is new all the same, and is stored once."""
    dead = replace(this_process(), process_start="long ago")
    job = enqueue(library, "a.md")
    claimed = claim_job(library.catalog, dead)
    assert claimed is not None
    begin_item(library.catalog, claimed.claim, 0)
    async with runner(library, settings):
        first = await ended(library, job)
        again = await ended(library, enqueue(library, "a.md"))
    assert (first.items[0].status, first.attempts) == ("done", 2)
    assert again.items[0].status == "unchanged"
    assert len(await (await library.collection()).list_sources()) == 1


async def test_a_document_deleted_under_a_process_that_was_killed_is_gone(library: Library, settings: Settings) -> None:
    """The next process takes out what the killed one had put in by then, and doesn't take it in again."""
    job = enqueue(library, "a.md")
    async with runner(library, settings):
        await ended(library, job)
    job = enqueue(library, "a.md")
    claimed = claim_job(library.catalog, replace(this_process(), process_start="long ago"))
    assert claimed is not None
    begin_item(library.catalog, claimed.claim, 0)
    forget_uploads(library.catalog, job.items[0].doc_id)
    removals: list[str] = []

    async def after() -> None:
        removals.append("told")

    async with runner(library, settings, after):
        done = await ended(library, job)
    assert (done.status, done.items[0].error) == ("failed", DELETED)
    assert await (await library.collection()).list_sources() == []
    assert removals == ["told"]
    assert not path_of(library.catalog, job.items[0].file_hash).exists()


async def test_what_is_replaced_is_told_of(library: Library, settings: Settings) -> None:
    """So that answers made from it go; a new document is none."""
    removals: list[str] = []

    async def after() -> None:
        removals.append("told")

    async with runner(library, settings, after):
        await ended(library, enqueue(library, "a.md"))
        assert removals == []
        await ended(library, enqueue(library, "a.md", text=TEXT.replace("six", "seven")))
    assert removals == ["told"]


async def test_a_file_whose_bytes_are_gone_has_failed(library: Library, settings: Settings) -> None:
    """It says so; the others go in."""
    job = enqueue(library, "a.md", "b.md")
    path_of(library.catalog, job.items[0].file_hash).unlink()
    async with runner(library, settings):
        done = await ended(library, job)
    assert done.status == "partial"
    assert [(item.status, item.error) for item in done.items] == [("failed", LOST), ("done", None)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreError("The disk of {folder}/x is full."), "The disk of the data folder/x is full."),
        (RuntimeError("the words of a document"), "Unexpected RuntimeError; the server's log has the details."),
    ],
)
async def test_what_stops_a_job_three_times_ends_it(
    error: Exception, told: str, library: Library, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error stands with it, without folders of the machine and without what may be somebody's text."""
    if isinstance(error, StoreError):
        error = StoreError(error.message.format(folder=settings.data_dir.resolve()))

    async def broken(*_: object, **__: object) -> KnowledgeBase:
        raise error

    monkeypatch.setattr(library, "collection", broken)
    job = enqueue(library, "a.md")
    async with runner(library, settings):
        failed = await ended(library, job)
    assert (failed.status, failed.attempts, failed.error, failed.items[0].error) == ("failed", 3, told, told)
    assert not path_of(library.catalog, job.items[0].file_hash).exists()


async def test_waiting_for_another_writer_is_no_failed_try(
    library: Library, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often that happens, the job is done when its turn comes."""
    real, waited = library.collection, []

    async def busy(name: str, *, create: bool = False) -> KnowledgeBase:
        if len(waited) < 5:
            waited.append(name)
            raise LeaseHeld("The catalog is being changed by another.")
        return await real(name, create=create)

    monkeypatch.setattr(library, "collection", busy)
    async with runner(library, settings):
        done = await ended(library, enqueue(library, "a.md"))
    assert (done.status, done.attempts, done.error, len(waited)) == ("done", 1, None, 5)


async def test_slow_files_of_one_hold_up_no_other(library: Library, settings: Settings) -> None:
    """What is uploaded after them, to another collection or to theirs, is in before they end, which they do right."""
    settings = settings.model_copy(update={"max_file_seconds": 1})
    slow = enqueue(library, "a.html", "b.html", "c.html", "d.html", text=HOLDS_UP)
    async with runner(library, settings, turn_s=0.5):
        await past(library, slow, "queued")
        quick = [enqueue(library, "q.md", collection="other"), enqueue(library, "r.md")]
        quick_ended = [await ended(library, job) for job in quick]
        between = find_job(library.catalog, slow.id)
        slow_ended = await ended(library, slow)
    assert [(job.status, job.attempts, job.items[0].status) for job in quick_ended] == [("done", 1, "done")] * 2
    assert between is not None
    assert between.status in ("queued", "running")
    assert between.items[-1].status == "queued"
    assert (slow_ended.status, slow_ended.attempts) == ("failed", 1)
    assert all("1 s" in (item.error or "") for item in slow_ended.items), slow_ended.items
    assert len(await (await library.collection()).list_sources()) == 1


async def test_turns_lose_no_file_and_read_none_twice(
    library: Library, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs that take turns after each file end with every file in, new ones told as new, unchanged as unchanged."""
    names = [f"{n}.md" for n in range(5)]
    begun: list[str] = []

    def noted(catalog: Catalog, claim: str, place: int) -> None:
        begun.append(claim)
        begin_item(catalog, claim, place)

    monkeypatch.setattr("leadline.ingest.jobs.begin_item", noted)
    async with runner(library, settings, turn_s=0.0):
        before = await ended(library, enqueue(library, "3.md", "4.md"))
        jobs = [enqueue(library, *names), enqueue(library, *names, collection="other")]
        one, other = [await ended(library, job) for job in jobs]
    assert [(job.status, job.attempts, job.error) for job in (before, one, other)] == [("done", 1, None)] * 3
    assert [item.status for item in one.items] == ["done"] * 3 + ["unchanged"] * 2
    assert [item.status for item in other.items] == ["done"] * 5
    assert len(begun) == 2 + 5 + 5
    assert len(set(begun)) > 3, "a turn has a claim of its own: no job was given back"
    for name in ("default", "other"):
        assert len(await (await library.collection(name)).list_sources()) == 5


async def test_a_job_alone_has_no_turns(library: Library, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody waits it is claimed once, however long it takes."""
    claims: set[str] = set()

    def noted(catalog: Catalog, claim: str, place: int) -> None:
        claims.add(claim)
        begin_item(catalog, claim, place)

    monkeypatch.setattr("leadline.ingest.jobs.begin_item", noted)
    job = enqueue(library, "a.md", "b.md", "c.md")
    async with runner(library, settings, turn_s=0.0):
        done = await ended(library, job)
    assert (done.status, len(claims)) == ("done", 1)
