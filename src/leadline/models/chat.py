"""Chat LLMs through LiteLLM: streamed replies and structured ones, with time-outs, bounded retries and honest ends.

Knows how a call goes and ends; knows no prompt. Nothing is imported, looked up or sent before the first call.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from leadline.config import Settings
from leadline.errors import ChatFailed, ChatInterrupted
from leadline.models import providers
from leadline.models.base import ChatDelta, ChatLimits, ChatModel, ChatUsage, T
from leadline.models.chunks import StreamedReply, delta_of, invented_finish, thought_of, unfinished
from leadline.models.local_llm import LocalChat, is_local
from leadline.models.plain import plain
from leadline.models.replies import ask_for_schema, ask_to_repair, parse_reply
from leadline.models.served import OwnServer, ServedModel, check_address
from leadline.models.thinking import ThinkingFilter

FIRST_BACKOFF_S = 0.5
# A provider that asks for a longer pause than this is left alone.
MAX_PAUSE_S = 20.0
# What a message costs beside its text: the marks of its role.
MESSAGE_TOKENS = 6
# A server that doesn't keep to `max_tokens` is stopped here: no text has so many characters a token.
CHARS_PER_TOKEN = 16
MAX_REPLY_TOKENS = 32_000
# What models that think call `max_tokens`.
_NEW_LENGTH = "max_completion_tokens"
# Options that make a call better and that a server may refuse.
_WISHES = ("temperature", "response_format", "stream_options", "num_ctx")


def open_chat(setting: str | None, settings: Settings) -> ChatModel | None:
    """The chat model that `setting` names, None for none. Whether it exists is known at its first call.

    `local` is the model of the extra `local-llm`, `local:FILE.gguf` another one on this machine; all else is a LiteLLM
    model string. Raises ConfigError where the server's address is none.
    """
    if not setting:
        return None
    if is_local(setting):
        return LocalChat(setting, settings, connect=_own_chat)
    check_address(settings.llm_api_base)
    return _hosted(setting, settings.llm_api_base, settings.llm_timeout_s, settings.llm_retries)


@functools.lru_cache(maxsize=16)
def _hosted(model: str, api_base: str | None, timeout_s: float, retries: int) -> "LiteLLMChat":
    """One object a model, so that what was learned of a server is known at the next call. It holds no connection."""
    return LiteLLMChat(model, api_base=api_base, timeout_s=timeout_s, retries=retries)


def _own_chat(server: OwnServer, timeout_s: float) -> "LiteLLMChat":
    return LiteLLMChat("openai/local", own=server, timeout_s=timeout_s, retries=0)


class LiteLLMChat:
    """A chat model by its LiteLLM string (`openai/gpt-4o-mini`, `ollama/qwen2.5`, `openai/local` with `api_base`).

    `timeout_s` is the longest wait for the first token and between two tokens. `retries` is how often a call that
    failed in a way that may pass is made again, with growing pauses, only before its first token. `own`: the server is
    one that this process runs.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        timeout_s: float = 60,
        retries: int = 2,
        own: OwnServer | None = None,
    ) -> None:
        self._model = model
        self._api_base = own.api_base if own else api_base
        self._timeout_s = timeout_s
        self._first_s = own.first_s if own else timeout_s
        self._retries = retries
        self._own = own
        key = own.api_key if own else None
        self._served = ServedModel(self._api_base, model.partition("/")[2], key) if self._api_base else None
        self._refused: set[str] = set()
        self._names: dict[str, str] = {}
        self._thinks_at_once = False

    @property
    def name(self) -> str:
        """The LiteLLM model string."""
        return self._model

    async def limits(self) -> ChatLimits:
        """The window as the server says, else as LiteLLM's list has it. Raises ConfigError for an unknown provider."""
        litellm, provider = await self._library()
        served = await self._served.window() if self._served else None
        window = served or providers.window_of(litellm, self._model, provider)
        return ChatLimits(context=window, **providers.reply_limits(litellm, self._model))

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """By the server where it counts, else by LiteLLM's tokenizer for the model. Nothing else is asked."""
        served = await self._served.count(texts) if self._served else None
        if served is not None:
            return served
        litellm, _ = await self._library()
        return await asyncio.to_thread(providers.count, litellm, self._model, texts)

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None
    ) -> AsyncIterator[ChatDelta]:
        """Yields the reply piece by piece; the last piece has the finish reason and the usage.

        Raises ConfigError for a model that no provider has, ChatFailed before the first piece, ChatInterrupted when
        the stream breaks or ends without a finish reason: what came until then is no answer.
        """
        litellm, provider = await self._library()
        options = {"stream": True, "stream_options": {"include_usage": True}, **_limit(max_tokens)}
        first, chunks = await self._retrying(litellm, lambda: self._first(litellm, provider, messages, options))
        most = CHARS_PER_TOKEN * (max_tokens or MAX_REPLY_TOKENS)
        reply = StreamedReply(ThinkingFilter(begun=self._thinks_at_once), most=most)
        try:
            async with aclosing(chunks):
                chunk: Any = first
                while chunk is not None:
                    if delta := reply.take(chunk, providers.spent(litellm, self._model, getattr(chunk, "usage", None))):
                        yield delta
                    chunk = await self._next(litellm, chunks)
                if reply.finish is None or invented_finish(chunks):
                    raise ChatInterrupted(f"{self._model} ended its reply without a finish reason.")
        except ChatInterrupted as error:
            error.usage = providers.as_usage(await self._known(litellm, messages, reply))
            raise
        if delta := reply.rest():
            yield delta
        self._thinks_at_once = reply.thinking.begun
        yield ChatDelta(finish_reason=reply.finish, usage=await self._known(litellm, messages, reply))

    async def structured(
        self, messages: Sequence[Mapping[str, Any]], schema: type[T], *, max_tokens: int | None = None
    ) -> tuple[T, ChatUsage]:
        """One reply as a validated object of `schema`; one repair is asked for. Raises ChatFailed."""
        litellm, provider = await self._library()
        held = (self._own is not None or litellm.supports_response_schema(model=self._model)) and self._may(
            "response_format"
        )
        # Said in words too: a server may take the schema and not keep to it, and it helps those that do.
        asked = ask_for_schema(messages, schema)
        options = {**({"response_format": schema} if held else {}), **_limit(max_tokens)}
        reply, cut, usage = await self._whole(litellm, provider, asked, options)
        found = cut or parse_reply(reply, schema)
        if isinstance(found, str):
            try:
                reply, cut, more = await self._whole(litellm, provider, ask_to_repair(asked, reply, found), options)
            except ChatFailed as error:
                error.usage = providers.as_usage(usage + ChatUsage())  # the repair is a call, also where it fails
                raise
            usage += more
            found = cut or parse_reply(reply, schema)
        if isinstance(found, str):
            problem = f"{self._model} gave no valid {schema.__name__}, also when asked again: {found}"
            raise ChatFailed(problem, usage=providers.as_usage(usage))
        return found, usage

    async def _whole(
        self, litellm: Any, provider: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> tuple[str, str, ChatUsage]:
        """The reply, what says that it is no whole one ("" for one that is), and what it cost."""
        response = await self._retrying(litellm, lambda: self._call(litellm, provider, messages, options))
        content = plain((response.choices[0].message.content if response.choices else "") or "")
        known = providers.spent(litellm, self._model, getattr(response, "usage", None))
        reason = response.choices[0].finish_reason if response.choices else None
        return content, unfinished(reason), known or await self._counted(litellm, messages, content)

    async def _first(
        self, litellm: Any, provider: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """The stream and its first chunk that says or thinks something: until then another try is harmless."""
        chunks = await self._call(litellm, provider, messages, options)
        try:
            async with asyncio.timeout(self._first_s):
                while (chunk := await anext(chunks, None)) is not None:
                    if any(delta_of(chunk)) or thought_of(chunk):
                        return chunk, chunks
            raise ChatInterrupted(f"{self._model} ended its reply before it began.")
        except BaseException:
            await chunks.aclose()
            raise

    async def _next(self, litellm: Any, chunks: Any) -> Any:
        try:
            return await asyncio.wait_for(anext(chunks, None), self._timeout_s)
        except TimeoutError:
            raise ChatInterrupted(f"{self._model} sent nothing for {self._timeout_s:g} s in its reply.") from None
        except providers.failures(litellm) as error:
            raise ChatInterrupted(f"The reply of {self._model} broke off: {providers.said(error)}") from error

    async def _call(
        self, litellm: Any, provider: str, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> Any:
        wishes: dict[str, Any] = {"temperature": 0.0, **options}
        if provider in providers.SILENT_CUTTERS:
            wishes["num_ctx"] = providers.window_of(litellm, self._model, provider)
        call = litellm.acompletion(
            model=self._model,
            messages=[dict(message) for message in messages],
            api_base=self._api_base,
            api_key=(key := self._key(litellm)),
            client=providers.straight_client(litellm, provider, self._api_base, key),
            timeout=self._first_s,
            num_retries=0,
            max_retries=0,
            drop_params=True,
            **{self._names.get(name, name): value for name, value in wishes.items() if self._may(name)},
        )
        try:
            return await asyncio.wait_for(call, self._first_s)
        except litellm.exceptions.BadRequestError as error:
            refused = {name for name in _WISHES if name in wishes and self._may(name) and name in str(error)}
            renamed = "max_tokens" in wishes and not self._names and _NEW_LENGTH in str(error)
            # What says that a prompt is too long may name the bound of a reply beside it.
            if providers.is_too_long(error) or not (refused or renamed):
                raise
            self._refused |= refused
            self._names = {"max_tokens": _NEW_LENGTH} if renamed else self._names
        return await self._call(litellm, provider, messages, options)

    def _may(self, option: str) -> bool:
        return option not in self._refused

    def _key(self, litellm: Any) -> str | None:
        """None lets LiteLLM read the provider's variable. A local server needs no key, its client something."""
        if self._own is not None:
            return self._own.api_key
        if self._api_base is None or litellm.validate_environment(self._model)["keys_in_environment"]:
            return None
        return "none"

    async def _retrying(self, litellm: Any, call: Callable[[], Awaitable[Any]]) -> Any:
        expected: tuple[type[Exception], ...] = (TimeoutError, ChatInterrupted, *providers.failures(litellm))
        missing = [] if self._api_base else litellm.validate_environment(self._model)["missing_keys"]
        pause, tried = FIRST_BACKOFF_S, 0
        while True:
            try:
                return await call()
            except expected as error:
                failure = self._explained(litellm, error, missing)
                wait_s = pause if failure.pause_s is None else failure.pause_s
                if tried >= failure.tries or wait_s > MAX_PAUSE_S:
                    raise (error if isinstance(error, ChatInterrupted) else failure.error) from error
            await asyncio.sleep(wait_s)
            tried, pause = tried + 1, 2 * pause

    def _explained(self, litellm: Any, error: Exception, missing: Sequence[str]) -> providers.Failure:
        if isinstance(error, TimeoutError):
            said = ChatFailed(f"{self._model} gave no reply within {self._first_s:g} s.", retryable=True)
            return providers.Failure(said, min(1, self._retries))
        if isinstance(error, ChatInterrupted):
            return providers.Failure(ChatFailed(error.message, retryable=True), self._retries)
        return providers.explained(litellm, self._model, error, missing_keys=missing, retries=self._retries)

    async def _library(self) -> tuple[Any, str]:
        litellm = await asyncio.to_thread(providers.library)
        provider = providers.provider_of(litellm, self._model, self._api_base)
        providers.list_unlisted(litellm, self._model, provider)
        return litellm, provider

    async def _known(self, litellm: Any, messages: Sequence[Mapping[str, Any]], reply: "StreamedReply") -> ChatUsage:
        return reply.usage or await self._counted(litellm, messages, "".join(reply.received))

    async def _counted(self, litellm: Any, messages: Sequence[Mapping[str, Any]], reply: str) -> ChatUsage:
        texts = [*(str(message.get("content", "")) for message in messages), reply]
        *prompt, completion = await asyncio.to_thread(providers.count, litellm, self._model, texts)
        tokens = sum(prompt) + MESSAGE_TOKENS * len(messages)
        return providers.estimated(litellm, self._model, tokens, completion)


def _limit(max_tokens: int | None) -> dict[str, int]:
    return {} if max_tokens is None else {"max_tokens": max_tokens}
