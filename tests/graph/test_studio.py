"""LangGraph's own server runs the graph: offline, without a key, and without any switch that allows blocking calls."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.test_surfaces import DOCUMENTS, QUESTIONS, compare
from tests.servers.chat_server import LITELLM_WARNINGS, ChatServer, Reply, running_chat_server, says
from tests.servers.search_server import SearchServer, running_search_server
from tests.servers.studio import Studio, Thread, running_studio

from leadline.cli import main
from leadline.config import RunContext, Settings
from leadline.ingest.pipeline import ingest_paths
from leadline.knowledge import open_library

pytestmark = LITELLM_WARNINGS

CODE = "What is the vault code?"
LIGHTHOUSE = "When was the lighthouse of Marrow Point built?"
NODES = {"planner", "hybrid", "web", "aggregator", "reranker", "compressor", "reasoning", "reflection"}
ON_THE_WEB = {
    "title": "Marrow Point",
    "url": "https://example.org/marrow",
    "content": "The lighthouse of Marrow Point was built in 1871 by John Vane.",
}


@dataclass
class Bench:
    """A running server, the LLM and the web behind it, and its data folder."""

    studio: Studio
    llm: ChatServer
    web: SearchServer
    data_dir: Path

    def client(self) -> httpx.Client:
        """A client of the server."""
        return httpx.Client(base_url=self.studio.url, timeout=120, trust_env=False)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """`langgraph dev` over two documents, for all tests here."""
    folder = tmp_path_factory.mktemp("studio")
    data_dir = folder / "data"
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    asyncio.run(_fill(Settings(data_dir=data_dir), [folder / name for name in DOCUMENTS]))
    with running_chat_server() as llm, running_search_server() as web:
        web.json_results = {"results": [ON_THE_WEB]}
        settings = {
            "LEADLINE_LLM_API_BASE": llm.url,
            "LEADLINE_WEB_PROVIDER": "searxng",
            "LEADLINE_WEB_URL": web.origin,
            "LEADLINE_WEB_PAGES": "0",
            "LEADLINE_WEB_CACHE_HOURS": "0",
        }
        with running_studio(folder, data_dir, settings) as studio:
            yield Bench(studio, llm, web, data_dir)
            assert "Blocking" not in studio.log.read_text("utf-8"), "a node blocked the event loop"


async def _fill(settings: Settings, files: list[Path]) -> None:
    async with open_library(settings) as library:
        await ingest_paths(await library.collection(), files, settings)


@pytest.fixture
def client(bench: Bench) -> Iterator[httpx.Client]:
    """A client of the server, to which nothing was said and sent yet."""
    bench.web.queries.clear()
    bench.llm.requests.clear()
    with bench.client() as client:
        yield client


def test_the_graph_is_drawn_and_its_knobs_are_a_form(client: httpx.Client) -> None:
    """Studio is told the card's nodes, and every knob of a run with its title, default and what it may be."""
    [assistant] = client.post("/assistants/search", json={}).json()
    drawn = client.get(f"/assistants/{assistant['assistant_id']}/graph").json()
    assert {node["id"] for node in drawn["nodes"]} == NODES | {"__start__", "__end__"}
    schemas = client.get(f"/assistants/{assistant['assistant_id']}/schemas").json()
    knobs = schemas["context_schema"]["properties"]
    assert set(knobs) == set(RunContext.model_fields)
    assert all("title" in knob or "$ref" in knob for knob in knobs.values())
    assert knobs["web"]["enum"] == ["never", "auto", "always"]
    assert knobs["ask_person"]["default"] is False
    assert {"messages", "question"} <= set(schemas["input_schema"]["properties"])


