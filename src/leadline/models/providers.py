"""LiteLLM as a library: loaded without a look at the network, its errors by kind, its prices, windows and tokenizers.

Knows no prompt and sends nothing.
"""

import functools
import gc
import math
import os
import re
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx

from leadline.errors import ChatFailed, ConfigError, ContextTooLong
from leadline.models.base import ChatUsage
from leadline.records import Usage

_TOO_LONG = re.compile(
    r"context.?(?:window|length|size)|maximum context|too many (?:input )?tokens|prompt is too long",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
# Tokenizers that LiteLLM has in its package; others it would fetch from a hub.
_BUNDLED = frozenset({None, "anthropic", "deepseek"})
_ANY_MODEL = "gpt-4o"
# Names of variables that hold keys end so. A shorter value is a word that may stand in any message.
_SECRET = ("_KEY", "_TOKEN", "_SECRET")
_KEY_CHARS = 8
# Servers that cut a prompt without a word unless they are told how long it may be.
SILENT_CUTTERS = frozenset({"ollama", "ollama_chat"})
TOLD_WINDOW = 8192


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed try: what to raise, how many more tries such a failure is worth, and the pause it asks for."""

    error: ChatFailed
    tries: int
    pause_s: float | None = None


_importing = threading.Lock()


@contextmanager
def _no_collections() -> Iterator[None]:
    """The garbage collector rests: LiteLLM's thousands of classes stay, and looking through them took a quarter of
    the time of the import. One thread at a time, so that the last to come doesn't find it off and leave it so.
    """
    with _importing:
        on = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if on:
                gc.enable()


@functools.cache
def library() -> Any:
    """LiteLLM, imported so that it looks up no prices in the network and prints nothing."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with _no_collections():
        import litellm  # takes seconds, and only those who name an LLM need it

    litellm.suppress_debug_info = True
    litellm.disable_aiohttp_transport = True  # its sessions outlive the event loop that made them
    setattr(litellm, "telemetry", False)  # noqa: B010 - older versions have it, newer ones don't
    return litellm


def provider_of(litellm: Any, model: str, api_base: str | None) -> str:
    """The provider that the model string names. Raises ConfigError for a string that names none."""
    try:
        return str(litellm.get_llm_provider(model, api_base=api_base)[1])
    except failures(litellm):
        hint = "Name it as provider/model, such as openai/gpt-4o-mini or ollama/qwen2.5."
        raise ConfigError(f"LiteLLM knows no provider for the model {model!r}.", hint=hint) from None


def list_unlisted(litellm: Any, model: str, provider: str) -> None:
    """Has LiteLLM ask no Ollama server about the model, as it does at each call of one that it doesn't list.

    It would wait for that on the event loop, and at Ollama's usual address whatever server is named.
    """
    if provider in SILENT_CUTTERS:
        litellm.model_cost.setdefault(model, {"litellm_provider": provider, "mode": "chat"})


def straight_client(litellm: Any, provider: str, api_base: str | None, key: str | None) -> Any:
    """A client for an OpenAI-style server on this machine, None for any other: that is LiteLLM's to make.

    It passes the environment's proxies by, which would be given every prompt. It keeps no connection open.
    """
    if provider != "openai" or api_base is None or not _is_here(api_base):
        return None
    http = httpx.AsyncClient(
        trust_env=False, verify=authorities(api_base), limits=httpx.Limits(max_keepalive_connections=0)
    )
    key = key or os.environ.get("OPENAI_API_KEY")
    return litellm.exceptions.openai.AsyncOpenAI(base_url=api_base, api_key=key, http_client=http, max_retries=0)


def authorities(api_base: str) -> ssl.SSLContext | bool:
    """What a server's certificate is checked with; False where it shows none.

    Kept, since reading the list of authorities takes longer than many a request, and the event loop stands meanwhile.
    """
    return not api_base.lower().startswith("http:") and _authorities()


@functools.cache
def _authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


def _is_here(api_base: str) -> bool:
    host = urlsplit(api_base).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def failures(litellm: Any) -> tuple[type[Exception], ...]:
    """Everything a call can raise: LiteLLM's errors all derive from its OpenAI client's."""
    return (litellm.exceptions.openai.OpenAIError, httpx.HTTPError)


def said(error: BaseException) -> str:
    """What an error says first, without a key that its server repeats: it is shown to whoever asked."""
    lines = str(error).strip().splitlines()
    said = lines[0] if lines else type(error).__name__
    for name, value in os.environ.items():
        if name.upper().endswith(_SECRET) and len(value) >= _KEY_CHARS:
            said = said.replace(value, f"[{name}]")
    return said[:300]


def is_too_long(error: Exception) -> bool:
    """Whether a refusal says that the prompt doesn't fit."""
    return _TOO_LONG.search(str(error)) is not None


def explained(litellm: Any, model: str, error: Exception, *, missing_keys: Sequence[str], retries: int) -> Failure:
    """What a failed try means, by its kind."""
    kinds, message = litellm.exceptions, said(error)
    text = f"{model} failed: {message}"
    denied = isinstance(error, kinds.AuthenticationError | kinds.PermissionDeniedError)
    # Some clients report a missing key as a server's error.
    if denied or (missing_keys and "key" in message):
        hint = f"Set {' and '.join(missing_keys)} in the environment." if missing_keys else _KEY_HINT
        return Failure(ChatFailed(text, hint=hint), 0)
    if isinstance(error, kinds.BadRequestError) and is_too_long(error):
        return Failure(ContextTooLong(text, hint="Lower max_context_tokens, or name a model that reads more."), 0)
    if isinstance(error, kinds.NotFoundError):
        hint = "Check the model's name, and api_base for a local server."
        return Failure(ChatFailed(text, hint=hint), 0)
    if isinstance(error, kinds.RateLimitError):
        if _QUOTA.search(str(error)):
            return Failure(ChatFailed(text, hint="The provider's quota is spent: waiting doesn't help."), 0)
        return Failure(ChatFailed(text, retryable=True), retries, retry_after(error))
    if isinstance(error, kinds.Timeout | httpx.TimeoutException):
        return Failure(ChatFailed(text, retryable=True), min(1, retries))  # each costs the whole time-out
    passing = kinds.APIConnectionError | kinds.ServiceUnavailableError | kinds.InternalServerError | httpx.HTTPError
    retryable = isinstance(error, passing)
    return Failure(ChatFailed(text, retryable=retryable), retries if retryable else 0, retry_after(error))


_KEY_HINT = "Check the key of this provider."


def retry_after(error: Exception) -> float | None:
    """The seconds that the provider asks to wait, where it says so in seconds."""
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None


def priced(litellm: Any, model: str) -> Mapping[str, Any]:
    """What LiteLLM's own list says of the model: prices and window. Empty for one it doesn't list."""
    found = litellm.model_cost.get(model) or litellm.model_cost.get(model.partition("/")[2]) or {}
    return found if isinstance(found, Mapping) else {}


def spent(litellm: Any, model: str, usage: Any) -> ChatUsage | None:
    """The usage of a response; None where it has none that can be. Money as the provider says, else by LiteLLM's
    prices.
    """
    if usage is None:
        return None
    prompt, completion = int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0)
    if prompt < 0 or completion < 0:
        return None  # below zero it would give budget back
    told = getattr(usage, "cost", None)
    if isinstance(told, int | float) and not isinstance(told, bool) and 0 <= told < math.inf:
        return ChatUsage(prompt, completion, float(told))
    return ChatUsage(prompt, completion, _cost(litellm, model, usage_object=usage))


