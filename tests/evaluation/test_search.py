"""The rankings that are made of what the legs found."""

from leadline.evaluation.search import Found
from leadline.ranking import apply_scores, fuse
from leadline.records import Document


def chunk(name: str, leg: str) -> Document:
    """A chunk as a leg finds it, with its name as its text."""
    return Document(content=name, metadata={"chunk_id": name, "doc_id": name}, score=1.0, source=leg, rerank_score=0.0)


def found(logits: list[float]) -> dict[str, str]:
    """Ranking → the names of its chunks. Two legs find a, b, c, d and b, a, c, d; the first few fused are scored."""
    legs = {leg: [chunk(name, leg) for name in order] for leg, order in (("vector", "abcd"), ("bm25", "bacd"))}
    fused = fuse(legs)
    rankings = Found(legs, fused, apply_scores(fused[: len(logits)], logits)).rankings()
    return {leg: "".join(document["content"] for document in documents) for leg, documents in rankings.items()}


def test_the_scored_head_comes_before_the_rest() -> None:
    """What wasn't scored stays in fused order behind what was, even behind what scored badly."""
    orders = found([-1.0, 2.0])
    assert (orders["vector"], orders["bm25"], orders["fused"]) == ("abcd", "bacd", "abcd")
    assert orders["reranked"] == "bacd"


def test_blending_gives_the_reranker_one_vote_among_others() -> None:
    """It settles what the legs leave open, and can't lift what both have third to the top."""
    orders = found([-1.0, 1.0, 2.0])
    assert orders["reranked"] == "cbad"
    assert orders["blended"] == "bacd"


def test_without_scores_every_order_is_the_fused_one() -> None:
    """A head of nothing changes nothing."""
    orders = found([])
    assert orders["fused"] == orders["reranked"] == orders["blended"] == "abcd"
