"""Chat LLMs through LiteLLM: streamed replies and structured ones, with time-outs, bounded retries and honest ends.

Knows LiteLLM's errors and its stream; knows no prompt. Nothing is imported, looked up or sent before the first call.
"""

import asyncio
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import httpx

from leadline.config import Settings
from leadline.errors import ChatFailed, ChatInterrupted, ConfigError
from leadline.models.base import ChatDelta, ChatModel, ChatUsage, T
from leadline.models.replies import ask_for_schema, ask_to_repair, parse_reply

FIRST_BACKOFF_S = 0.5
_RETRYABLE = ("RateLimitError", "Timeout", "APIConnectionError", "ServiceUnavailableError", "InternalServerError")


def open_chat(setting: str | None, settings: Settings) -> ChatModel | None:
    """The chat model that `setting` names (a LiteLLM model string), None for none. Whether it exists is known later."""
    if not setting:
        return None
    base, timeout_s, retries = settings.llm_api_base, settings.llm_timeout_s, settings.llm_retries
    return LiteLLMChat(setting, api_base=base, timeout_s=timeout_s, retries=retries)


class LiteLLMChat:
    """A chat model by its LiteLLM string (`openai/gpt-4o-mini`, `ollama/qwen2.5`, `openai/local` with `api_base`).

    `timeout_s` is the longest wait for the first token and between two tokens. `retries` is how often a call that
    failed in a way that may pass is made again, with growing pauses, only before its first token.
    """

    def __init__(self, model: str, *, api_base: str | None = None, timeout_s: float = 60, retries: int = 2) -> None:
        self._model = model
        self._api_base = api_base
        self._timeout_s = timeout_s
        self._retries = retries

    @property
    def name(self) -> str:
        """The LiteLLM model string."""
        return self._model

    async def stream(self, messages: Sequence[Mapping[str, Any]]) -> AsyncIterator[ChatDelta]:
        """Yields the reply piece by piece; the last piece has the finish reason and the usage.

        Raises ConfigError for a model that no provider has, ChatFailed before the first piece, ChatInterrupted when
        the stream breaks or ends without a finish reason: what came until then is no answer.
        """
        litellm = await self._library()
        options = {"stream": True, "stream_options": {"include_usage": True}}
        source = await self._retrying(litellm, lambda: self._first(litellm, messages, options))
        first, chunks = source
        finish, usage = None, ChatUsage()
        async with aclosing(chunks):
            chunk: Any = first
            while chunk is not None:
                text, reason = _delta(chunk)
                finish, usage = reason or finish, self._usage(litellm, chunk) or usage
                if text:
                    yield ChatDelta(text)
                chunk = await self._next(litellm, chunks)
            if finish is None or _invented_finish(chunks):
                raise ChatInterrupted(f"{self._model} ended its reply without a finish reason.")
        yield ChatDelta(finish_reason=finish, usage=usage)

    async def structured(self, messages: Sequence[Mapping[str, Any]], schema: type[T]) -> tuple[T, ChatUsage]:
        """One reply as a validated object of `schema`; one repair is asked for. Raises ChatFailed."""
        litellm = await self._library()
        supported = litellm.supports_response_schema(model=self._model)
        options = {"response_format": schema} if supported else {}
        asked = list(messages) if supported else ask_for_schema(messages, schema)
        reply, usage = await self._whole(litellm, asked, options)
        found = parse_reply(reply, schema)
        if isinstance(found, str):
            reply, more = await self._whole(litellm, ask_to_repair(asked, reply, found), options)
            usage = _added(usage, more)
            found = parse_reply(reply, schema)
        if isinstance(found, str):
            raise ChatFailed(f"{self._model} gave no valid {schema.__name__}, also when asked again: {found}")
        return found, usage

    async def _whole(
        self, litellm: Any, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> tuple[str, ChatUsage]:
        response = await self._retrying(litellm, lambda: self._call(litellm, messages, options))
        content = response.choices[0].message.content if response.choices else ""
        return content or "", self._usage(litellm, response) or ChatUsage()

    async def _first(
        self, litellm: Any, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """The stream and its first chunk that says something: until then another try is harmless."""
        chunks = await self._call(litellm, messages, options)
        try:
            while True:
                chunk = await asyncio.wait_for(anext(chunks, None), self._timeout_s)
                if chunk is None:
                    raise ChatInterrupted(f"{self._model} ended its reply before it began.")
                if any(_delta(chunk)):
                    return chunk, chunks
        except BaseException:
            await chunks.aclose()
            raise

    async def _next(self, litellm: Any, chunks: Any) -> Any:
        try:
            return await asyncio.wait_for(anext(chunks, None), self._timeout_s)
        except TimeoutError:
            raise ChatInterrupted(f"{self._model} sent nothing for {self._timeout_s:g} s in its reply.") from None
        except _failures(litellm) as error:
            raise ChatInterrupted(f"The reply of {self._model} broke off: {_said(error)}") from error

    async def _call(self, litellm: Any, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> Any:
        call = litellm.acompletion(
            model=self._model,
            messages=[dict(message) for message in messages],
            api_base=self._api_base,
            api_key=self._key(litellm),
            timeout=self._timeout_s,
            num_retries=0,
            max_retries=0,
            drop_params=True,
            **options,
        )
        return await asyncio.wait_for(call, self._timeout_s)

    def _key(self, litellm: Any) -> str | None:
        """None lets LiteLLM read the provider's variable. A local server needs no key, its client something."""
        if self._api_base is None or litellm.validate_environment(self._model)["keys_in_environment"]:
            return None
        return "none"

    async def _retrying(self, litellm: Any, call: Callable[[], Awaitable[Any]]) -> Any:
        pause = FIRST_BACKOFF_S
        failures: tuple[type[Exception], ...] = (TimeoutError, ChatInterrupted, *_failures(litellm))
        for left in range(self._retries, -1, -1):
            try:
                return await call()
            except failures as error:
                failed = error if isinstance(error, ChatInterrupted) else self._explained(litellm, error)
                if not left or not (isinstance(failed, ChatInterrupted) or failed.retryable):
                    raise failed from error
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("the last try returns or raises")

    def _explained(self, litellm: Any, error: Exception) -> ChatFailed:
        if isinstance(error, TimeoutError):
            return ChatFailed(f"{self._model} gave no reply within {self._timeout_s:g} s.", retryable=True)
        hint, said = "", _said(error)
        retryable = isinstance(error, tuple(getattr(litellm.exceptions, kind) for kind in _RETRYABLE))
        missing = [] if self._api_base else litellm.validate_environment(self._model)["missing_keys"]
        denied = litellm.exceptions.AuthenticationError | litellm.exceptions.PermissionDeniedError
        # Some clients report a missing key as a server's error.
        if isinstance(error, denied) or (missing and "key" in said):
            retryable = False
            hint = f"Set {' and '.join(missing)} in the environment." if missing else "Check the key of this provider."
        elif isinstance(error, litellm.exceptions.NotFoundError):
            hint = "Check the model's name, and api_base for a local server."
        return ChatFailed(f"{self._model} failed: {said}", hint=hint, retryable=retryable)

    async def _library(self) -> Any:
        litellm = await asyncio.to_thread(_litellm)
        try:
            litellm.get_llm_provider(self._model, api_base=self._api_base)
        except _failures(litellm):
            hint = "Name it as provider/model, such as openai/gpt-4o-mini or ollama/qwen2.5."
            raise ConfigError(f"LiteLLM knows no provider for the model {self._model!r}.", hint=hint) from None
        return litellm

    def _usage(self, litellm: Any, response: Any) -> ChatUsage | None:
        usage = getattr(response, "usage", None)
        if usage is None:
            return None
        prompt, completion = int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0)
        prices = litellm.model_cost.get(self._model) or litellm.model_cost.get(self._model.partition("/")[2]) or {}
        cost = prompt * float(prices.get("input_cost_per_token") or 0.0)
        cost += completion * float(prices.get("output_cost_per_token") or 0.0)
        return ChatUsage(prompt, completion, cost)


@functools.cache
def _litellm() -> Any:
    """LiteLLM, imported so that it looks up no prices in the network and prints nothing."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm  # takes seconds, and only those who name an LLM need it

    litellm.suppress_debug_info = True
    litellm.disable_aiohttp_transport = True  # its sessions outlive the event loop that made them
    setattr(litellm, "telemetry", False)  # noqa: B010 - older versions have it, newer ones don't
    return litellm


def _failures(litellm: Any) -> tuple[type[Exception], ...]:
    """Everything a call can raise: LiteLLM's errors all derive from its OpenAI client's."""
    return (litellm.exceptions.openai.OpenAIError, httpx.HTTPError)


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def _delta(chunk: Any) -> tuple[str, str | None]:
    if not chunk.choices:
        return "", None
    choice = chunk.choices[0]
    return (choice.delta.content or "") if choice.delta else "", choice.finish_reason


def _invented_finish(chunks: Any) -> bool:
    """Whether LiteLLM put "stop" where the provider's stream just ended."""
    seen = [getattr(chunks, name, "") for name in ("received_finish_reason", "intermittent_finish_reason")]
    return seen == [None, None]


def _added(one: ChatUsage, other: ChatUsage) -> ChatUsage:
    return ChatUsage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.cost + other.cost,
    )
