"""What reaches a terminal or a pipe: safe text, tables, JSON, errors.

Knows that text of documents, file names and web pages is hostile: it may hold escape sequences that move the cursor,
recolour or retitle a terminal, or turn the reading direction round. Nothing is printed but through here. Doesn't know
what any command does.
"""

import json
import re
import sys
from collections.abc import Container, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from leadline.errors import LeadlineError

if TYPE_CHECKING:
    from rich.console import Console

FEWEST_COLUMNS = 30  # of a paragraph beside what it hangs from

# C0 and C1 controls but tab and newline, direction marks and overrides, invisible operators, surrogates, tags.
# Joiners (U+200C, U+200D) stay: Persian, Indic scripts and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def plain(text: str, *, one_line: bool = False) -> str:
    """`text` with everything that could steer a terminal made visible or taken out; `one_line` folds white space."""
    text = _UNSAFE.sub(_visible, text.replace("\r\n", "\n"))
    return " ".join(text.split()) if one_line else text


def short(text: str, chars: int) -> str:
    """The beginning of `text`, safe and on one line; a mark at its end says where something is cut off."""
    safe = plain(text, one_line=True)
    return safe if len(safe) <= chars else safe[: chars - 1].rstrip() + "…"


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures: ESC shows as ␛
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if code < 0xA0 or 0xD800 <= code <= 0xDFFF else ""


def print_json(value: object) -> None:
    """One JSON document on standard output; characters that could steer a terminal are escaped."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not utf8, indent=2 if sys.stdout.isatty() else None, default=str)
    sys.stdout.write(_UNSAFE.sub(lambda match: json.dumps(match.group())[1:-1], text) + "\n")


@cache
def console(*, stderr: bool = False) -> "Console":
    """The console to print to; markup, emoji names and highlighting are off, so that text is shown as it is."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def say(text: str = "", *, style: str | None = None, stderr: bool = False, hang: int = 0) -> None:
    """One line or paragraph, made safe; on a terminal it is wrapped at words.

    What follows its first line there is indented by `hang` columns, or as far as the line begins.
    """
    safe, out = plain(text), console(stderr=stderr)
    indent = len(safe) - len(safe.lstrip(" "))
    if out.is_terminal and (indent or hang):
        safe = _hanging(safe, hang if hang and out.width - hang >= FEWEST_COLUMNS else indent, out)
    out.print(safe, style=style, soft_wrap=not out.is_terminal)


def _hanging(text: str, hang: int, out: "Console") -> str:
    from rich.text import Text

    lines = [line.plain.rstrip() for line in Text(text[hang:]).wrap(out, out.width - hang)]
    return text[:hang] + ("\n" + " " * hang).join(lines)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, bad: Container[int] = ()) -> None:
    """A table on a terminal, rows whose number is `bad` in red; in a pipe lines with tabs, under a header line."""
    cells = [[plain(str(cell), one_line=True) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        sys.stdout.writelines("\t".join(line) + "\n" for line in [list(columns), *cells])
        return
    from rich import box
    from rich.table import Table

    grid = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for number, column in enumerate(grid.columns):
        column.overflow = "fold"
        column.justify = "right" if cells and all(_is_number(row[number]) for row in cells) else "left"
    for number, line in enumerate(cells):
        grid.add_row(*line, style="red" if number in bad else None)
    console().print(grid)


def _is_number(cell: str) -> bool:
    return cell in ("", "-") or re.fullmatch(r"[-+−]?[\d.,]+", cell) is not None


def print_error(error: LeadlineError, *, as_json: bool) -> None:
    """What went wrong and what to do: JSON on standard output, or two lines on standard error."""
    if as_json:
        print_json({"error": error_object(error)})
        return
    say(f"Error: {error.message}", style="red", stderr=True)
    if error.hint:
        say(error.hint, stderr=True)


def error_object(error: LeadlineError) -> dict[str, Any]:
    """The error as every surface shows it."""
    return {"code": error.code, "message": error.message, "hint": error.hint}


def is_interactive() -> bool:
    """Whether somebody is there to be asked: standard input and standard error are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
