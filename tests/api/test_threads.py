"""Conversations over HTTP: one run at a time, one collection."""

import asyncio
import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from leadline import Settings
from leadline.graph.conversations import open_conversations

QUESTION = "What does error E-217 mean?"


@pytest.mark.parametrize("stream", [True, False])
def test_a_busy_conversation_gets_409(
    copied: Path, tmp_path: Path, serving: Callable[[Settings], AbstractContextManager[str]], stream: bool
) -> None:
    """While another process has a run in it: before any event, in the one shape of errors; another thread goes on."""
    settings = Settings(data_dir=shutil.copytree(copied, tmp_path / "data"))

    async def refused_while_held(url: str) -> httpx.Response:
        async with (
            open_conversations(settings) as conversations,
            conversations.turn("t", "default"),
            httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client,
        ):
            other = await client.post("/chat", json={"question": QUESTION, "thread_id": "u", "stream": False})
            assert other.status_code == 200
            return await client.post("/chat", json={"question": QUESTION, "thread_id": "t", "stream": stream})

    with serving(settings) as url:
        refused = asyncio.run(refused_while_held(url))
        assert refused.status_code == 409
        assert json.loads(refused.text)["error"]["code"] == "thread_busy"
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            body = {"question": QUESTION, "thread_id": "t", "stream": False}
            assert client.post("/chat", json=body).status_code == 200
