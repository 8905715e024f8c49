"""What is said of each candidate of a run: who found it, how it was ranked, what became of it."""

from typing import Any

import pytest

from leadline.nodes.candidates import context_rows
from leadline.nodes.sightings import sightings
from leadline.ranking import apply_scores, fuse, unite

TEXTS = {name: f"The {name} gate closes at nine. It opens at six." for name in "abcdefg"}


@pytest.fixture
def found(passage: Any) -> Any:
    """A state in which these legs found these passages (leg → names, best first), pass after pass, scored by rank."""

    def make(*passes: dict[str, str], top: int = 3, scores: Any = None, texts: Any = TEXTS, **more: Any) -> Any:
        documents: Any = []
        seen: Any = []
        for number, legs in enumerate(passes, start=1):
            candidates = {
                leg: [passage(texts[name], name, leg=leg, rank=rank) for rank, name in enumerate(names)]
                for leg, names in legs.items()
            }
            seen += sightings(candidates, in_pass=number)
            documents = unite(documents, fuse(candidates)) if documents else fuse(candidates)
        ranked = apply_scores(documents, scores or [2.0 - place for place in range(len(documents))])
        return {"documents": ranked, "context": ranked[:top], "sightings": seen, "evidence": [], **more}

    return make


def blocks(state: Any, *shown: int, dropped: int = 0) -> list[dict[str, Any]]:
    """Evidence of the context in which these many sentences of each passage are shown."""
    return [
        {
            "n": n,
            "chunk_id": document["metadata"]["chunk_id"],
            "sentences": [(0, 5, "words")] * count,
            "dropped": dropped,
            "document": document,
        }
        for n, (document, count) in enumerate(zip(state["context"], shown, strict=True), start=1)
    ]


def of(rows: Any) -> dict[str, Any]:
    """The rows by chunk."""
    return {row["chunk_id"]: row for row in rows}


def cite(chunk_id: str, *, verified: bool = True) -> Any:
    """A citation of the chunk."""
    return {"chunk_id": chunk_id, "verified": verified}


def test_what_the_writer_saw_stands_first(found: Any) -> None:
    """Cited, not confirmed and not cited are told apart, each with its number; the others follow by rank."""
    state = found({"bm25": "abcde"})
    state["evidence"] = blocks(state, 2, 2, 2)
    rows = context_rows(state, [cite("a"), cite("b", verified=False)])
    assert [(row["chunk_id"], row["fate"], row["kept"], row["n"]) for row in rows] == [
        ("a", "cited", True, 1),
        ("b", "check_failed", True, 2),
        ("c", "not_cited", True, 3),
        ("d", "beyond_top", False, None),
        ("e", "beyond_top", False, None),
    ]
    assert "ranked 4 of 5: only the best 3" in rows[3]["why"]
    assert "below zero (-1.00)" in rows[3]["why"]


def test_what_had_no_room_comes_behind_what_had(found: Any) -> None:
    """A passage of which no sentence fits isn't kept; one that is cut says how much of it was shown."""
    state = found({"bm25": "abc"})
    state["evidence"] = blocks(state, 0, 1, 2, dropped=1)
    rows = context_rows(state, [])
    assert [row["chunk_id"] for row in rows] == ["b", "c", "a"]
    assert of(rows)["a"]["fate"] == "no_room"
    assert of(rows)["b"]["sentences"] == {"shown": 1, "no_room": 1, "orders": 0}
    assert "1 of its 2 sentences are shown: 1 had no room" in of(rows)["b"]["why"]


def test_orders_to_a_model_are_told_from_lack_of_room(found: Any) -> None:
    """A passage of nothing else is withheld as such; of one that has some it is said how many they were."""
    state = found({"bm25": "abc"})
    state["evidence"] = blocks(state, 0, 1, 2, dropped=2)
    state["evidence"][0]["orders"], state["evidence"][1]["orders"] = 2, 1
    rows = of(context_rows(state, []))
    assert rows["a"]["fate"] == "orders"
    assert "1 gave orders to a model, 1 had no room" in rows["b"]["why"]


def test_a_sentence_that_was_left_out_of_the_draft_is_remembered(found: Any) -> None:
    """The answer cites the passage no more; that its sentence failed the check is still what lost it."""
    state = found({"bm25": "abc"}, answer="It opens at six [1]. It closes at ten [2].")
    state["evidence"] = blocks(state, 2, 2, 2)
    rows = of(context_rows(state, [cite("a")]))
    assert [rows[name]["fate"] for name in "abc"] == ["cited", "check_failed", "not_cited"]
    assert "the draft cited it as [2]" in rows["b"]["why"]


