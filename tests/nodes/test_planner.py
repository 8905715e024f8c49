"""The planner node: which question, which way, and a fresh start."""

from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from leadline.errors import ChatFailed, QuestionEmpty
from leadline.nodes.origins import REMOVED, answer_message
from leadline.nodes.planner import planner
from leadline.nodes.spending import metered


def chat_of(model: Any) -> Any:
    """Opens `model`, whatever its name."""

    async def open_chat(name: str) -> Any:
        return model

    return open_chat


NONE = chat_of(None)


async def all_there(origins: Any) -> set[str]:
    """Nothing was deleted."""
    return {origin["chunk_id"] for origin in origins}


async def test_the_question_is_the_last_message(bench: Any, applied: Any) -> None:
    """One search is planned for it, as wide as the run says."""
    state: Any = {"messages": [HumanMessage("What is the vault code?")]}
    after = applied(state, await planner(state, bench.runtime(top_k=7), chat=NONE, still_there=all_there))
    assert after["question"] == after["query"] == "What is the vault code?"
    assert after["route"] == "search"
    assert after["passes"] == [{"query": "What is the vault code?", "width": 7, "sources": ["documents"]}]
    assert len(after["messages"]) == 1


async def test_what_is_being_indexed_is_noted_when_the_run_begins(bench: Any, applied: Any) -> None:
    """Of the run's collection, anew in each run: a file that has come in since is not named again."""
    asked: list[str] = []

    async def indexing(collection: str) -> list[str]:
        asked.append(collection)
        return ["late.md"] if len(asked) == 1 else []

    state: Any = {"messages": [HumanMessage("What is the vault code?")]}
    plan = partial(planner, chat=NONE, still_there=all_there, indexing=indexing)
    first = applied(state, await plan(state, bench.runtime(collection="notes")))
    assert first["indexing"] == ["late.md"]
    second = applied(first, await plan(first, bench.runtime(collection="notes")))
    assert second["indexing"] == []
    assert asked == ["notes", "notes"]


@pytest.mark.parametrize("state", [{"question": " "}, {"messages": [HumanMessage("\n")]}, {}])
async def test_nothing_asked_is_no_run(bench: Any, state: Any) -> None:
    """Whoever calls the graph past the surfaces, as Studio does, is told in their words."""
    with pytest.raises(QuestionEmpty, match="Nothing is asked: the question is empty"):
        await planner(state, bench.runtime(), chat=NONE, still_there=all_there)


async def test_a_question_without_a_message_becomes_one(bench: Any, applied: Any) -> None:
    """A caller may give just the question; the conversation has it after."""
    state: Any = {"question": "What is the vault code?", "messages": []}
    after = applied(state, await planner(state, bench.runtime(), chat=NONE, still_there=all_there))
    assert [message.text for message in after["messages"]] == ["What is the vault code?"]


async def test_a_new_message_wins_over_the_last_runs_question(bench: Any, applied: Any) -> None:
    """What is left of the last run is not the question."""
    state: Any = {
        "question": "Old?",
        "result": {"question": "Old?"},
        "messages": [HumanMessage("Old?"), AIMessage("Old."), HumanMessage("Something new about the pump?")],
    }
    update = await planner(state, bench.runtime(), chat=NONE, still_there=all_there)
    assert update["question"].startswith("Something new about the pump?")


async def test_a_new_question_wins_over_an_old_message(bench: Any) -> None:
    """A second call with just a question is about that question, also when the last one got no answer."""
    state: Any = {"question": "A new one for you?", "result": {"question": "Old?"}, "messages": [HumanMessage("Old?")]}
    update = await planner(state, bench.runtime(), chat=NONE, still_there=all_there)
    assert update["question"].startswith("A new one for you?")
    assert [message.text for message in update["messages"]] == ["A new one for you?"]


async def test_small_talk_needs_no_search(bench: Any, applied: Any) -> None:
    """A greeting goes straight to the reply."""
    state: Any = {"messages": [HumanMessage("Hello!")]}
    after = applied(state, await planner(state, bench.runtime(), chat=NONE, still_there=all_there))
    assert (after["route"], after["passes"]) == ("direct", [])


