"""Run as a program over a mounted file system of its own: works on it while it is full, or may only be read.

Arguments: the folder it is mounted at, and the settings as JSON. Says what came of it, as JSON, on the last line.
"""

import asyncio
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.knowledge.crash_actions import STORED, TOKENS, VERSIONS, draft, look, state_of

from leadline import cli
from leadline.config import Settings, load_settings
from leadline.errors import StoreError
from leadline.knowledge import KnowledgeBase, open_library

KIB = 1024
BLOCK = 64 * KIB


def leave(folder: Path, room: int | None) -> None:
    """Fills the disk up to so many bytes; None: not at all."""
    filler = folder / "filler"
    filler.unlink(missing_ok=True)
    if room is None:
        return
    with filler.open("wb") as file:
        while (rest := _free(folder) - room) > 0:
            file.write(b"." * min(rest, BLOCK))
            file.flush()


def _free(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


async def outcome(kb: KnowledgeBase, version: int) -> str:
    """Puts a version of a source in; what went wrong."""
    try:
        (report,) = await kb.put([draft("plan", version)])
    except StoreError as error:
        return str(error)
    return report.error or ""


async def full(folder: Path, settings: Settings, rooms: list[int]) -> list[dict[str, Any]]:
    """With ever more room: puts a version in, then makes room, and does it again."""
    tried = []
    async with open_library(settings) as library:
        kb = await library.collection()
        await kb.put([draft(*item) for item in STORED.items()])
        version = 1
        for number, room in enumerate(rooms):
            before, version = version, (number + 1) % VERSIONS + 1
            leave(folder, room)
            error = await outcome(kb, version)
            leave(folder, None)
            state = await state_of(kb)
            again = await outcome(kb, version)
            found = {"before": before, "put": version, "state": state, "again": again, "after": await state_of(kb)}
            tried.append({"room": room, "error": error, **found})
    return tried


async def full_from_the_start(folder: Path, settings: Settings) -> dict[str, Any]:
    """Opens a folder that is full, each time the next with more room; then one with room."""
    errors = []
    for room in (0, 16 * KIB, 64 * KIB, 128 * KIB):
        leave(folder, room)
        try:
            async with open_library(settings) as library:
                errors.append(await outcome(await library.collection(), 1))
        except StoreError as error:
            errors.append(str(error))
    leave(folder, None)
    async with open_library(settings) as library:
        last = await outcome(await library.collection(), 1)
    return {"errors": errors, "last": last, "found": await look(settings)}


def commands(folder: Path, data: Path) -> dict[str, Any]:
    """The command line on a full disk, and on one that may only be read."""
    for slow in ("chromadb.api.rust", "tantivy", "leadline.ingest.pipeline"):
        importlib.import_module(slow)
    source = folder / "ferry.md"
    source.write_text("The ferry to Quokkaville leaves at nine.", encoding="utf-8")
    leave(folder, 0)
    said: dict[str, Any] = {"full": _leadline(data, "ingest", str(source))}
    leave(folder, 800 * KIB)
    said["nearly full"] = _leadline(data, "ingest", str(source), "--json")
    leave(folder, None)
    before = _digests(data)
    _mount(folder, "remount,ro")
    for name, arguments in {"ingest": [str(source)], "search": ["Quokkaville"]}.items():
        said[f"read only {name}"] = _leadline(data, name, *arguments)
    said["changed"] = sorted(name for name, digest in _digests(data).items() if before.get(name) != digest)
    _mount(folder, "remount,rw")
    said["with room"] = _leadline(data, "ingest", str(source))
    return said


def _leadline(data: Path, *arguments: str) -> dict[str, Any]:
    """In a process of its own: a fork of this one, which has no threads, and has imported what takes long."""
    with tempfile.TemporaryFile() as said:
        if not (child := os.fork()):
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            sys.argv = ["leadline", *arguments, "--data-dir", str(data)]
            cli.main()  # ends the process
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return {"code": os.waitstatus_to_exitcode(status), "said": " ".join(said.read().decode().split())}


def _mount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", options, str(folder)], check=True)


def _digests(data: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in data.rglob("*") if path.is_file()}


def main() -> None:
    """Does what the arguments say."""
    folder, what, given = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    rooms = given.pop("rooms", [])
    settings = load_settings(data_dir=folder / "data", lock_timeout_s=5, chunk_tokens=TOKENS, **given)
    result: Any
    if what == "full":
        result = asyncio.run(full(folder, settings, rooms))
        result = {"tried": result, "found": asyncio.run(look(settings))}
    elif what == "start":
        result = asyncio.run(full_from_the_start(folder, settings))
    else:
        result = commands(folder, settings.data_dir)
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
