"""Words of which only one can be true: seasons, weekdays, directions, more and less, a month and a year.

A sentence that has one of a set where its source has only another says something else, though every other word agrees.
Knows the sets and their words' forms, rates (a month, yearly) and limits (up to 30, over 30); doesn't know what is said
of what.
"""

import re

_SETS = """spring|summer|autumn fall|winter
monday|tuesday|wednesday|thursday|friday|saturday|sunday
january|february|april|june|july|august|september|october|november|december
morning mornings|afternoon afternoons|evening evenings|night nights nighttime
north northern|south southern|east eastern|west western
northeast northeastern|northwest northwestern|southeast southeastern|southwest southwestern
early earlier earliest|late later latest
before prior|after|within
once|twice|thrice
adult adults|child children kids
increase increases increased increasing rise rises rose risen grew grow grows growing growth raised raise gain gained
|decrease decreases decreased decreasing fell falls falling decline declines declined declining drop dropped drops
 reduced reduce reduces reduction shrank shrink
more|less fewer
most|least fewest
higher highest|lower lowest
larger largest bigger biggest|smaller smallest
longer longest|shorter shortest
older oldest|younger youngest newer newest
faster fastest|slower slowest
maximum maximal|minimum minimal
above|below beneath
inside within|outside
upper|lower

king|queen
includes include included including|excludes exclude excluded excluding
male men man boys|female women woman girls
black|white
hot hotter|cold colder
allowed allows allow permitted permits permit|forbidden forbids forbid prohibited prohibits prohibit banned bans ban
legal lawful|illegal unlawful
required requires require mandatory obligatory|optional voluntary
won wins win winning|lost loses lose losing
accepted accepts accept|rejected rejects reject refused refuses refuse
supported supports support|opposed opposes oppose
open opens opened opening|closed closes close closing
bought buys buy purchased purchases acquired acquires acquisition|sold sells sell sale
arrives arrived arrival|departs departed departure
founded founder founders founding established establishes|acquired acquires acquire acquisition bought takeover
hired hires hire|dismissed fired dismisses
born birth|died dies death
married marries marriage|divorced divorces divorce
invented invents inventor|discovered discovers discoverer
wrote written writes author|translated translates translator
elected elects election|appointed appoints
imports imported import|exports exported export
parent parents|child children kids
frühling|sommer|herbst|winter
montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag
vor|nach"""


def _read(text: str) -> tuple[dict[str, frozenset[str]], ...]:
    """For each set, each word with the words that mean the same in it."""
    rows = re.sub(r"\n(?=\||\s)", " ", text).splitlines()
    groups = [[frozenset(group.split()) for group in row.split("|")] for row in rows]
    return tuple({word: group for group in row for word in group} for row in groups)


_READ = _read(_SETS)
_OCCASIONS = _read(
    """spring|summer|autumn fall|winter
monday mondays|tuesday tuesdays|wednesday wednesdays|thursday thursdays|friday fridays|saturday saturdays|sunday sundays
january|february|april|june|july|august|september|october|november|december
morning mornings|afternoon afternoons|evening evenings|night nights nighttime
frühling|sommer|herbst|winter
montag montags|dienstag dienstags|mittwoch mittwochs|donnerstag donnerstags|freitag freitags|samstag samstags
|sonntag sonntags"""
)
_WORD = re.compile(r"[^\W\d_]+")
_RATE = re.compile(
    r"\b(?:an?|per|each|every|pro|par)[ ](?P<unit>year|annum|month|week|day|hour|minute|second|jahr|monat|woche|tag)\b"
    r"|\b(?P<adverb>year|annual|month|week|dai|hour)ly\b|/[ ]?(?P<short>year|month|week|day|hour|h|s|min)\b",
    re.IGNORECASE,
)
_SAME_UNIT = {"annum": "year", "annual": "year", "dai": "day", "h": "hour", "s": "second", "min": "minute"}
_LIMIT = re.compile(
    r"\b(?:(?P<low>no less than|no fewer than|at least|over|above|more than|exceeding|older than|minimum of)"
    r"|(?P<high>no more than|at most|up to|under|below|less than|fewer than|younger than|maximum of))"
    r"(?: the age of)? (?P<number>[\d.,]*\d)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\b(?:between|from) (?P<low>[\d.,]*\d) (?:and|to) (?P<high>[\d.,]*\d)", re.IGNORECASE)

_YEAR = re.compile(r"(?<![\d.,/-])(?:1[5-9]|20)\d\d(?!\d|[.,]\d|['’]?s\b)")
_FOUR_DIGITS = re.compile(r"(?<!\d)\d{4}(?!\d)")  # a year also in budget-2024.md and 1.3.2024
# A year at an end of a time holds for others too.
_OPEN_TIME = re.compile(
    rf"\b(?:from|since|after|before|until|till|to|by|as of|end of|start of|beginning of|than|between"
    rf"|seit|ab|bis|nach|vor|depuis|avant|desde|hasta)\s+"
    rf"(?:[\w.]+\s+){{0,3}}?{_YEAR.pattern}",
    re.IGNORECASE,
)


def contradicted(sentence: str, text: str) -> str:
    """The word of `sentence` in whose place `text` has another of its set and never that one; "" if none."""
    other = _other_of_a_set(sentence, text, _READ)
    return other or _other_rate(sentence, text) or _other_limit(sentence, text)


def of_another_occasion(question: str, text: str) -> bool:
    """Whether `question` names a season, weekday, month or time of the day, and `text` only others of its kind."""
    return bool(_other_of_a_set(question, text, _OCCASIONS))


def of_another_year(question: str, text: str, passage: str) -> bool:
    """Whether `question` is about years that nothing of the `passage` names, and its sentence `text` about others.

    Not where either names a year as the end of a time (since 2020), nor where the asked one is between two of the text.
    """
    asked, said = set(_YEAR.findall(question)), set(_YEAR.findall(text))
    if not asked or not said or asked.intersection(_FOUR_DIGITS.findall(passage)):
        return False
    if _OPEN_TIME.search(question) or _OPEN_TIME.search(text):
        return False
    return not any(min(said) < year < max(said) for year in asked)


def _other_of_a_set(sentence: str, text: str, sets: tuple[dict[str, frozenset[str]], ...]) -> str:
    said, there = _words(sentence), _words(text)
    for meanings in sets:
        for word in said:
            same = meanings.get(word)
            if same and there.isdisjoint(same) and said & there.intersection(meanings) != there.intersection(meanings):
                return word
    return ""


def _words(text: str) -> set[str]:
    return {match.group().casefold() for match in _WORD.finditer(text)}


def _other_rate(sentence: str, text: str) -> str:
    said, there = _rates(sentence), _rates(text)
    return next(iter(said), "") if said and there and said.isdisjoint(there) else ""


def _rates(text: str) -> set[str]:
    units = {next(filter(None, match.groups())).casefold() for match in _RATE.finditer(text)}
    return {_SAME_UNIT.get(unit, unit) for unit in units}


def _other_limit(sentence: str, text: str) -> str:
    """A number that the one has as a least and the other as a most."""
    there = {(m["number"], m["low"] is None) for m in _LIMIT.finditer(text)}
    there |= {(m[end], end == "high") for m in _BETWEEN.finditer(text) for end in ("low", "high")}
    for match in _LIMIT.finditer(sentence):
        number, high = match["number"], match["low"] is None
        if (number, not high) in there and (number, high) not in there:
            return match.group()
    return ""
