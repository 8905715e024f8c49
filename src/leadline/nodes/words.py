"""Words of a question or passage: as written, those that a search can use, and its names. Pure functions."""

import re

from leadline.entities import extract_entities

UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
FILLERS = frozenset(
    """a an the and or but so of to in on at by for with from as is are was were be been being am do does did have has
    had can could will would shall should may might must i me my you your we our us please tell show give explain
    describe know want need like what which who whom whose when where why how about there it its this that these those
    any some der die das und oder ein eine einen ist sind war waren bitte was welche welcher wer wann wo warum wie el
    la los las un una y o es son fue por favor qué cuál quién cuándo dónde cómo le les et ou est sont était quel
    quelle qui quand où pourquoi comment""".split()
)


def words_of(text: str) -> list[str]:
    """The words as written, without the punctuation around them."""
    return [word for raw in text.split() if (word := raw.strip(".,;:!?\"'()[]{}¿¡«»“”„‘’…"))]


def names_in(text: str) -> list[str]:
    """The entity names of a text, each once, in its own spelling; words of longer names not again alone."""
    return [mention.name for mention in extract_entities(text).values() if not mention.part]


def content_words(text: str) -> list[str]:
    """The words that a search can use, each once."""
    return list(dict.fromkeys(word for word in words_of(text) if word.lower() not in FILLERS))
