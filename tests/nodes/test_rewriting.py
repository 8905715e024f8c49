"""Queries for another try, by rule."""

from typing import Any

from leadline.nodes.rewriting import query_by_rule
from leadline.nodes.words import content_words


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
