"""What clients may send, and the shape of every error. Unknown keys are refused by name."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from leadline.config import COLLECTION_PATTERN, MAX_QUESTION_CHARS, RunContext, WebPolicy

THREAD_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"


class ChatRequest(BaseModel):
    """A question. What is left out comes from the server's settings."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION_CHARS)]
    thread_id: str | None = Field(None, pattern=THREAD_PATTERN, description="Continues (or begins) a conversation.")
    collection: str | None = Field(None, pattern=COLLECTION_PATTERN)
    web: WebPolicy | None = None
    filters: dict[str, Any] | None = Field(None, description="Portable filter over chunk fields.")
    llm: str | None = Field(None, min_length=1, max_length=200, description="local, or a LiteLLM model string.")
    stream: bool = Field(True, description="Server-sent events; false: one JSON object at the end.")

    def context(self, defaults: RunContext) -> RunContext:
        """The knobs of this run: the server's defaults, with what the client named first."""
        named = self.model_dump(include={"collection", "web", "filters", "llm"}, exclude_none=True)
        return defaults.model_copy(update=named)


class ErrorBody(BaseModel):
    """What went wrong: a stable code, a message, and what to do next (may be empty)."""

    code: str
    message: str
    hint: str = ""


class ErrorResponse(BaseModel):
    """The body of every response that isn't a success."""

    error: ErrorBody
