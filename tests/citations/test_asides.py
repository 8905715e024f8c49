"""Lines that look as if they claim nothing."""

import pytest
from tests.citations.test_answers import EVIDENCE, QUESTION

from leadline.citations import check_answer

RIGHT = "The policy costs 20 EUR a month [1]."


@pytest.mark.parametrize(
    "line",
    [
        "The documents do not say more, but water damage is covered for 9,000 EUR.",
        "While the passages don't mention it directly, Globex acquired Acme in 2021 for 5 billion dollars.",
        "While the passages don't mention it directly, the owners poisoned their neighbours.",
        "I don't know the exact figure but the CEO stole 40 million dollars from clients.",
        "I don't know the exact figure but the boss robbed his clients.",
        "Did you know it also covers floods up to 9,000 EUR?",
        "The policy also covers water damage and theft all over Europe:",
        "## Water damage is covered",
        "**Water damage is fully covered**",
        "| Flood damage and theft everywhere | 9,000 EUR |\n|---|---|",
    ],
)
def test_what_is_said_beside_an_answer_is_checked(line: str) -> None:
    """A gap, heading, lead-in or question that tells something no passage says is a claim, and fails."""
    for answer in (f"{line}\n\n{RIGHT}", f"{RIGHT}\n\n{line}"):
        assert check_answer(answer, EVIDENCE, QUESTION).grounding == "ungrounded"


@pytest.mark.parametrize(
    "line",
    [
        "Here is what the policy covers:",
        "## Costs of the policy",
        "**Summary**",
        "The documents do not say who sells it.",
        "Unfortunately, the documents do not mention further details.",
        "Would you like more details about another policy?",
        "| Item | Price |\n|---|---|",
        "Based on the provided documents:",
    ],
)
def test_a_harmless_line_beside_an_answer_is_no_claim(line: str) -> None:
    """Headings, lead-ins, offers and admitted gaps that tell nothing leave a right answer grounded."""
    for answer in (f"{line}\n\n{RIGHT}", f"{RIGHT}\n\n{line}"):
        assert check_answer(answer, EVIDENCE, QUESTION).grounding == "grounded"


def test_a_bold_answer_is_a_claim() -> None:
    """Who only prints the name in bold has answered, and the name is checked."""
    question = "Who founded Halden Robotics?"
    for mark in (" [4]", ""):
        assert check_answer(f"**Mira Stone**{mark}", EVIDENCE, question).grounding == "grounded"
        assert check_answer(f"**Bob Tarn**{mark}", EVIDENCE, question).grounding == "ungrounded"
    assert check_answer("**Acme**", EVIDENCE, question).grounding == "ungrounded"
