"""Who did it: names that changed places around a verb, and another name than the text has after `by`.

Reads English word order, and only where the names stand right at the verb (Acme bought Bolt, Bolt was bought by Acme).
Knows no grammar beyond that: where a part of the sentence stands between, nothing is found.
"""

import re
from collections.abc import Iterator

from leadline.analysis import STOP_WORDS, english_stem
from leadline.citations.wordforms import base_form

# A name reads one way only and has an end: else a row of capitals (G-A-T-T-A-C-A) takes time without end.
_NAME = r"(?>(?:[A-ZÀ-Þ]\.){1,4}|[A-ZÀ-Þ][\w’'-]{1,40}+(?:\.(?= [a-z]))?)"
_NAMES = rf"{_NAME}(?: ?(?:(?:de|von|van|der|la|le|du|of|the|&) ){{0,2}}+{_NAME}){{0,7}}+"
_WHO = rf"(?<![\w’'-])(?P<who>{_NAMES})"
_DONE = r"\b(?P<verb>\w{2,}ed|built|made|led|won|written|drawn|chosen|taken|given|shown|sung|held|bought|sold)\b"
_BY = re.compile(rf"\b(?:is|are|was|were|been|be|being)\s+(?:\w+ly\s+)?{_DONE}(?P<rest>[^.;]{{0,120}})")
_AGENT = re.compile(rf"\bby {_WHO}")
_DID = re.compile(rf"{_WHO} (?<!['’]s )(?:(?:first|later|also|originally) )?(?P<verb>\w{{3,}})\b")
_DEED = re.compile(
    rf"{_WHO} (?<!['’]s )(?:ha(?:s|ve|d) )?(?:(?:first|later|also|then|finally|originally) )?"
    rf"(?P<verb>[a-z]{{3,}}) (?:the )?(?P<whom>{_NAMES})"
)
_TO_ONE_BEFORE = re.compile(
    rf"{_WHO} (?<!['’]s )(?:ha(?:s|ve|d) )?(?:(?:first|later|also|then|finally|originally) )?"
    r"(?P<verb>[a-z]{3,}) (?:it|him|them)\b"
)
_SUFFERED = re.compile(
    rf"(?<![\w’'-])(?P<whom>{_NAMES}) (?:is|are|was|were|(?:has|have|had) been) (?:\w+ly )?(?P<verb>[a-z]{{3,}})"
    rf"(?: [^.;,]{{0,60}}?)? by (?:the )?{_WHO}"
)
_PAST = re.compile(r"[a-z]{2,}ed|beat|left|hit|cut")
_THIRD = re.compile(r"[a-z]{2,}[a-rt-z]s")
# What the one does to the other, the other does to the one.
_MUTUAL = frozenset(
    english_stem(verb)
    for verb in """meets met marries married divorced faces faced fights fought plays played borders bordered joins
    joined resembles resembled equals equalled matches matched rivals rivalled adjoins adjoined encounters encountered
    dated overlaps overlapped neighbours neighbors versus plus times""".split()
)


def other_agent(sentence: str, text: str) -> str:
    """Who is said to have done what the text says another did (X founded, founded by Y), or did to them; "" if none."""
    return _not_the_agent(sentence, text) or _changed_about(sentence, text)


def _not_the_agent(sentence: str, text: str) -> str:
    done: dict[str, set[str]] = {}
    for match in _BY.finditer(text):
        named = [_words(agent["who"]) for agent in _AGENT.finditer(match["rest"])]
        done.setdefault(_stem(match["verb"]), set()).update(*named)
    for match in _DID.finditer(sentence) if done else ():
        agents, who = done.get(_stem(match["verb"])), _words(match["who"])
        if agents and who and agents.isdisjoint(who):
            return match["who"].strip()
    return ""


def _changed_about(sentence: str, text: str) -> str:
    """The name that did it here, and that it was done to there, where the text never says the same the same way."""
    there, to_one_before = list(_deeds(text)), list(_deeds_to_one_before(text))
    for who, verb, whom in _deeds(sentence):
        pairs = [(_words(doer), _words(other)) for doer, of_them, other in there if of_them == verb]
        doer, other = _words(who), _words(whom)
        if any(_same(doer, a) and _same(other, b) for a, b in pairs):
            continue
        if any(_same(doer, b) and _same(other, a) for a, b in pairs):
            return who.strip()
        if any(of_them == verb and _same(other, a) and not _same(doer, a) for a, of_them in to_one_before):
            return who.strip()
    return ""


def _deeds_to_one_before(text: str) -> Iterator[tuple[set[str], str]]:
    """Each one who did something to a thing named before (Acme bought it), and the verb's stem: it did it to none."""
    for match in _TO_ONE_BEFORE.finditer(text):
        if _is_verb(match["verb"]) and _stem(match["verb"]) not in _MUTUAL:
            yield _words(match["who"]), _stem(match["verb"])


def _deeds(text: str) -> Iterator[tuple[str, str, str]]:
    """Each one who did something to another, the verb's stem, and that other."""
    for pattern in (_DEED, _SUFFERED):
        for match in pattern.finditer(text):
            if _is_verb(match["verb"]) and _stem(match["verb"]) not in _MUTUAL:
                yield match["who"], _stem(match["verb"]), match["whom"]


def _is_verb(word: str) -> bool:
    if word in STOP_WORDS:
        return False
    return bool(_PAST.fullmatch(word) or _THIRD.fullmatch(word)) or _stem(word) != english_stem(word)


def _same(one: set[str], other: set[str]) -> bool:
    """Whether two names can be one: Mira Stone, Stone."""
    return bool(one and other) and (one <= other or other <= one)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"[^\W\d_]+", text)} - STOP_WORDS


def _stem(verb: str) -> str:
    return base_form(english_stem(verb.casefold()))
