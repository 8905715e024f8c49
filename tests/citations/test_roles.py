"""Who did it to whom."""

import time

import pytest

from leadline.citations.roles import other_agent
from leadline.citations.rules import check_sentence


def kinds(sentence: str, span: str) -> set[str]:
    """The kinds of fault found."""
    return {problem.kind for problem in check_sentence(sentence, span)}


@pytest.mark.parametrize(
    ("sentence", "span"),
    [
        ("Acme bought Bolt.", "Bolt bought Acme."),
        ("Mira succeeded Dana.", "Dana succeeded Mira in 2010."),
        ("Mira Stone succeeded Dana Fox.", "Dana Fox later succeeded Mira Stone as head."),
        ("Mary Stone succeeded Dana Stone.", "Dana Stone succeeded Mary Stone in 2010."),
        ("Chelsea beat Arsenal.", "Arsenal beat Chelsea."),
        ("Acme Corp owns Bolt Corp.", "Bolt Corp owns Acme Corp."),
        ("Bolt was bought by Acme.", "Bolt bought Acme."),
        ("Bolt was bought by Acme.", "Acme was bought by Bolt."),
        ("Acme bought Bolt.", "Acme was bought by Bolt."),
        ("Acme was bought by Bolt.", "Bolt was founded in 2011. Acme bought it in 2019."),
        ("Bolt bought Acme.", "Bolt was founded in 2011. Acme has bought it."),
    ],
)
def test_names_that_changed_places_are_found(sentence: str, span: str) -> None:
    """The same two names and the same verb, but the other did it: active, passive, or one of each."""
    assert "opposite" in kinds(sentence, span)


@pytest.mark.parametrize(
    ("sentence", "span"),
    [
        ("Acme bought Bolt.", "In 2015 Acme bought Bolt for a song."),
        ("Acme bought Bolt.", "Bolt was bought by Acme."),
        ("Bolt was bought by Acme.", "Acme bought Bolt."),
        ("Bolt was bought by Acme.", "Bolt was bought in 2015 by Acme."),
        ("Acme bought Bolt.", "Bolt bought Acme in 2001. In 2005 Bolt was bought back by Acme."),
        ("Bolt was bought by Acme.", "Bolt was founded in 2011. Acme bought it in 2019."),
        ("Acme was bought by Dana.", "Acme bought Bolt. Acme sold it. Dana bought Acme."),
        ("Arsenal beat Chelsea.", "Chelsea beat Arsenal in 2015. Arsenal beat Chelsea in 2016."),
        ("Mira Stone married Dana Fox.", "Dana Fox married Mira Stone."),
        ("Acme met Bolt.", "Bolt met Acme."),
        ("London and Paris signed it.", "Paris and London signed it."),
    ],
)
def test_who_did_it_may_be_said_another_way(sentence: str, span: str) -> None:
    """The passive, a second match, and what two do to each other are no faults."""
    assert kinds(sentence, span) == set()


def test_a_row_of_names_costs_no_time() -> None:
    """However many capitals stand in a row, the names are read once."""
    row = "Aa Bb was Cc by " * 400
    begun = time.perf_counter()
    other_agent(row, row)
    assert time.perf_counter() - begun < 5