def test_a_thread_runs_and_ends_with_the_result_of_the_command_line(
    client: httpx.Client, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thread keeps a conversation over two runs; its state holds what `ask --json` prints, and no passage."""
    thread = Thread(client, web="never")
    first = thread.ask(CODE)["result"]
    words = ["leadline", "ask", CODE, "--web", "never", "--json", "--data-dir", str(bench.data_dir)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert _without_times(first) == _without_times(json.loads(capsys.readouterr().out))
    assert thread.ask("Who set it?")["result"]["citations"][0]["file_name"] == "vault.md"
    values = thread.state()["values"]
    assert [message["type"] for message in values["messages"]] == ["human", "ai"] * 2
    assert not any(values[key] for key in ("documents", "context", "evidence", "candidates", "sightings"))


def test_a_run_alone_gives_the_result_of_every_surface(client: httpx.Client) -> None:
    """`result` in the final state, without a thread, is what the command line, HTTP and a notebook give."""
    results = {}
    for name, (question, web) in QUESTIONS.items():
        asked = {"assistant_id": "leadline", "input": {"question": question}, "context": {"web": web}}
        results[name] = client.post("/runs/wait", json=asked).json()["result"]
    compare(results)


def _without_times(result: Any) -> Any:
    return {**result, "usage": set(result["usage"]), "record": {**result["record"], "result_hash": ""}}


def test_quotations_stream_as_a_message_of_the_writing_node(client: httpx.Client) -> None:
    """Without an LLM too the answer arrives in messages mode, from reasoning only, as the message that is kept."""
    thread = Thread(client, web="never")
    told = thread.messages(CODE)
    assert {node for _, node in told} == {"reasoning"}
    kept = thread.state()["values"]["messages"][-1]
    assert "".join(message["content"] for message, _ in told) == kept["content"]
    assert {message["id"] for message, _ in told} == {kept["id"]}


def test_an_llm_streams_token_by_token_and_only_its_answer(client: httpx.Client, bench: Bench) -> None:
    """What the LLM says to the planner is no message; what it takes back is another message than what it says then."""
    bench.llm.script(_by_prompt("It may be 1234.</think>The vault code is 7719 [1]."))
    thread = Thread(client, web="never", llm="openai/scripted")
    thread.ask("When are tomatoes watered?")
    told = thread.messages(CODE)
    assert {node for _, node in told} == {"reasoning"}
    drafts: dict[str, str] = {}
    for message, _ in told:
        drafts[message["id"]] = drafts.get(message["id"], "") + message["content"]
    assert list(drafts.values()) == ["It may be", "The vault code is 7719 [1]."]
    assert len(told) > 6
    kept = thread.state()["values"]["messages"][-1]
    assert (kept["id"], kept["content"]) == (list(drafts)[-1], "The vault code is 7719 [1].")


def _by_prompt(answer: str) -> Any:
    def reply(request: dict[str, Any]) -> Reply:
        return says(answer if "numbered passages" in request["messages"][0]["content"] else "REWRITE vault")

    return reply


def test_an_abstention_is_one_whole_message(client: httpx.Client) -> None:
    """No token of it comes from the writing node: it is told once, by reflection."""
    [(message, node)] = Thread(client, web="never").messages("Who won the football world cup in 1990?")
    assert (node, message["type"]) == ("reflection", "ai")


def test_a_person_edits_the_query_for_the_web(client: httpx.Client, bench: Bench) -> None:
    """The run waits with the query shown; what the person makes of it is sent, once, and is in the record."""
    thread = Thread(client, ask_person=True)
    thread.ask(LIGHTHOUSE)
    assert (thread.waits_for()["ask"], thread.waits_for()["query"]) == ("web_search", LIGHTHOUSE)
    assert bench.web.queries == []
    result = thread.answer({"query": "When was Marrow Point lighthouse built"})["result"]
    assert bench.web.queries == ["When was Marrow Point lighthouse built"]
    assert (result["status"], result["citations"][0]["url"]) == ("answered", ON_THE_WEB["url"])
    assert result["record"]["passes"][-1]["web_query"] == "When was Marrow Point lighthouse built"
    assert result["usage"]["web_calls"] == 1


def test_a_person_says_no(client: httpx.Client, bench: Bench) -> None:
    """An answer that can't be understood is asked for again, a no ends as no consent does: nothing is sent."""
    thread = Thread(client, ask_person=True, max_retries=0)
    thread.ask(LIGHTHOUSE)
    thread.answer("hm, perhaps")
    assert "Not understood" in thread.waits_for()["problem"]
    result = thread.answer({"approve": False})["result"]
    assert bench.web.queries == []
    unasked = Thread(client, web_consent="no", max_retries=0).ask(LIGHTHOUSE)["result"]
    assert (result["status"], result["answer"], result["web_used"]) == ("abstained", unasked["answer"], False)


def test_a_person_edits_the_query_of_a_retry(client: httpx.Client, bench: Bench) -> None:
    """The LLM's proposal is shown with what was tried; the person's query is searched for, and no call made twice."""
    bench.llm.script(_by_prompt("The vault code is 7719 [1]."))
    thread = Thread(client, ask_person=True, web="never", max_retries=1, llm="openai/scripted")
    thread.ask("Which digits open the strongroom?")
    asked = thread.waits_for()
    assert (asked["ask"], asked["query"]) == ("retry_query", "REWRITE vault")
    assert asked["tried"] == ["Which digits open the strongroom?"]
    assert len(bench.llm.requests) == 1
    result = thread.answer({"query": CODE})["result"]
    assert result["queries"] == result["record"]["judged_by"] == ["Which digits open the strongroom?", CODE]
    assert (result["status"], result["usage"]["llm_calls"]) == ("answered", 2)
    assert len(bench.llm.requests) == 2


def test_a_person_wants_no_retry(client: httpx.Client) -> None:
    """The run ends with what it has, at once."""
    thread = Thread(client, ask_person=True, web="never")
    thread.ask("Who won the football world cup in 1990?")
    assert thread.waits_for()["ask"] == "retry_query"
    result = thread.answer("no")["result"]
    assert result["status"] == "abstained"
    assert [search["query"] for search in result["record"]["passes"]] == ["Who won the football world cup in 1990?"]


def test_nobody_is_asked_unless_the_run_says_so(client: httpx.Client, bench: Bench) -> None:
    """By default a run never waits, and consent `ask` is a no; with `yes` nobody needs to be asked."""
    assert Thread(client).ask(LIGHTHOUSE)["result"]["status"] == "abstained"
    assert bench.web.queries == []
    result = Thread(client, ask_person=True, web_consent="yes").ask(LIGHTHOUSE)["result"]
    assert (result["web_used"], bench.web.queries) == (True, [LIGHTHOUSE])


def test_a_run_is_taken_up_again_from_an_earlier_state(client: httpx.Client) -> None:
    """From the checkpoint before the search: as it was, and with another query, beside which the first stays."""
    thread = Thread(client, web="never", max_retries=0)
    first = thread.ask(CODE)["result"]
    history = client.get(f"/threads/{thread.id}/history", params={"limit": 50}).json()
    [before_search] = [state for state in history if state["next"] == ["hybrid"]]
    again = thread.run(checkpoint=before_search["checkpoint"])["result"]
    assert _without_times(again) == _without_times(first)
    changed = {"question": "When are tomatoes watered?", "query": "When are tomatoes watered?"}
    edit = {"values": {**changed, "queries": [changed["query"]]}, "checkpoint": before_search["checkpoint"]}
    fork = client.post(f"/threads/{thread.id}/state", json=edit).json()["checkpoint"]
    other = thread.run(checkpoint=fork)["result"]
    assert [citation["file_name"] for citation in other["citations"]] == ["garden.md"]


def test_a_question_in_place_of_an_answer(client: httpx.Client, bench: Bench) -> None:
    """Who asks something else while a run waits gets that answered; the query that waited is never sent."""
    thread = Thread(client, ask_person=True)
    thread.ask(LIGHTHOUSE)
    values = thread.ask(CODE)
    assert (values["result"]["question"], values["result"]["status"]) == (CODE, "answered")
    assert [message["content"] for message in values["messages"][:2]] == [LIGHTHOUSE, CODE]
    assert bench.web.queries == []


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ({"collection": "nowhere"}, "There is no collection nowhere"),
        ({"top_k": 0}, "top_k"),
        ({"filters": {"$nope": 1}}, "$nope"),
        ({"filters": {"nofield": 1}}, "No document of the collection default has the field nofield. These fields"),
    ],
)
def test_what_can_not_run_says_why(client: httpx.Client, knobs: dict[str, Any], told: str) -> None:
    """An error's own words are shown, with what to do; not that something internal happened."""
    asked = {"assistant_id": "leadline", "context": knobs, "input": {"question": CODE}}
    assert told in client.post("/runs/wait", json=asked).json()["__error__"]["message"]


