"""The same amount in another unit, and other amounts that look like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.citations.rules import check_sentence


def kinds(sentence: str, span: str) -> set[str]:
    """The kinds of fault found."""
    return {problem.kind for problem in check_sentence(sentence, span)}


@pytest.mark.parametrize(
    ("sentence", "span"),
    [
        ("The warranty lasts two years.", "The warranty lasts 24 months."),
        ("The warranty lasts 24 months.", "It is a two-year warranty, and it lasts from the day of sale."),
        ("The route is 5,000 m long.", "The route is 5 km long."),
        ("The exam takes 1.5 hours.", "The exam takes 90 minutes."),
        ("It takes 90 minutes.", "It takes 1.5 hours."),
        ("Return it within two weeks.", "Return it within 14 days."),
        ("It weighs 2 kg.", "It weighs 2,000 g."),
        ("The dose is 0.5 mg.", "The dose is 500 mcg."),
        ("The siege lasted two decades.", "The siege lasted 20 years."),
        ("The cable is three feet long.", "The cable is 36 inches long."),
        ("It weighs 5 tons.", "It weighs 5 tonnes."),
    ],
)
def test_the_same_amount_in_another_unit_is_supported(sentence: str, span: str) -> None:
    """What converts exactly is the same, and its unit's word is no word that the place lacks."""
    assert kinds(sentence, span) == set()


@pytest.mark.parametrize(
    ("sentence", "span"),
    [
        ("The warranty lasts 25 months.", "The warranty lasts 24 months."),
        ("The warranty lasts 25 months.", "The warranty lasts two years."),
        ("The route is 5 m long.", "The route is 5 km long."),
        ("The route is 3.1 miles long.", "The route is 5 km long."),
        ("It lasts 365 days.", "It lasts two years and 12 months."),
        ("It lasts 60 days.", "It lasts two months."),
        ("It weighs 5,000 kg.", "It weighs 5 tons."),
        ("It holds 1,000 MB.", "It holds 1 GB."),
        ("It takes two minutes.", "It takes two hours."),
    ],
)
def test_another_amount_is_refused_in_every_unit(sentence: str, span: str) -> None:
    """Neither a like figure in another unit, nor what only about converts, is the amount of the source."""
    assert "number" in kinds(sentence, span)


@given(st.integers(2, 500), st.sampled_from([("hours", "minutes", 60), ("km", "m", 1000), ("years", "months", 12)]))
def test_a_conversion_holds_both_ways_and_one_more_does_not(amount: int, units: tuple[str, str, int]) -> None:
    """An amount and its exact conversion are one; with one more of the smaller unit they are two."""
    larger, smaller, factor = units
    said, same = f"The limit is {amount} {larger}.", f"The limit is {amount * factor} {smaller}."
    assert kinds(said, same) == kinds(same, said) == set()
    assert "number" in kinds(f"The limit is {amount * factor + 1} {smaller}.", said)


@pytest.mark.parametrize(
    ("sentence", "span"),
    [
        ("Use a 16A fuse.", "Use a 16 A fuse."),
        ("Use a 16 A fuse.", "Use a 16A fuse."),
        ("The fuse has 16 amps.", "The fuse has 16 A."),
        ("It stands in Hall 3A.", "In Hall 3 A it stands."),
        ("Take 16 a day.", "Take 16 tablets a day."),
        ("In 2019 a new law came.", "A new law came in the year 2019."),
    ],
)
def test_a_capital_a_behind_a_figure_is_ampere(sentence: str, span: str) -> None:
    """16 A, 16A and 16 amps are one; the article is no unit, nor is the letter of Hall 3 A."""
    assert kinds(sentence, span) == set()


@pytest.mark.parametrize(
    ("sentence", "span"),
    [
        ("Use a 16 A fuse.", "Use a 16 mA fuse."),
        ("The supply is 16 V.", "The supply is 16 A."),
        ("Use a 10 A fuse.", "Use a 16 A fuse."),
        ("Use a 10A fuse.", "Use a 16A fuse."),
    ],
)
def test_another_current_is_refused(sentence: str, span: str) -> None:
    """A like figure of another unit, or another figure of amperes, is a fault."""
    assert kinds(sentence, span) & {"number", "name"}