async def test_always_plans_the_web_beside_the_documents(bench: Any) -> None:
    """The policy `always` is a source of the first pass."""
    state: Any = {"messages": [HumanMessage("What is the vault code?")]}
    update = await planner(state, bench.runtime(web="always"), chat=NONE, still_there=all_there)
    assert update["passes"][0]["sources"] == ["documents", "web"]


async def test_a_question_is_no_new_one_after_a_run_without_an_end(bench: Any, applied: Any) -> None:
    """A run that was stopped leaves its question in the state: the message that comes after it is what is asked."""
    first = {"messages": [HumanMessage("Is there a vault?", id="1")]}
    stopped = applied(first, await planner(first, bench.runtime(), chat=NONE, still_there=all_there))
    for asked in ("When are roses pruned?", "hi"):
        state = {**stopped, "messages": [*stopped["messages"], HumanMessage(asked, id="2")]}
        after = applied(state, await planner(state, bench.runtime(), chat=NONE, still_there=all_there))
        assert (after["question"], [message.text for message in after["messages"]]) == (
            asked,
            ["Is there a vault?", asked],
        )
    given = {**stopped, "question": "Who keeps the key?"}
    assert (await planner(given, bench.runtime(), chat=NONE, still_there=all_there))["question"] == "Who keeps the key?"


async def test_a_run_starts_fresh(bench: Any, applied: Any, passage: Any) -> None:
    """Everything the last run spent and found is reset."""
    spent: Any = {
        "messages": [HumanMessage("Is there a vault?")],
        "candidates": {"bm25": [passage("x")]},
        "documents": [passage("x")],
        "context": [passage("x")],
        "evidence": [{"n": 1, "chunk_id": "x", "sentences": [], "document": passage("x")}],
        "scores": {"q": {"x": 1.0}},
        "answer": "old",
        "draft_status": "interrupted",
        "citations": [],
        "flags": ["weak_evidence"],
        "retry_count": 8,
        "web_used": True,
        "web_denied": True,
        "degraded": ["vector"],
        "usage": {"llm_calls": 12, "web_calls": 2},
        "started_at": 1.0,
    }
    after = applied(spent, await planner(spent, bench.runtime(), chat=NONE, still_there=all_there))
    empty = ("candidates", "documents", "context", "evidence", "scores", "answer", "citations", "flags", "degraded")
    assert not any(after[key] for key in (*empty, "retry_count", "web_used", "web_denied", "usage"))
    assert after["draft_status"] == "none"
    assert after["started_at"] > 1.0


async def test_a_follow_up_by_rule_borrows_from_the_standalone_question(bench: Any) -> None:
    """The third turn leans on what the second one meant, not on its words; small talk in between changes nothing."""
    answer = answer_message("Dana.", answer_from=[], question_from=[], question="Who founded it? (Acme Corp)")
    thanks = [
        HumanMessage("Thanks!"),
        answer_message("You're welcome.", answer_from=[], question_from=[], question="Thanks!"),
    ]
    for between in ([], thanks, [HumanMessage("Hello!")]):
        state: Any = {"messages": [HumanMessage("Who founded it?"), answer, *between, HumanMessage("When was that?")]}
        update = await planner(state, bench.runtime(), chat=NONE, still_there=all_there)
        assert update["question"] == "When was that? (Acme Corp)"


async def test_a_question_without_an_answer_is_leant_on_too(bench: Any) -> None:
    """Its run broke, or its answer was removed: the person's words are made to stand alone again."""
    state: Any = {
        "messages": [
            HumanMessage("What does Acme Corp make?"),
            AIMessage(REMOVED),
            HumanMessage("Who founded it?"),
            HumanMessage("When was that?"),
        ]
    }
    update = await planner(state, bench.runtime(), chat=NONE, still_there=all_there)
    assert update["question"] == "When was that? (Acme Corp)"


