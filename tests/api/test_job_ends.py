"""How a job ends whose documents were deleted, and when it is tried again by a clock that was put back."""

from pathlib import Path

from tests.stores.catalogs import writable

from leadline.stores.catalog_job_rows import UploadedFile, find_job
from leadline.stores.catalog_jobs import (
    DELETED,
    LONGEST_WAIT_S,
    MAX_ATTEMPTS,
    add_job,
    begin_item,
    claim_job,
    end_item,
    finish_job,
    forget_uploads,
    give_back,
)
from leadline.stores.lease import this_process

NOW = 1_000_000.0


def _files(*names: str) -> list[UploadedFile]:
    return [UploadedFile(f"c/{name}", name, f"hash of {name}", 7) for name in names]


async def test_a_document_that_was_deleted_is_no_failure_of_its_job(tmp_path: Path) -> None:
    """The others decide how it ended, whether it was deleted while it waited or while it was read."""
    async with writable(tmp_path / "data") as catalog:
        job = add_job(catalog, "c", _files("waits.md", "read.md", "kept.md"), lambda: None, now=NOW)
        forget_uploads(catalog, "c/waits.md")
        claimed = claim_job(catalog, this_process(), now=NOW)
        assert claimed is not None
        begin_item(catalog, claimed.claim, 1)
        forget_uploads(catalog, "c/read.md")
        assert end_item(catalog, claimed.claim, 1, status="done", chunks=3) is True
        end_item(catalog, claimed.claim, 2, status="done", chunks=3)
        ended = finish_job(catalog, claimed.claim)
        assert (ended.id, ended.status, ended.error) == (job.id, "done", None)
        assert [item.error for item in ended.items] == [DELETED, DELETED, None]


async def test_a_failure_beside_a_deleted_document_is_one(tmp_path: Path) -> None:
    """All that was still wanted of the job has failed: so has the job, and says why."""
    async with writable(tmp_path / "data") as catalog:
        add_job(catalog, "c", _files("gone.md", "bad.md"), lambda: None, now=NOW)
        forget_uploads(catalog, "c/gone.md")
        claimed = claim_job(catalog, this_process(), now=NOW)
        assert claimed is not None
        end_item(catalog, claimed.claim, 1, status="failed", error="It can't be read.")
        ended = finish_job(catalog, claimed.claim)
        assert (ended.status, ended.error) == ("failed", "It can't be read.")


async def test_a_job_that_is_given_up_blames_no_deleted_document(tmp_path: Path) -> None:
    """What was being read and had been deleted is no reason: all that is still wanted went in."""
    async with writable(tmp_path / "data") as catalog:
        add_job(catalog, "c", _files("kept.md", "gone.md"), lambda: None, now=NOW)
        for attempt in range(MAX_ATTEMPTS):
            claimed = claim_job(catalog, this_process(), now=NOW)
            assert claimed is not None
            if not attempt:
                end_item(catalog, claimed.claim, 0, status="done", chunks=3)
                begin_item(catalog, claimed.claim, 1)
                forget_uploads(catalog, "c/gone.md")
            ended = give_back(catalog, claimed.claim, error="The process ended.", now=NOW)
        assert (ended.status, ended.error) == ("done", None)
        assert [item.error for item in ended.items] == [None, DELETED]


async def test_a_clock_that_is_put_back_makes_no_job_wait_for_ever(tmp_path: Path) -> None:
    """A job waits for its next try by the clock; where that is put back by a day it doesn't wait for a day."""
    async with writable(tmp_path / "data") as catalog:
        job = add_job(catalog, "c", _files("a.md"), lambda: None, now=NOW)
        claimed = claim_job(catalog, this_process(), now=NOW)
        assert claimed is not None
        give_back(catalog, claimed.claim, error="x", wait_s=10, now=NOW)
        assert claim_job(catalog, this_process(), now=NOW + 5) is None
        again = claim_job(catalog, this_process(), now=NOW - 24 * 3600)
        assert again is not None
        assert again.job.id == job.id
        give_back(catalog, again.claim, error="x", wait_s=1e9, now=NOW)
        assert claim_job(catalog, this_process(), now=NOW + LONGEST_WAIT_S) is not None
        assert find_job(catalog, job.id) is not None
