"""The local LLM as it is run: a small model on llama.cpp's real server, in a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from leadline.config import Settings
from leadline.errors import ConfigError, MissingExtra, ModelUnavailable
from leadline.models import local_llm
from leadline.models.chat import LiteLLMChat, open_chat
from leadline.models.local_llm import CONTEXT_TOKENS, EVIDENCE_TOKENS, LocalServer, serving, stop_all
from leadline.models.served import OwnServer

pytestmark = [
    # LiteLLM's own logging and its cached clients, not ours to close.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("no_servers_left"),
]
ASK = [{"role": "user", "content": "Say hello."}]


class Colour(BaseModel):
    """What the model is asked for."""

    name: str
    warm: bool


def chat(file: Path) -> Any:
    """The chat model of a file, opened as everywhere."""
    return open_chat(f"local:{file}", Settings(llm_timeout_s=120))


def process_of(server: LocalServer) -> Any:
    """The process behind the server."""
    return server._process


async def test_it_starts_when_it_is_asked_and_is_shared(small_gguf: Path) -> None:
    """Nothing runs before the first call; two chats of one file use one process; replies stream and are counted."""
    one, other = chat(small_gguf), chat(small_gguf)
    assert await one.limits() == await other.limits()
    assert process_of(serving(small_gguf)) is None
    deltas = [delta async for delta in one.stream(ASK, max_tokens=8)]
    begun = process_of(serving(small_gguf)).pid
    assert len([delta for delta in deltas if delta.text]) > 2
    assert deltas[-1].finish_reason in ("stop", "length")
    assert deltas[-1].usage.prompt_tokens > 5
    assert 0 < deltas[-1].usage.completion_tokens <= 8
    assert (await other.count_tokens(["one two three", ""])) == [3, 0]
    assert process_of(serving(small_gguf)).pid == begun


async def test_only_its_own_process_may_ask(small_gguf: Path) -> None:
    """It listens on loopback; without the key nothing is told; the key stands in no process list or environment."""
    server = serving(small_gguf)
    url, key = await asyncio.to_thread(server.address)
    assert url.startswith("http://127.0.0.1:")
    async with httpx.AsyncClient(trust_env=False) as client:
        asked = {"messages": ASK, "max_tokens": 1}
        for path in ("/v1/chat/completions", "/completion", "/tokenize", "/slots"):
            assert (await client.post(url + path, json=asked)).status_code in (401, 404, 501), path
        allowed = {"Authorization": f"Bearer {key}"}
        assert (await client.get(f"{url}/v1/models", headers=allowed)).status_code == 200
        assert (await client.get(f"{url}/slots", headers=allowed)).status_code != 200
    assert key.encode() not in _visible(process_of(server).pid)


def _visible(pid: int) -> bytes:
    """What a list of processes can show of one, where the system tells."""
    place = Path(f"/proc/{pid}")
    return b"".join((place / name).read_bytes() for name in ("cmdline", "environ")) if place.exists() else b""


async def test_any_client_learns_the_window_and_the_tokens_from_the_server(small_gguf: Path) -> None:
    """llama.cpp's server says both, so one that a person runs is fitted to without a setting."""
    url, key = await asyncio.to_thread(serving(small_gguf).address)
    model = LiteLLMChat("openai/local", own=OwnServer(f"{url}/v1", key, 60))
    assert (await model.limits()).context == CONTEXT_TOKENS
    assert await model.count_tokens(["Hello world, this"]) == [4]


async def test_a_reply_is_held_to_its_schema(small_gguf: Path) -> None:
    """The server keeps even a tiny model to the object that is asked for."""
    found, usage = await chat(small_gguf).structured([{"role": "user", "content": "Name a colour."}], Colour)
    assert isinstance(found, Colour)
    assert usage.calls == 1


async def test_a_prompt_longer_than_its_window_is_refused(small_gguf: Path) -> None:
    """Nothing is cut without a word: the server's refusal is told as what it is."""
    from leadline.errors import ContextTooLong

    with pytest.raises(ContextTooLong):
        [delta async for delta in chat(small_gguf).stream([{"role": "user", "content": "word " * CONTEXT_TOKENS}])]