def estimated(litellm: Any, model: str, prompt: int, completion: int) -> ChatUsage:
    """The usage of a call that was counted here, since its response said nothing."""
    return ChatUsage(prompt, completion, _cost(litellm, model, prompt_tokens=prompt, completion_tokens=completion))


def _cost(litellm: Any, model: str, **counted: Any) -> float:
    if not priced(litellm, model):  # it would look for such a model in the network
        return 0.0
    try:
        return float(sum(litellm.cost_per_token(model=model, **counted)))
    except Exception:  # noqa: BLE001 a price list that can't be applied must not cost the answer
        return 0.0


def as_usage(usage: ChatUsage) -> Usage:
    """One call, in the keys of a run's usage."""
    return Usage(
        llm_calls=usage.calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost=usage.cost,
    )


def window_of(litellm: Any, model: str, provider: str) -> int | None:
    """The tokens of prompt and reply together, as far as LiteLLM's list knows them."""
    listed = priced(litellm, model)
    window = listed.get("max_input_tokens") or listed.get("max_tokens")
    if provider in SILENT_CUTTERS:
        return min(int(window or TOLD_WINDOW), TOLD_WINDOW)
    return int(window) if window else None


def reply_limits(litellm: Any, model: str) -> dict[str, Any]:
    """The longest reply and the prices of a token, in the words of ChatLimits, as far as LiteLLM's list knows them."""
    listed = priced(litellm, model)
    longest = listed.get("max_output_tokens")
    return {
        "reply": int(longest) if longest else None,
        "prompt_price": float(listed.get("input_cost_per_token") or 0.0),
        "reply_price": float(listed.get("output_cost_per_token") or 0.0),
    }


def count(litellm: Any, model: str, texts: Sequence[str]) -> list[int]:
    """The tokens of each text by LiteLLM's tokenizer for the model; where it would fetch that, by OpenAI's."""
    kind_of = getattr(litellm.utils, "huggingface_tokenizer_kind", None)
    known = kind_of is not None and kind_of(model) in _BUNDLED
    return [int(litellm.token_counter(model=model if known else _ANY_MODEL, text=text)) for text in texts]
