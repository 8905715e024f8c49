"""A search query for another try, by rule: other words for a question whose passages didn't answer it.

Pure functions. Knows filler words of a few languages; in others a query stays as it is and only its width changes.
"""

from collections.abc import Iterable, Sequence

from leadline.nodes.words import UNSPACED, content_words, names_in, words_of
from leadline.state import Document


def query_by_rule(question: str, passages: Sequence[Document], attempt: int) -> str:
    """The query of retry number `attempt` (from 1): the question's content words and names from the best passages.

    More names with each attempt. Only for searching the documents: it holds words of theirs, so it never goes out.
    """
    kept = [question] if UNSPACED.search(question) else content_words(question) or [question]
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
