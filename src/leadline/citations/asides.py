"""Whether a line that looks as if it claims nothing does: an admitted gap, a heading, a lead-in, a question.

Such a line goes unchecked only where it adds nothing to what the question and the passages name.
"""

import re
from collections.abc import Sequence

from leadline.analysis import english_stem
from leadline.citations.names import Mentions, names
from leadline.citations.no_answer import NO_ANSWER, says_no_answer
from leadline.citations.rules import content_terms, missing_terms

_ADDED = 2  # content words that are new; one alone may be another word for what was asked
_CLAUSE = re.compile(
    r"[,;:.—–]\s|\s(?:but|however|although|though|yet|except|and|aber|jedoch|sondern|und|mais|et|pero|sino|y)\s",
    re.IGNORECASE,
)
_OFFER = re.compile(r"(?:would|do|shall|should|can|could|may) (?:you|i)\b(?! know)|what else\b", re.IGNORECASE)
_FIGURE = re.compile(r"\d+")
_NUMBERED = re.compile(r"\A[#\s]*(?:\d+(?:\.\d+)*[.)]?\s)?")
# Words about the answer itself, not about what it tells.
_ABOUT = frozenset(
    english_stem(word)
    for word in """answer answers question based document documents passage passages source sources provided providing
    text texts context information following follows follow below above list listed summary overview conclusion
    key main point points detail details note notes relevant direct directly explicitly mention mentioned say said
    know knew find found exact exactly figure further additional particular regarding unfortunately however see here
    step steps example examples fact facts item items value name more only therefore specific short background
    result results reason reasons explanation introduction include includes including state states stated""".split()
)


def admits_gap(sentence: str, question: str) -> bool:
    """Whether the sentence says that there is no answer, and no clause of it says anything else."""
    if not says_no_answer(sentence):
        return False
    if sentence.strip(" .*`\"'").upper().replace(" ", "_") == NO_ANSWER:
        return True
    if set(_FIGURE.findall(sentence)) - set(_FIGURE.findall(question)):
        return False
    others = [clause for clause in _CLAUSE.split(sentence) if clause and not says_no_answer(clause)]
    if len(others) == len(_CLAUSE.split(sentence)):  # the phrase itself goes over a comma
        return len(_added(sentence, question)) < 2 * _ADDED
    return not any(len(_added(clause, question)) >= _ADDED or _new_name(clause, question) for clause in others)


def adds_something(line: str, question: str, passages: Sequence[str]) -> bool:
    """Whether a heading, lead-in or question holds a figure, a name, or two words that neither question nor passages
    have."""
    line = _NUMBERED.sub("", line)
    if set(_FIGURE.findall(line)) - set(_FIGURE.findall(question)):
        return True
    known = "\n".join([question, *passages])
    offer = line.endswith(("?", "？")) and _OFFER.match(line)
    if ";" in line:  # a table's header: one word a column says nothing
        return any(len(_added(cell, known)) >= _ADDED for cell in line.split(";"))
    return bool(_new_name(line, known) or (not offer and len(_added(line, known)) >= _ADDED))


def _added(text: str, known: str) -> list[str]:
    return [term for term in missing_terms(content_terms(text), known) if term not in _ABOUT]


def _new_name(text: str, known: str) -> bool:
    there = Mentions(known)
    return any(not name.opens and not there.has(name) for name in names(text) if name.code or not text.istitle())
