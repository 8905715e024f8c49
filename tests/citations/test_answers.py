"""Whole answers against their evidence: grounding, exact places, and marks put in."""

from typing import Any

import pytest
import sentencex
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.citations import check_answer, parse_markers
from leadline.citations.unchecked import unchecked_citations

POLICY = (
    "The policy costs 20 EUR a month. It does not cover water damage. "
    "Fire is covered up to 5,000 EUR. Acme signed it in 2019."
)
HALDEN = "Halden Robotics was founded in 2011 by Mira Stone.  It makes pumps."
QUESTION = "What does the policy cost?"


def block(n: int, text: str, **metadata: Any) -> Any:
    """An evidence block with all of its sentences."""
    bounds = [(b["start_index"], b["end_index"]) for b in sentencex.get_sentence_boundaries("en", text)]
    document = {
        "content": text,
        "metadata": {"chunk_id": f"c{n}", "doc_id": f"d{n}", "file_name": f"f{n}.md", "start_char": 100, **metadata},
        "score": 0.0,
        "source": "bm25",
        "rerank_score": 1.0,
    }
    return {"n": n, "chunk_id": f"c{n}", "sentences": [(a, b, text[a:b]) for a, b in bounds], "document": document}


EVIDENCE = [block(1, POLICY, page=2), block(4, HALDEN)]


def test_a_supported_answer_is_grounded_and_its_place_is_exact() -> None:
    """The citation has the number, chunk, file, page and the very slice that says it."""
    check = check_answer("The policy costs 20 EUR a month [1].", EVIDENCE, QUESTION)
    assert check.grounding == "grounded"
    assert check.problems == []
    assert check.citations == [
        {
            "n": 1,
            "chunk_id": "c1",
            "doc_id": "d1",
            "file_name": "f1.md",
            "page": 2,
            "start_char": 100,
            "end_char": 132,
            "quote": "The policy costs 20 EUR a month.",
            "sentence": "The policy costs 20 EUR a month.",
            "verified": True,
            "source_type": "file",
            "url": None,
            "retrieved_at": None,
        }
    ]


@pytest.mark.parametrize(
    "passages",
    [
        ["The policy does **not** cover water damage. The policy covers fire damage."],
        ["The policy covers fire damage. The policy does not cover water damage."],
        ["The policy does not cover water damage. It covers fire damage. The policy covers everything else."],
        ["The policy does not cover water damage.", "The policy covers fire damage."],
    ],
)
@pytest.mark.parametrize("mark", [" [1]", ""])
def test_a_like_sentence_nearby_doesnt_hide_a_denial(passages: list[str], mark: str) -> None:
    """What the source denies in the very words isn't supported by what it says of something else."""
    evidence = [block(n, text) for n, text in enumerate(passages, 1)]
    said = f"The policy covers water damage{mark}."
    assert check_answer(said, evidence, "Is water damage covered?").grounding == "ungrounded"
    fire = "The policy covers fire damage."
    assert check_answer(fire, evidence, "Is fire damage covered?").grounding == "grounded"


def test_the_opposite_of_the_source_is_never_grounded() -> None:
    """The source excludes water damage; an answer that includes it fails, with or without its mark."""
    for answer in ("The policy covers water damage [1].", "The policy covers water damage."):
        check = check_answer(answer, EVIDENCE, "Does the policy cover water damage?")
        assert check.grounding == "ungrounded"
        assert not any(c["verified"] for c in check.citations)
    assert check_answer("It does not cover water damage [1].", EVIDENCE, QUESTION).grounding == "grounded"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("The policy costs 25 EUR a month [1].", "number"),
        ("Fire is covered up to 5,000 EUR by Bolt [1].", "name"),
        ('The policy "costs 20 EUR and covers all water damage" [1].', "quotation"),
        ("Mira Stone acquired Halden Robotics [4].", "coverage"),
        ("Yes [1].", "coverage"),
    ],
)
def test_one_unsupported_sentence_makes_the_answer_ungrounded(answer: str, kind: str) -> None:
    """A wrong figure, name, quotation, verb or source is named, though another sentence is right."""
    check = check_answer(f"{answer} It does not cover water damage [1].", EVIDENCE, "Does the policy cost 20 EUR?")
    assert check.grounding == "ungrounded"
    assert kind in {problem.kind for problem in check.problems}