def test_each_leg_is_named_with_its_best_rank_and_the_pass_of_it(found: Any) -> None:
    """Found at 3 in the first pass and at 1 in the second: rank 0 in pass 2. Only one pass had the other leg."""
    state = found({"bm25": "bca", "vector": "a"}, {"bm25": "ab"})
    row = of(context_rows(state, []))["a"]
    assert row["found_by"] == {
        "bm25": {"rank": 0, "score": 1.0, "in_pass": 2},
        "vector": {"rank": 0, "score": 1.0, "in_pass": 1},
    }


def test_ranks_before_and_after_the_reranker_are_both_there(found: Any) -> None:
    """The reranker turned the fused order round."""
    rows = of(context_rows(found({"bm25": "abc"}, scores=[-9.0, 0.5, 9.0]), []))
    assert {name: (row["fused_rank"], row["rank"]) for name, row in rows.items()} == {
        "a": (0, 2),
        "b": (1, 1),
        "c": (2, 0),
    }
    assert rows["c"]["rerank_score"] == 9.0


def test_equal_texts_name_the_one_that_stands_for_them(found: Any) -> None:
    """The twin has a row of its own, at the end, with the leg that found it."""
    state = found({"bm25": "ab", "vector": "c"}, texts={**TEXTS, "c": TEXTS["a"]})
    rows = context_rows(state, [])
    kept, twin = of(rows)["a"], rows[-1]
    assert (twin["chunk_id"], twin["fate"], twin["same_as"]) == ("c", "same_text", "a")
    assert set(twin["found_by"]) == {"vector"}
    assert "a.md" in twin["why"]
    assert twin["content_hash"] == kept["content_hash"] != of(rows)["b"]["content_hash"]
    assert set(kept["found_by"]) == {"bm25", "vector"}


def test_what_was_cut_when_legs_were_joined_is_not_forgotten(found: Any) -> None:
    """A candidate that a leg found and that isn't among the documents has a row too."""
    state = found({"bm25": "abc"})
    state["documents"] = [d for d in state["documents"] if d["metadata"]["chunk_id"] != "c"]
    row = context_rows(state, [])[-1]
    assert (row["chunk_id"], row["fate"], row["rank"]) == ("c", "fusion", None)
    assert row["found_by"]["bm25"]["rank"] == 2


def test_nothing_above_zero_is_the_reason_where_that_was_it(found: Any) -> None:
    """Written from or not: with every passage below zero and nothing cited, that is what lost them."""
    state = found({"bm25": "abcd"}, scores=[-1.0, -2.0, -3.0, -4.0])
    assert [row["fate"] for row in context_rows(state, [])] == ["below_zero"] * 3 + ["beyond_top"]
    state["evidence"] = blocks(state, 2, 2, 2)
    rows = context_rows(state, [])
    assert [row["fate"] for row in rows] == ["below_zero"] * 3 + ["beyond_top"]
    assert "(-1.00)" in rows[0]["why"]
    assert rows[0]["kept"]
    assert context_rows(state, [cite("a")])[1]["fate"] == "not_cited"


def test_without_a_reranker_nothing_is_said_of_zero(found: Any) -> None:
    """Not scored is neither above nor below."""
    state = found({"bm25": "abcd"}, scores=[float("nan")] * 4)
    rows = context_rows(state, [])
    assert [row["fate"] for row in rows] == ["not_written"] * 3 + ["beyond_top"]
    assert not any("zero" in row["why"] for row in rows)


def test_rows_hold_no_text(found: Any) -> None:
    """Names, ranks and hashes only."""
    state = found({"bm25": "abc"})
    state["evidence"] = blocks(state, 1, 1, 1)
    assert "closes" not in repr(context_rows(state, []))


def test_every_candidate_has_exactly_one_row(found: Any) -> None:
    """Whatever legs and passes found, in any overlap."""
    state = found({"bm25": "abcd", "graph": "dce"}, {"vector": "gfa"}, texts={**TEXTS, "e": TEXTS["b"]})
    rows = context_rows(state, [])
    assert sorted(row["chunk_id"] for row in rows) == list("abcdefg")


def test_what_a_name_led_to_says_so(found: Any) -> None:
    """The name is told beside what became of the passage."""
    state = found({"bm25": "ab"})
    state["documents"][1]["metadata"]["led_by"] = {"name": "Dana Fox", "chunk_id": "a"}
    rows = of(context_rows(state, []))
    assert (rows["a"]["led_by"], rows["b"]["led_by"]) == (None, "Dana Fox")
    assert "the name Dana Fox in another passage led to it" in rows["b"]["why"]


def test_nothing_found_is_no_row() -> None:
    """Of a greeting, too."""
    assert context_rows({}, []) == []
