"""Numbers in a sentence, in one form whatever way they are written.

Knows digits in every script, group and decimal signs, magnitudes, number words and ordinals of a few languages, and the
time of day. Doesn't know dates; doesn't compare texts.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from leadline.analysis import STOP_WORDS
from leadline.citations.units import UNITS, factors

# Not part of a code such as ERR-4021, GPT-4 or 7.3.2: those are compared as names.
_NUMBER = re.compile(
    r"""(?<![\w.,’'])(?<![A-Za-z][-–_/])(?P<minus>(?<![\w)%\]])[-−]|(?<!\d[ ])\b(?i:minus)[ ])?
    (?>(?P<digits>\d{1,3}(?P<sign>[,.’'\u00a0\u202f\u2009\ ])\d{3}(?!\d)(?:(?P=sign)\d{3}(?!\d))*(?:[.,]\d+)?
      | \d+(?:[.,·]\d+)? | [.,]\d+))(?![.,]\d)
    (?P<fraction>[½¼¾⅓⅔])?(?P<ordinal>(?:st|nd|rd|th|er|ère|ª|º)(?!\w))?
    (?P<unit>[ \t\u00a0\u202f-]?(?:°[ ]?[CF]\b|degrees?[ ](?:Celsius|Fahrenheit)\b|[^\W\d_]+|[%‰$€£¥₹]))?""",
    re.VERBOSE,
)
_CLOCK = re.compile(r"(?<![\w:.])(\d{1,2}):(\d{2})(?::\d{2})?(?![\w:])(?:[ ]?([ap])\.?m\b)?", re.IGNORECASE)
_CURRENCY_BEFORE = re.compile(r"(?:[$€£¥₹]|(?<!\w)(?:USD|EUR|GBP|CHF|JPY|US\$))[ \u00a0]?\Z", re.IGNORECASE)
_FRACTIONS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}
_MAGNITUDES = {
    **dict.fromkeys(("thousand", "k", "tausend", "mille", "mil"), 1e3),
    **dict.fromkeys(("million", "millions", "mn", "mio", "millionen", "millones", "millón"), 1e6),
    **dict.fromkeys(("billion", "billions", "bn", "milliarde", "milliarden", "mrd", "milliard", "milliards"), 1e9),
    **dict.fromkeys(("trillion", "trillions", "tn"), 1e12),
    **dict.fromkeys(("hundred", "hundert"), 1e2),
    **dict.fromkeys(("万", "萬"), 1e4),
    **dict.fromkeys(("亿", "億"), 1e8),
}
# Of an amount of money: $5m.
_SHORT_MAGNITUDES = {"m": 1e6, "b": 1e9}
_WORDS: dict[str, float] = {
    **{
        w: n
        for n, w in enumerate(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
            "fifteen sixteen seventeen eighteen nineteen twenty".split(" ")
        )
    },
    **{w: (n + 3) * 10 for n, w in enumerate("thirty forty fifty sixty seventy eighty ninety".split(" "))},
    **{w: n + 2 for n, w in enumerate("zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split(" "))},
    **{w: n + 2 for n, w in enumerate("deux trois quatre cinq six sept huit neuf dix onze douze".split(" "))},
    **{w: n + 2 for n, w in enumerate("dos tres cuatro cinco seis siete ocho nueve diez once doce".split(" "))},
    "hundred": 100,
    "thousand": 1000,
    "dozen": 12,
    "half": 0.5,
    "once": 1,
    "twice": 2,
    "both": 2,
}
_ORDINALS = {
    w: float(n + 1)
    for n, w in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(" ")
    )
}
# Words that count nothing as often as they count something.
_LOOSE = frozenset({"one", "first", "second", "once", "half", "both", "zero", "dozen", "elf"})
_WORD = re.compile(r"[^\W\d_]+")
_WORD_BEFORE = re.compile(r"([^\W\d_]+)[ \u00a0]\Z")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as `text` in a sentence. `values`: what it can mean, the likelier first (1.000 is 1000 or 1).

    `unit` is "" where none is known. `loose`: a word such as "one", which needn't be a count. `start` is its place.
    """

    text: str
    values: tuple[float, ...]
    unit: str
    loose: bool
    start: int

    def agrees(self, other: "Quantity") -> bool:
        """Whether both can be the same amount; a unit that only one of them names doesn't tell them apart."""
        mine, theirs = factors(self.unit, other.unit)
        return mine > 0 and any(_equal(a * mine, b * theirs) for a in self.values for b in other.values)


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-11 * max(abs(a), abs(b))


def quantities(text: str) -> list[Quantity]:
    """The numbers in `text`, in figures and in words, in order of place."""
    plain = _plain_digits(text)
    clocks = [_clock(match) for match in _CLOCK.finditer(plain)]
    plain = _CLOCK.sub(lambda match: " " * len(match.group()), plain)
    return sorted([*clocks, *_in_figures(plain), *_in_words(plain)], key=lambda q: q.start)


def _clock(match: re.Match[str]) -> Quantity:
    hour = int(match[1]) % 12 + 12 * (match[3] in "pP") if match[3] else int(match[1])
    return Quantity(match.group(), (hour * 60.0 + int(match[2]),), "o'clock", False, match.start())


def _plain_digits(text: str) -> str:
    """ASCII digits for those of other scripts, character by character, so that places stay."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else {"％": "%", "，": ","}.get(c, c) for c in text)


def _in_figures(text: str) -> Iterator[Quantity]:
    for match in _NUMBER.finditer(text):
        unit_text = match["unit"] or ""
        word = "ampere" if _is_ampere(text, match) else unit_text.strip(" \t\u00a0\u202f-").casefold()
        glued = unit_text[:1].isalpha()
        if glued and word not in UNITS and word not in _MAGNITUDES and word.isascii():
            continue  # 3D and 4K are names
        factor, unit = _MAGNITUDES.get(word, 1.0), UNITS.get(word, "")
        if glued and word == "s":
            unit = ""  # the 1990s
        if factor != 1.0 or word == "per":
            unit = _unit_behind(text, match.end(), per=word == "per")
        if before := _CURRENCY_BEFORE.search(text[max(0, match.start() - 6) : match.start()]):
            factor = _SHORT_MAGNITUDES.get(word, factor)
            unit = UNITS.get(before.group().strip()[-3:].casefold(), UNITS.get(before.group().strip()[-1:], unit))
        scale = factor * (-1.0 if match["minus"] else 1.0)
        extra = _FRACTIONS.get(match["fraction"] or "", 0.0)
        readings = _readings(match["digits"], match["sign"])
        if glued and word == "s" and len(match["digits"]) == 2:
            readings += (1900 + readings[0],)  # the 80s
        values = tuple((value + extra) * scale for value in readings)
        shown = match.group() if unit or factor != 1.0 else match.group().removesuffix(unit_text)
        yield Quantity(shown.strip(), values, unit, False, match.start())


def _is_ampere(text: str, match: re.Match[str]) -> bool:
    """Whether a capital A behind a figure is a unit: 16 A, 16A. In Hall 3 A it belongs to a name, in A-levels too."""
    if (match["unit"] or "").strip(" \t\u00a0\u202f-") != "A" or text[match.end() : match.end() + 1] in tuple("-'’"):
        return False
    before = _WORD_BEFORE.search(text[max(0, match.start() - 24) : match.start()])
    return before is None or not before[1][0].isupper() or before[1].casefold() in STOP_WORDS


def _unit_behind(text: str, at: int, *, per: bool) -> str:
    follow = re.compile(r"[ \t]*([^\W\d_]+|[%€$£])").match(text, at)
    if follow is None:
        return ""
    return "percent" if per and follow[1] == "cent" else UNITS.get(follow[1].casefold(), "")


def _readings(digits: str, sign: str | None) -> tuple[float, ...]:
    """What a number in figures can mean: 1,000 and 1 000 are a thousand, 1.000 a thousand or one."""
    if sign is None:
        return (float(digits.replace(",", ".").replace("·", ".")),)
    head, *groups = digits.split(sign)
    tail = re.fullmatch(r"(\d{3})(?:[.,](\d+))?", groups[-1])
    assert tail is not None  # by the pattern of a number
    whole = float("".join([head, *groups[:-1], tail[1]]) + f".{tail[2] or 0}")
    if sign == "." and len(groups) == 1 and not tail[2]:
        return whole, float(digits)
    if sign == "," and head == "0":
        return (float(digits.replace(",", ".")),)
    if sign == " ":
        return whole, float(head), *(float(g) for g in groups if g.isdigit() and g[0] != "0")
    return (whole,)


def _in_words(text: str) -> Iterator[Quantity]:
    words = list(_WORD.finditer(text))
    place = 0
    while place < len(words):
        first, name = place, words[place].group().casefold()
        place += 1
        if name in _ORDINALS:
            yield Quantity(words[first].group(), (_ORDINALS[name],), "", name in _LOOSE, words[first].start())
        if name not in _WORDS or _follows_figure(text, words[first].start()):
            continue
        values = [_WORDS[name]]
        while place < len(words) and _continues(text, words, place, values[-1]):
            values.append(_value(words[place].group()))
            place += 1
        unit = UNITS.get(words[place].group().casefold(), "") if place < len(words) else ""
        loose = len(values) == 1 and name in _LOOSE
        shown = text[words[first].start() : words[place if unit else place - 1].end()]
        yield Quantity(shown, (_composed(values),), unit, loose, words[first].start())


def _continues(text: str, words: list[re.Match[str]], place: int, last: float) -> bool:
    """Whether a word goes on with the number before it: twenty-one, two hundred and five, three million."""
    if text[words[place - 1].end() : words[place].start()] not in (" ", "-"):
        return False
    value = _value(words[place].group())
    return value >= 100 or (0 < value < last and (last >= 100 or (last >= 20 and value < 10)))


def _value(word: str) -> float:
    return {**_WORDS, **_MAGNITUDES, **_ORDINALS}.get(word.casefold(), 0.0)


def _composed(values: list[float]) -> float:
    total = current = 0.0
    for value in values:
        if value >= 1000:
            total, current = total + max(current, 1.0) * value, 0.0
        else:
            current = max(current, 1.0) * value if value == 100 else current + value
    return total + current


def _follows_figure(text: str, start: int) -> bool:
    """Whether a word such as thousand stands behind figures and so was read with them."""
    return bool(re.search(r"\d[ \u00a0-]?\Z", text[max(0, start - 4) : start]))