def test_a_sentence_without_a_mark_gets_the_one_that_supports_it() -> None:
    """A model that forgets its marks is checked all the same, and a supported sentence gets its mark."""
    check = check_answer("The policy costs 20 EUR a month. Halden Robotics makes pumps!", EVIDENCE, QUESTION)
    assert check.grounding == "grounded"
    assert check.text == "The policy costs 20 EUR a month [1]. Halden Robotics makes pumps [4]!"
    assert [c["n"] for c in check.citations] == [1, 4]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("The policy costs 20 EUR a month [1][4][5].", "The policy costs 20 EUR a month [1]."),
        ("The policy costs 20 EUR a month [4][1].", "The policy costs 20 EUR a month [1]."),
        ("The policy costs [5] 20 EUR a month [1].", "The policy costs 20 EUR a month [1]."),
        ("The policy costs 20 EUR a month [4].", "The policy costs 20 EUR a month [1]."),
        ("[4] The policy costs 20 EUR a month.", "[1] The policy costs 20 EUR a month."),
        ("The policy costs 20 EUR a month. [4][5]", "The policy costs 20 EUR a month. [1]"),
    ],
)
def test_a_mark_leads_to_what_says_it(answer: str, shown: str) -> None:
    """Marks of passages that say something else are dropped, and a mark that is wrong alone is put right."""
    check = check_answer(answer, [*EVIDENCE, block(5, "The shop is closed on Sundays.")], QUESTION)
    assert (check.grounding, check.text) == ("grounded", shown)
    assert [(c["n"], c["verified"]) for c in check.citations] == [(1, True)]
    assert check.text[check.claims[0].start : check.claims[0].end] == shown


def test_a_denied_sentence_is_not_put_right() -> None:
    """What the cited passage denies in the very words isn't saved by another passage."""
    evidence = [block(1, POLICY), block(2, "The policy covers water damage.")]
    said = "It does cover water damage [1]."
    assert check_answer(said, evidence, "Does the policy cover water damage?").grounding == "ungrounded"


def test_two_rows_of_a_table_are_two_things() -> None:
    """The price of one row is no support for the thing of the next."""
    table = block(1, "Prices in 2024")
    rows = ["| Item | Price |", "|---|---|", "| Pump A | 20 EUR |", "| Pump B | 30 EUR |", "| Rope | 5 EUR |"]
    text, spans = "\n".join(rows), []
    for row in rows:
        spans.append((text.index(row), text.index(row) + len(row), row))
    table["document"]["content"], table["sentences"] = text, spans
    for answer, grounding in (
        ("Pump A costs 20 EUR [1].", "grounded"),
        ("Pump A costs 30 EUR [1].", "ungrounded"),
        ("The rope costs 30 EUR [1].", "ungrounded"),
    ):
        assert check_answer(answer, [table], "What do they cost?").grounding == grounding


def test_an_unknown_number_never_reaches_the_reader() -> None:
    """A made-up source is removed and reported, and the right one found."""
    check = check_answer("Halden Robotics was founded in 2011 [2, 7].", EVIDENCE, QUESTION)
    assert check.text == "Halden Robotics was founded in 2011 [4]."
    assert [p.what for p in check.problems if p.kind == "unknown_source"] == ["[2]", "[7]"]


def test_a_sentence_may_draw_on_two_places() -> None:
    """What no passage says alone, the cited ones may say together."""
    check = check_answer("The policy costs 20 EUR and Halden Robotics makes pumps [1][4].", EVIDENCE, QUESTION)
    assert check.grounding == "grounded"
    assert all(c["verified"] for c in check.citations)


