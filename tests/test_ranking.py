"""Fusion, merging over passes, and the sign of the evidence."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.ranking import apply_scores, evidence_sign, fuse, unite
from leadline.state import Document

TINIEST = math.ulp(0.0)


def doc(
    chunk_id: str, text: str | None = None, *, score: float = 0.0, rerank: float = 0.0, **metadata: Any
) -> Document:
    """A document of which only what matters here is set."""
    return {
        "content": chunk_id if text is None else text,
        "metadata": {"chunk_id": chunk_id, "source_type": "file", **metadata},
        "score": score,
        "source": "",
        "rerank_score": rerank,
    }


def ids(documents: list[Document]) -> list[str]:
    """The chunk ids in order."""
    return [d["metadata"]["chunk_id"] for d in documents]


def test_agreement_of_legs_outranks_a_single_leg_at_the_same_rank() -> None:
    """A chunk that all legs find stands once, with all their names, above one found by a single leg at that rank."""
    fused = fuse({"vector": [doc("x"), doc("a")], "bm25": [doc("y"), doc("a")], "graph": [doc("z"), doc("a")]})
    assert ids(fused) == ["a", "x", "y", "z"]
    assert set(fused[0]["metadata"]["found_by"]) == {"vector", "bm25", "graph"}


def test_raw_scores_never_decide() -> None:
    """A BM25 sum of 7.4 doesn't beat a cosine of 0.9 by being the larger number."""
    low = fuse({"vector": [doc("a", score=0.9)], "bm25": [doc("b", score=7.4)]})
    high = fuse({"vector": [doc("a", score=900.0)], "bm25": [doc("b", score=7.4)]})
    assert ids(low) == ids(high) == ["a", "b"]


def test_source_and_score_are_those_of_the_leg_with_the_best_rank() -> None:
    """Attribution goes to the leg that ranked the chunk best, with that leg's own score."""
    fused = fuse({"bm25": [doc("x"), doc("a", score=7.4)], "vector": [doc("a", score=0.9)]})
    best = next(d for d in fused if d["metadata"]["chunk_id"] == "a")
    assert (best["source"], best["score"], best["rerank_score"]) == ("vector", 0.9, 0.0)


def test_stored_ranks_win_over_places_in_the_list() -> None:
    """A leg's list that was filtered after the search keeps the ranks the store gave."""
    late = doc("a", found_by={"vector": {"rank": 7, "score": 0.2}})
    fused = fuse({"vector": [late], "bm25": [doc("b")]})
    assert ids(fused) == ["b", "a"]
    assert fused[1]["metadata"]["found_by"] == {"vector": {"rank": 7, "score": 0.2}}


def test_equal_texts_keep_one_text_and_every_place() -> None:
    """The same text in two files is one document that names both."""
    first = doc("a", "Pay the\nfee.", file_name="one.md", doc_id="d1", page=1, start_char=0, end_char=12)
    second = doc("b", "Pay  the fee.", file_name="two.md", doc_id="d2", page=None, start_char=5, end_char=18)
    fused = fuse({"vector": [first, second], "bm25": [second]})
    assert len(fused) == 1
    assert fused[0]["metadata"]["chunk_id"] == "b"
    assert fused[0]["metadata"]["also_in"] == [
        {"chunk_id": "a", "doc_id": "d1", "file_name": "one.md", "page": 1, "start_char": 0, "end_char": 12}
    ]
    assert fused[0]["metadata"]["found_by"]["vector"]["rank"] == 0


def test_a_web_page_never_takes_the_place_of_a_document() -> None:
    """The same words from the web and from a file stay two documents."""
    fused = fuse({"vector": [doc("a", "Same.")], "web": [doc("w", "Same.", source_type="web")]})
    assert ids(fused) == ["a", "w"]


def test_nothing_given_is_changed() -> None:
    """Fusing writes into new documents only."""
    given_doc = doc("a", found_by={"vector": {"rank": 3, "score": 1.0}})
    fuse({"vector": [given_doc], "bm25": [doc("a")]})
    assert given_doc["metadata"]["found_by"] == {"vector": {"rank": 3, "score": 1.0}}


def test_later_passes_add_and_keep_the_best_rank_of_each_leg() -> None:
    """Evidence of an earlier pass stays; each leg's best rank over the passes counts."""
    earlier = fuse({"vector": [doc("a"), doc("b")]})
    later = fuse({"vector": [doc("b"), doc("c")], "bm25": [doc("c")]})
    united = unite(apply_scores(earlier, [1.0, 2.0]), later)
    assert ids(united) == ["c", "a", "b"]
    assert united[2]["metadata"]["found_by"]["vector"]["rank"] == 0
    assert all(d["rerank_score"] == 0.0 for d in united)


def test_a_single_pass_united_with_nothing_stays_as_it_is() -> None:
    """Uniting with an empty pass, on either side, changes nothing."""
    fused = fuse({"vector": [doc("a", "same"), doc("b", "same"), doc("c")], "bm25": [doc("c")]})
    assert unite(fused, []) == unite([], fused) == fused


@pytest.mark.parametrize(
    ("scores", "sign"),
    [
        ([], "nothing"),
        ([0.0], "unranked"),
        ([0.0, math.nan, math.inf, -math.inf], "unranked"),
        ([-3.0, 0.0], "irrelevant"),
        ([-3.0, math.inf], "irrelevant"),
        ([-TINIEST], "irrelevant"),
        ([TINIEST, -9.0], "relevant"),
        ([-9.0, 2.0, 0.0], "relevant"),
    ],
)
def test_the_sign_of_the_evidence(scores: list[float], sign: str) -> None:
    """Unscored documents neither hide irrelevance nor count as relevance."""
    assert evidence_sign([doc(str(n), rerank=score) for n, score in enumerate(scores)]) == sign


