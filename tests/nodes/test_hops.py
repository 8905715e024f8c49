"""The second hop: which names are followed, where they lead, and when no hop is made."""

from typing import Any

import pytest

from leadline.nodes.hops import MAX_NAMES, WIDTH, bridge, bridge_names, led_to, missing_terms, missing_words, next_hop

QUESTION = "Where was the director of Alpha Station born?"
FIRST = "Alpha Station is a film of 1994. It was directed by Dana Fox in Riga. The music is by Otto Lind."


@pytest.fixture
def run(passage: Any) -> Any:
    """A run after its first pass, the best passage on top."""
    best = {**passage(FIRST, "a", headings=["Alpha Station"]), "rerank_score": 1.0}
    search = {"query": QUESTION, "width": 10, "sources": ["documents"]}
    return {"question": QUESTION, "route": "search", "passes": [search], "context": [best], "documents": [best]}


def test_a_hop_follows_the_names_that_the_question_has_not(run: Any) -> None:
    """Those nearest to the question's words come first; the passage's own subject is not looked up again."""
    hop = next_hop(run)
    assert hop is not None
    assert hop["hops"] == ["Dana Fox", "Riga", "Otto Lind"]
    assert (hop["query"], hop["hops_from"], hop["width"]) == ("Dana Fox; Riga; Otto Lind", "a", WIDTH)


def test_no_hop_is_made_twice_nor_without_need(run: Any, passage: Any) -> None:
    """Not after another hop, where nothing of the question is missing, without a name, nor from a page of the web."""
    hop = next_hop(run)
    assert next_hop({**run, "passes": [*run["passes"], hop]}) is None
    assert next_hop({**run, "question": "Alpha Station film music"}) is None
    assert next_hop({**run, "context": []}) is None
    assert next_hop({**run, "route": "direct"}) is None
    assert next_hop({**run, "context": [passage("It rains in the north and snows in the south.", "b")]}) is None
    assert next_hop({**run, "context": [passage(FIRST, "w", source_type="web")]}) is None


def test_what_asks_for_a_meaning_is_not_missing(run: Any, passage: Any) -> None:
    """A passage that says what a code is doesn't say `mean` or `called`, and no other is needed."""
    told: Any = {**run, "context": [passage("Error E-217: the pump is dry. Call Dana Fox in Riga.", "e")]}
    for question in ("What does error E-217 mean?", "What does E-217 stand for?", "What is error E-217 called?"):
        assert next_hop({**told, "question": question}) is None
    assert next_hop({**told, "question": "Who caused error E-217?"}) is not None


def test_the_names_are_few(passage: Any) -> None:
    """However many a passage has: each is a search in every leg."""
    many = passage(" ".join(f"There is Person{n} Surname{n}." for n in range(30)))
    assert len(bridge_names("Who is it?", many)) == MAX_NAMES


def test_missing_words_are_those_without_a_match(run: Any) -> None:
    """By the stem, headings included: `directed` is a match for `director`'s film, `born` is missing."""
    assert missing_terms(QUESTION, run["context"][0]) >= {"born"}
    assert "alpha" not in missing_terms(QUESTION, run["context"][0])


def test_people_are_told_the_words_as_they_asked(passage: Any) -> None:
    """Not their stems, in the question's order, each once."""
    best = passage("The KX-400 is made in Riga by Dana Fox.", "k")
    assert missing_words("How long is the KX-400's longest warranty, and how long is 300 EUR?", best) == [
        "long",
        "longest",
        "warranty",
        "300",
        "EUR",
    ]


def test_a_name_leads_where_the_legs_agree(passage: Any) -> None:
    """Two legs must have a passage first, and it must have the name; one leg alone decides where there is no other."""
    fox, other = passage("Dana Fox was born in Oslo.", "fox"), passage("A fox is an animal.", "animal")
    assert [leg for leg, _ in led_to("Dana Fox", {"bm25": [fox, other], "vector": [fox], "graph": [other]})] == [
        "bm25",
        "vector",
    ]
    assert led_to("Dana Fox", {"bm25": [fox], "vector": [other]}) == []
    assert led_to("Dana Fox", {"bm25": [other], "vector": [other]}) == []
    assert len(led_to("dana fox", {"bm25": [fox]})) == 1
    assert led_to("Dana Fox", {"bm25": [], "vector": []}) == []
    own = passage("Dana Fox directed it.", "own")
    assert [d for _, d in led_to("Dana Fox", {"bm25": [own, fox], "vector": [fox, own]}, "own")] == [fox, fox]


def test_the_bridge_is_the_sentence_with_the_name(run: Any) -> None:
    """Under its headings: what the passage found says of the one it led to."""
    assert bridge(run["context"][0], "Dana Fox") == "Alpha Station: It was directed by Dana Fox in Riga."