async def test_a_server_that_was_killed_is_started_again(small_gguf: Path) -> None:
    """The next call finds a new one."""
    server = serving(small_gguf)
    await asyncio.to_thread(server.address)
    first = process_of(server)
    first.kill()
    first.wait()
    assert (await chat(small_gguf).count_tokens(["a"]))[0] == 1
    assert process_of(server).pid != first.pid
    assert first.stdin.closed
    assert first.stdout.closed


async def test_stopping_ends_the_process(small_gguf: Path) -> None:
    """After `stop_all` nothing of it runs."""
    server = serving(small_gguf)
    await asyncio.to_thread(server.address)
    process = process_of(server)
    stop_all()
    assert process.poll() is not None


STARTS = """
import sys, time
from pathlib import Path
from leadline.models.local_llm import serving
server = serving(Path(sys.argv[1]))
server.address()
print(server._process.pid, flush=True)
if sys.argv[2] == "wait":
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("end", ["kill", "exit"])
def test_no_orphan_is_left(small_gguf: Path, end: str) -> None:
    """However its parent ends, by its own exit or by a kill that it can't answer, the server ends too."""
    command = [sys.executable, "-c", STARTS, str(small_gguf), "wait" if end == "kill" else "go"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if end == "kill":
            parent.send_signal(signal.SIGKILL)
        parent.wait()
    deadline = time.monotonic() + 10
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")


async def test_a_damaged_model_is_explained(tmp_path: Path, small_gguf: Path) -> None:
    """A file that begins right and goes on wrong ends in an error that names it, and leaves no process."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\xff" * 1000)
    with pytest.raises(ModelUnavailable, match=r"broken\.gguf could not be started"):
        await chat(broken).count_tokens(["a"])
    assert process_of(serving(broken)) is None


async def test_a_start_that_takes_too_long_is_ended_and_said(small_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error tells the time that it had, and no process is left."""
    monkeypatch.setattr(local_llm, "START_TIMEOUT_S", 0.01)
    with pytest.raises(ModelUnavailable, match=r"not ready within 0\.01 s"):
        await chat(small_gguf).count_tokens(["a"])
    assert process_of(serving(small_gguf)) is None


async def test_what_is_no_model_is_not_started(tmp_path: Path, small_gguf: Path) -> None:
    """A missing file and one of another kind are told the same way, without their path."""
    (tmp_path / "passwords").write_text("secret")
    for name in ("passwords", "missing.gguf"):
        with pytest.raises(ModelUnavailable, match=f"^{name} is no GGUF file") as error:
            await chat(tmp_path / name).count_tokens(["a"])
        assert str(tmp_path) not in str(error.value)


async def test_weights_that_were_not_fetched_are_explained(tmp_path: Path, small_gguf: Path) -> None:
    """`local` without its weights names the command that fetches them; asking fetches nothing by itself."""
    model = open_chat("local", Settings(models_dir=tmp_path))
    assert model is not None
    with pytest.raises(ModelUnavailable, match="leadline models fetch local-llm"):
        await model.count_tokens(["a"])
    assert not any(os.scandir(tmp_path))


async def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without llama.cpp is told what to install: a wrong setting, not a passing failure."""
    monkeypatch.setattr(local_llm.importlib.util, "find_spec", lambda name: None)
    model = open_chat("local", Settings(models_dir=tmp_path))
    assert model is not None
    with pytest.raises(MissingExtra, match="local-llm") as error:
        await model.count_tokens(["a"])
    assert isinstance(error.value, ConfigError)


async def test_its_limits_are_known_without_it() -> None:
    """What fits is known before anything is started, and is little."""
    model = open_chat("local", Settings())
    assert model is not None
    limits = await model.limits()
    assert (limits.context, limits.evidence) == (CONTEXT_TOKENS, EVIDENCE_TOKENS)
    assert model.name == "local"