def test_the_chat_api_is_mounted_beside(client: httpx.Client) -> None:
    """Leadline's routes are under /leadline, LangGraph's where they always are; both are of one library."""
    asked = {"question": CODE, "web": "never"}
    whole = client.post("/leadline/chat", json={**asked, "stream": False}).json()
    assert _without_times(whole) == _without_times(Thread(client, web="never").ask(CODE)["result"])
    streamed = client.post("/leadline/chat", json=asked).text
    assert "event: token" in streamed
    assert streamed.count("event: final") == 1
    assert client.get("/leadline/ready").json()["status"] == "ready"
    assert "/chat" in client.get("/leadline/openapi.json").json()["paths"]
    assert client.get("/leadline/nothing").json()["error"]["code"] == "not_found"
    assert client.post("/threads/search", json={}).is_success
    page = client.get("/leadline", follow_redirects=True)
    for link in re.findall(r'(?:src|href)="([^"#]+)"', page.text):
        assert client.get(page.url.join(link)).is_success, link


@pytest.mark.parametrize("path", ["/threads/search", "/leadline/chat"])
@pytest.mark.parametrize("named", [{"Host": "evil.test"}, {"Origin": "https://evil.test"}])
def test_strangers_are_refused(client: httpx.Client, path: str, named: dict[str, str]) -> None:
    """A page that isn't Studio's can't use the server of whoever looks at it, by its name or by another."""
    assert client.post(path, json={"question": CODE}, headers=named).status_code == 403


def test_the_page_of_studio_is_let_in(client: httpx.Client) -> None:
    """It is loaded from LangSmith and talks to this server."""
    studio = {"Origin": "https://smith.langchain.com"}
    reply = client.post("/threads/search", json={}, headers=studio)
    assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (200, studio["Origin"])
    assert client.get("/leadline/health", headers=studio).status_code == 403


def test_nothing_blocks_the_event_loop(client: httpx.Client, bench: Bench) -> None:
    """A run goes without a switch that allows blocking calls; at the end the same is asked of all runs here."""
    Thread(client, web="never").ask(CODE)
    log = bench.studio.log.read_text("utf-8")
    assert "Background run succeeded" in log
    assert "Blocking" not in log
