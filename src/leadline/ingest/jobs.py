"""Takes uploads in: one job at a time in each process, files as `ingest_paths` takes them, with what a restart needs.

Knows how a job is claimed, kept, given back and ended, and when its turn is over. Knows no HTTP and no conversations:
what is to be done after text was replaced or removed is given.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final

from leadline.config import Settings
from leadline.errors import LeadlineError, LeaseHeld, StoreBusy, raised_at
from leadline.ingest.pipeline import File, FileRow, ingest_files
from leadline.knowledge import KnowledgeBase, Library
from leadline.knowledge.documents import take_out
from leadline.stores.catalog_job_rows import ItemStatus, JobItem
from leadline.stores.catalog_jobs import (
    LEASE_S,
    Claimed,
    ClaimLost,
    another_waits,
    begin_item,
    claim_job,
    end_item,
    finish_job,
    give_back,
    keep_claim,
)
from leadline.stores.lease import this_process
from leadline.stores.uploads import drop_unused, path_of, tidy

log = logging.getLogger(__name__)

POLL_S: Final = 1.0  # between two looks for jobs of other processes; those of this one are told of at once
RETRY_S: Final = 2.0  # before the second try; five times as long before the third
TURN_S: Final = 10.0  # of a job, before others that wait have theirs
LOST: Final = "The uploaded bytes are not in this server's data folder."


class _TurnOver(Exception):
    """Another job waits, and this one has had its turn."""


class JobRunner:
    """Does the jobs of a library, whoever they were given to, until it is cancelled.

    `after_removal` is awaited when text that was in the knowledge base isn't any more. A job that is under way when
    the runner is cancelled is given back: whoever is next goes on with the files that are left. So is one that has had
    `turn_s` seconds, where another waits: it ends the files it has begun and goes on later.
    """

    def __init__(
        self,
        library: Library,
        settings: Settings,
        after_removal: Callable[[], Awaitable[object]],
        *,
        lease_s: float = LEASE_S,
        retry_s: float = RETRY_S,
        turn_s: float = TURN_S,
    ) -> None:
        self._library = library
        self._catalog = library.catalog
        self._settings = settings
        self._after_removal = after_removal
        self._lease_s = lease_s
        self._retry_s = retry_s
        self._turn_s = turn_s
        self._owner = this_process()
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """There is a new job."""
        self._woken.set()

    async def run(self) -> None:
        """Does what there is to do, then waits for more. Ends only by being cancelled."""
        await self._quietly(asyncio.to_thread(tidy, self._catalog))
        while True:
            self._woken.clear()
            if not await self._quietly(self._next()):
                try:
                    async with asyncio.timeout(POLL_S):
                        await self._woken.wait()
                except TimeoutError:
                    pass

    async def _quietly(self, work: Awaitable[object]) -> bool:
        """A server whose catalog or disk fails for a while goes on with the jobs when it can."""
        try:
            return bool(await work)
        except Exception as error:  # noqa: BLE001 - named degrade: it is looked again in a second
            log.error("Jobs could not be done: %s", error if isinstance(error, LeadlineError) else raised_at(error))
            return False

    async def _next(self) -> bool:
        """Does a job, if there is one; whether there was."""
        claimed = await self._claimed()
        if claimed is None:
            return False
        try:
            await self._do(claimed)
        except ClaimLost:
            log.warning("The job %s went to another process.", claimed.job.id)
        finally:
            await asyncio.to_thread(drop_unused, self._catalog, [item.file_hash for item in claimed.job.items])
        return True

    async def _claimed(self) -> Claimed | None:
        """A job that this process is to do now. Cancelled while it is being claimed, it is given back."""
        claiming = asyncio.ensure_future(
            asyncio.to_thread(claim_job, self._catalog, self._owner, lease_s=self._lease_s)
        )
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            if claimed := await claiming:
                await self._give_back(claimed.claim)
            raise

    async def _give_back(self, claim: str) -> None:
        with suppress(ClaimLost):
            await asyncio.to_thread(give_back, self._catalog, claim)

    async def _do(self, claimed: Claimed) -> None:
        """The job with its claim kept alive. A cancelled one is given back, and counts as not tried."""
        work = asyncio.create_task(self._attempt(claimed))
        beat = asyncio.create_task(self._keep(claimed.claim))
        try:
            await asyncio.wait({work, beat}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClaimLost
            await work
        finally:
            beat.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
                await self._quietly(self._give_back(claimed.claim))

    async def _keep(self, claim: str) -> None:
        """Ends when the claim is lost."""
        while True:
            await asyncio.sleep(self._lease_s / 4)
            try:
                await asyncio.to_thread(keep_claim, self._catalog, claim, lease_s=self._lease_s)
            except ClaimLost:
                return
            except LeadlineError as error:  # the next beat makes up for it
                log.warning("The claim of a job could not be kept: %s", error)

    async def _attempt(self, claimed: Claimed) -> None:
        """One try of the job. What stops all of it is kept with the job, which is tried again or has failed."""
        if claimed.why_not is not None:
            await asyncio.to_thread(give_back, self._catalog, claimed.claim, error=claimed.why_not)
            return
        try:
            through = await self._take_in(claimed)
            await asyncio.to_thread(finish_job if through else give_back, self._catalog, claimed.claim)
        except ClaimLost:
            raise
        except (LeaseHeld, StoreBusy) as error:  # another process is writing: nothing is wrong with the job
            log.info("The job %s waits: %s", claimed.job.id, error)
            await asyncio.to_thread(give_back, self._catalog, claimed.claim, wait_s=self._retry_s)
        except Exception as error:  # noqa: BLE001 - named degrade: one job's failure is kept with it, and the others go on
            why = error if isinstance(error, LeadlineError) else raised_at(error)
            log.warning("The job %s failed: %s", claimed.job.id, why)
            wait_s = self._retry_s * 5 ** (claimed.job.attempts - 1)
            await asyncio.to_thread(give_back, self._catalog, claimed.claim, error=self._told(error), wait_s=wait_s)

    async def _take_in(self, claimed: Claimed) -> bool:
        """The files that are left, until its turn is over. Whether all are through."""
        base = await self._library.collection(claimed.job.collection, create=True)
        removed = await self._end_deleted(claimed, base)
        todo = await self._with_bytes(claimed)
        files = [File(path_of(self._catalog, item.file_hash), item.file_name, "") for item in todo]
        started = time.monotonic()

        async def begin(number: int) -> None:
            # Raised here, what was read before is put in and told of: no file is read twice, and each turn does one.
            if number and time.monotonic() - started >= self._turn_s and await self._another_waits():
                raise _TurnOver
            await asyncio.to_thread(begin_item, self._catalog, claimed.claim, todo[number].place)

        done, through = 0, True
        try:
            async with aclosing(ingest_files(base, files, self._settings, begin)) as rows:
                async for row in rows:
                    removed |= await self._end(claimed.claim, base, todo[done], row)
                    done += 1
        except _TurnOver:
            through = False
        if removed:
            await self._quietly(self._after_removal())
        return through

    async def _another_waits(self) -> bool:
        return await asyncio.to_thread(another_waits, self._catalog, self._owner)

    async def _end(self, claim: str, base: KnowledgeBase, item: JobItem, row: FileRow) -> bool:
        """Notes what became of a file. Whether text that was in the knowledge base isn't any more."""
        error = None if row.error is None else self._without_folder(row.error)
        notes = [*row.notes, *([f"same bytes as {row.copy_of}"] if row.copy_of else [])]
        status = _status_of(row, item)
        deleted = await asyncio.to_thread(
            end_item, self._catalog, claim, item.place, status=status, chunks=row.chunks, notes=notes, error=error
        )
        if deleted:
            await take_out(base, item.doc_id)
        return deleted or row.status == "replaced"

    async def _end_deleted(self, claimed: Claimed, base: KnowledgeBase) -> bool:
        """Documents that were deleted while an earlier try was at them: what it put in goes."""
        gone = [item for item in claimed.left if item.deleted]
        for item in gone:
            await asyncio.to_thread(end_item, self._catalog, claimed.claim, item.place, status="failed")
            await take_out(base, item.doc_id)
        return bool(gone)

    async def _with_bytes(self, claimed: Claimed) -> Sequence[JobItem]:
        """The files to take in; one without its bytes, such as from the data folder of another machine, failed."""
        todo = []
        for item in claimed.left:
            if item.deleted:
                continue
            if await asyncio.to_thread(path_of(self._catalog, item.file_hash).is_file):
                todo.append(item)
            else:
                lost = {"status": "failed", "error": LOST}
                await asyncio.to_thread(end_item, self._catalog, claimed.claim, item.place, **lost)
        return todo

    def _told(self, error: Exception) -> str:
        """An error as clients may see it. What isn't of our own making may hold anything."""
        if isinstance(error, LeadlineError):
            return self._without_folder(str(error))
        return f"Unexpected {type(error).__name__}; the server's log has the details."

    def _without_folder(self, text: str) -> str:
        """Where the data folder is, is nobody else's business."""
        folder = self._settings.data_dir
        for path in (str(folder.resolve()), str(folder.absolute()), str(folder)):
            if len(path) > 1:
                text = text.replace(path, "the data folder")
        return text


def _status_of(row: FileRow, item: JobItem) -> ItemStatus:
    if row.status == "failed":
        return "failed"
    # What an earlier try of this job put in is there unchanged, and still new.
    return "unchanged" if row.status == "unchanged" and item.status == "queued" else "done"
