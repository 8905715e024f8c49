"""A worker that is killed in the midst of an answer: what its clients see, and what is left for the next question."""

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai
import pytest
from mcp import MCPError
from openai import OpenAI
from tests.api.mcp_tools import call, served_apart
from tests.api.test_metrics import figures
from tests.api.test_workers import by_command, children, served, wait_for
from tests.servers.chat_server import LITELLM_WARNINGS, ChatServer, Reply, running_chat_server, says

pytestmark = [
    *LITELLM_WARNINGS,
    pytest.mark.skipif(sys.platform != "linux", reason="finds in /proc who holds a connection"),
]

QUESTION = "What is the bollard pull of the tug Anvil?"
GOOD = "*Anvil* has a bollard pull of 32 tonnes [1]."
DRIBBLE = Reply(tuple(f"{word} " for word in GOOD.split()[:3]) + ("pull ",) * 400, pause_s=0.1)
ASKED: list[Any] = [{"role": "user", "content": QUESTION}]


@dataclass(frozen=True)
class Two:
    """Two workers behind one address, what they say, and the LLM that they ask."""

    url: str
    log: Path
    chat: ChatServer

    def workers(self) -> set[int]:
        """All that were ever started."""
        return set(map(int, re.findall(r"Started server process \[(\d+)\]", self.log.read_text())))

    def kill_who_serves(self, client_port: int) -> None:
        """At once, as the kernel does when memory is short: the worker at the other end of this connection.

        What it has sent already may be read yet; its end is no reason to look for it again.
        """
        inode = _inode(urlsplit(self.url).port or 0, client_port)
        for found in [pid for pid in self.workers() if inode in _sockets(pid)]:
            os.kill(found, signal.SIGKILL)


def _inode(server_port: int, client_port: int) -> str:
    """The server's socket of a connection over loopback; empty where it is closed."""
    for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
        fields = line.split()
        local, remote = fields[1:3]
        if (int(local[-4:], 16), int(remote[-4:], 16)) == (server_port, client_port):
            return fields[9]
    return ""


