"""What clients may send, and the shape of every error. Unknown keys are refused by name."""

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from leadline.config import COLLECTION_PATTERN, MAX_QUESTION_CHARS, RunContext, Settings, WebPolicy
from leadline.errors import ConfigError
from leadline.nodes.planner import refuse_no_question
from leadline.stores import filters

T = TypeVar("T")

THREAD_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"


def unbroken(value: T) -> T:
    """The value, if all text in it can be written. Raises ValueError."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no character") from None
    return value


def asked(question: str) -> str:
    """The question. Raises QuestionEmpty or QuestionTooLong, told in the same words on every surface."""
    refuse_no_question(question)
    return question


Question = Annotated[
    str,
    StringConstraints(strip_whitespace=True),
    AfterValidator(asked),
    Field(json_schema_extra={"minLength": 1, "maxLength": MAX_QUESTION_CHARS}),
]


class Choices(BaseModel):
    """What a client may choose of a run beside its question. What is left out comes from the server's settings."""

    model_config = ConfigDict(extra="forbid", strict=True)

    web: WebPolicy | None = Field(None, description="Without effect where the server's own setting is never.")
    web_consent: Literal["yes", "no"] | None = Field(
        None, description="yes: whoever asks has seen the query that goes out. What the server forbids stays forbidden."
    )
    filters: Annotated[dict[str, Any], AfterValidator(unbroken)] | None = Field(
        None, description="Portable filter over chunk fields."
    )
    llm: str | None = Field(None, min_length=1, max_length=200, description="One of those that the server offers.")

    def context(self, settings: Settings, collection: str) -> RunContext:
        """The knobs of this run: the server's defaults, with what the client chose first.

        Raises ConfigError for an LLM that the server doesn't offer, InvalidFilter.
        """
        filters.check(self.filters)
        run = settings.run
        offered = {*settings.llms, run.llm}
        if self.llm is not None and self.llm not in offered:
            names = ", ".join(sorted(name for name in offered if name)) or "none"
            raise ConfigError(
                f"The LLM {self.llm} is not offered here.",
                hint=f"Offered: {names}. The server's LEADLINE_LLMS names more.",
            )
        chosen = self.model_dump(include={"web", "web_consent", "filters", "llm"}, exclude_none=True)
        # What a server never does by itself it doesn't do at a client's word either.
        if run.web == "never":
            chosen.pop("web", None)
        if self.web_consent == "yes" and (run.web_consent == "no" or run.web == "never"):
            del chosen["web_consent"]
        return run.model_copy(update={**chosen, "collection": collection})


class ChatRequest(Choices):
    """A question."""

    question: Question
    thread_id: str | None = Field(None, pattern=THREAD_PATTERN, description="Continues (or begins) a conversation.")
    collection: str | None = Field(None, pattern=COLLECTION_PATTERN)
    stream: bool = Field(True, description="Server-sent events; false: one JSON object at the end.")


class ErrorBody(BaseModel):
    """What went wrong: a stable code, a message, and what to do next (may be empty)."""

    code: str
    message: str
    hint: str = ""


class ErrorResponse(BaseModel):
    """The body of every response that isn't a success."""

    error: ErrorBody
