"""Takes answers made from deleted documents out of the stored conversations, on disk too.

Every turn does this for its own conversation. This is for all of them at once, right after a deletion.
"""

import asyncio
import sqlite3

from leadline.config import Settings
from leadline.errors import StoreError
from leadline.graph.threads import FILE, ThreadSaver, open_threads
from leadline.knowledge import Library
from leadline.nodes.origins import StillThere, usable


async def forget_deleted(settings: Settings, library: Library) -> int:
    """Takes the answers out of the conversations in the data folder; returns how many conversations had some.

    Does nothing where there are none. Raises StoreDamaged, StoreError.
    """
    path = settings.data_dir / FILE
    if not await asyncio.to_thread(path.exists):
        return 0
    async with open_threads(path) as threads:
        return await sweep(threads, library.still_there)


async def sweep(threads: ThreadSaver, still_there: StillThere) -> int:
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
    except sqlite3.Error as error:
        raise StoreError(f"The conversations can't be searched for what was deleted: {error}.") from error
    if changed or await threads.owes_purge():
        await threads.purge()
    if unread:
        raise StoreError(
            f"{unread} of the stored conversations can't be read, so that they may hold what was deleted.",
            hint="The log names them. Delete the file threads.db if they are of no use.",
        )
    return changed
