"""A process that holds a conversation until it is ended: `python -m tests.graph.holding FOLDER THREAD [URL]`."""

import asyncio
import sys
from pathlib import Path

from leadline.config import Settings
from leadline.graph.conversations import open_conversations


async def hold(folder: Path, thread_id: str, url: str | None) -> None:
    """Says "held" when it has it."""
    async with (
        open_conversations(Settings(data_dir=folder, threads_url=url)) as conversations,
        conversations.turn(thread_id, "default") as turn,
    ):
        assert turn is not None
        sys.stdout.write(f"{turn.failed or 'held'}\n")
        sys.stdout.flush()
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(hold(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
