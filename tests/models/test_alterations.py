"""The rules that make unanswerable questions for training: each changes what is asked, and says nothing new of it."""

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "training" / "alterations.py"
PASSAGE = "In 1912 Ada Lovett sold the northern mill to Bertram Hale, who moved the first loom to Leeds."


def loaded() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("alterations", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rules = loaded()


@pytest.mark.parametrize("seed", range(20))
def test_a_number_becomes_another_one(seed: int) -> None:
    """Never itself, and as long as it was."""
    found = rules.exchange_number("Who sold the mill in 1912?", PASSAGE, [], random.Random(seed))
    assert found is None or (found != "Who sold the mill in 1912?" and found.startswith("Who sold the mill in "))


@pytest.mark.parametrize("seed", range(20))
def test_a_name_becomes_another_one(seed: int) -> None:
    """One of the passage that plays another part there, or one that the passage doesn't have."""
    found = rules.exchange_name("What did Bertram Hale move?", PASSAGE, ["Cora Finch"], random.Random(seed))
    assert found in {f"What did {name} move?" for name in ("Ada Lovett", "Leeds", "Cora Finch")}
    lower = rules.exchange_name("what did bertram hale move?", PASSAGE, ["Cora Finch"], random.Random(seed))
    assert lower == lower.lower()


def test_a_word_becomes_its_opposite() -> None:
    """Unless the passage has both, when the altered question might be answered as well."""
    chance = random.Random(1)
    assert rules.exchange_for_opposite("Which northern mill?", PASSAGE, [], chance) == "Which southern mill?"
    assert rules.exchange_for_opposite("Which northern mill?", PASSAGE + " A southern one.", [], chance) is None


@pytest.mark.parametrize(
    ("question", "place"),
    [("Who was sold?", "was"), ("What did Bertram Hale move to Leeds?", "Hale")],
)
def test_a_question_is_negated_once(question: str, place: str) -> None:
    """The negation stands where a person would put it; a question that has one is left alone."""
    found = rules.negate(question, PASSAGE, [], random.Random(3))
    assert found in {question.replace(place, f"{place} {word}", 1) for word in ("not", "never")}
    assert rules.negate(found, PASSAGE, [], random.Random(3)) is None


@pytest.mark.parametrize("seed", range(20))
def test_altered_questions_differ(seed: int) -> None:
    """From the question and from one another, the same ones for the same seed."""
    question = "What did Bertram Hale first move to Leeds in 1912?"
    found = rules.altered(question, PASSAGE, ["Cora Finch", "harbour"], random.Random(seed), 3)
    assert len({question, *found}) == 4
    assert found == rules.altered(question, PASSAGE, ["Cora Finch", "harbour"], random.Random(seed), 3)
