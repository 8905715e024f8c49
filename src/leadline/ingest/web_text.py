"""The text of a web page, taken out of it in a process of its own.

A page may be made to hold up, break or fill the memory of any parser, and a parser in C holds up every thread of its
process: here it is ended after a while, and only the page is lost. The process gets the page's bytes and no key or
setting of the environment. Run as a program it is that process.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from leadline.errors import LeadlineError, PageUnavailable
from leadline.ingest.extracted import Block, Extracted, Limits
from leadline.ingest.loaders.html import load_html
from leadline.ingest.loaders.plain import load_plain

MAX_CHARS: Final = 200_000
"""Of the text of one page: what lies behind is not read."""
MAX_BLOCKS: Final = 4_000
MAX_HEADING_CHARS: Final = 300
_LIMITS: Final = Limits(max_chars=10_000_000)
_MEMORY_BYTES: Final = 2 << 30
# What Python needs to start as this one did.
_ENVIRONMENT: Final = ("PATH", "PYTHONPATH", "PYTHONHOME", "SYSTEMROOT", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


def text_apart(body: bytes, kind: str, charset: str | None, *, timeout_s: float) -> Extracted:
    """`page_text`, in another process that is ended after `timeout_s`. Blocks. Raises PageUnavailable."""
    stated = charset if charset and charset.isascii() and charset.isprintable() and len(charset) < 40 else ""
    command = [sys.executable, "-P", "-m", "leadline.ingest.web_text", kind, stated]
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        ended = subprocess.run(  # noqa: S603 this interpreter and this very module; the charset is no option of either
            command,
            input=body,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PageUnavailable(f"Its text could not be taken out of it within {timeout_s:g} s.") from None
    except OSError as error:
        raise PageUnavailable(f"No process can be started to read it: {error.strerror}.") from error
    if ended.returncode:
        raise PageUnavailable("Its text could not be taken out of it: the parser broke.")
    return _from_json(json.loads(ended.stdout))


def page_text(body: bytes, kind: str, charset: str | None) -> Extracted:
    """The beginning of a page's text, in whole blocks, headings of a reasonable length. `kind` is html or plain.

    Raises the errors of the loaders.
    """
    load = load_html if kind == "html" else load_plain
    extracted = load(body, _LIMITS, charset)
    kept = (block for block in extracted.blocks[:MAX_BLOCKS] if block.end <= MAX_CHARS)
    blocks = tuple(replace(block, headings=tuple(_short(name) for name in block.headings)) for block in kept)
    title = _short(str(extracted.metadata.get("title", "")))
    return Extracted(extracted.text[:MAX_CHARS], blocks, {"title": title} if title else {})


def _short(name: str) -> str:
    return name if len(name) <= MAX_HEADING_CHARS else name[:MAX_HEADING_CHARS].rsplit(" ", 1)[0] + " …"


def _to_json(extracted: Extracted) -> dict[str, Any]:
    """Each path of headings once: every block of a long page lies under some."""
    paths = {path: place for place, path in enumerate(dict.fromkeys(block.headings for block in extracted.blocks))}
    blocks = [[block.start, block.end, block.kind, paths[block.headings]] for block in extracted.blocks]
    return {"text": extracted.text, "blocks": blocks, "paths": list(paths), "metadata": dict(extracted.metadata)}


def _from_json(said: dict[str, Any]) -> Extracted:
    if "error" in said:
        raise PageUnavailable(said["error"])
    paths = [tuple(path) for path in said["paths"]]
    blocks = tuple(Block(start, end, kind, paths[place]) for start, end, kind, place in said["blocks"])
    return Extracted(said["text"], blocks, said["metadata"])


def _limit_memory() -> None:
    with suppress(ImportError, OSError, ValueError):  # not every system can
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _main() -> None:
    _limit_memory()
    kind, charset = sys.argv[1:3]
    try:
        said = _to_json(page_text(sys.stdin.buffer.read(), kind, charset or None))
    except LeadlineError as error:
        said = {"error": error.message}
    # A charset that a server makes up may give halves of characters, which no store takes.
    sys.stdout.buffer.write(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace"))


if __name__ == "__main__":
    _main()