@pytest.mark.parametrize(
    "answer", ["", "NO_ANSWER", "The documents do not say this.", "Here is what I found:", "What fee?"]
)
def test_no_claim_is_no_answer(answer: str) -> None:
    """Nothing said, or said that there is nothing, is an abstention and never grounded."""
    assert check_answer(answer, EVIDENCE, QUESTION).grounding == "no_answer"


@pytest.mark.parametrize(
    "answer",
    [
        "NO_ANSWER. The policy costs 20 EUR a month [1].",
        "NO_ANSWER\n\nThe policy costs 20 EUR a month [1].",
        "The policy costs 20 EUR a month [1]. NO_ANSWER",
        "The policy costs 20 EUR a month [1].\n\n**NO_ANSWER** [1].",
    ],
)
def test_the_token_for_no_answer_never_reaches_the_reader(answer: str) -> None:
    """A reply that has the token beside a claim is that claim."""
    check = check_answer(answer, EVIDENCE, QUESTION)
    assert (check.grounding, check.text) == ("grounded", "The policy costs 20 EUR a month [1].")
    assert unchecked_citations(answer, EVIDENCE)[0] == "The policy costs 20 EUR a month [1]."


@pytest.mark.parametrize(
    ("answer", "grounding"),
    [
        ("No. The policy does not cover water damage [1].", "grounded"),
        ("Yes. The policy does not cover water damage [1].", "ungrounded"),
        ("No. The policy covers water damage [1].", "ungrounded"),
        ("The policy does not cover water damage [1]. No.", "ungrounded"),
    ],
)
def test_a_bare_no_holds_with_its_reason(answer: str, grounding: str) -> None:
    """Yes or no before a supported sentence holds where that sentence doesn't say the opposite."""
    check = check_answer(answer, EVIDENCE, "Does the policy cover water damage?")
    assert check.grounding == grounding
    if grounding == "grounded":
        assert check.text == answer


def test_an_admitted_gap_beside_a_supported_claim_is_fine() -> None:
    """A partial answer that says what is missing is grounded by what it claims."""
    answer = "The policy costs 20 EUR a month [1]. The documents do not say who sells it."
    assert check_answer(answer, EVIDENCE, QUESTION).grounding == "grounded"


def test_a_short_answer_is_checked_with_its_question() -> None:
    """A bare amount counts only where its question is answered."""
    assert check_answer("20 EUR [1]", EVIDENCE, QUESTION).grounding == "grounded"
    assert check_answer("20 EUR [1]", EVIDENCE, "What does the Bolt turbine cost?").grounding == "ungrounded"


def test_without_evidence_nothing_is_grounded() -> None:
    """General knowledge is not evidence."""
    check = check_answer("Paris is the capital of France.", [], "What is the capital of France?")
    assert (check.grounding, check.citations) == ("ungrounded", [])


def test_what_the_writer_never_saw_is_no_support() -> None:
    """Sentences dropped for the token budget neither support nor join those around them."""
    cut = block(1, POLICY)
    del cut["sentences"][1:3]
    assert check_answer("Fire is covered up to 5,000 EUR [1].", [cut], QUESTION).grounding == "ungrounded"


PARTS = [
    "The policy costs 20 EUR a month",
    "Fire is covered",
    "up to 6,000 EUR",
    " [1]",
    "[4]",
    "[9]",
    ". ",
    "\n- ",
    "not ",
    "。",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_quotes_are_always_slices_and_marks_always_known(answer: str) -> None:
    """Whatever the answer, every quote is the slice its offsets name and every mark of the text is a block."""
    check = check_answer(answer, EVIDENCE, QUESTION)
    contents = {b["n"]: b["document"]["content"] for b in EVIDENCE}
    for citation in check.citations:
        assert contents[citation["n"]][citation["start_char"] - 100 : citation["end_char"] - 100] == citation["quote"]
    assert {n for m in parse_markers(check.text) for n in m.numbers} <= contents.keys()
    if check.grounding == "grounded":
        assert any(c["verified"] for c in check.citations)
