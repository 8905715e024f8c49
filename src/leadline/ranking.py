"""Reciprocal rank fusion, merging of what several legs and passes found, and the sign test of the evidence.

Pure functions over Documents. Knows ranks and reranker logits; never compares the scores of two legs. Nothing given
is changed: merged documents are new ones.
"""

import math
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from leadline.records import Document, Evidence, Found, Leg

RRF_K = 60
# How much a leg's rank counts; a leg not named here counts 1. The entity graph finds what shares names with the
# question, which adds passages the others miss but says little of their order: docs/decisions.md has the figures.
LEG_WEIGHTS: Mapping[Leg, float] = {"graph": 0.3}
# How much the fused order counts beside the reranker's logits: docs/decisions.md has the figures.
RANK_PRIOR = 1.0
_PLACE = ("chunk_id", "doc_id", "file_name", "page", "start_char", "end_char")


def fuse(legs: Mapping[Leg, Sequence[Document]], *, k: int = RRF_K) -> list[Document]:
    """Joins the legs' lists into one, best first: by the sum of weight / (k + rank), rank from 1.

    The method is that of Cormack, Clarke and Büttcher (2009), with the weights of LEG_WEIGHTS.
    A document's rank in a leg is the stored 0-based one (`metadata["found_by"][leg]["rank"]`), its place in the list
    where none is stored. One document a chunk id; of equal texts (NFC, white space folded) one stays and lists the
    others' places in `metadata["also_in"]`. `source` and `score` are those of the leg with the best rank;
    `rerank_score` is 0.0. Ties go by chunk id.
    """
    return _merge(
        (_seen_by(document, leg, place) for leg, documents in legs.items() for place, document in enumerate(documents)),
        k,
    )


def unite(earlier: Sequence[Document], later: Sequence[Document], *, k: int = RRF_K) -> list[Document]:
    """Joins the fused lists of two passes: union by chunk id, each leg's best rank over the passes, then fusion again.

    Scores of the reranker are dropped (0.0): they were given against another pass's query and are to be given anew.
    """
    return _merge((*earlier, *later), k)


def evidence_sign(documents: Sequence[Document]) -> Evidence:
    """What the reranker's signs say of the documents as a whole.

    `relevant`: one is above zero; `irrelevant`: all scored ones are below; `unranked`: none is scored (0.0, NaN and
    infinity are no score); `nothing`: no document.
    """
    if not documents:
        return "nothing"
    scored = [d["rerank_score"] for d in documents if is_scored(d["rerank_score"])]
    if not scored:
        return "unranked"
    return "relevant" if max(scored) > 0 else "irrelevant"


def is_scored(rerank_score: float) -> bool:
    """Whether a `rerank_score` is a logit: 0.0, NaN and infinity are not."""
    return math.isfinite(rerank_score) and rerank_score != 0.0


def apply_scores(
    documents: Sequence[Document], scores: Sequence[float], *, led: Mapping[str, tuple[str, float]] | None = None
) -> list[Document]:
    """The documents with their logits, best first; unscored ones last, in the order given.

    Best is by logit and by the place in the order given, which is that of fusion: each doubling of the place counts as
    much as RANK_PRIOR · ln 2 of logit. Both are evidence of relevance, and together they rank better than either.
    `led`: chunk id → the chunk that led to it, and a logit that orders in the place of its own, which is kept: at most
    right after the chunk that led there, since much of that logit is owed to it.
    All or nothing: ValueError if there isn't one score a document. A score that isn't finite becomes 0.0 (not scored);
    an exact zero becomes the smallest float of its sign.
    """
    if len(scores) != len(documents):
        raise ValueError(f"{len(documents)} documents, but {len(scores)} scores: a partial ranking is no ranking.")
    scored = [_with_score(document, float(score)) for document, score in zip(documents, scores, strict=True)]

    keys = [_order_by(place, document["rerank_score"]) for place, document in enumerate(scored)]
    if led:
        places = {_chunk_id(document): place for place, document in enumerate(scored)}
        for chunk_id, (origin, logit) in led.items():
            if chunk_id in places and origin in places and is_scored(logit):
                place = places[chunk_id]
                behind = math.nextafter(keys[places[origin]], math.inf)
                keys[place] = min(keys[place], max(_order_by(place, logit), behind))
    return [scored[place] for place in sorted(range(len(scored)), key=keys.__getitem__)]


