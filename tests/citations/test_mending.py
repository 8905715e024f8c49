"""Sentences taken out of an answer, or replaced, so that the rest still reads."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.citations import check_answer, rewritten, without

TEXT = "The fee is 20 EUR. Fire is covered. Water is not covered."


def block() -> Any:
    """One passage."""
    bounds = [(0, 18), (19, 35), (36, 57)]
    document = {"content": TEXT, "metadata": {"chunk_id": "c"}, "score": 0.0, "source": "bm25", "rerank_score": 1.0}
    return {"n": 1, "chunk_id": "c", "sentences": [(a, b, TEXT[a:b]) for a, b in bounds], "document": document}


def left(answer: str) -> str:
    """The answer without the sentences that fail."""
    check = check_answer(answer, [block()], "What is covered?")
    return without(check.text, check.claims, [claim for claim in check.claims if not claim.verified])


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        ("The fee is 20 EUR [1]. The fee is 30 EUR [1].", "The fee is 20 EUR [1]."),
        ("The fee is 30 EUR [1]. The fee is 20 EUR [1].", "The fee is 20 EUR [1]."),
        ("Fire is covered [1]. Fee: 30 EUR [1]. The fee is 20 EUR [1].", "Fire is covered [1]. The fee is 20 EUR [1]."),
        ("- The fee is 30 EUR [1].\n- Fire is covered [1].", "- Fire is covered [1]."),
        (
            "- Fire is covered.\n- The fee is 30 EUR.\n- The fee is 20 EUR.",
            "- Fire is covered [1].\n- The fee is 20 EUR [1].",
        ),
        ("Here it is:\n\n1. Fire is covered [1].\n2. The fee is 30 EUR [1].", "Here it is:\n\n1. Fire is covered [1]."),
        ("Bolt makes turbines [1]. It is covered, as fire is [1]. The fee is 20 EUR [1].", "The fee is 20 EUR [1]."),
        ("The fee is 20 EUR. Fire is covered.", "The fee is 20 EUR [1]. Fire is covered [1]."),
    ],
)
def test_the_rest_reads_as_before(answer: str, rest: str) -> None:
    """Bullets, blanks and line ends close over a gap, and a sentence that leans on a dropped one goes with it."""
    assert left(answer) == rest


def test_a_sentence_is_replaced_where_it_stood() -> None:
    """Bullet and neighbours stay."""
    check = check_answer("- The fee is 30 EUR [1].\n- Fire is covered [1].", [block()], "What?")
    text = rewritten(check.text, {check.claims[0]: "The fee is 20 EUR [1]."})
    assert text == "- The fee is 20 EUR [1].\n- Fire is covered [1]."


PARTS = [
    "The fee is 20 EUR",
    "The fee is 30 EUR",
    " [1]",
    "[7]",
    ". ",
    ".\n- ",
    "\n\n",
    "It is so",
    "Here:",
    "。",
    "- ",
]


@settings(deadline=None)  # the first sentence loads the splitter
@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join), st.data())
def test_claims_are_slices_and_what_stays_is_unchanged(answer: str, data: st.DataObject) -> None:
    """Whatever the answer: claims are in order and apart, and leaving some out leaves the others' words alone."""
    check = check_answer(answer, [block()], "What is the fee?")
    ends = [0]
    for claim in check.claims:
        assert ends[-1] <= claim.start < claim.end <= len(check.text)
        ends.append(claim.end)
    out = [claim for claim in check.claims if data.draw(st.booleans())]
    text = without(check.text, check.claims, out)
    if not out:
        assert text == check.text.strip()
    kept = [c for c in check.claims if c not in out and not c.text.startswith("It")]
    assert all(check.text[c.start : c.end] in text for c in kept)
