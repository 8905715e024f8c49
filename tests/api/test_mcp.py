"""`leadline mcp` with the SDK's own client: tools, schemas, errors; over real pipes, and a clean standard output."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.api.mcp_tools import QUESTION, READING, call, command, fault, served, served_apart
from tests.servers.chat_server import LITELLM_WARNINGS, Reply

pytestmark = LITELLM_WARNINGS


async def test_the_documents_are_searched_asked_listed_and_read(copied: Path, tmp_path: Path) -> None:
    """The four tools together, as an agent uses them: each has a schema for what it gives, and only reads."""
    async with served(shutil.copytree(copied, tmp_path / "data")) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == READING
        for tool in tools.values():
            assert tool.description
            assert tool.output_schema
            assert tool.output_schema["type"] == "object"
            assert tool.annotations
            assert tool.annotations.read_only_hint
        listed = await call(client, "list_documents")
        assert "pilotage-directions.md" in {each["file_name"] for each in listed["documents"]}
        assert {each["status"] for each in listed["documents"]} == {"ready"}
        found = await call(client, "search", query=QUESTION, top_k=3)
        assert len(found["passages"]) == 3
        best = found["passages"][0]
        assert "32 tonnes" in best["text"]
        read = await call(client, "get_passage", chunk_id=best["chunk_id"])
        assert (read["text"], read["file_name"]) == (best["text"], "pilotage-directions.md")
        assert "next" in read
        answered = await client.call_tool("ask", {"question": QUESTION})
        result: Any = answered.structured_content
        assert result["status"] == "answered"
        assert {citation["file_name"] for citation in result["citations"]} == {"pilotage-directions.md"}
        said = answered.content[0].text  # type: ignore[union-attr]
        assert said.startswith(result["answer"])
        assert f"[1] pilotage-directions.md (chunk_id {result['citations'][0]['chunk_id']})" in said
        abstained = await call(client, "ask", question="Who won the football world cup in 1990?")
        assert (abstained["status"], abstained["web_used"]) == ("abstained", False)


async def test_the_steps_of_a_run_are_told(copied: Path, tmp_path: Path) -> None:
    """Whoever asks for progress hears the name of each step as it begins."""
    steps: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with served(shutil.copytree(copied, tmp_path / "data")) as client:
        await client.call_tool("ask", {"question": QUESTION}, progress_callback=hear)
    assert steps[0] == "planner"
    assert {"hybrid", "reranker", "reasoning", "reflection"} <= set(steps)


async def test_errors_say_what_to_do(copied: Path, tmp_path: Path) -> None:
    """What isn't there, and arguments that aren't right, are errors of the tool with words; the server goes on."""
    async with served(shutil.copytree(copied, tmp_path / "data")) as client:
        for tool in ("search", "ask"):
            wanted = {"search": {"query": "x"}, "ask": {"question": "x"}}[tool]
            assert "no collection nope" in await fault(client, tool, collection="nope", **wanted)
        assert "There is: default" in await fault(client, "list_documents", collection="nope")
        assert "no passage" in await fault(client, "get_passage", chunk_id="nope")
        assert "query" in await fault(client, "search")
        assert "top_k" in await fault(client, "search", query="x", top_k=1000)
        for tool, name in (("ask", "question"), ("search", "query")):
            told = await fault(client, tool, **{name: "x" * 20_001})
            assert told == (
                "The question has 20,001 characters; it may have 20,000. "
                "Put long texts in as documents and ask about them."
            )
        assert "add_document" in await fault(client, "add_document", name="a.md", text="x")
        assert (await call(client, "search", query=QUESTION))["passages"]


async def test_an_argument_that_a_tool_does_not_take_is_refused_by_name(tmp_path: Path) -> None:
    """An agent that narrows by what isn't there hears so and gets no answer from everything; the schemas say it too."""
    async with served(tmp_path / "data", allow_write=True) as client:
        for tool in (await client.list_tools()).tools:
            assert tool.input_schema["additionalProperties"] is False
        for extra in ({"filters": {"year": 2024}}, {"web": "always"}, {"ctx": 1}):
            said = await fault(client, "ask", question=QUESTION, **extra)
            assert said == f"'{next(iter(extra))}' is no argument of this tool. It takes: question, collection."
        for tool, arguments in (
            ("search", {"query": "x"}),
            ("list_documents", {}),
            ("get_passage", {"chunk_id": "x"}),
            ("add_document", {"name": "a.md", "text": "x"}),
            ("delete_document", {"document": "a.md"}),
        ):
            assert "'filters' is no argument" in await fault(client, tool, filters={}, **arguments)
        assert (await call(client, "list_documents"))["documents"] == []


