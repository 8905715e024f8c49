"""Follow-ups by rule in five languages: what leans on the question before, and what must not be drawn into it."""

import pytest

from leadline.nodes.follow_ups import asks_the_same, standalone_by_rule

FOLLOW_UPS = {
    "en": [
        ("Who founded it?", "What does Acme Corp make?", "Who founded it? (Acme Corp)"),
        ("Where should I cut them?", "When are roses pruned?", "Where should I cut them? (roses, pruned)"),
        ("What happened there?", "When was Acme Corp founded?", "What happened there? (Acme Corp)"),
        ("And Globex?", "When was Acme founded?", "When was Globex founded?"),
        ("What about Globex?", "When was Acme founded?", "When was Globex founded?"),
        ("And Globex?", "Who sold the pump of Acme in Oslo?", "And Globex? (sold, pump)"),
        ("Why?", "What wears out the pump?", "Why? (wears, out, pump)"),
        ("In which year?", "When did Acme move to Oslo?", "In which year? (Acme, Oslo)"),
    ],
    "de": [
        ("Wer hat sie gegründet?", "Was stellt Acme her?", "Wer hat sie gegründet? (Acme)"),
        ("Wie hoch ist sein Budget?", "Wer leitet Projekt Quokka?", "Wie hoch ist sein Budget? (Projekt Quokka)"),
        ("Und Globex?", "Wann wurde Acme gegründet?", "Wann wurde Globex gegründet?"),
        ("Was ist mit Globex?", "Wann wurde Acme gegründet?", "Wann wurde Globex gegründet?"),
        ("Seit wann?", "Wo sitzt Acme?", "Seit wann? (Acme)"),
        ("In welchem Jahr?", "Wann zog Acme nach Oslo?", "In welchem Jahr? (Acme, Oslo)"),
    ],
    "es": [
        ("¿Quién lo construyó?", "¿Cuándo se inauguró el Puente Nuevo?", "¿Quién lo construyó? (Puente Nuevo)"),
        ("¿Cuál es su presupuesto?", "¿Quién dirige Acme?", "¿Cuál es su presupuesto? (Acme)"),
        ("¿Y Globex?", "¿Cuándo se fundó Acme?", "¿Cuándo se fundó Globex?"),
        ("¿Qué pasa con Globex?", "¿Cuándo se fundó Acme?", "¿Cuándo se fundó Globex?"),
        ("¿Cuándo se fundó?", "¿Qué fabrica Acme?", "¿Cuándo se fundó? (Acme)"),
        ("¿Desde cuándo?", "¿Dónde está Acme?", "¿Desde cuándo? (Acme)"),
    ],
    "fr": [
        ("Qui l'a fondée ?", "Que fabrique Acme ?", "Qui l'a fondée ? (Acme)"),
        ("Quand a-t-elle été fondée ?", "Que fabrique Acme ?", "Quand a-t-elle été fondée ? (Acme)"),
        ("Et Globex ?", "Quand Acme a-t-elle été fondée ?", "Quand Globex a-t-elle été fondée ?"),
        ("Qu'en est-il de Globex ?", "Quand Acme a-t-elle été fondée ?", "Quand Globex a-t-elle été fondée ?"),
        ("Depuis quand ?", "Où se trouve Acme ?", "Depuis quand ? (Acme)"),
        ("En quelle année ?", "Quand Acme est-elle partie à Oslo ?", "En quelle année ? (Acme, Oslo)"),
    ],
    "zh": [
        ("它是什么时候成立的？", "北京大学在哪里？", "它是什么时候成立的？（北京大学）"),
        ("它的校长是谁？", "它是什么时候成立的？（北京大学）", "它的校长是谁？（北京大学）"),
        ("那上海大学呢？", "北京大学是什么时候成立的？", "上海大学是什么时候成立的？"),
        ("上海大学呢？", "北京大学在哪里？", "上海大学在哪里？"),
        ("为什么？", "北京大学是什么时候搬迁的？", "为什么？（北京大学）"),
        ("什么时候？", "谁修建了长江大桥？", "什么时候？（修建了长江大桥）"),
    ],
}
STANDING_ALONE = {
    "en": [
        "What does Globex make?",
        "What is compost?",
        "Is there a warranty on the pump?",
        "Is it true that the pump runs at 3 bar?",
        "How long does it take to bake bread?",
        "And what is the capital of France?",
        "And when did Globex close?",
        "Why do tomatoes split when they ripen?",
        "Which pump did we buy that leaks?",
        "Does Globex say how much it costs?",
        "vacation policy",
    ],
    "de": [
        "Was ist Kompost?",
        "Gibt es eine Garantie auf die Pumpe?",
        "Kann das Gerät nass sein?",
        "Wie lange dauert es, Brot zu backen?",
        "Wie viel Wasser brauchen Tomaten?",
    ],
    "es": ["¿Cuál es la capital de Francia?", "¿Qué es el compost?", "¿Cuándo se podan las rosas?"],
    "fr": [
        "Qu'est-ce que le compost ?",
        "Quelle est la capitale de la France ?",
        "Est-ce que les roses ont besoin d'eau ?",
    ],
    "zh": ["法国的首都是什么？", "玫瑰什么时候修剪？", "其他植物需要多少水？"],
}
BEFORE = {
    "en": "When was Acme founded?",
    "de": "Wann wurde Acme gegründet?",
    "es": "¿Cuándo se fundó Acme?",
    "fr": "Quand Acme a-t-elle été fondée ?",
    "zh": "北京大学在哪里？",
}


