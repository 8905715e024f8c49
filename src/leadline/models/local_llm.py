"""A local LLM without any setting up: llama.cpp's server in a process of its own, started when it is first asked.

Knows how that process is started, shared and stopped. It listens on loopback only, behind a key that no other user of
the machine can read, and ends with the process that started it, also when that is killed.
"""

import asyncio
import atexit
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from leadline.config import Settings
from leadline.errors import MissingExtra, ModelUnavailable
from leadline.models.base import ChatDelta, ChatLimits, ChatModel, ChatUsage, T
from leadline.models.local_llm_weights import fetched, models_folder
from leadline.models.served import OwnServer

LOCAL, EXTRA = "local", "local-llm"
CONTEXT_TOKENS = 4096
# On a CPU reading costs most: more evidence makes a small model slower and no better.
EVIDENCE_TOKENS = 600
REPLY_TOKENS = 400
START_TIMEOUT_S = 180
# Reading a prompt takes tens of seconds on two cores, and requests stand in line.
FIRST_TOKEN_S = 300
_CHILD = Path(__file__).with_name("local_llm_server.py")


def is_local(setting: str) -> bool:
    """Whether the setting names a model that runs here: `local`, or `local:` and a GGUF file."""
    return setting == LOCAL or setting.startswith(f"{LOCAL}:")


class LocalChat:
    """The chat model of `local` (the weights of the extra) or `local:FILE.gguf`. Its server starts with the first call.

    All of a process share one server per file; it answers one request at a time.
    """

    def __init__(self, setting: str, settings: Settings, *, connect: Callable[[OwnServer, float], ChatModel]) -> None:
        self._setting = setting
        self._settings = settings
        self._connect = connect

    @property
    def name(self) -> str:
        """`local`, with the file's name where another file was named."""
        _, named, file = self._setting.partition(":")
        return f"{LOCAL}:{Path(file).name}" if named else LOCAL

    async def limits(self) -> ChatLimits:
        """Starts nothing: a server here reads as much as it is told to."""
        return ChatLimits(context=CONTEXT_TOKENS, evidence=EVIDENCE_TOKENS, reply=REPLY_TOKENS)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """By the model's own tokenizer. Raises ModelUnavailable."""
        return await (await self._client()).count_tokens(texts)

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None
    ) -> AsyncIterator[ChatDelta]:
        """As any chat model; a reply is never longer than a small model can keep to the matter."""
        client = await self._client()
        async with aclosing(client.stream(messages, max_tokens=_shorter(max_tokens))) as deltas:  # type: ignore[type-var]  # an async generator, typed as an iterator
            async for delta in deltas:
                yield delta

    async def structured(
        self, messages: Sequence[Mapping[str, Any]], schema: type[T], *, max_tokens: int | None = None
    ) -> tuple[T, ChatUsage]:
        """As any chat model; the server holds the reply to the schema."""
        return await (await self._client()).structured(messages, schema, max_tokens=_shorter(max_tokens))

    async def _client(self) -> ChatModel:
        url, key = await asyncio.to_thread(lambda: serving(self._file()).address())
        timeout_s = self._settings.llm_timeout_s
        return self._connect(OwnServer(f"{url}/v1", key, max(timeout_s, FIRST_TOKEN_S)), timeout_s)

    def _file(self) -> Path:
        if importlib.util.find_spec("xllamacpp") is None:
            hint = f"Install it: pip install 'leadline[{EXTRA}]'."
            raise MissingExtra(f"A local LLM needs the extra `{EXTRA}`.", hint=hint)
        _, named, file = self._setting.partition(":")
        if not named:
            return fetched(models_folder(self._settings.models_dir))
        try:
            path = Path(file).expanduser()
            with path.open("rb") as opened:
                if opened.read(4) == b"GGUF":
                    return path.resolve()
        except (OSError, RuntimeError):  # RuntimeError: the home of a user that there isn't
            pass
        raise ModelUnavailable(
            f"{Path(file).name or 'local:'} is no GGUF file that can be read.", hint="Check its path."
        )


def _shorter(max_tokens: int | None) -> int:
    return min(max_tokens or REPLY_TOKENS, REPLY_TOKENS)


class LocalServer:
    """One model file, served while somebody may ask. Safe to use from several threads."""

    def __init__(self, model: Path) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._url, self._key = "", ""

    def address(self) -> tuple[str, str]:
        """Its address and key; starts it first where it doesn't run. Raises ModelUnavailable."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                _end(self._process)  # it ended by itself, its pipes are still open
                self._process = None
            if self._process is None:
                self._start()
            return self._url, self._key

    def stop(self) -> None:
        """Ends it, if it runs."""
        with self._lock:
            if self._process is not None:
                _end(self._process)
                self._process = None

    def _start(self) -> None:
        self._key = secrets.token_urlsafe(32)
        asked = {"model": str(self._model), "api_key": self._key, "context": CONTEXT_TOKENS}
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(  # noqa: S603 this interpreter and a file of this package
                [sys.executable, "-P", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Its threads spin while they wait for each other, and lose time to whatever else wants the cores.
                env={"OMP_WAIT_POLICY": "passive", **os.environ},
                start_new_session=True,  # an interrupt from the keyboard is for the parent to handle
            )
            try:
                said = _first_line(process, json.dumps(asked))
            except BaseException:
                _end(process)
                raise
            if "url" not in said:
                _end(process)
                errors.seek(0)
                last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
                reason = said.get("error") or " ".join(last) or "its process ended"
                raise ModelUnavailable(f"The local LLM {self._model.name} could not be started: {reason[:300]}")
        self._process, self._url = process, str(said["url"])


def _first_line(process: "subprocess.Popen[bytes]", asked: str) -> dict[str, Any]:
    """What the process says when it is ready, {} if it ends first. Past the time for it, it is ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    watch = threading.Timer(START_TIMEOUT_S, process.kill)
    watch.daemon = True
    begun = time.monotonic()
    watch.start()
    try:
        process.stdin.write(f"{asked}\n".encode())
        process.stdin.flush()
        if line := process.stdout.readline():
            return dict(json.loads(line))
        late = time.monotonic() - begun >= START_TIMEOUT_S
        return {"error": f"it was not ready within {START_TIMEOUT_S:g} s"} if late else {}
    except (OSError, ValueError):
        return {}
    finally:
        watch.cancel()


def _end(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()  # the end of its input ends it
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


_servers: dict[tuple[int, Path], LocalServer] = {}
_servers_lock = threading.Lock()


def serving(model: Path) -> LocalServer:
    """The server of this process for the file. A process that was forked off has its own."""
    with _servers_lock:
        return _servers.setdefault((os.getpid(), model), LocalServer(model))


def stop_all() -> None:
    """Ends every server of this process."""
    with _servers_lock:
        mine = [key for key in _servers if key[0] == os.getpid()]
        for key in mine:
            _servers.pop(key).stop()


atexit.register(stop_all)
