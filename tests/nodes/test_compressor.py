"""The compressor node: numbers that stay, and whole sentences within the budget."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leadline.models.minilm import MiniLM
from leadline.nodes.compressor import compressor
from leadline.nodes.passages import sentence_spans


def count(text: str) -> int:
    """Words as tokens."""
    return len(text.split())


async def test_numbers_follow_the_rank_and_sentences_are_slices(bench: Any, passage: Any, applied: Any) -> None:
    """`[1]` is the best passage; a sentence is where its offsets say."""
    state = {"context": [passage("One is here. Two is there.", "a"), passage("Three.", "b")]}
    after = applied(state, await compressor(state, bench.runtime(), count_tokens=count))
    assert [(block["n"], block["chunk_id"]) for block in after["evidence"]] == [(1, "a"), (2, "b")]
    text = after["evidence"][0]["document"]["content"]
    assert [text[start:end] for start, end, _ in after["evidence"][0]["sentences"]] == ["One is here.", "Two is there."]


async def test_the_budget_takes_whole_sentences_from_the_end(bench: Any, passage: Any, applied: Any) -> None:
    """What does not fit is left out by the sentence; the number stays."""
    long = " ".join(f"Sentence {i} has a few more words than that." for i in range(10))
    state = {"context": [passage(long, "a"), passage(long.replace("few", "lot"), "b")]}
    after = applied(state, await compressor(state, bench.runtime(max_context_tokens=64), count_tokens=count))
    first, second = after["evidence"]
    shown = [text for block in (first, second) for _, _, text in block["sentences"]]
    assert sum(count(text) for text in shown) <= 64
    assert all(text.endswith("that.") for text in shown)
    assert (second["n"], second["sentences"]) == (2, [])


async def test_the_budget_is_of_tokens_in_every_script(bench: Any, passage: Any, applied: Any) -> None:
    """Chinese has a token for almost every character, not for every four: no more of it is shown than fits."""
    embedder = MiniLM()
    text = "金库的密码由值班员保存在办公室里。" * 30
    state = {"context": [passage(text, "a")]}
    runtime = bench.runtime(max_context_tokens=100)
    after = applied(state, await compressor(state, runtime, count_tokens=lambda t: len(embedder.token_spans(t))))
    shown = "".join(sentence for _, _, sentence in after["evidence"][0]["sentences"])
    assert 80 < len(embedder.token_spans(shown)) <= 100
    assert len(shown) < 130


async def test_a_number_is_for_the_whole_run(bench: Any, passage: Any, applied: Any) -> None:
    """A later pass numbers new passages after the old ones, and an old one that comes back has its number."""
    state: Any = {"context": [passage("A.", "a"), passage("B.", "b")]}
    state = applied(state, await compressor(state, bench.runtime(), count_tokens=count))
    state = {**state, "context": [passage("C.", "c"), passage("B.", "b")]}
    state = applied(state, await compressor(state, bench.runtime(), count_tokens=count))
    assert [(block["n"], block["chunk_id"], len(block["sentences"])) for block in state["evidence"]] == [
        (3, "c", 1),
        (2, "b", 1),
        (1, "a", 0),
    ]
    state = {**state, "context": [passage("A.", "a")]}
    state = applied(state, await compressor(state, bench.runtime(), count_tokens=count))
    assert [block["n"] for block in state["evidence"] if block["sentences"]] == [1]


async def test_without_context_there_is_nothing_to_do(bench: Any) -> None:
    """An empty context changes nothing."""
    assert await compressor({"context": []}, bench.runtime(), count_tokens=count) == {}


@given(st.text(alphabet="Ab. \n\t#|-é東。?!", max_size=80))
def test_spans_are_ordered_slices_that_lose_no_word(text: str) -> None:
    """Spans never overlap, are exact slices, and hold everything but white space."""
    spans = sentence_spans(text)
    assert all(text[start:end] == sentence for start, end, sentence in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    assert "".join("".join(sentence.split()) for _, _, sentence in spans) == "".join(text.split())


def test_lines_of_a_page_join_and_headings_and_rows_stand_alone() -> None:
    """A hard line break inside a sentence ends nothing; a heading or a table row is its own."""
    text = "# Pumps\nThe pump wears\nout. Replace it.\n\n| a | b |\n| c | d |\n- item one\n- item two"
    assert [sentence for _, _, sentence in sentence_spans(text)] == [
        "# Pumps",
        "The pump wears\nout.",
        "Replace it.",
        "| a | b |",
        "| c | d |",
        "- item one",
        "- item two",
    ]


def test_a_full_stop_in_a_cell_ends_no_row() -> None:
    """A table's row is one sentence."""
    text = "| Model | Max. head (m) |\n|---|---|\n| A. B. | 3 |"
    assert [sentence for _, _, sentence in sentence_spans(text)] == text.split("\n")
