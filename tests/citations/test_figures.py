"""Figures that stand at the place for another thing."""

import pytest

from leadline.citations.rules import check_sentence

FEES = "Children under 12 pay half; pensioners pay 8 EUR."


def kinds(sentence: str, span: str) -> list[str]:
    """The kinds of fault found."""
    return [problem.kind for problem in check_sentence(sentence, span)]


@pytest.mark.parametrize(
    ("sentence", "span"),
    [
        ("Children pay 8 EUR.", FEES),
        ("Adults pay 8 EUR.", "Adults pay 12 EUR, children pay 8 EUR."),
        ("Adults pay 8 EUR.", "Adults pay 12 EUR and children pay 8 EUR."),
        ("The firm has 30 employees.", "Of the employees of the firm 30 % are women."),
    ],
)
def test_the_figure_of_another_thing_is_a_fault(sentence: str, span: str) -> None:
    """What another clause of the same sentence says of something else, and a number that is a share there."""
    assert kinds(sentence, span) == ["number"]


@pytest.mark.parametrize(
    ("sentence", "span"),
    [
        ("Pensioners pay 8 EUR.", FEES),
        ("Children under 12 pay half.", FEES),
        ("Adults and children pay 8 EUR.", "Adults pay 8 EUR and children pay 8 EUR."),
        ("Halden sold 30 pumps.", "Halden sold 20 pumps in May, and sold 30 in June."),
        ("The hall has 300 seats.", "The hall has 20 rows, and 300 seats."),
        ("Acme paid 8 EUR.", "Acme paid 5 EUR in May, in June it paid 8 EUR."),
        ("The share of women is 30.", "The share of women is 30 %."),
        ("From 30 to 40 percent are women.", "Women are 30 % to 40 %."),
    ],
)
def test_a_figure_of_the_thing_itself_passes(sentence: str, span: str) -> None:
    """Second objects, second deeds of one, pronouns, ranges and shares that are named so."""
    assert kinds(sentence, span) == []
