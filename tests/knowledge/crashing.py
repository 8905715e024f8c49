"""Run as a program: for each line `FOLDER ACTION POINT` on standard input, does the action on the data folder in a
process of its own, which kills itself at the point. Answers with a line each.

The heavy imports are made once; each child is a fork from before any thread was started.
"""

import asyncio
import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chromadb  # noqa: F401 - imported before the forks
import tantivy  # noqa: F401

from leadline.config import load_settings
from leadline.drafts import ChunkDraft, SourceDraft
from leadline.knowledge import changes, deletion, open_library, opened, put
from leadline.stores.catalog_content import CatalogChunkStore
from leadline.stores.chroma import ChromaVectorStore
from leadline.stores.entity_graph import EntityGraphStore
from leadline.stores.tantivy import TantivyStore

Place = tuple[Any, str]
BEFORE: dict[str, Place] = {
    "before embedding": (put, "embed_missing"),
    "before the catalog": (put, "add_pending"),
    "before the texts": (CatalogChunkStore, "upsert"),
    "before the vector index": (ChromaVectorStore, "upsert"),
    "before the lexical index": (TantivyStore, "upsert"),
    "before the graph": (EntityGraphStore, "upsert"),
    "before the switch": (changes, "publish"),
    "before removing": (changes, "apply_deletes"),
    "before removing vectors": (ChromaVectorStore, "delete"),
    "before removing terms": (TantivyStore, "delete"),
    "before removing the texts": (CatalogChunkStore, "delete"),
    "before the sweep": (changes, "sweep"),
}
AFTER: dict[str, Place] = {
    "after embedding": (opened, "save_vectors"),
    "after the catalog": (put, "add_pending"),
    "after the texts": (CatalogChunkStore, "upsert"),
    "after the vector index": (ChromaVectorStore, "upsert"),
    "after the lexical index": (TantivyStore, "upsert"),
    "after the graph": (EntityGraphStore, "upsert"),
    "after the switch": (changes, "publish"),
    "after the retirement": (deletion, "retire_sources"),
    "after removing vectors": (ChromaVectorStore, "delete"),
    "after removing entities": (EntityGraphStore, "delete"),
    "after removing the texts": (CatalogChunkStore, "delete"),
    "after the sweep": (changes, "sweep"),
}


def kill() -> None:
    """No chance to clean up."""
    os.kill(os.getpid(), signal.SIGKILL)


def killing(call: Callable[..., Any], *, first: bool) -> Callable[..., Any]:
    """`call`, with death before or after it."""

    async def awaited(*args: Any, **kwargs: Any) -> None:
        if not first:
            await call(*args, **kwargs)
        kill()

    def called(*args: Any, **kwargs: Any) -> None:
        if not first:
            call(*args, **kwargs)
        kill()

    return awaited if asyncio.iscoroutinefunction(call) else called


def arm(point: str) -> None:
    """Death at the named point, or after so many seconds."""
    if point.startswith("after seconds "):
        seconds = float(point.removeprefix("after seconds "))
        threading.Thread(target=lambda: (time.sleep(seconds), kill()), daemon=True).start()
        return
    holder, name = BEFORE[point] if point in BEFORE else AFTER[point]
    setattr(holder, name, killing(getattr(holder, name), first=point in BEFORE))


async def act(folder: Path, action: str, point: str) -> None:
    """Opens the library, arms, and does what is asked."""
    async with open_library(load_settings(data_dir=folder, lock_timeout_s=5)) as library:
        kb = await library.collection()
        arm(point)
        if action == "delete":
            (source,) = await kb.find_sources("plan.md")
            await kb.delete(source.doc_id)
        else:
            passages = (await asyncio.to_thread(Path(action).read_text, "utf-8")).split("\n")
            chunks = tuple(ChunkDraft(text, 0, len(text)) for text in passages)
            await kb.put(
                [SourceDraft("plan.md", "plan.md", hashlib.sha256("\n".join(passages).encode()).hexdigest(), chunks)]
            )


def main() -> None:
    """One child a line."""
    for line in sys.stdin:
        folder, action, point = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            asyncio.run(act(Path(folder), action, point))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write("killed\n" if os.WIFSIGNALED(status) else "ended\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