async def test_an_llm_makes_a_follow_up_stand_alone(bench: Any, scripted: Any, applied: Any) -> None:
    """Its question is searched for, and the call is counted."""
    model = scripted(["Who founded ", "Acme Corp?"])
    state: Any = {"messages": [HumanMessage("What is Acme Corp?"), AIMessage("A firm."), HumanMessage("Who made it?")]}
    after = applied(
        state,
        await planner(state, bench.runtime(llm="x", show_prompts=True), chat=chat_of(model), still_there=all_there),
    )
    assert after["question"] == "Who founded Acme Corp?"
    assert after["usage"]["llm_calls"] == 1
    assert bench.of("prompt")[0]["messages"] == list(model.seen[0])


async def test_a_failing_llm_leaves_the_rule(bench: Any, scripted: Any, applied: Any) -> None:
    """The run goes on by rule and says so."""
    model = scripted(error=ChatFailed("503"))
    state: Any = {"messages": [HumanMessage("What is Acme Corp?"), AIMessage("A firm."), HumanMessage("Who made it?")]}
    after = applied(state, await planner(state, bench.runtime(llm="x"), chat=chat_of(model), still_there=all_there))
    assert after["question"] == "Who made it? (Acme Corp)"
    assert after["degraded"] == ["planner"]


async def test_a_budget_that_keeps_it_from_the_llm_is_named(bench: Any, scripted: Any, applied: Any) -> None:
    """The last call is kept for the answer; the rule's question is asked, and why is said, with the node as it runs."""
    model = scripted(["Who made Acme Corp?"])
    state: Any = {
        "messages": [HumanMessage("What is Acme Corp?"), AIMessage("A firm."), HumanMessage("Who made it?")],
        "limits": ["web_calls"],  # the last run's
    }
    node = metered(lambda chat: partial(planner, chat=chat, still_there=all_there), chat_of(model), begins=True)
    after = applied(state, await node(state, bench.runtime(llm="x", budgets={"llm_calls": 1})))
    assert (after["question"], after["limits"], model.seen) == ("Who made it? (Acme Corp)", ["llm_calls"], [])
    assert after["degraded"] == []


async def test_a_first_question_costs_no_call(bench: Any, scripted: Any) -> None:
    """There is nothing to make it stand on."""
    model = scripted(["other"])
    state: Any = {"messages": [HumanMessage("What is it?")]}
    update = await planner(state, bench.runtime(llm="x"), chat=chat_of(model), still_there=all_there)
    assert (update["question"], model.seen) == ("What is it?", [])


@pytest.mark.parametrize(
    "reply",
    [
        "Dana Fox founded Acme Corp in 1998.",  # a number from elsewhere
        "Who founded Globex?",  # another name
        "Is the weather nice today?",  # another question
    ],
)
async def test_a_reply_that_is_not_the_question_is_not_asked(
    bench: Any, scripted: Any, applied: Any, reply: str
) -> None:
    """An answer, or a question about something else, in its place: the rule's stands, and that is said."""
    state: Any = {
        "messages": [HumanMessage("What is Acme Corp?"), AIMessage("A firm."), HumanMessage("Who founded it?")]
    }
    update = await planner(state, bench.runtime(llm="x"), chat=chat_of(scripted([reply])), still_there=all_there)
    after = applied(state, update)
    assert after["question"] == "Who founded it? (Acme Corp)"
    assert after["degraded"] == ["planner"]
    assert after["usage"]["llm_calls"] == 1


async def test_small_talk_before_costs_no_call(bench: Any, scripted: Any) -> None:
    """After a greeting there is nothing to make a question stand on."""
    model = scripted(["other"])
    state: Any = {"messages": [HumanMessage("Hello!"), AIMessage("Hello!"), HumanMessage("What is it?")]}
    update = await planner(state, bench.runtime(llm="x"), chat=chat_of(model), still_there=all_there)
    assert (update["question"], model.seen) == ("What is it?", [])


async def test_a_long_answer_is_shown_in_part(bench: Any, scripted: Any) -> None:
    """The prompt stays short however long the answers were; the question is whole."""
    model, long = scripted(["Who made Acme Corp?"]), "A firm. " * 2000
    state: Any = {"messages": [HumanMessage("What is Acme Corp?"), AIMessage(long), HumanMessage("Who made it?")]}
    await planner(state, bench.runtime(llm="x"), chat=chat_of(model), still_there=all_there)
    sent = model.seen[0][1]["content"]
    assert len(sent) < 2000
    assert "Who made it?" in sent
