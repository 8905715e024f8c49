"""Settings (read once, at the edge) and RunContext (the knobs of one run).

Knows every setting, its bounds and where it may come from: keyword, `LEADLINE_…` in the environment, `.env`,
`leadline.toml` in the working directory, in that order. Doesn't know what a setting does.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from leadline.errors import ConfigError

WebPolicy = Literal["never", "auto", "always"]
Consent = Literal["ask", "yes", "no"]
COLLECTION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"
MAX_QUESTION_CHARS = 20_000
ENV_PREFIX = "LEADLINE_"
FILTER_PREFIX = "LEADLINE_RUN__FILTERS__"
NEAR = 0.7  # how alike a name is to one that is meant by it, of 1
# Read by the tests and the Makefile, not settings of the application.
ENV_NOT_SETTINGS = frozenset({"LEADLINE_SHARED", "LEADLINE_CRASH_ROUNDS"})

_ORIGIN = re.compile(r"https?://[^/?#*@\s]+")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?")


def _listed(value: Any) -> Any:
    """A list in one variable of the environment: `a, b`, or in JSON."""
    if not isinstance(value, str):
        return value
    return json.loads(value) if value.lstrip().startswith("[") else [v for v in map(str.strip, value.split(",")) if v]


def _origins(values: list[str]) -> list[str]:
    for value in values:
        if not _ORIGIN.fullmatch(value):
            raise ValueError(f"{value!r} is no origin; one is written https://app.example, with a port if it has one")
    return [value.lower() for value in values]


def _hosts(values: list[str]) -> list[str]:
    for value in values:
        if not _HOST.fullmatch(value):
            raise ValueError(f"{value!r} is no host; one is written docs.example, without scheme, port or *")
    return [value.strip("[]").lower() for value in values]


def _operand(variable: str, value: Any) -> Any:
    """What a field of a filter is compared with, in a variable of its own: data where it is JSON, else its text."""
    if value is None or not variable.upper().startswith(FILTER_PREFIX):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


Listed = Annotated[list[str], NoDecode, BeforeValidator(_listed)]


class Budgets(BaseModel):
    """What one run may spend. A spent budget removes the remedies that need it, nothing else."""

    model_config = ConfigDict(extra="forbid")

    seconds: float = Field(300, gt=0, title="Seconds", description="Wall-clock seconds for the whole run.")
    llm_calls: int = Field(12, ge=0, title="LLM calls")
    tokens: int = Field(60_000, ge=0, title="Tokens", description="Prompt and completion tokens together.")
    money: float = Field(1.0, ge=0, title="Money", description="In the currency LiteLLM reports (US dollars).")
    web_calls: int = Field(2, ge=0, title="Web calls")


class RunContext(BaseModel):
    """The knobs of one run, shown as a form in Studio."""

    model_config = ConfigDict(extra="forbid")

    collection: str = Field("default", pattern=COLLECTION_PATTERN, title="Collection")
    web: WebPolicy = Field("auto", title="Web search", description="auto: only when the documents hold no answer.")
    web_consent: Consent = Field("ask", title="Web consent", description="ask means no where nobody can be asked.")
    top_k: int = Field(10, ge=1, le=200, title="Candidates per leg")
    rerank_top_k: int = Field(5, ge=1, le=50, title="Passages given to the writer")
    max_retries: int = Field(2, ge=0, le=8, title="Retries")
    max_context_tokens: int = Field(2000, ge=64, le=200_000, title="Evidence tokens")
    llm: str | None = Field(None, title="LLM", description="local, or a LiteLLM model string; empty: quotation.")
    filters: dict[str, Any] | None = Field(None, title="Filter", description="Portable filter over chunk fields.")
    critic: bool = Field(False, title="Critic", description="The LLM judges each sentence of its answer once more.")
    ask_person: bool = Field(
        False,
        title="Ask a person",
        description="In Studio: stop before a web search (consent ask) and a retry's query.",
    )
    show_prompts: bool = Field(False, title="Show prompts", description="Stream the exact messages sent to an LLM.")
    budgets: Budgets = Field(default_factory=Budgets, title="Budgets")


class Settings(BaseSettings):
    """How an installation is set up. Unknown keys and values are errors that list what is allowed."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        env_file=".env",
        extra="forbid",
        toml_file="leadline.toml",
    )

    data_dir: Path = Field(Path(".leadline"), description="Folder of the catalog, the indexes and the threads.")
    catalog_url: SecretStr | None = Field(
        None, description="PostgreSQL database of the catalog, postgresql://user:password@host/name; empty: a file."
    )
    threads_url: SecretStr | None = Field(
        None, description="PostgreSQL database of the conversations, may be the catalog's; empty: a file."
    )
    vector_backend: str = "chroma"
    vector_options: dict[str, Any] = Field(
        default_factory=dict, description="Options of the vector store, such as its url.", repr=False
    )
    lexical_backend: str = "tantivy"
    lexical_options: dict[str, Any] = Field(
        default_factory=dict, description="Options of the lexical store, such as its url.", repr=False
    )
    content_backend: str = Field("catalog", description="Where the text of chunks is kept: catalog, or s3.")
    content_options: dict[str, Any] = Field(
        default_factory=dict, description="Options of the content store, such as its url.", repr=False
    )
    stemmer: Literal["english", "none"] = "english"
    embedding_model: str = Field("embedded", description="embedded, or a sentence-transformers name or folder.")
    reranker_model: str = Field("embedded", description="embedded, or a sentence-transformers cross-encoder.")
    max_wrong: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Largest share of wrong answers, as a collection's calibration tells it; empty: its zero point.",
    )
    chunk_tokens: int = Field(200, ge=32, le=8192, description="Largest chunk, in tokens of the embedding model.")
    llm_api_base: str | None = Field(None, description="Address of an OpenAI-style server, for local models.")
    llm_timeout_s: float = Field(60, gt=0)
    llm_retries: int = Field(2, ge=0, le=8)
    models_dir: Path | None = Field(None, description="Folder of fetched models; empty: the user's cache.")
    web_timeout_s: float = Field(10, gt=0, description="For one try of a search, and for one page, in seconds.")
    web_provider: Literal["ddgs", "searxng"] = Field("ddgs", description="ddgs: DuckDuckGo; searxng: your own server.")
    web_url: str | None = Field(None, description="Address of the SearXNG server, such as http://localhost:8888.")
    web_pages: int = Field(3, ge=0, le=10, description="How many of the best hits are read; 0: only their excerpts.")
    web_cache_hours: float = Field(24, ge=0, description="How long a search is answered from the last time; 0: never.")
    leg_timeout_s: float = Field(20, gt=0, description="How long a run waits for the search of one leg.")
    rerank_timeout_s: float = Field(60, gt=0, description="How long a run waits for the reranker.")
    threads_timeout_s: float = Field(10, gt=0, description="How long a run waits for the conversations' store.")
    lock_timeout_s: float = Field(60, ge=0, description="How long to wait for another writer of the data folder.")
    max_file_mb: float = Field(200, gt=0)
    max_pages: int = Field(5000, ge=1)
    max_chars: int = Field(20_000_000, ge=1000, description="Largest extracted text of one file, in characters.")
    max_file_seconds: float = Field(
        600, gt=0, le=86_400, description="How long the text of one file may take to be read."
    )
    host: str = "127.0.0.1"
    port: int = Field(8321, ge=0, le=65535)
    heartbeat_s: float = Field(10, gt=0, le=15, description="Longest silence of a stream, in seconds.")
    workers: int = Field(1, ge=1, le=64, description="Processes that serve.")
    allowed_hosts: Annotated[Listed, AfterValidator(_hosts)] = Field(
        default_factory=list, description="Names under which the server may be asked, beside those of this machine."
    )
    cors_origins: Annotated[Listed, AfterValidator(_origins)] = Field(
        default_factory=list, description="Origins of other pages that may ask, such as https://app.example."
    )
    llms: Listed = Field(
        default_factory=list, description="Model strings that a client of the server may name; empty: run.llm only."
    )
    max_upload_files: int = Field(100, ge=1, description="Most files in one upload.")
    max_upload_mb: float = Field(1000, gt=0, description="Most bytes of one upload, in MB.")
    rate_per_minute: int = Field(300, ge=1, description="Questions and uploads of one caller a minute, each worker.")
    max_running: int = Field(32, ge=1, description="Questions and uploads of one caller at once, each worker.")
    max_running_all: int = Field(256, ge=1, description="Those of all callers together at once, each worker.")
    log_format: Literal["text", "json"] = Field("text", description="How the server logs; json: one object a line.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    run: RunContext = Field(default_factory=RunContext, description="Defaults of every run.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Keyword, environment, .env, leadline.toml; the first that names a key wins.

        A .env is everybody's: what it sets for other programs, such as their API keys, is none of ours.
        """
        if isinstance(dotenv_settings, DotEnvSettingsSource):
            ours = {k: v for k, v in dotenv_settings.env_vars.items() if k.upper().startswith(ENV_PREFIX)}
            dotenv_settings.env_vars = ours
        for source in (env_settings, dotenv_settings):
            if isinstance(source, EnvSettingsSource):
                source.env_vars = {k: _operand(k, v) for k, v in source.env_vars.items()}
        return (
            init_settings,
            env_settings,
            dotenv_settings,
            TomlConfigSettingsSource(settings_cls),
            file_secret_settings,
        )


def load_settings(**overrides: Any) -> Settings:
    """Settings from the environment and files, `overrides` first. Raises ConfigError with every problem named."""
    _refuse_unknown_environment()
    try:
        return Settings(**overrides)
    except ValidationError as error:
        unknown = [_dotted(e["loc"]) for e in error.errors(include_url=False) if e["type"] == "extra_forbidden"]
        raise ConfigError(_explain(error), hint=_meant(unknown)) from None
    except ValueError as error:  # a .env or TOML file that can't be parsed
        raise ConfigError(f"The settings can't be read: {error}.") from None


def _refuse_unknown_environment() -> None:
    known = {f"{ENV_PREFIX}{name}".upper() for name in Settings.model_fields}
    unknown = [
        name
        for name in os.environ
        if name.startswith(ENV_PREFIX) and name.split("__")[0] not in known and name not in ENV_NOT_SETTINGS
    ]
    if unknown:
        raise ConfigError(
            f"Unknown setting in the environment: {', '.join(sorted(unknown))}.",
            hint=_meant([name[len(ENV_PREFIX) :].lower().replace("__", ".") for name in sorted(unknown)], _variable),
        )


def setting_names() -> list[str]:
    """Every setting as `leadline.toml` has it, those of `run` and its budgets with what they are part of."""
    return _names_in(Settings, "")


def _names_in(model: type[BaseModel], before: str) -> list[str]:
    names = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names += _names_in(kind, f"{before}{name}.")
        else:
            names.append(before + name)
    return names


def _variable(name: str) -> str:
    return f"{ENV_PREFIX}{name.replace('.', '__')}".upper()


def _meant(unknown: Sequence[str], written: Callable[[str], str] = str) -> str:
    """What may be meant by names that there are not, `written` as those were; where nothing is near one, all there are.

    Empty where there are no such names.
    """
    known = setting_names()
    near = [get_close_matches(name, known, n=1, cutoff=NEAR) for name in unknown]
    guesses = ", ".join(written(found[0]) for found in near if found)
    every = "" if all(near) else f"Allowed: {', '.join(map(written, sorted(known)))}."
    return f"{f'Did you mean {guesses}?' if guesses else ''} {every}".strip()


def _dotted(place: Sequence[int | str]) -> str:
    """A setting as `leadline.toml` has it, also where `.env` has it with its prefix."""
    return ".".join(str(part) for part in place).removeprefix(ENV_PREFIX.lower())


def _explain(error: ValidationError) -> str:
    problems = []
    for each in error.errors(include_url=False):
        unknown = each["type"] == "extra_forbidden"
        said = "there is no such setting" if unknown else each["msg"].removeprefix("Value error, ")
        problems.append(f"{_dotted(each['loc'])}: {said}")
    return f"Bad settings: {'; '.join(problems)}."
