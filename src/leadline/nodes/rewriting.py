"""Rewrites of questions by rule: a follow-up made to stand alone, and a search query for another try.

Pure functions. Knows pronouns and filler words of a few languages; in others a question stays as it is and only the
width of a search changes.
"""

import re
from collections.abc import Iterable, Sequence

from leadline.entities import extract_entities
from leadline.state import Document


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PRONOUNS = _words(
    """it its it's he him his she her hers they them their theirs this that these those there then one ones former
    latter er ihm ihn sein seine sie ihr ihre es dies dieser diese dieses davon dort él ella ellos ellas su sus esto
    eso ese esa il elle ils elles leur leurs son sa ses cela ce cette ça y"""
)
_FILLERS = _words(
    """a an the and or but so of to in on at by for with from as is are was were be been being am do does did have has
    had can could will would shall should may might must i me my you your we our us please tell show give explain
    describe know want need like what which who whom whose when where why how about there it its this that these those
    any some der die das und oder ein eine einen ist sind war waren bitte was welche welcher wer wann wo warum wie el
    la los las un una y o es son fue por favor qué cuál quién cuándo dónde cómo le les et ou est sont était quel
    quelle qui quand où pourquoi comment"""
)
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_FRAGMENT = re.compile(r"^(?:and|or|but|so|what about|how about|und|oder|y|o|et|ou)\b[\s,]*", re.IGNORECASE)
# A follow-up of so few words says too little to be searched for alone.
_SHORT = 2


def words_of(text: str) -> list[str]:
    """The words as written, without the punctuation around them."""
    return [word for raw in text.split() if (word := raw.strip(".,;:!?\"'()[]{}¿¡«»“”„‘’…"))]


def standalone_by_rule(question: str, previous: str | None) -> str:
    """A follow-up with what it leaves out taken from the previous question; other questions as they are.

    "And Globex?" puts its name in the place of the one name of the previous question. A pronoun or a question of very
    few words borrows the previous question's names, or its content words where it has none.
    """
    if not previous or _UNSPACED.search(question):
        return question
    own, theirs = names_in(question), names_in(previous)
    if _FRAGMENT.match(question) and len(own) == 1 and len(theirs) == 1:
        return previous.replace(theirs[0], own[0])
    if own or not _leans_on_something(question):
        return question
    said = {word.lower() for word in words_of(question)}
    borrowed = [word for word in theirs or content_words(previous) if word.lower() not in said]
    return f"{question.rstrip()} ({', '.join(borrowed)})" if borrowed else question


def _leans_on_something(question: str) -> bool:
    words = [word.lower() for word in words_of(question)]
    return any(word in _PRONOUNS for word in words) or len(content_words(question)) < _SHORT


def names_in(text: str) -> list[str]:
    """The entity names of a text, each once, in its own spelling; words of longer names not again alone."""
    return [mention.name for mention in extract_entities(text).values() if not mention.part]


def content_words(text: str) -> list[str]:
    """The words that a search can use, each once."""
    return list(dict.fromkeys(word for word in words_of(text) if word.lower() not in _FILLERS))


def query_by_rule(question: str, passages: Sequence[Document], attempt: int) -> str:
    """The query of retry number `attempt` (from 1): the question's content words and names from the best passages.

    More names with each attempt. Only for searching the documents: it holds words of theirs, so it never goes out.
    """
    kept = [question] if _UNSPACED.search(question) else content_words(question) or [question]
    known = {word.lower() for word in words_of(question)}
    found = (name for document in passages[:attempt] for name in names_in(document["content"]))
    return " ".join([*kept, *_first_new(found, known, 2 * attempt)])


def _first_new(names: Iterable[str], known: set[str], limit: int) -> list[str]:
    new: list[str] = []
    for name in names:
        if len(new) == limit:
            break
        if name.lower() not in known and not set(name.lower().split()) <= known:
            known.add(name.lower())
            new.append(name)
    return new
