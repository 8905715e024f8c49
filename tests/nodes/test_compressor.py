"""The compressor node: numbers that stay, and whole sentences within the budget."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import ChatFailed, ModelUnavailable
from leadline.graph.tracing import _figures
from leadline.models.base import ChatLimits
from leadline.models.minilm import MiniLM
from leadline.nodes.compressor import compressor
from leadline.nodes.passages import sentence_spans
from leadline.prompts import answer_prompt


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


class Reader:
    """An LLM that can take so much, and counts characters as tokens."""

    name = "reader"

    def __init__(self, context: int | None, evidence: int | None = None, error: Exception | None = None) -> None:
        self.limit, self.error = ChatLimits(context, evidence), error

    async def limits(self) -> ChatLimits:
        """What it was given."""
        if self.error:
            raise self.error
        return self.limit

    async def count_tokens(self, texts: Any) -> list[int]:
        """A token a character."""
        return [len(text) for text in texts]


def opens(model: Any) -> Any:
    """Opens `model`, whatever its name."""

    async def open_chat(name: str) -> Any:
        return model

    return open_chat


async def compressed(bench: Any, state: Any, model: Any, **knobs: Any) -> Any:
    """The evidence for this LLM."""
    runtime = bench.runtime(llm="x", **knobs)
    return (await compressor(state, runtime, count_tokens=count, chat=opens(model)))["evidence"]


def lengths(evidence: Any) -> int:
    """The characters that are shown."""
    return sum(len(text) for block in evidence for _, _, text in block["sentences"])


SENTENCE = "Berth {} of the north pier is let by the day."


def pier(passage: Any, passages: int = 3, sentences: int = 10) -> Any:
    """A state with that many passages of that many sentences."""
    context = [
        passage(" ".join(SENTENCE.format(f"{place}-{n:02}") for n in range(sentences)), f"c{place}")
        for place in range(passages)
    ]
    return {"question": "Which berths are let?", "context": context}


@pytest.mark.parametrize("context", [2900, 3200, 3500])
async def test_prompt_and_reply_fit_into_the_models_window(bench: Any, passage: Any, context: int) -> None:
    """The whole prompt, by the model's own count, leaves room for a reply; the question stands in it uncut."""
    state = pier(passage)
    evidence = await compressed(bench, state, Reader(context))
    messages = answer_prompt(state["question"], [block for block in evidence if block["sentences"]])
    assert sum(len(message["content"]) for message in messages) <= context - 1000
    assert 0 < lengths(evidence) < 1400
    assert state["question"] in messages[1]["content"]


async def test_what_is_dropped_is_the_least_relevant_and_is_counted(bench: Any, passage: Any) -> None:
    """From the end, whole sentences; each block says how many, and the step's end says the sum."""
    evidence = await compressed(bench, pier(passage), Reader(None, evidence=600))
    shown = [len(block["sentences"]) for block in evidence]
    assert shown[0] == 10
    assert 0 < shown[1] < 10
    assert shown[2] == 0
    assert [block["dropped"] for block in evidence] == [10 - number for number in shown]
    assert _figures({"evidence": evidence})["dropped"] == 30 - sum(shown)


async def test_the_runs_own_bound_holds_above_all(bench: Any, passage: Any) -> None:
    """A model that could read more is shown no more than the run allows."""
    assert lengths(await compressed(bench, pier(passage), Reader(100_000, 900), max_context_tokens=300)) <= 300


async def test_a_question_that_fills_the_window_leaves_the_evidence(bench: Any, passage: Any) -> None:
    """Then there is no prompt that fits; the evidence stays for whoever answers without this model."""
    state = {**pier(passage), "question": "Which berths? " * 500}
    assert lengths(await compressed(bench, state, Reader(4000))) > 600


@pytest.mark.parametrize("error", [ModelUnavailable("gone"), ChatFailed("500")])
async def test_a_model_that_cant_be_asked_changes_nothing(bench: Any, passage: Any, error: Exception) -> None:
    """The evidence is that of a run without it: the writer will say what is wrong."""
    without = (await compressor(pier(passage), bench.runtime(), count_tokens=count))["evidence"]
    assert await compressed(bench, pier(passage), Reader(None, error=error)) == without


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


def test_a_line_with_a_label_begins_a_sentence() -> None:
    """The heads of minutes and letters are no sentence with the lines before; one may go on over lines."""
    text = "Management meeting, 12 May\nPresent: Priya Nair,\nTom Reyes\nAbsent: Jonas Weber"
    assert [sentence for _, _, sentence in sentence_spans(text)] == [
        "Management meeting, 12 May",
        "Present: Priya Nair,\nTom Reyes",
        "Absent: Jonas Weber",
    ]


def test_a_full_stop_in_a_cell_ends_no_row() -> None:
    """A table's row is one sentence."""
    text = "| Model | Max. head (m) |\n|---|---|\n| A. B. | 3 |"
    assert [sentence for _, _, sentence in sentence_spans(text)] == text.split("\n")
