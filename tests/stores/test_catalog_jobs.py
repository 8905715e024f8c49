"""Jobs in the catalog, in a file and in PostgreSQL: who may do one, what is left of it, what is remembered of it."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update
from tests.servers.postgres import PostgresServer
from tests.stores.catalogs import add, put, writable

from leadline.stores.catalog import Catalog
from leadline.stores.catalog_collections import collection_names
from leadline.stores.catalog_job_rows import (
    UploadedFile,
    active_collections,
    being_indexed,
    find_job,
    jobs_by_status,
    latest_uploads,
    list_jobs,
)
from leadline.stores.catalog_job_turns import _LOOKED_AT
from leadline.stores.catalog_jobs import (
    DELETED,
    KEPT_S,
    LEASE_S,
    MAX_ATTEMPTS,
    Claimed,
    ClaimLost,
    add_job,
    another_waits,
    begin_item,
    claim_job,
    end_item,
    finish_job,
    forget_uploads,
    give_back,
    keep_claim,
)
from leadline.stores.catalog_schema import job_items, jobs
from leadline.stores.lease import Owner, this_process

NOW = 1_000_000.0
# On two other machines: of each other they can only know when a claim ends.
FAR = replace(this_process(), host="far", realm="r1")
FARTHER = replace(this_process(), host="farther", realm="r2")


@pytest.fixture(params=["sqlite", "postgres"])
async def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Catalog]:
    """An open catalog that may be written, with the collection `c`."""
    url = None
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.database()
    async with writable(tmp_path / "data", url) as catalog:
        yield catalog


@pytest.fixture
def queue(catalog: Catalog) -> Callable[..., str]:
    """Adds a job for files of these names; its id."""

    def enqueue(*names: str, collection: str = "c", now: float = NOW) -> str:
        files = [UploadedFile(f"{collection}/{name}", name, f"hash of {name}", 7) for name in names]
        return add_job(catalog, collection, files, lambda: None, now=now).id

    return enqueue


def claimed(catalog: Catalog, owner: Owner = FAR, now: float = NOW) -> Claimed:
    """A job that could be claimed."""
    found = claim_job(catalog, owner, now=now)
    assert found is not None
    return found


async def test_jobs_are_done_in_the_order_they_came(catalog: Catalog, queue: Callable[..., str]) -> None:
    """By one process each; nobody is left without one while there is one."""
    first, second = queue("a.md"), queue("b.md")
    one, other = claimed(catalog, FAR), claimed(catalog, FARTHER)
    assert (one.job.id, other.job.id) == (first, second)
    assert claim_job(catalog, FAR, now=NOW) is None
    assert jobs_by_status(catalog) == {"running": 2}


def turns(catalog: Catalog, times: int, now: float) -> list[str]:
    """The collections whose jobs are claimed one after the other, each given back a second later."""
    names = []
    for n in range(times):
        job = claimed(catalog, FAR, now + n)
        names.append(job.job.collection)
        give_back(catalog, job.claim, now=now + n + 1)
    return names


async def test_many_jobs_of_one_collection_do_not_go_before_one_of_another(
    catalog: Catalog, queue: Callable[..., str]
) -> None:
    """Collections have turns, however many jobs wait in them; what comes later has its own when that before had it."""
    for n in range(_LOOKED_AT + 5):
        queue(f"{n}.md", collection="many", now=NOW)
    queue("a.md", collection="one", now=NOW + 1)
    assert turns(catalog, 4, NOW + 2) == ["many", "one", "many", "one"]
    queue("b.md", collection="later", now=NOW + 6)
    assert turns(catalog, 6, NOW + 7) == ["many", "one", "later"] * 2


async def test_jobs_of_a_collection_have_turns(catalog: Catalog, queue: Callable[..., str]) -> None:
    """The one that has waited longest since it was worked at; one that comes later waits for one turn."""
    first, second = queue("a.md", now=NOW), queue("b.md", now=NOW + 1)
    order = []
    for n in range(5):
        job = claimed(catalog, FAR, NOW + 2 + n)
        if n == 2:
            third = queue("c.md", now=NOW + 2 + n)
        order.append(job.job.id)
        give_back(catalog, job.claim, now=NOW + 2.5 + n)
    assert order == [first, second, first, second, third]


async def test_a_collection_that_was_idle_is_not_before_all_others(catalog: Catalog, queue: Callable[..., str]) -> None:
    """It waits since its upload came, not since its last turn: new collections over and over hold nobody up."""
    waits = queue("a.md", collection="waits", now=NOW)
    give_back(catalog, claimed(catalog).claim, now=NOW + 1)
    for n in range(3):
        queue("x.md", collection=f"new {n}", now=NOW + 2 + n)
    assert claimed(catalog, FAR, NOW + 9).job.id == waits


async def test_a_clock_that_is_put_back_costs_no_collection_its_turn(
    catalog: Catalog, queue: Callable[..., str]
) -> None:
    """A last turn that is to come counts as now, so that the older job is first."""
    ahead = queue("a.md", collection="ahead", now=NOW + 9000)
    give_back(catalog, claimed(catalog, FAR, NOW + 9000).claim, now=NOW + 9001)
    queue("b.md", collection="new", now=NOW)
    assert claimed(catalog, FAR, NOW).job.id == ahead


async def test_another_waits_only_if_it_could_be_claimed(catalog: Catalog, queue: Callable[..., str]) -> None:
    """Not the job one is at, a later one for its documents, nor one that waits for its next try."""
    queue("a.md")
    claimed(catalog)
    queue("a.md")
    assert not another_waits(catalog, FAR, now=NOW)
    queue("b.md", collection="d")
    assert another_waits(catalog, FAR, now=NOW)
    give_back(catalog, claimed(catalog).claim, error="x", wait_s=9, now=NOW)
    assert not another_waits(catalog, FAR, now=NOW + 8)
    assert another_waits(catalog, FAR, now=NOW + 9)


async def test_a_finished_job_says_what_became_of_each_file(catalog: Catalog, queue: Callable[..., str]) -> None:
    """Partial where some failed; every file keeps its chunks, notes and error."""
    job_id = queue("a.md", "b.exe")
    job = claimed(catalog)
    begin_item(catalog, job.claim, 0)
    assert find_job(catalog, job_id).items[0].status == "running"  # type: ignore[union-attr]  # it is there
    assert end_item(catalog, job.claim, 0, status="done", chunks=3, notes=["cut"]) is False
    end_item(catalog, job.claim, 1, status="failed", error="No loader for .exe.")
    done = finish_job(catalog, job.claim)
    assert (done.status, done.attempts, done.error) == ("partial", 1, None)
    assert [(i.status, i.chunks, i.notes, i.error) for i in done.items] == [
        ("done", 3, ("cut",), None),
        ("failed", 0, (), "No loader for .exe."),
    ]
    with pytest.raises(ClaimLost):
        keep_claim(catalog, job.claim)


async def test_a_job_of_which_all_failed_says_why(catalog: Catalog, queue: Callable[..., str]) -> None:
    """The job has failed, with the error of its first file."""
    queue("a.exe")
    job = claimed(catalog)
    end_item(catalog, job.claim, 0, status="failed", error="No loader for .exe.")
    done = finish_job(catalog, job.claim)
    assert (done.status, done.error) == ("failed", "No loader for .exe.")


async def test_what_a_silent_process_left_is_taken_up_when_its_claim_ends(
    catalog: Catalog, queue: Callable[..., str]
) -> None:
    """Not a moment before, later if it was put off; the one who lost it can write nothing any more."""
    queue("a.md", "b.md")
    first = claimed(catalog, FAR)
    end_item(catalog, first.claim, 0, status="done", chunks=1)
    begin_item(catalog, first.claim, 1)
    assert claim_job(catalog, FARTHER, now=NOW + LEASE_S - 1) is None
    keep_claim(catalog, first.claim, now=NOW + 20)
    assert claim_job(catalog, FARTHER, now=NOW + LEASE_S + 1) is None
    second = claimed(catalog, FARTHER, NOW + 20 + LEASE_S + 1)
    assert [(item.file_name, item.status) for item in second.left] == [("b.md", "running")]
    assert second.job.attempts == 2
    for write in (
        lambda: keep_claim(catalog, first.claim),
        lambda: begin_item(catalog, first.claim, 1),
        lambda: end_item(catalog, first.claim, 1, status="failed", error="late"),
        lambda: give_back(catalog, first.claim),
        lambda: finish_job(catalog, first.claim),
    ):
        with pytest.raises(ClaimLost):
            write()
    assert find_job(catalog, second.job.id) == second.job


async def test_what_a_dead_process_of_this_machine_left_is_taken_up_at_once(
    catalog: Catalog, queue: Callable[..., str]
) -> None:
    """And what a living one is at stays its own."""
    queue("a.md")
    me = this_process()
    dead = replace(me, pid=me.pid, process_start="before it")  # its number is another process's by now
    claimed(catalog, dead)
    again = claimed(catalog, me)
    assert again.job.attempts == 2
    assert claim_job(catalog, replace(me, command="another"), now=NOW) is None


async def test_a_job_that_is_given_back_goes_on_where_it_was(catalog: Catalog, queue: Callable[..., str]) -> None:
    """At once, with the files that are left; the try that was cut short counts for nothing."""
    job_id = queue("a.md", "b.md")
    for _ in range(MAX_ATTEMPTS + 2):
        job = claimed(catalog)
        assert job.why_not is None
        back = give_back(catalog, job.claim, now=NOW)
        assert (back.status, back.attempts, back.error) == ("queued", 0, None)
    end_item(catalog, claimed(catalog).claim, 0, status="done", chunks=1)
    job = find_job(catalog, job_id)
    assert job is not None
    assert [item.status for item in job.items] == ["done", "queued"]


async def test_the_third_failed_try_is_the_last(catalog: Catalog, queue: Callable[..., str]) -> None:
    """Each waits, and the error can be seen meanwhile; at last the job and what was left of it have failed with it."""
    job_id = queue("a.md", "b.md")
    job = claimed(catalog)
    end_item(catalog, job.claim, 0, status="done", chunks=1)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        if attempt > 1:
            assert claim_job(catalog, FAR, now=NOW + 49) is None
            job = claimed(catalog, FAR, NOW + 50)
        given = give_back(catalog, job.claim, error="The disk is full.", wait_s=50, now=NOW)
        assert (given.attempts, given.error) == (attempt, "The disk is full.")
    failed = find_job(catalog, job_id)
    assert failed is not None
    assert (failed.status, failed.attempts) == ("partial", MAX_ATTEMPTS)
    assert [(item.status, item.error) for item in failed.items] == [("done", None), ("failed", "The disk is full.")]
    assert claim_job(catalog, FAR, now=NOW * 2) is None


async def test_a_job_that_kills_its_server_is_given_up(catalog: Catalog, queue: Callable[..., str]) -> None:
    """Whoever claims it a fourth time is told not to try, and ends it with what happened."""
    job_id = queue("bomb.pdf")
    for attempt in range(MAX_ATTEMPTS):
        assert claimed(catalog, FAR, NOW + attempt * 2 * LEASE_S).why_not is None
    last = claimed(catalog, FAR, NOW + MAX_ATTEMPTS * 2 * LEASE_S)
    assert last.why_not == "The server ended each of the 3 times it was at this."
    give_back(catalog, last.claim, error=last.why_not)
    job = find_job(catalog, job_id)
    assert job is not None
    assert (job.status, job.attempts, job.error) == ("failed", MAX_ATTEMPTS, last.why_not)
    assert job.items[0].error == last.why_not


async def test_two_uploads_of_one_document_are_done_one_after_the_other(
    catalog: Catalog, queue: Callable[..., str]
) -> None:
    """The later one waits, whoever asks, also while the first waits to be tried again; others pass them by."""
    first, second, other = queue("a.md"), queue("a.md", "b.md"), queue("c.md")
    one = claimed(catalog, FAR)
    assert one.job.id == first
    assert claimed(catalog, FARTHER).job.id == other
    give_back(catalog, one.claim, error="x", wait_s=9, now=NOW)
    assert claim_job(catalog, FARTHER, now=NOW) is None
    end_item(catalog, claimed(catalog, FAR, NOW + 9).claim, 0, status="done")
    assert claimed(catalog, FARTHER, NOW + 9).job.id == second


async def test_a_document_deleted_while_it_waits_is_not_taken_in(catalog: Catalog, queue: Callable[..., str]) -> None:
    """Its file has failed and says so; a job with nothing left has ended."""
    alone, both = queue("a.md"), queue("a.md", "b.md")
    assert forget_uploads(catalog, "c/a.md") == ["hash of a.md"] * 2
    ended, waiting = find_job(catalog, alone), find_job(catalog, both)
    assert ended is not None
    assert waiting is not None
    assert (ended.status, ended.error, ended.items[0].error) == ("failed", DELETED, DELETED)
    assert waiting.status == "queued"
    assert [item.file_name for item in claimed(catalog).left] == ["b.md"]
    assert forget_uploads(catalog, "c/a.md") == []
    assert being_indexed(catalog, "c") == ["b.md"]
    assert latest_uploads(catalog, "c").keys() == {"c/b.md"}


async def test_a_document_deleted_while_it_is_taken_in_is_told_of(catalog: Catalog, queue: Callable[..., str]) -> None:
    """Whoever is at it is told when the file is through, and it counts as failed; a new upload is not concerned."""
    queue("a.md")
    job = claimed(catalog)
    begin_item(catalog, job.claim, 0)
    assert forget_uploads(catalog, "c/a.md") == ["hash of a.md"]
    again = queue("a.md")
    assert end_item(catalog, job.claim, 0, status="done", chunks=4) is True
    done = finish_job(catalog, job.claim)
    assert (done.status, done.items[0].chunks, done.items[0].error) == ("failed", 0, DELETED)
    assert claimed(catalog).job.id == again
    assert being_indexed(catalog, "c") == ["a.md"]


async def test_what_is_being_indexed_is_that_of_the_collection(catalog: Catalog, queue: Callable[..., str]) -> None:
    """Files that wait or are being read, and versions on their way in by other means; each name once."""
    queue("a.md", "b.md")
    queue("d.md", collection="new")
    job = claimed(catalog)
    end_item(catalog, job.claim, 0, status="done", chunks=1)
    put(catalog, "old", "text")
    add(catalog, "coming", "text")
    assert being_indexed(catalog, "c") == ["b.md", "coming.md"]
    assert being_indexed(catalog, "new") == ["d.md"]
    assert being_indexed(catalog, "nowhere") == []
    assert active_collections(catalog) == {"c", "new"}


async def test_jobs_are_listed_newest_first(catalog: Catalog, queue: Callable[..., str]) -> None:
    """Those of the collection, no more than are asked for."""
    ids = [queue(f"{n}.md") for n in range(4)]
    queue("x.md", collection="other")
    assert [job.id for job in list_jobs(catalog, "c")] == ids[::-1]
    assert [job.id for job in list_jobs(catalog, "c", 2)] == [ids[3], ids[2]]
    assert list_jobs(catalog, "nowhere") == []
    assert find_job(catalog, "nothing") is None


async def test_finished_jobs_are_forgotten_after_a_month(catalog: Catalog, queue: Callable[..., str]) -> None:
    """By the next upload; one that still waits is not."""
    old, waiting = queue("a.md"), queue("b.md")
    job = claimed(catalog)
    end_item(catalog, job.claim, 0, status="done")
    finish_job(catalog, job.claim)
    with catalog.write() as connection:
        connection.execute(update(jobs).values(updated=NOW))
    queue("c.md", now=NOW + KEPT_S - 1)
    assert find_job(catalog, old) is not None
    queue("d.md", now=NOW + KEPT_S + 1)
    assert find_job(catalog, old) is None
    assert find_job(catalog, waiting) is not None


async def test_bytes_that_could_not_be_stored_leave_no_job(catalog: Catalog) -> None:
    """The job and its bytes come together or not at all."""

    def broken() -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        add_job(catalog, "c", [UploadedFile("d", "a.md", "h", 1)], broken)
    assert list_jobs(catalog, "c") == []


async def test_of_many_who_ask_at_once_each_gets_another_job(catalog: Catalog, queue: Callable[..., str]) -> None:
    """No job is done twice and none is left."""
    ids = {queue(f"{n}.md") for n in range(6)}
    got: list[str] = []

    def take() -> None:
        while job := claim_job(catalog, FAR, now=NOW):
            got.append(job.job.id)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(got) == sorted(ids)


@pytest.fixture
def no_lease(tmp_path: Path) -> Iterator[Catalog]:
    """An open catalog of a process that may change no documents."""
    catalog = Catalog(tmp_path)
    catalog.open()
    yield catalog
    catalog.close()


def test_no_lease_is_needed(no_lease: Catalog) -> None:
    """An upload never waits for another process that is changing documents."""
    add_job(no_lease, "c", [UploadedFile("d", "a.md", "h", 1)], lambda: None)
    assert claim_job(no_lease, this_process()) is not None


async def test_a_catalog_from_before_there_were_jobs_gets_the_tables(tmp_path: Path) -> None:
    """Opening it is enough; what it holds stays."""
    async with writable(tmp_path) as catalog:
        with catalog.write() as connection:
            job_items.drop(connection)
            jobs.drop(connection)
    async with writable(tmp_path) as catalog:
        add_job(catalog, "c", [UploadedFile("d", "a.md", "h", 1)], lambda: None)
        assert len(list_jobs(catalog, "c")) == 1
        assert collection_names(catalog) == ["c"]