@pytest.mark.parametrize(
    ("question", "previous", "expected"), [case for cases in FOLLOW_UPS.values() for case in cases]
)
def test_a_follow_up_borrows_what_it_leaves_out(question: str, previous: str, expected: str) -> None:
    """A pronoun, a fragment and a question without a subject, each in five languages."""
    assert standalone_by_rule(question, previous) == expected


@pytest.mark.parametrize(
    ("question", "previous"), [(question, BEFORE[code]) for code, asked in STANDING_ALONE.items() for question in asked]
)
def test_a_new_topic_is_left_alone(question: str, previous: str) -> None:
    """A question that can be understood alone stays as it is: words that only look like pronouns draw nothing in."""
    assert standalone_by_rule(question, previous) == question


def test_a_first_question_stays() -> None:
    """There is nothing to borrow."""
    assert standalone_by_rule("Who founded it?", None) == "Who founded it?"


def test_a_chain_of_follow_ups_keeps_its_topic_until_it_changes() -> None:
    """Each leans on the one before as that was understood; a new topic takes the place of the old."""
    question = "What does Acme Corp make?"
    understood = []
    for follow_up in ("Who founded it?", "When was that?", "And Globex?", "How do I prune roses?", "How often?"):
        question = standalone_by_rule(follow_up, question)
        understood.append(question)
    assert understood == [
        "Who founded it? (Acme Corp)",
        "When was that? (Acme Corp)",
        "When was that? (Globex)",
        "How do I prune roses?",
        "How often? (prune, roses)",
    ]


@pytest.mark.parametrize(
    ("rewritten", "asked"),
    [
        ("Who founded Acme Corp?", "Who founded it?"),
        ("Wann wurde die Firma Acme gegründet?", "Und wann wurde sie gegründet?"),
        ("北京大学是什么时候成立的？", "它是什么时候成立的？"),
    ],
)
def test_a_rewrite_with_the_names_of_the_conversation_is_the_same_question(rewritten: str, asked: str) -> None:
    """What a follow-up means may be put in."""
    assert asks_the_same(rewritten, asked, "human: What is Acme Corp?\nai: A firm in Oslo, since 1998.")


@pytest.mark.parametrize("rewritten", ["Who founded Globex?", "Was it founded in 2011?", "What is the weather?"])
def test_a_rewrite_that_asks_something_else_is_not(rewritten: str) -> None:
    """A name or number from elsewhere, or other words than were asked."""
    assert not asks_the_same(rewritten, "Who founded it?", "human: What is Acme Corp?\nai: A firm.")