def _words(pid: int) -> list[bytes]:
    """The command line of a process; none where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return []


def _sockets(pid: int) -> set[str]:
    """The sockets that a process has open; none where it has ended."""
    found = set()
    for file in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            found.update(re.findall(r"socket:\[(\d+)\]", str(file.readlink())))
        except FileNotFoundError:  # closed meanwhile
            continue
    return found


@pytest.fixture(scope="module")
def two(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """For all tests here: whoever was killed is replaced."""
    folder = tmp_path_factory.mktemp("two")
    shutil.copytree(copied, folder / "data")
    with running_chat_server() as chat, pytest.MonkeyPatch.context() as patch:
        told = {
            "LEADLINE_RUN__LLM": "openai/scripted",
            "LEADLINE_RUN__WEB": "never",
            "LEADLINE_RUN__MAX_RETRIES": "0",
            "LEADLINE_LLM_API_BASE": chat.url,
            "LEADLINE_LLM_RETRIES": "0",
            "OPENAI_API_KEY": "none",
        }
        for name, value in told.items():
            patch.setenv(name, value)
        with served(by_command(folder / "data"), folder / "log") as (_, url):
            yield Two(url, folder / "log", chat)


def port_of(response: httpx.Response) -> int:
    """This end of the connection that a response comes over."""
    return int(response.extensions["network_stream"].get_extra_info("client_addr")[1])


def collect(coming: Iterable[Any], got: list[Any], after_each: Callable[[], object]) -> None:
    """What comes, until it ends or raises."""
    for each in coming:
        got.append(each)
        after_each()


def gauge(client: httpx.Client, name: str) -> float:
    """What is going on now."""
    return sum(value for (found, _), value in figures(client).items() if found == name)


def test_a_stream_of_a_killed_worker_is_interrupted_and_the_conversation_goes_on(two: Two) -> None:
    """It ends without `final`, which is what `interrupted` is. The next question in the conversation is answered at
    once, by the other worker; nothing of the half answer is kept, and nothing counts as going on."""
    two.chat.script(DRIBBLE)
    asked = {"question": QUESTION, "thread_id": "t1"}
    seen: list[str] = []
    with (
        httpx.stream("POST", f"{two.url}/chat", json=asked, timeout=60, trust_env=False) as answer,
        pytest.raises(httpx.RemoteProtocolError, match="incomplete"),
    ):
        collect(answer.iter_lines(), seen, lambda: "event: token" in seen and two.kill_who_serves(port_of(answer)))
    assert "event: token" in seen
    assert "event: final" not in seen
    two.chat.script(says(GOOD))
    with httpx.Client(base_url=two.url, timeout=60, trust_env=False) as client:
        again = client.post("/chat", json={**asked, "stream": False})
        assert (again.status_code, again.json()["status"], again.json()["answer"]) == (200, "answered", GOOD)
        said = client.get("/threads/t1").json()["messages"]
        assert [(each["role"], each["text"]) for each in said] == [("user", QUESTION), ("assistant", GOOD)]
        assert gauge(client, "leadline_runs_in_flight") == 0
        assert gauge(client, "leadline_http_requests_in_flight") == 1  # the one for the figures
    wait_for(lambda: two.log.read_text().count("Application startup complete") == 3, 120)


def test_openais_client_raises_where_a_worker_is_killed(two: Two) -> None:
    """A stream ends with an exception of the connection, not as if it were done: no chunk had a reason to finish."""
    two.chat.script(DRIBBLE)
    chunks: list[Any] = []
    with (
        httpx.Client(trust_env=False, timeout=60) as http,
        OpenAI(base_url=f"{two.url}/v1", api_key="none", http_client=http, max_retries=0) as client,
    ):
        stream = client.chat.completions.create(model="leadline", messages=ASKED, stream=True)
        with pytest.raises(openai.APIConnectionError):
            # after the opening and the first words of a draft
            collect(stream, chunks, lambda: len(chunks) == 3 and two.kill_who_serves(port_of(stream.response)))
        assert {chunk.choices[0].finish_reason for chunk in chunks} == {None}


def test_openais_client_asks_again_by_itself_where_nothing_was_streamed(two: Two) -> None:
    """A reply that was to come whole is asked for once more, as that client does, and the other worker gives it."""
    two.chat.script(DRIBBLE, says(GOOD))
    two.chat.asked.clear()
    with (
        httpx.Client(trust_env=False, timeout=60) as http,
        OpenAI(base_url=f"{two.url}/v1", api_key="none", http_client=http, max_retries=1) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        held = http.get(f"{two.url}/health")  # over the connection that the question takes
        asking = pool.submit(client.chat.completions.create, model="leadline", messages=ASKED)
        assert two.chat.asked.wait(60)
        two.kill_who_serves(port_of(held))
        assert asking.result(120).choices[0].message.content == GOOD


async def test_an_agents_server_that_is_killed_gives_no_result(
    copied: Path, tmp_path: Path, chat_server: ChatServer
) -> None:
    """The call ends with an error, at once and not with what was drafted; a new server answers the question."""
    chat_server.script(DRIBBLE)
    folder = shutil.copytree(copied, tmp_path / "data")
    env = {
        "LEADLINE_RUN__LLM": "openai/scripted",
        "LEADLINE_RUN__WEB": "never",
        "LEADLINE_LLM_API_BASE": chat_server.url,
        "OPENAI_API_KEY": "none",
    }
    async with served_apart(folder, **env) as client:
        asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
        assert await asyncio.to_thread(chat_server.asked.wait, 60)
        [server] = [pid for pid in children(os.getpid()) if b"mcp" in _words(pid)]
        os.kill(server, signal.SIGKILL)
        with pytest.raises(MCPError, match="Connection closed"):
            await asyncio.wait_for(asking, 30)
    chat_server.script(says(GOOD))
    async with served_apart(folder, **env) as client:
        assert (await call(client, "ask", question=QUESTION))["answer"] == GOOD
