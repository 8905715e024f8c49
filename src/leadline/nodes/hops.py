"""The second hop of a search: the names that the best passage gives, and the passages that those names lead to.

A question such as "Where was the director of Alpha born?" is answered by two passages, and the second shares no word
with the question: only the first names who it is about. Pure functions; knows names and ranks, and no store.
"""

from collections.abc import Mapping, Sequence

from leadline.analysis import Analyzer
from leadline.entities import fold
from leadline.nodes.passages import sentence_spans
from leadline.nodes.words import names_in, words_of
from leadline.state import Document, Leg, Pass, RAGState

# Enough for one beside the passage that the name is from.
WIDTH = 2
# A name more is a search more in every leg.
MAX_NAMES = 6
# Passages of a hop are scored twice.
MAX_PASSAGES = 3
# So many legs must have a passage first for a name to count as leading there.
AGREEING = 2
JOINT = "; "

_analyzer = Analyzer("english")
# Words of a question that ask what something is: a passage that tells it has no need of them.
_ASKING = frozenset(
    _analyzer.terms(
        """mean means meaning meant stand stands stood call called name named define defined defines definition refer
        refers known"""
    )
)


def next_hop(state: RAGState) -> Pass | None:
    """The hop that the best passage of the run's own documents offers, None where there is none to make.

    It is offered once a run, and only while the best passage leaves words of the question without a match: what says
    all that a question says needs no second passage.
    """
    context = state.get("context", [])
    if not context or state.get("route") != "search" or any("hops" in search for search in state.get("passes", [])):
        return None
    best = context[0]
    if best["metadata"].get("source_type") == "web" or not missing_terms(state["question"], best):
        return None
    names = bridge_names(state["question"], best)
    if not names:
        return None
    origin = str(best["metadata"]["chunk_id"])
    return Pass(query=JOINT.join(names), width=WIDTH, sources=["documents"], hops=names, hops_from=origin)


def missing_terms(question: str, passage: Document) -> set[str]:
    """The terms of the question that neither the passage nor its headings have; none that asks for a meaning."""
    return set(_analyzer.query_terms(question)) - _ASKING - set(_analyzer.terms(_whole(passage)))


def missing_words(question: str, passage: Document) -> list[str]:
    """The words of the question, as written, that hold such a term."""
    missing = missing_terms(question, passage)
    words = dict.fromkeys(words_of(question))
    return [word for word in words if not missing.isdisjoint(_analyzer.terms(word))]


def bridge_names(question: str, passage: Document) -> list[str]:
    """The names in a passage that neither the question nor the passage's headings have, at most MAX_NAMES.

    First those of the sentences that share most with the question.
    """
    metadata = passage["metadata"]
    known = {fold(word) for word in words_of(" ".join([question, *(metadata.get("headings") or [])]))}
    asked = set(_analyzer.query_terms(question))
    found: dict[str, int] = {}
    for _, _, sentence in sentence_spans(passage["content"], metadata.get("language", "en")):
        shared = len(asked.intersection(_analyzer.terms(sentence)))
        for name in names_in(sentence):
            if not {fold(word) for word in words_of(name)} <= known:
                found[name] = max(shared, found.get(name, 0))
    return sorted(found, key=lambda name: -found[name])[:MAX_NAMES]


def led_to(name: str, found: Mapping[Leg, Sequence[Document]], origin: str = "") -> list[tuple[Leg, Document]]:
    """The passage that a search for a name leads to, as each leg found it; empty where the legs don't agree on one.

    A name leads to the passage that AGREEING legs have first (all of them, where there are fewer) and that has the
    name: what merely resembles a name is not about it. The passage that the name is from, `origin`, doesn't count.
    """
    others = {leg: [d for d in documents if d["metadata"]["chunk_id"] != origin] for leg, documents in found.items()}
    first = {leg: documents[0] for leg, documents in others.items() if documents}
    places: dict[str, list[tuple[Leg, Document]]] = {}
    for leg, document in first.items():
        places.setdefault(str(document["metadata"]["chunk_id"]), []).append((leg, document))
    most = max(places.values(), key=len, default=[])
    if not most or len(most) < min(AGREEING, len(found)):
        return []
    return most if fold(name) in fold(_whole(most[0][1])) else []


def bridge(origin: Document, name: str) -> str:
    """The sentence of a passage that has the name, under the passage's headings: why a hop from it led there."""
    spans = sentence_spans(origin["content"], origin["metadata"].get("language", "en"))
    sentence = next((text for _, _, text in spans if name in text), origin["content"][:300])
    return ": ".join([*(origin["metadata"].get("headings") or []), sentence])


def _whole(passage: Document) -> str:
    return "\n".join([*(passage["metadata"].get("headings") or []), passage["content"]])