async def test_errors_of_arguments_are_short_and_in_our_words(tmp_path: Path) -> None:
    """Which argument and why, without what it held and without a page of the library that checks it."""
    secret = "swordfish" * 3000
    async with served(tmp_path / "data", allow_write=True) as client:
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("ask", {"question": secret}, "The question has 27,000 characters; it may have 20,000. Put"),
            ("get_passage", {"chunk_id": secret}, "'chunk_id' can have at most 256 characters. It"),
            ("ask", {"question": ""}, "Nothing is asked: the question is empty. Write"),
            ("ask", {"question": ["swordfish"]}, "'question' has to be a text. It"),
            ("search", {}, "'query' is missing. It"),
            ("search", {"query": "x", "top_k": 51}, "'top_k' can be at most 50. It"),
            ("search", {"query": "x", "top_k": 0}, "'top_k' has to be at least 1. It"),
            ("search", {"query": "x", "top_k": "swordfish"}, "'top_k' has to be a whole number. It"),
            ("search", {"query": "x", "top_k": 1.5}, "'top_k' has to be a whole number. It"),
            ("search", {"query": "x", "collection": "sword/fish"}, "'collection' has to match"),
            ("search", {"query": "x", "collection": 7}, "'collection' has to be a text. It"),
            ("add_document", {"path": secret}, "'path' can have at most 4096 characters. It"),
            ("search", {"query": "x"} | {f"{n}{'y' * 20_000}": "swordfish" for n in range(9)}, "and 4 more. It"),
        ]
        for tool, arguments, words in wrong:
            said = await fault(client, tool, **arguments)
            assert words in said
            assert "pydantic" not in said
            assert len(said) < 600
            assert "swordfish" not in said


async def test_an_answer_that_breaks_off_is_an_error(copied: Path, tmp_path: Path, chat_server: Any) -> None:
    """An LLM whose stream breaks leaves no answer: the tool says so."""
    chat_server.script(Reply(("*Anvil* ", "has "), finish=None, end="close"))
    settings = {"run": {"llm": "openai/scripted"}, "llm_api_base": chat_server.url, "llm_retries": 0}
    async with served(shutil.copytree(copied, tmp_path / "data"), **settings) as client:
        assert "broke off" in await fault(client, "ask", question=QUESTION)


async def test_giving_up_stops_the_llm(copied: Path, tmp_path: Path, chat_server: Any) -> None:
    """A call that its client cancels, over the pipes, ends the run behind it; the next call is answered. What the
    program offers by default only reads."""
    chat_server.script(Reply(("word ",) * 400, pause_s=0.05))
    env = {"LEADLINE_RUN__LLM": "openai/scripted", "LEADLINE_LLM_API_BASE": chat_server.url, "LEADLINE_RUN__TOP_K": "3"}
    async with served_apart(shutil.copytree(copied, tmp_path / "data"), **env) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "ask", {"question": QUESTION})
            await anyio.to_thread.run_sync(chat_server.asked.wait, 60)
            group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(chat_server.left.wait, 15)
        assert (await call(client, "search", query=QUESTION))["passages"]


def test_nothing_but_the_protocol_is_on_standard_output(copied: Path, tmp_path: Path) -> None:
    """Every line is a message of JSON-RPC, also where models load and files are taken in, one of an opened folder; at
    the end of its input the server ends, with code 0."""
    folder, opened = shutil.copytree(copied, tmp_path / "data"), tmp_path / "opened"
    opened.mkdir()
    (opened / "b.html").write_text("<p>Four five six.</p>")
    calls = [
        {"name": "ask", "arguments": {"question": QUESTION}},
        {"name": "add_document", "arguments": {"name": "a.html", "text": "<p>One two three.</p>"}},
        {"name": "add_document", "arguments": {"path": "b.html"}},
        {"name": "search", "arguments": {"query": 7}},
    ]
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": each} for n, each in enumerate(calls, 1)),
    ]
    with subprocess.Popen(
        command(folder, "--allow-write", "--add-from", str(opened)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LEADLINE_RUN__TOP_K": "3"},
    ) as server:
        assert server.stdin
        assert server.stdout
        answered = []
        for message in messages:
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            if "id" in message:
                answered.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        assert server.stdout.read() == b""
        assert server.wait(30) == 0
    assert [each["id"] for each in answered] == [0, 1, 2, 3, 4]
    assert all(each["jsonrpc"] == "2.0" and "result" in each for each in answered)
    assert [bool(each["result"].get("isError")) for each in answered[1:]] == [False, False, False, True]


def test_ctrl_c_ends_it_while_it_waits_for_input(tmp_path: Path) -> None:
    """Code 1 soon after, though nobody has closed its input."""
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(tmp_path / "data", "--allow-write"), **pipes) as server:
        assert server.stdin
        assert server.stdout
        assert server.stderr
        server.stdin.write(json.dumps(begin).encode() + b"\n")
        server.stdin.flush()
        assert b"leadline" in server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 1
        assert b"Interrupted" in server.stderr.read()


@pytest.mark.parametrize(
    ("words", "says"),
    [(("--add-from", "."), "--allow-write"), (("--allow-write", "--add-from", "nowhere"), "nowhere")],
)
def test_bad_options_are_bad_usage(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    """Code 2, and what is wrong on standard error."""
    done = subprocess.run(command(tmp_path, *words), capture_output=True, text=True, input="", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    """Without the extra the command says which one it takes."""
    hidden = "import sys; sys.modules['mcp'] = None; sys.argv = ['leadline', 'mcp']"
    program = f"{hidden}; from leadline.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "leadline[mcp]" in done.stderr
