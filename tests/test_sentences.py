"""Where sentences end."""

from leadline.sentences import sentence_spans


def test_a_unit_with_a_slash_ends_a_sentence() -> None:
    """`17 m/s.` is no abbreviation: what follows is another sentence."""
    text = "Lifting stops at 17 m/s. Above 24 m/s the crane is moved. See e.g. Annex B."
    assert [text[a:b] for a, b in sentence_spans(text)] == [
        "Lifting stops at 17 m/s.",
        "Above 24 m/s the crane is moved.",
        "See e.g. Annex B.",
    ]
