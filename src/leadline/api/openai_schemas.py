"""What a client of OpenAI's chat API may send: our models by name, the conversation, and `leadline` for what is ours.

Parameters that steer how an LLM draws its words change nothing here and are let pass; one that asks for something else
than an answer in text is refused by name.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from leadline.api.schemas import Choices, unbroken
from leadline.config import MAX_QUESTION_CHARS
from leadline.nodes.planner import refuse_no_question

MODEL: Final = "leadline"
# Of a longer conversation the end is what a follow-up leans on.
HISTORY_MESSAGES: Final = 20
MAX_NAME: Final = 40  # of what a client calls something, in an error

# Parameter → whether its value asks for nothing that isn't there.
_REFUSED: Final[Mapping[str, Callable[[Any], bool]]] = {
    "n": lambda value: value == 1,
    "tools": lambda value: value == [],
    "functions": lambda value: value == [],
    "tool_choice": lambda value: value in ("none", "auto"),
    "function_call": lambda value: value in ("none", "auto"),
    "response_format": lambda value: value == {"type": "text"},
    "logprobs": lambda value: value is False,
    "stop": lambda value: value in ("", []),
    "modalities": lambda value: value == ["text"],
    "audio": lambda _: False,
    "web_search_options": lambda _: False,
}


Text = Annotated[str, AfterValidator(unbroken)]


class Part(BaseModel):
    """A part of a message. Only text is read."""

    type: Literal["text"]
    text: str


def readable(content: object) -> object:
    """The content of a message, if it is text or is made of text. Raises ValueError, which says what else there is."""
    if content is not None and not isinstance(content, str | list):
        raise ValueError("it has to be a text, or a list of parts")
    for part in content if isinstance(content, list) else ():
        kind, text = (part.get("type"), part.get("text")) if isinstance(part, dict) else (None, None)
        if isinstance(kind, str) and kind != "text":
            raise ValueError(f"only text is read here, and there is a part of the type {kind[:MAX_NAME]!r}")
        if kind != "text" or not isinstance(text, str):
            raise ValueError('each part has to be {"type": "text", "text": "…"}')
    return unbroken(content)


class Message(BaseModel):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str | list[Part] | None, BeforeValidator(readable)] = None

    @property
    def text(self) -> str:
        """Its text, parts joined by line breaks."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    """Of a stream: whether its last chunk says what was spent."""

    include_usage: bool = False


class CompletionRequest(BaseModel):
    """A conversation whose last message, by the user, is the question."""

    model_config = ConfigDict(extra="allow")

    model: Text = Field(max_length=200, description="leadline, or leadline/COLLECTION; /v1/models lists them.")
    messages: list[Message] = Field(min_length=1)
    stream: bool = False
    stream_options: StreamOptions | None = None
    leadline: Choices = Field(default_factory=Choices, description="What a run of Leadline may be told beside.")

    def why_not(self) -> tuple[str, str] | None:
        """The parameter that keeps this request from being answered and why; None where nothing does.

        Raises QuestionRefused.
        """
        given = self.model_extra or {}
        named = {name: given[name] for name in _REFUSED if given.get(name) is not None}
        refused = [name for name, value in named.items() if not _REFUSED[name](value)]
        if refused:
            said = f"Not supported: {', '.join(refused)}. This server answers in text, once, from documents."
            return refused[0], said
        if self.messages[-1].role != "user":
            return "messages", "The last message must be the user's, with a question in it."
        refuse_no_question(self.question)
        return None

    @property
    def question(self) -> str:
        """What is asked."""
        return self.messages[-1].text.strip()

    def history(self) -> list[dict[str, str]]:
        """What was said before: the user's words and the answers. What a system says is none of both."""
        said = [m for m in self.messages[:-1] if m.role in ("user", "assistant") and m.text.strip()]
        return [{"role": m.role, "text": m.text[:MAX_QUESTION_CHARS]} for m in said[-HISTORY_MESSAGES:]]

    @property
    def usage_wanted(self) -> bool:
        """Whether a stream ends with what was spent."""
        return self.stream_options is not None and self.stream_options.include_usage


def collection_of(model: str) -> str | None:
    """The collection that the name of one of our models holds; None: the server's own."""
    return model.partition("/")[2] or None
