"""Asking somebody at the terminal, without holding up what else is going on.

A line is waited for on the event loop: a read that blocks would keep Ctrl-C waiting for the Enter key.
"""

import asyncio
import sys

from leadline.cli.display import console


async def ask_line(prompt: str) -> str | None:
    """What is typed behind the prompt, without its blanks; None where standard input has ended."""
    console(stderr=True).print(prompt, end=" ", markup=False)
    await _something_typed()
    line = sys.stdin.readline()
    return line.strip() if line else None


async def is_confirmed(question: str) -> bool:
    """Whether somebody says yes; anything else is a no."""
    return (await ask_line(f"{question} [y/N]:") or "").casefold() in ("y", "yes")


async def _something_typed() -> None:
    """Returns when a line is there, or at the end of the input."""
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(sys.stdin, there.set)
    except NotImplementedError:  # Windows can't wait for a console: the read blocks
        return
    try:
        await there.wait()
    finally:
        loop.remove_reader(sys.stdin)
