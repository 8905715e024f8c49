"""What people are told of a passage that was not used: why no leg had it, and what would change that. Pure."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from leadline.records import ContextRow

if TYPE_CHECKING:
    from leadline.graph.deeper import DeepRank

MAX_TOP_K = 200
MAX_RERANK_TOP_K = 50

# Why a leg that has no more hits doesn't have a passage among them.
NOT_AT_ALL = {
    "bm25": "shares no word with the query",
    "graph": "shares no name with the query",
    "vector": "not in the index",
}
HINTS = {
    "not_in_catalog": "`leadline ls` lists the documents; `leadline ingest PATH` puts one in.",
    "other_collection": "Ask there: --collection {collection}.",
    "not_ready": "Wait for its ingest to end, or ingest it again; `leadline verify` shows what is unfinished.",
    "filtered_out": "The filter is that of the settings (LEADLINE_RUN__FILTERS).",
    "no_room": "More tokens for the evidence: LEADLINE_RUN__MAX_CONTEXT_TOKENS.",
    "below_zero": "If it does hold the answer, `leadline calibrate DIR` moves the reranker's zero.",
    "same_text": "Nothing is lost: the other passage says the same.",
    "check_failed": "`leadline ask --trace` shows the check.",
}


def reason(deep: Sequence["DeepRank"], legs: Collection[str], degraded: Collection[str]) -> str:
    """Why no leg found a passage, and at which rank each would have it."""
    width = max((each.width for each in deep), default=0)
    told = [_of_leg(leg, [each for each in deep if each.leg == leg], leg in degraded) for leg in legs]
    return f"no leg has it among its best {width}: {', '.join(told)}"


def _of_leg(leg: str, deep: Sequence["DeepRank"], failed: bool) -> str:
    ranks = [each for each in deep if each.rank is not None]
    if ranks:
        best = min(ranks, key=lambda each: each.rank or 0)
        searches = len({each.in_pass for each in deep})
        where = f" in search {best.in_pass}" if searches > 1 else ""
        text = f"{leg} has it at {(best.rank or 0) + 1}{where}"
    elif deep and all(each.exhausted for each in deep):
        text = f"{leg} {NOT_AT_ALL.get(leg, 'does not have it')}"
    elif deep:
        text = f"{leg} not among {max(each.searched for each in deep)}"
    else:
        text = f"{leg} could not be asked"
    return f"{text} (it failed in the run)" if failed else text


def advice(
    row: ContextRow | None,
    stage: str,
    deep: Sequence["DeepRank"],
    logit: float | None,
    *,
    collection: str = "",
) -> str:
    """What would change it; empty where nothing is to be done."""
    if stage == "beyond_top" and row is not None and row["rank"] is not None:
        return _beyond_top(row["rank"] + 1, row["rerank_score"])
    if stage == "not_found":
        return _not_found(deep, logit)
    return HINTS.get(stage, "").format(collection=collection)


def _beyond_top(place: int, logit: float) -> str:
    if place > MAX_RERANK_TOP_K:
        return ""
    worth = ", though the reranker judges that it doesn't hold the answer" if logit < 0 else ""
    return f"LEADLINE_RUN__RERANK_TOP_K={place} would give it to the writer{worth}."


def _not_found(deep: Sequence["DeepRank"], logit: float | None) -> str:
    needed = min((each.rank + 1 for each in deep if each.rank is not None), default=MAX_TOP_K + 1)
    if any(each.leg == "vector" and each.exhausted and each.rank is None for each in deep):
        return "It isn't in the vector index: `leadline verify --repair` brings the indexes in step."
    judged = ""
    if logit is not None:
        judged = f"The reranker would give it {logit:+.2f}: " + (
            "above zero, it may hold the answer." if logit > 0 else "below zero, it doesn't seem to hold the answer."
        )
    wider = f"LEADLINE_RUN__TOP_K={needed} would find it." if needed <= MAX_TOP_K else ""
    return " ".join(part for part in (wider, judged) if part)
