"""Rewrites by rule: follow-ups that stand alone, queries for another try."""

from typing import Any

import pytest

from leadline.nodes.rewriting import content_words, query_by_rule, standalone_by_rule


@pytest.mark.parametrize(
    ("question", "previous", "expected"),
    [
        ("Who founded it?", "What does Acme Corp make?", "Who founded it? (Acme Corp)"),
        ("And Globex?", "When was Acme founded?", "When was Globex founded?"),
        ("Why?", "What wears out the pump?", "Why? (wears, out, pump)"),
        ("What does Globex make?", "What does Acme Corp make?", "What does Globex make?"),
        ("What is the largest planet of all?", "What does Acme make?", "What is the largest planet of all?"),
        ("Who founded it?", None, "Who founded it?"),
    ],
)
def test_a_follow_up_borrows_what_it_leaves_out(question: str, previous: str | None, expected: str) -> None:
    """Names first, content words where there are none; a question that stands alone is left alone."""
    assert standalone_by_rule(question, previous) == expected


def test_a_retry_searches_for_other_words(passage: Any) -> None:
    """Fillers go, names of the best passages come, more of them with each attempt; the question's words stay."""
    passages = [passage("Dana Fox founded Halden Robotics in Oslo.", "a"), passage("Mira Lund joined later.", "b")]
    question = "Can you tell me who founded the company?"
    first, second = (query_by_rule(question, passages, attempt) for attempt in (1, 2))
    assert first.startswith("founded company")
    assert "Halden Robotics" in first or "Dana Fox" in first
    assert first != second
    assert len(second) > len(first)


def test_a_question_of_fillers_only_is_kept() -> None:
    """There is always something to search for."""
    assert query_by_rule("What is it?", [], 1) == "What is it?"


def test_scripts_without_spaces_are_left_alone(passage: Any) -> None:
    """No word of a Chinese question is lost to a rule made for spaces."""
    assert query_by_rule("法国的首都是什么？", [], 1) == "法国的首都是什么？"
    assert content_words("the pump wears out the pump") == ["pump", "wears", "out"]