def test_a_partial_ranking_is_refused() -> None:
    """Scores for some of the documents only are an error, not zeros."""
    with pytest.raises(ValueError, match="10 documents, but 3 scores"):
        apply_scores([doc(str(n)) for n in range(10)], [1.0, 2.0, 3.0])


def test_scores_sort_and_unscored_ones_come_last_in_fused_order() -> None:
    """Below the negative ones stand the unscored, as fusion left them."""
    ranked = apply_scores([doc("a"), doc("b"), doc("c"), doc("d")], [math.nan, -2.0, math.inf, 1.0])
    assert ids(ranked) == ["d", "b", "a", "c"]
    assert [d["rerank_score"] for d in ranked[2:]] == [0.0, 0.0]


def test_the_fused_order_counts_beside_the_logits() -> None:
    """A passage that fusion puts first stays before one that it puts fourth for a logit that is a little lower, and
    gives way to one that is much higher; the logits themselves are left as they are."""
    near = apply_scores([doc("a"), doc("b"), doc("c"), doc("d")], [1.0, -5.0, -5.0, 2.0])
    assert (ids(near)[0], near[0]["rerank_score"]) == ("a", 1.0)
    far = apply_scores([doc("a"), doc("b"), doc("c"), doc("d")], [1.0, -5.0, -5.0, 3.0])
    assert (ids(far)[0], far[0]["rerank_score"]) == ("d", 3.0)


def test_a_passage_that_another_led_to_comes_right_after_it_at_the_best() -> None:
    """The logit read together lifts a passage as far as that one, and no farther; its own logit stays and may win."""
    found = [doc("a"), doc("b"), doc("c"), doc("d")]
    lifted = apply_scores(found, [2.0, 1.0, 0.0, -5.0], led={"d": ("a", 9.0)})
    assert ids(lifted) == ["a", "d", "b", "c"]
    assert lifted[1]["rerank_score"] == -5.0
    assert ids(apply_scores(found, [2.0, 1.0, 0.0, -5.0], led={"d": ("a", -9.0)})) == ["a", "b", "c", "d"]
    assert ids(apply_scores(found, [2.0, 1.0, 0.0, 9.0], led={"d": ("a", 9.0)}))[0] == "d"
    for broken in ({"d": ("gone", 9.0)}, {"gone": ("a", 9.0)}, {"d": ("a", math.nan)}):
        assert ids(apply_scores(found, [2.0, 1.0, 0.0, -5.0], led=broken)) == ["a", "b", "c", "d"]


def test_an_exact_zero_is_nudged_to_its_sign() -> None:
    """A logit of 0.0 is a score: it becomes the smallest float of its sign."""
    ranked = apply_scores([doc("a"), doc("b")], [0.0, -0.0])
    assert [(d["metadata"]["chunk_id"], d["rerank_score"]) for d in ranked] == [("a", TINIEST), ("b", -TINIEST)]
    assert evidence_sign(ranked[1:]) == "irrelevant"


LEGS = st.dictionaries(
    st.sampled_from(["vector", "bm25", "graph", "web"]),
    st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True).map(lambda found: [doc(c) for c in found]),
)


@given(LEGS)
def test_fusion_is_a_union_ordered_by_reciprocal_ranks(legs: dict[str, list[Document]]) -> None:
    """Every chunk once, ordered by the sum of weight / (61 + rank), whatever the order of the legs."""
    fused = fuse(legs)
    expected = {c for found in legs.values() for c in ids(found)}
    assert sorted(ids(fused)) == sorted(expected)
    counts = {"vector": 1.0, "bm25": 1.0, "graph": 0.3, "web": 1.0}
    weight = {
        c: math.fsum(counts[leg] / (61 + ids(f).index(c)) for leg, f in legs.items() if c in ids(f)) for c in expected
    }
    assert ids(fused) == sorted(expected, key=lambda c: (-weight[c], c))
    assert fuse(dict(reversed(legs.items()))) == fused


@given(LEGS, LEGS)
def test_uniting_loses_nothing_and_repeats_nothing(
    first: dict[str, list[Document]], second: dict[str, list[Document]]
) -> None:
    """The union of two passes holds each chunk of either once, and uniting again changes nothing."""
    earlier, later = fuse(first), fuse(second)
    united = unite(earlier, later)
    assert sorted(ids(united)) == sorted({*ids(earlier), *ids(later)})
    assert unite(united, later) == united


@given(st.lists(st.floats(), max_size=12))
def test_applied_scores_are_a_permutation_in_order(scores: list[float]) -> None:
    """No document is lost, every score is finite, and no scored one stands behind another that has a higher logit and
    stood before it."""
    ranked = apply_scores([doc(str(n)) for n in range(len(scores))], scores)
    assert sorted(ids(ranked), key=int) == [str(n) for n in range(len(scores))]
    kept = [d["rerank_score"] for d in ranked]
    assert all(math.isfinite(s) for s in kept)
    scored = [(int(name), s) for name, s in zip(ids(ranked), kept, strict=True) if s != 0.0]
    for first, second in itertools.combinations(scored, 2):
        assert first[0] < second[0] or first[1] >= second[1]
    assert len(scored) == sum(math.isfinite(s) for s in scores)
