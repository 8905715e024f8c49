"""The LLM that a command names, looked at before anything is searched for it. Sends nothing."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from leadline.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    from leadline.config import Settings

MAGIC = b"GGUF"
# Providers that LiteLLM has for sure: its import, which takes longer than a server's start, isn't needed to see it.
WELL_KNOWN = frozenset(
    "anthropic azure bedrock cohere deepseek gemini groq hosted_vllm huggingface lm_studio mistral ollama ollama_chat "
    "openai openrouter perplexity together_ai vertex_ai vllm watsonx xai".split()
)


def check_llms_served(settings: "Settings") -> None:
    """The same as `check_llm` for every LLM that a server of these settings would ask."""
    for named in dict.fromkeys((settings.run.llm, *settings.llms)):
        check_llm(named, settings)


def check_llm(named: str | None, settings: "Settings") -> None:
    """Raises ConfigError for a model string that names no provider, a file that is no model, or a server's address that
    is none, and MissingExtra.

    Whether a server answers, and has the model, is known at the first call. For a name without one of the well-known
    providers it takes the seconds that LiteLLM's import takes, which a run with an LLM takes anyway.
    """
    if not named:
        return
    from leadline.models import providers
    from leadline.models.local_llm import EXTRA, is_local
    from leadline.models.served import check_address

    if not is_local(named):
        check_address(settings.llm_api_base)
        if "/" in named and named.partition("/")[0] in WELL_KNOWN:
            return
        providers.provider_of(providers.library(), named, settings.llm_api_base)
        return
    _, _, file = named.partition(":")
    problem = _no_model(file) if ":" in named else ""
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtra(
            f"A local LLM needs the extra `{EXTRA}`.{f' And {problem}.' if problem else ''}",
            hint=f"Install it: pip install 'leadline[{EXTRA}]'.",
        )
    if problem:
        raise ConfigError(f"The LLM {named!r} can't be used: {problem}.", hint="Check its path.")


def address_of(api_base: str) -> str:
    """Where an LLM's server is asked, without a user and password in the address."""
    parts = urlsplit(api_base)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _no_model(file: str) -> str:
    """What keeps a file from being a model; empty for one that may be."""
    if not file.strip():
        return "no file is named"
    try:
        with Path(file).expanduser().open("rb") as opened:
            return "" if opened.read(len(MAGIC)) == MAGIC else f"{file} is no GGUF file"
    except (OSError, RuntimeError) as error:  # RuntimeError: the home of a user that there isn't
        return f"{file} can't be read: {getattr(error, 'strerror', None) or error}"
