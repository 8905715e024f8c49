"""Whether a query may go out to the web: asked once at a terminal, remembered beside the data.

Nobody there to ask means no. Doesn't know how the web is searched.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from leadline.cli.asking import ask_line
from leadline.cli.display import is_interactive, say

FILE = "web-consent.json"


def consent_asker(data_dir: Path, clear_screen: Callable[[], None]) -> Callable[[str], Awaitable[bool]] | None:
    """What a run calls before its first web search, or None where nobody can be asked.

    `clear_screen` is called before a question is put, so that no progress line runs through it.
    """
    if not is_interactive():
        return None

    file = data_dir / FILE

    async def ask(query: str) -> bool:
        clear_screen()
        remembered = await asyncio.to_thread(_read, file)
        return await _asked(query, file) if remembered is None else remembered

    return ask


async def _asked(query: str, file: Path) -> bool:
    say("\nThis would be sent to a web search engine, and the pages it names would be read:", style="bold", stderr=True)
    say(f"  {query}", stderr=True)
    say("Nothing of the documents is sent. Yes and no are remembered for this data folder.", style="dim", stderr=True)
    typed = await ask_line("Allow web searches? [y]es, [o]nce, [N]o:")
    if typed is None:  # nobody is there after all
        return False
    if typed.casefold() in ("o", "once"):
        return True
    granted = typed.casefold() in ("y", "yes")
    await asyncio.to_thread(_remember, file, granted)
    say(f"Remembered in {file}; delete it to be asked again.", style="dim", stderr=True)
    return granted


def _remember(file: Path, granted: bool) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"web": granted}) + "\n", encoding="utf-8")


def _read(file: Path) -> bool | None:
    """What was answered before; a file that says anything else counts as not asked."""
    try:
        answered = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    granted = answered.get("web") if isinstance(answered, dict) else None
    return granted if isinstance(granted, bool) else None
