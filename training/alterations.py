"""Makes unanswerable questions from answerable ones by rule, so that a passage still on the topic has no answer.

The rules follow what people did who wrote such questions for SQuAD 2.0 (Rajpurkar, Jia & Liang 2018): an exchanged
name, number or word, an antonym, a negation. What is put in must not stand in the passage beside what is asked, or it
is taken from the passage itself, where it plays another part.
"""

import random
import re
from collections.abc import Callable, Sequence

from leadline.analysis import STOP_WORDS

WORD = re.compile(r"[^\W_][\w'’-]*")
NAME = re.compile(r"(?<![.!?] )(?<!^)(?:[A-Z][\w'’-]+)(?: (?:of |the |de )?[A-Z][\w'’-]+)*")
NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
MONTHS = (
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday"
).split()
ANTONYMS = [
    pair.split("/")
    for pair in (
        "first/last largest/smallest biggest/smallest highest/lowest most/least before/after oldest/youngest "
        "increase/decrease increased/decreased more/fewer longest/shortest early/late earlier/later won/lost "
        "best/worst north/south east/west northern/southern eastern/western begin/end began/ended start/stop "
        "started/stopped allowed/forbidden legal/illegal same/different male/female men/women high/low above/below "
        "inside/outside import/export accept/reject accepted/rejected cause/prevent causes/prevents strong/weak "
        "rich/poor private/public major/minor maximum/minimum success/failure gain/loss support/oppose "
        "supported/opposed supporters/opponents winner/loser hot/cold warm/cool fast/slow buy/sell bought/sold "
        "arrive/leave arrived/left father/mother son/daughter brother/sister husband/wife king/queen positive/negative "
        "majority/minority upper/lower rise/fall rose/fell new/old join/leave open/close opened/closed added/removed "
        "like/dislike love/hate alive/dead born/died urban/rural natural/artificial internal/external reduce/raise"
    ).split()
]
OPPOSITE = {one: other for pair in ANTONYMS for one, other in (pair, pair[::-1])}
AUXILIARY = re.compile(r"\b(did|does|do|is|are|was|were|can|could|will|would|has|have|should|may)\b", re.IGNORECASE)
INTERROGATIVE = re.compile(r"\b(who|what|which|how many|how much|whose)\b", re.IGNORECASE)

Rule = Callable[[str, str, Sequence[str], random.Random], str | None]


def names(text: str) -> list[str]:
    """Capitalised phrases that don't begin a sentence, in their order, each once."""
    return list(dict.fromkeys(match.group() for match in NAME.finditer(text)))


def exchange_name(question: str, passage: str, others: Sequence[str], chance: random.Random) -> str | None:
    """A name of the question becomes another one: of the passage, where it plays another part, or of elsewhere."""
    asked = question.lower()
    known = [name for name in names(passage) if len(name) > 2]
    there = [name for name in known if name.lower() in asked] or names(question)
    if not there:
        return None
    gone = chance.choice(there)
    beside = [name for name in known if name.lower() not in asked and not set(name.split()) & set(gone.split())]
    elsewhere = [
        name
        for name in others
        if name[0].isupper() and name.lower() not in passage.lower() and name.lower() not in asked
    ]
    pool = beside if beside and chance.random() < 0.5 else elsewhere
    if not pool:
        return None
    new = chance.choice(pool)
    start = asked.index(gone.lower())
    cased = new.lower() if question == asked else new
    return question[:start] + cased + question[start + len(gone) :]


def exchange_number(question: str, passage: str, _others: Sequence[str], chance: random.Random) -> str | None:
    """A number, year, month or day of the question becomes another one."""
    found = list(NUMBER.finditer(question))
    if found:
        match = chance.choice(found)
        beside = [number for number in NUMBER.findall(passage) if len(number) == len(match.group())]
        near = str(int(re.sub(r"\D", "", match.group())) + chance.choice([-7, -3, -2, -1, 1, 2, 4, 10]))
        new = chance.choice([*beside, near])
        return question[: match.start()] + new + question[match.end() :] if new != match.group() else None
    dated = [match for match in WORD.finditer(question) if match.group().lower() in MONTHS and match.group() != "may"]
    if not dated:
        return None
    match = chance.choice(dated)
    place = MONTHS.index(match.group().lower())
    family = MONTHS[:12] if place < 12 else MONTHS[12:]
    new = chance.choice([each for each in family if each != match.group().lower() and each not in passage.lower()])
    return question[: match.start()] + (new.title() if match.group().istitle() else new) + question[match.end() :]


def exchange_for_opposite(question: str, passage: str, _others: Sequence[str], chance: random.Random) -> str | None:
    """A word becomes its antonym, unless the passage has both."""
    found = [match for match in WORD.finditer(question) if match.group().lower() in OPPOSITE]
    words = {word.lower() for word in WORD.findall(passage)}
    found = [match for match in found if OPPOSITE[match.group().lower()] not in words]
    if not found:
        return None
    match = chance.choice(found)
    return question[: match.start()] + OPPOSITE[match.group().lower()] + question[match.end() :]


def negate(question: str, _passage: str, _others: Sequence[str], chance: random.Random) -> str | None:
    """`did` becomes `did not`, once, in a question that asks for a thing or a person."""
    if not INTERROGATIVE.search(question) or re.search(r"\b(not|never|no)\b|n't", question, re.IGNORECASE):
        return None
    match = AUXILIARY.search(question)
    if match is None:
        return None
    word = chance.choice(["not", "never", "not"])
    after = WORD.search(question, match.end())
    if match.group().lower() in ("did", "does", "do") and after is not None:  # "what did he not do", not "did not he"
        rest = list(WORD.finditer(question, match.end()))
        if len(rest) < 2:
            return None
        place = next((each.start() for each in rest[1:] if each.group()[0].islower()), None)
        return None if place is None else f"{question[:place]}{word} {question[place:]}"
    return f"{question[: match.end()]} {word}{question[match.end() :]}"


def exchange_word(question: str, passage: str, others: Sequence[str], chance: random.Random) -> str | None:
    """A content word becomes one of another question, that the passage doesn't have."""
    found = [
        match
        for match in list(WORD.finditer(question))[1:]
        if len(match.group()) > 3 and match.group().lower() not in STOP_WORDS
    ]
    fresh = [word for word in others if word.islower() and word not in passage.lower() and word not in question.lower()]
    if not found or not fresh:
        return None
    match = chance.choice(found)
    return question[: match.start()] + chance.choice(fresh) + question[match.end() :]


# How often each is tried first.
RULES: dict[Rule, float] = {
    exchange_name: 4,
    exchange_number: 2,
    exchange_for_opposite: 2,
    negate: 1,
    exchange_word: 1,
}


def altered(question: str, passage: str, others: Sequence[str], chance: random.Random, count: int) -> list[str]:
    """At most `count` different unanswerable forms of `question`. `others` are names and words of other questions."""
    order = sorted(RULES, key=lambda rule: chance.random() ** (1 / RULES[rule]), reverse=True)
    found: list[str] = []
    for rule in order:
        new = rule(question, passage, others, chance)
        if new is not None and new != question and new not in found:
            found.append(new)
        if len(found) == count:
            break
    return found
