"""`leadline ask`: answers with sources, abstains with an exit code of its own, and survives hostile documents."""

import json
from pathlib import Path
from typing import Any

RESULT_KEYS = {
    "question",
    "status",
    "answer",
    "citations",
    "verdict",
    "flags",
    "context",
    "queries",
    "web_used",
    "limits",
    "degraded",
    "usage",
    "models",
    "generation",
    "indexing",
    "record",
}
QUESTION = "What does error E-217 mean?"


def test_an_answer_names_its_file_and_page(leadline: Any, filled: Path) -> None:
    """Answered is exit code 0; the sources stand under the answer."""
    done = leadline("ask", QUESTION, "--data-dir", filled)
    assert done.code == 0, done
    assert "battery voltage is below 11.4 volts" in done.out
    assert "[1] tide-gauge-manual.pdf, page 3" in done.out


def test_the_json_is_the_result_and_nothing_else(leadline: Any, filled: Path) -> None:
    """--json prints the whole result as one document; its quotes are in the sources."""
    done = leadline("ask", QUESTION, "--data-dir", filled, "--json", "--trace")
    result = json.loads(done.out)
    assert result.keys() == RESULT_KEYS
    assert result["status"] == "answered"
    assert result["citations"][0]["page"] == 3
    assert result["citations"][0]["verified"] is True
    assert "Trace" in done.err


def test_a_question_without_an_answer_is_abstained(leadline: Any, filled: Path) -> None:
    """Exit code 4; the nearest passages are shown as such, and nothing is cited."""
    done = leadline("ask", "Who won the football world cup in 1990?", "--web", "never", "--data-dir", filled)
    assert done.code == 4, done
    assert "don't find the answer" in done.out
    assert "Nearest passages" in done.out
    assert "Sources" not in done.out


def test_the_trace_shows_each_node(leadline: Any, filled: Path) -> None:
    """Time and decision of every step, and the verdict."""
    shown = leadline("ask", QUESTION, "--trace", "--data-dir", filled).err
    for node in ("planner", "hybrid", "aggregator", "reranker", "compressor", "reasoning", "reflection", "verdict:"):
        assert node in shown


def test_asking_before_anything_is_there_is_polite(leadline: Any, nothing_in_it: Path) -> None:
    """With no documents a greeting is answered and a question abstained: no traceback, no invention."""
    greeting = leadline("ask", "hi", "--data-dir", nothing_in_it)
    assert greeting.code in (0, 4)
    question = leadline("ask", "What is the vault code?", "--web", "never", "--data-dir", nothing_in_it)
    assert question.code == 4
    assert "Traceback" not in greeting.err + question.err


def test_a_conversation_is_continued(leadline: Any, filled: Path) -> None:
    """A follow-up on the same thread is understood from the question before it."""
    thread = ("--thread", "t1", "--data-dir", filled, "--json")
    leadline("ask", "What is the bollard pull of the tug Anvil?", *thread)
    follow = json.loads(leadline("ask", "And of Harrow?", *thread).out)
    assert any(
        "bollard" in query.lower() or "tug" in query.lower() for query in [follow["question"], *follow["queries"]]
    )


def test_an_unknown_collection_is_one_clear_message(leadline: Any, filled: Path) -> None:
    """Exit code 1, the collections that exist, no traceback; the same as an object with --json."""
    done = leadline("ask", "x?", "--collection", "nope", "--data-dir", filled)
    assert (done.code, done.out) == (1, "")
    assert "nope" in done.err
    assert "Traceback" not in done.err
    as_json = leadline("ask", "x?", "--collection", "nope", "--data-dir", filled, "--json")
    assert json.loads(as_json.out)["error"]["code"] == "collection_unknown"


def test_bad_usage_is_exit_code_2(leadline: Any, filled: Path) -> None:
    """A word that isn't allowed, an unknown option, a collection name with a slash: the message names it."""
    for words in (["--web", "sometimes"], ["--wbe", "never"], ["--collection", "../x"]):
        done = leadline("ask", "x?", *words, "--data-dir", filled)
        assert done.code == 2, words
        assert json.loads(leadline("ask", "x?", *words, "--data-dir", filled, "--json").out)["error"]["message"]


def test_documents_cannot_steer_the_terminal(leadline: Any, tmp_path: Path) -> None:
    """Escape sequences, direction marks and markup in a document and its name are shown as text."""
    name = "har\x1b[31mbour\u202e.html"
    text = "<p>The lock gate &#27;[2J&#27;]0;owned&#7; closes at [bold]nine[/bold] \u009b31m in the \u202eevening.</p>"
    (tmp_path / name).write_text(text, encoding="utf-8")
    data = ("--data-dir", tmp_path / "data")
    outputs = [leadline("ingest", tmp_path / name, *data), leadline("ls", *data)]
    outputs.append(leadline("search", "lock gate", *data))
    outputs.append(leadline("ask", "When does the lock gate close?", "--trace", *data))
    outputs += [leadline(*words, *data, "--json") for words in (["ls"], ["search", "lock gate"], ["ask", "lock gate?"])]
    assert outputs[0].code == 0
    for done in outputs:
        assert not set("\x1b\x07\x9b\u202e") & set(done.out + done.err)
    assert "[bold]nine[/bold]" in outputs[2].out
