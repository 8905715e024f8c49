"""What an OpenAI-style server says of its model beyond that protocol: how much it reads, and how it counts.

Knows llama.cpp's server and vLLM's; of any other it learns nothing, which is no error.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from leadline.errors import ConfigError
from leadline.models.providers import authorities

TIMEOUT_S = 5.0
_AT_ONCE = 8


def check_address(api_base: str | None) -> None:
    """Raises ConfigError for what is no address of a server. It isn't repeated there: it may hold a password."""
    try:
        parts = urlsplit(api_base or "http://none")
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # half an address of IPv6, or a port that is none
        known = False
    if not known:
        raise ConfigError(
            "LEADLINE_LLM_API_BASE is no address of a server.", hint="One is written http://localhost:8000/v1."
        )


@dataclass(frozen=True, slots=True)
class OwnServer:
    """A server that this process runs: behind a key, holding replies to a JSON schema, and slow to begin."""

    api_base: str
    api_key: str
    first_s: float


class ServedModel:
    """A server's model. What it says is asked for once; texts are counted by it while it does so."""

    def __init__(self, api_base: str, model: str, api_key: str | None = None) -> None:
        self._base = api_base.rstrip("/")
        self._root = self._base.removesuffix("/v1")
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._window: int | None = None
        self._asked = False
        self._counts = True

    async def window(self) -> int | None:
        """The tokens of prompt and reply together; None where the server doesn't say."""
        if not self._asked:
            async with self._client() as client:
                found = await _json(client, "GET", f"{self._base}/models")
            self._asked = found is not None  # a server that can't be reached now may say it later
            self._window = _window(found or {}, self._model)
        return self._window

    async def count(self, texts: Sequence[str]) -> list[int] | None:
        """The tokens of each text, special ones left out; None where the server can't tell."""
        if not self._counts or not texts:
            return None if texts else []
        room = asyncio.Semaphore(_AT_ONCE)
        async with self._client() as client:

            async def tokenized(text: str) -> Mapping[str, Any] | None:
                async with room:
                    asked = {"content": text, "model": self._model, "prompt": text, "add_special_tokens": False}
                    return await _json(client, "POST", f"{self._root}/tokenize", asked)

            found = await tokenized(texts[0])
            if _count(found) is None:
                self._counts = found is None  # as with the window
                return None
            rest = await asyncio.gather(*(tokenized(text) for text in texts[1:]))
        counted = [number for answer in (found, *rest) if (number := _count(answer)) is not None]
        return counted if len(counted) == len(texts) else None

    def _client(self) -> httpx.AsyncClient:
        # The address is the person's own: no proxy of the environment has a say in it.
        return httpx.AsyncClient(
            headers=self._headers, timeout=TIMEOUT_S, trust_env=False, verify=authorities(self._base)
        )


async def _json(client: httpx.AsyncClient, method: str, url: str, body: Any = None) -> Mapping[str, Any] | None:
    """What it answers, {} if that is no object, None if it can't be reached, is still loading, or is overloaded."""
    try:
        response = await client.request(method, url, json=body)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    if response.is_server_error or response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        return None
    try:
        found = response.json() if response.status_code == httpx.codes.OK else {}
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _window(found: Mapping[str, Any], model: str) -> int | None:
    listed = found.get("data")
    entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    named = [entry for entry in entries if entry.get("id") == model] or (entries if len(entries) == 1 else [])
    for entry in named:
        meta = entry.get("meta")
        told = [entry.get("max_model_len"), meta.get("n_ctx") if isinstance(meta, Mapping) else None]
        if sizes := [size for size in told if isinstance(size, int) and size > 0]:
            return min(sizes)
    return None


def _count(found: Mapping[str, Any] | None) -> int | None:
    tokens = (found or {}).get("tokens")
    return len(tokens) if isinstance(tokens, list) else None
