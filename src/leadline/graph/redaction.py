"""Takes answers made from deleted documents out of the stored conversations, on disk too.

Every turn does this for its own conversation. This is for all of them at once, right after a deletion.
"""

import asyncio

from leadline.config import Settings
from leadline.errors import LeadlineError, StoreError
from leadline.graph.conversations import open_threads
from leadline.graph.threads import Threads, threads_path
from leadline.knowledge import Library
from leadline.nodes.origins import StillThere, usable


async def forget_deleted(settings: Settings, library: Library) -> int:
    """Takes the answers out of the conversations that the settings name; returns how many conversations had some.

    Does nothing where there are none. Raises StoreDamaged, StoreError.
    """
    path = threads_path(settings)
    if path is not None and not await asyncio.to_thread(path.exists):
        return 0
    async with open_threads(settings, busy_s=settings.lock_timeout_s) as threads:
        return await sweep(threads, library.still_there)


async def sweep(threads: Threads, still_there: StillThere) -> int:
    """`forget_deleted`, in open conversations.

    A conversation in which a run is on can get its old answers back when that ends; its next turn takes them out.
    One that can't be read is left as it is, and told of when the others are done.
    """
    changed = unread = 0
    try:
        async for stored in threads.last_states():
            if stored is None:
                unread += 1
                continue
            values = stored.checkpoint["channel_values"]
            kept = await usable(values.get("messages", []), values.get("result"), still_there)
            if kept.removed:
                result = {} if kept.result is None else {"result": kept.result}
                await threads.rewrite(stored, {"messages": kept.messages, **result})
                changed += 1
    except LeadlineError:
        raise
    except Exception as error:  # the database's own
        raise StoreError(f"The conversations can't be searched for what was deleted: {error}.") from error
    if changed or await threads.owes_purge():
        await threads.purge()
    if unread:
        raise StoreError(
            f"{unread} of the stored conversations can't be read, so that they may hold what was deleted.",
            hint="The log names them. Delete them if they are of no use.",
        )
    return changed