def _order_by(place: int, logit: float) -> float:
    return RANK_PRIOR * math.log1p(place) - logit if is_scored(logit) else math.inf


def _with_score(document: Document, score: float) -> Document:
    if not math.isfinite(score):
        score = 0.0
    elif score == 0.0:
        score = math.copysign(math.ulp(0.0), score)
    return {**document, "rerank_score": score}


def _seen_by(document: Document, leg: Leg, place: int) -> Document:
    """The document as this leg alone found it."""
    stored: Mapping[Leg, Found] = document["metadata"].get("found_by", {})
    found = stored.get(leg, Found(rank=place, score=document["score"]))
    return {**document, "metadata": {**document["metadata"], "found_by": {leg: found}}}


def _merge(documents: Iterable[Document], k: int) -> list[Document]:
    by_chunk = [_one_of(same) for same in _grouped(documents, _chunk_id)]
    by_chunk.sort(key=lambda d: _order(d, k))
    by_text = [_one_of(same) for same in _of_equal_text(by_chunk)]
    return sorted(by_text, key=lambda d: _order(d, k))


def _grouped(documents: Iterable[Document], key: Callable[[Document], Hashable]) -> Iterable[list[Document]]:
    groups: dict[Hashable, list[Document]] = {}
    for document in documents:
        groups.setdefault(key(document), []).append(document)
    return groups.values()


def _of_equal_text(documents: Iterable[Document]) -> Iterable[list[Document]]:
    """Whole texts are looked at only where the first words are the same."""
    for alike in _grouped(documents, _first_words):
        yield from [alike] if len(alike) == 1 else _grouped(alike, _text_key)


def _first_words(document: Document) -> Hashable:
    return tuple(unicodedata.normalize("NFC", word) for word in document["content"].split(None, 3)[:3])


def _chunk_id(document: Document) -> str:
    return str(document["metadata"]["chunk_id"])


def _text_key(document: Document) -> Hashable:
    text = " ".join(unicodedata.normalize("NFC", document["content"]).split())
    # A page of the web never passes for one of the user's documents, nor one empty text for another.
    return (document["metadata"].get("source_type"), text) if text else _chunk_id(document)


def _order(document: Document, k: int) -> tuple[float, str]:
    found: Mapping[Leg, Found] = document["metadata"].get("found_by", {})
    # fsum: the sum doesn't depend on the order of the legs, so equal ranks make equal sums.
    gains = (LEG_WEIGHTS.get(leg, 1.0) / (k + 1 + seen["rank"]) for leg, seen in found.items())
    return -math.fsum(gains), _chunk_id(document)


def _one_of(same: Sequence[Document]) -> Document:
    """The first of the documents, with what the legs said of any of them and the places of all."""
    first = same[0]
    found = _best_found(same)
    metadata: dict[str, Any] = {**first["metadata"], "found_by": found}
    if others := _other_places(same):
        metadata["also_in"] = others
    source, score = first["source"], first["score"]
    if found:
        source = min(found, key=lambda leg: (found[leg]["rank"], leg))
        score = found[source]["score"]
    return {"content": first["content"], "metadata": metadata, "score": score, "source": source, "rerank_score": 0.0}


def _best_found(same: Sequence[Document]) -> dict[Leg, Found]:
    best: dict[Leg, Found] = {}
    for document in same:
        for leg, seen in document["metadata"].get("found_by", {}).items():
            if leg not in best or seen["rank"] < best[leg]["rank"]:
                best[leg] = seen
    return dict(sorted(best.items()))


def _other_places(same: Sequence[Document]) -> list[dict[str, Any]]:
    if len(same) == 1 and "also_in" not in same[0]["metadata"]:
        return []  # nearly all
    places: dict[str, dict[str, Any]] = {}
    for document in same:
        metadata = document["metadata"]
        for place in ({key: metadata.get(key) for key in _PLACE}, *metadata.get("also_in", ())):
            places.setdefault(str(place["chunk_id"]), place)
    places.pop(_chunk_id(same[0]), None)
    return [places[chunk_id] for chunk_id in sorted(places)]
