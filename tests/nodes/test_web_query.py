"""The query for the web: the person's own words, whatever a model or a document says."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from leadline.nodes.web_query import outgoing_query

SECRET = "Patient Orla Quist, ref 8841, lives in Reykjavik."


def turns(*said: str) -> Any:
    """A conversation in which each question but the last got the secret for an answer, and a model put it into the
    question that is asked now."""
    messages: list[Any] = []
    for question in said:
        messages += [HumanMessage(question), AIMessage(SECRET)]
    return {"messages": messages[:-1], "question": "Where does Orla Quist, ref 8841, live?", "query": "Quist 8841"}


def test_a_first_question_goes_out_as_it_is() -> None:
    """Nothing is changed or added."""
    assert outgoing_query(turns("What is the capital of France?")) == "What is the capital of France?"


def test_a_follow_up_borrows_from_earlier_questions_only() -> None:
    """The name that it needs comes from what the person asked, never from what was answered."""
    assert outgoing_query(turns("Who owns Globex?", "Where does she live?")) == "Where does she live? (Globex)"
    assert outgoing_query(turns("Who owns Globex?", "And Initech?")) == "Who owns Initech?"


def test_small_talk_between_is_no_topic() -> None:
    """Thanks lend nothing to the next question."""
    assert "Globex" in outgoing_query(turns("Who owns Globex?", "Thanks!", "Where does she live?"))


def test_a_question_without_a_conversation_is_the_persons() -> None:
    """As a caller gives it who keeps no messages."""
    assert outgoing_query({"question": " What is the capital of France? "}) == "What is the capital of France?"


@pytest.mark.parametrize("empty", ["", "   "])
def test_an_empty_turn_lends_nothing(empty: str) -> None:
    """Nor does it break anything."""
    assert outgoing_query(turns(empty, "Where does she live?")) == "Where does she live?"


QUESTIONS = st.lists(
    st.sampled_from(
        [
            "Who owns Globex?",
            "And Initech?",
            "Where does she live?",
            "Und in Spanien?",
            "Thanks",
            "Why?",
            "它呢？",
            "it",
        ]
    ),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)  # the first question loads the tables of languages
@given(QUESTIONS)
def test_no_word_of_an_answer_ever_goes_out(said: list[str]) -> None:
    """Each word of the query is one that the person said in this conversation."""
    own = " ".join(said).casefold()
    query = outgoing_query(turns(*said))
    for word in re.findall(r"\w+", query.casefold()):
        assert word in own
    for word in ("Orla", "Quist", "8841", "Reykjavik", "Patient"):
        assert word not in query
