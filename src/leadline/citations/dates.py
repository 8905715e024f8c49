"""Calendar dates in a sentence, whatever way they are written.

Knows the usual forms in figures and the months' names of four languages. Doesn't know weekdays or relative dates.
"""

import re
from dataclasses import dataclass

_MONTH_NAMES = (
    "january jan januar janvier janv enero",
    "february feb februar février févr febrero",
    "march mar märz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug août agosto",
    "september sep sept septembre septiembre",
    "october oct oktober okt octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember dez décembre diciembre",
)
_MONTHS = {name: number + 1 for number, names in enumerate(_MONTH_NAMES) for name in names.split(" ")}
_NAME = "(?P<name>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
# Names of months that are one also without a day or a year: March and May only where a word before says so.
_ALONE = (
    r"(?P<name>January|February|April|June|July|August|September|October|November|December|Januar|Februar|März|Juni|Juli"
    r"|Oktober|Dezember)\b(?! [A-Z])|(?:[Ii]n|[Ss]ince|[Bb]y|[Uu]ntil|[Dd]uring|[Ee]arly|[Ll]ate|[Mm]id) "
    r"(?P<weak>March|May)\b(?! [A-Z])"
)
_YEAR = r"(?P<year>[12]\d{3})(?!\d)"
_DAY = r"(?P<day>[0-3]?\d)"
_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\d){_YEAR}[-/.](?P<month>[01]?\d)[-/.]{_DAY}(?!\d)",
        rf"(?<!\d){_YEAR}年(?P<month>[01]?\d)月(?:{_DAY}日)?",
        rf"(?<![\d.]){_DAY}(?P<sign>[./-])(?P<month>[0-3]?\d)(?P=sign)(?P<year>[12]\d{{3}}|\d{{2}})(?!\d)",
        rf"(?<!\d){_DAY}(?:st|nd|rd|th|er|\.)?(?: of| de)? {_NAME}(?:,?(?: de| of)? {_YEAR})?",
        rf"\b{_NAME} (?:the )?{_DAY}(?:st|nd|rd|th)?(?!\d)(?:,? {_YEAR})?",
        rf"\b{_NAME},?(?: de| of)? {_YEAR}",
        rf"\b(?-i:{_ALONE})",
    )
)


@dataclass(frozen=True, slots=True)
class Date:
    """`text` as written, and what it can mean: (year, month, day), None for what it leaves open."""

    text: str
    readings: tuple[tuple[int | None, int, int | None], ...]

    def agrees(self, other: "Date", years: frozenset[float]) -> bool:
        """Whether `other` says at least what this date says; `years` are those named near `other` without a date."""
        return any(_within(mine, theirs, years) for mine in self.readings for theirs in other.readings)


def take_dates(text: str) -> tuple[list[Date], str]:
    """The dates of `text`, and the text with blanks in their place, so that their figures aren't read again."""
    found: list[tuple[int, Date]] = []
    for form in _FORMS:
        for match in form.finditer(text):
            if readings := _readings(match):
                found.append((match.start(), Date(match.group(), readings)))
                text = text[: match.start()] + " " * len(match.group()) + text[match.end() :]
    return [date for _, date in sorted(found, key=lambda pair: pair[0])], text


def _readings(match: re.Match[str]) -> tuple[tuple[int | None, int, int | None], ...]:
    parts = match.groupdict()
    year = int(parts["year"]) if parts.get("year") else None
    if year is not None and year < 100:
        year += 2000 if year < 50 else 1900
    day = int(parts["day"]) if parts.get("day") else None
    if name := parts.get("name") or parts.get("weak"):
        options = [(_MONTHS[name.casefold()], day)]
    else:
        options = [(int(parts["month"]), day)]
        if parts.get("sign") == "/" and day is not None:
            options.append((day, int(parts["month"])))
    return tuple(dict.fromkeys((year, m, d) for m, d in options if 1 <= m <= 12 and (d is None or 1 <= d <= 31)))


def _within(
    mine: tuple[int | None, int, int | None], theirs: tuple[int | None, int, int | None], years: frozenset[float]
) -> bool:
    if mine[1] != theirs[1] or (mine[2] is not None and mine[2] != theirs[2]):
        return False
    return mine[0] is None or mine[0] == theirs[0] or (theirs[0] is None and mine[0] in years)
