"""Candidates of a run for people: a table where there is room for one, lines where there isn't.

Knows rows of a result and how a rank, a logit and a fate are written. Counts ranks from 1, as people do.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from leadline.cli.answer import score
from leadline.cli.display import console, plain, say, table

SHORTEST = 14  # columns that a name needs to be known by its beginning and its ending
DASH = "-"
LEGEND = "3/2: rank 3 in the second search"
FATES: Mapping[str, str] = {
    "cited": "cited",
    "check_failed": "cited, not confirmed",
    "not_cited": "shown, not cited",
    "no_room": "no room for it",
    "orders": "orders to a model",
    "below_zero": "below zero",
    "not_written": "nothing written",
    "beyond_top": "ranked too low",
    "same_text": "same text",
    "fusion": "cut in fusion",
    "not_found": "not found",
    "filtered_out": "filtered out",
}
STYLES: Mapping[str, str] = {
    FATES["cited"]: "green",
    FATES["not_cited"]: "cyan",
    FATES["check_failed"]: "yellow",
    FATES["no_room"]: "yellow",
}


def leg_names(rows: Sequence[Mapping[str, Any]], others: Iterable[str] = ()) -> list[str]:
    """The legs that found any of the candidates, and the others, in a fixed order."""
    found = {leg for row in rows for leg in row["found_by"]} | set(others)
    known = [leg for leg in ("vector", "bm25", "graph", "web") if leg in found]
    return [*known, *sorted(found - set(known))]


def rank_cell(found: Mapping[str, Any] | None, passes: int) -> str:
    """A rank in a leg, with the search it is of where there were several."""
    if found is None:
        return DASH
    in_pass = found.get("in_pass", 1)
    return f"{found['rank'] + 1}" + (f"/{in_pass}" if passes > 1 else "")


def place_cell(rank: int | None) -> str:
    """A 0-based place, counted from 1."""
    return DASH if rank is None else str(rank + 1)


def logit_cell(rerank_score: float | None) -> str:
    """A logit; one that wasn't given is no number."""
    return DASH if not rerank_score else score(rerank_score)


def passage_cell(chunk_index: int | None, page: int | None) -> str:
    """Which passage of its file: by its number there, and its page."""
    number = DASH if chunk_index is None else str(chunk_index + 1)
    return number if page is None else f"{number} p{page}"


def show_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], *, lead: int = 1) -> None:
    """A table; on a narrow terminal a line for the first `lead` cells and the last, and one below for the others.

    The first and the last column are text, those between numbers. A name that is too long for a terminal is cut in its
    middle: its beginning and its ending tell it from others.
    """
    out = console()
    if not out.is_terminal:
        table(columns, rows)
        return
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
    gap = 2 if sum(widths) + 2 * len(widths) <= out.width else 1
    room = out.width - sum(widths[1:]) - gap * (len(widths) - 1)
    if room < min(widths[0], SHORTEST):
        _stack(columns, rows, lead)
        return
    widths[0] = min(widths[0], room)
    for number, row in enumerate([columns, *rows]):
        cells = [_cut(row[0], widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        style = "bold" if number == 0 else STYLES.get(row[-1])
        say((" " * gap).join([*cells, row[-1]]), style=style)


def _stack(columns: Sequence[str], rows: Sequence[Sequence[str]], lead: int) -> None:
    for row in rows:
        say(f"{' '.join(cell for cell in row[:lead] if cell)}: {row[-1]}", style=STYLES.get(row[-1], "bold"))
        named = zip(columns[lead:-1], row[lead:-1], strict=True)
        say("  " + ", ".join(f"{name} {cell}" for name, cell in named if cell != DASH))


def _cut(text: str, width: int) -> str:
    """Exactly `width` columns of a terminal: filled up, or the middle taken out."""
    if (long := cell_len(text)) <= width:
        return text + " " * (width - long)
    head, tail = (width - 1) // 2, width - 1 - (width - 1) // 2
    start, end = set_cell_size(text, head), text
    while cell_len(end) > tail:
        end = end[1:]
    return set_cell_size(f"{start}…{end}", width)


def show_candidates(rows: Sequence[Mapping[str, Any]], passes: int) -> None:
    """Every candidate of a run: who found it at which rank, and what became of it."""
    legs = leg_names(rows)
    cells = [
        [
            plain(row["file_name"], one_line=True),
            passage_cell(row["chunk_index"], row["page"]),
            *(rank_cell(row["found_by"].get(leg), passes) for leg in legs),
            place_cell(row["fused_rank"]),
            place_cell(row["rank"]),
            logit_cell(row["rerank_score"]),
            FATES.get(row["fate"], row["fate"]),
        ]
        for row in rows
    ]
    show_rows(["file", "passage", *legs, "fused", "rank", "logit", "fate"], cells, lead=2)
    if passes > 1:
        say(f"{LEGEND}.", style="dim")
