"""Answers in another language than their passages: what rules can still tell of them."""

from typing import Any

import pytest

from leadline.nodes.passages import sentence_spans
from leadline.nodes.translated import only_meaning_is_open

TOWER = (
    "The Eiffel Tower was completed on 31 March 1889 and is 330 metres tall. Gustave Eiffel called it "
    '"a monument to science".'
)
PUMP = "The pump runs at 3.5 bar and is serviced every 24 months. It must not be used above 40 °C."
PUMPE = "Die Pumpe läuft mit 3,5 bar. Sie wird alle 24 Monate gewartet."
UNIVERSITY = "北京大学成立于1898年，位于北京市海淀区。"


def evidence(*texts: str) -> Any:
    """Numbered passages."""
    return [
        {
            "n": n,
            "chunk_id": f"c{n}",
            "sentences": sentence_spans(text),
            "document": {"content": text, "metadata": {"file_name": f"{n}.md"}},
        }
        for n, text in enumerate(texts, start=1)
    ]


ENGLISH = evidence(TOWER, PUMP)


@pytest.mark.parametrize(
    ("question", "answer", "passages"),
    [
        ("Wann wurde der Turm fertig?", "Er wurde am 31. März 1889 fertiggestellt [1].", ENGLISH),
        ("Mit welchem Druck läuft die Pumpe?", "Die Pumpe läuft mit 3,5 bar [2].", ENGLISH),
        ("Mit welchem Druck läuft die Pumpe?", "Die Pumpe läuft mit 3,5 bar.", ENGLISH),
        ("Wann darf sie nicht benutzt werden?", "Sie darf über 40 °C nicht benutzt werden [2].", ENGLISH),
        ("Quelle est la hauteur de la tour ?", "La tour mesure 330 mètres [1].", ENGLISH),
        ("¿Cuándo se terminó la torre?", "La torre se terminó el 31 de marzo de 1889 [1].", ENGLISH),
        ("Wann wurde der Turm fertig?", "1889 [1]", ENGLISH),
        ("When was Peking University founded?", "Peking University was founded in 1898 [1].", evidence(UNIVERSITY)),
    ],
)
def test_what_agrees_in_all_but_words_is_left_open(question: str, answer: str, passages: Any) -> None:
    """Figures, dates, names and denials are those of the passages; nobody says that the rest is."""
    assert only_meaning_is_open(answer, passages, question)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Mit welchem Druck läuft die Pumpe?", "Die Pumpe läuft mit 4,5 bar [2]."),
        ("Mit welchem Druck läuft die Pumpe?", "Die Pumpe läuft mit 3,5 bar [2]. Sie wurde 1998 gebaut [2]."),
        ("¿Cuándo se terminó la torre?", "La torre se terminó el 31 de mayo de 1889 [1]."),
        ("Wer hat den Turm gebaut?", "Dana Fox hat ihn gebaut [1]."),
        ("Wie nannte er ihn?", "Gustave Eiffel nannte ihn „ein Denkmal der Liebe“ [1]."),
        ("Darf sie über 40 °C benutzt werden?", "Sie darf über 40 °C benutzt werden [2]."),
        ("Darf sie über 40 °C benutzt werden?", "Ja [2]."),
        ("Wann wurde der Turm fertig?", "1998 [1]"),
    ],
)
def test_what_a_rule_speaks_against_is_not(question: str, answer: str) -> None:
    """A wrong figure, date, name, quotation or denial is wrong in every language; a bare yes says nothing."""
    assert not only_meaning_is_open(answer, ENGLISH, question)


@pytest.mark.parametrize(
    ("question", "answer", "passages"),
    [
        ("When was the tower completed?", "Der Turm wurde 1889 fertig [1].", ENGLISH),
        ("Mit welchem Druck läuft die Pumpe?", "Die Pumpe steht mit 3,5 bar im Keller [1].", evidence(PUMPE)),
        ("Mit welchem Druck läuft die Pumpe?", "Die Pumpe steht mit 3,5 bar im Keller.", evidence(PUMP, PUMPE)),
    ],
)
def test_no_excuse_where_the_words_could_agree(question: str, answer: str, passages: Any) -> None:
    """An answer in a language that nobody asked in, or beside passages in its own, is checked as any other."""
    assert not only_meaning_is_open(answer, passages, question)


def test_a_document_in_the_answers_language_is_no_foreign_one() -> None:
    """A row of figures has no language of its own; its document has one."""
    row = evidence("| Pump | 3.5 bar | 24 months |")
    question, answer = "Mit welchem Druck läuft die Pumpe?", "Die Pumpe läuft mit 3,5 bar [1]."
    assert only_meaning_is_open(answer, row, question)
    row[0]["document"]["metadata"]["language"] = "de"
    assert not only_meaning_is_open(answer, row, question)
