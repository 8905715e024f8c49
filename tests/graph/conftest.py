"""What tests of the graph share: toy legs, a scorer by words, and runs that keep their events."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.servers.chat_server import ChatServer

from leadline.config import RunContext
from leadline.graph.build import Dependencies, build_graph
from leadline.graph.run import recursion_limit
from leadline.models.base import ChatDelta, ChatLimits, ChatUsage
from leadline.models.chat import LiteLLMChat
from leadline.nodes.asking import OpenChat
from leadline.nodes.outcome import Facts
from leadline.state import Document, Origin


class ToyStore:
    """A retriever over texts, best first by shared words: nothing in the product knows of it."""

    def __init__(self, texts: Mapping[str, str], name: str = "toy", error: Exception | None = None) -> None:
        self.texts, self.name, self.error = texts, name, error
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, *, k: int, where: Any = None) -> list[Document]:
        """At most `k` of the texts."""
        self.asked.append((query, k))
        if self.error:
            raise self.error
        words = set(query.lower().strip("?").split())
        best = sorted(self.texts.items(), key=lambda item: -len(words & set(item[1].lower().strip(".").split())))
        return [self._document(name, text, rank) for rank, (name, text) in enumerate(best[:k])]

    def _document(self, name: str, text: str, rank: int) -> Document:
        metadata = {
            "chunk_id": f"chunk of {name}",
            "doc_id": f"doc of {name}",
            "file_name": name,
            "file_hash": "0" * 64,
            "chunk_index": 0,
            "total_chunks": 1,
            "source_type": "file",
            "start_char": 0,
            "end_char": len(text),
            "headings": [],
            "found_by": {self.name: {"rank": rank, "score": 1.0 / (1 + rank)}},
        }
        return Document(content=text, metadata=metadata, score=1.0 / (1 + rank), source=self.name, rerank_score=0.0)


class WordScorer:
    """Above zero when most of the question's longer words are there."""

    name = "words"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Share of the words, less a half."""
        words = {word for word in question.lower().strip("?").split() if len(word) > 3}
        return [
            len(words & set(text.lower().replace(".", " ").split())) / max(len(words), 1) - 0.51 for text in passages
        ]

    score_sentences = score


@dataclass
class ScriptedChat:
    """An LLM that answers with `pieces`, and says `line` where a question or a query is asked for."""

    pieces: Sequence[str] = ()
    line: str = "roses"
    error: Exception | None = None
    calls: int = 0
    name: str = "scripted"

    async def limits(self) -> ChatLimits:
        """As much as anybody wants."""
        return ChatLimits()

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words as tokens."""
        return [len(text.split()) for text in texts]

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None
    ) -> AsyncIterator[ChatDelta]:
        """The pieces, then the error or the finish reason."""
        self.calls += 1
        answers = "<evidence>" in messages[1]["content"]
        for piece in self.pieces if answers else [self.line]:
            yield ChatDelta(text=piece)
        if self.error and answers:
            raise self.error
        yield ChatDelta(finish_reason="stop", usage=ChatUsage(10, 5, 0.01))

    async def structured(self, messages: Any, schema: Any, *, max_tokens: int | None = None) -> Any:
        """No node asks for an object."""
        raise NotImplementedError


GARDEN = {
    "tomatoes.md": "Tomatoes want six hours of sun. Water them in the morning.",
    "compost.md": "Compost needs air. Turn the heap every second week.",
    "roses.md": "Roses are pruned in early spring. Cut above an outward bud.",
}


def dependencies_of(*legs: ToyStore, llm: ScriptedChat | None = None, **others: Any) -> Dependencies:
    """Dependencies over toy legs."""
    scorer = WordScorer()

    async def retrievers(collection: str) -> Mapping[str, ToyStore]:
        return {leg.name: leg for leg in legs}

    async def load() -> WordScorer:
        return scorer

    async def open_chat(model: str) -> Any:
        return llm

    async def facts() -> Facts:
        return Facts(models={"embedder": "none", "reranker": "words"}, generation=1)

    async def still_there(origins: Sequence[Origin]) -> set[str]:
        return {origin["chunk_id"] for origin in origins}

    base = Dependencies(
        retrievers=retrievers,
        reranker=load,
        sentence_scorer=load,
        count_tokens=lambda text: len(text.split()),
        chat=open_chat,
        facts=facts,
        still_there=still_there,
    )
    return replace(base, **others)


@dataclass
class Run:
    """What a run told and left."""

    events: list[dict[str, Any]]
    state: dict[str, Any]

    @property
    def result(self) -> Any:
        """The result in the final state."""
        return self.state["result"]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of this type."""
        return [event for event in self.events if event["type"] == kind]

    @property
    def ended(self) -> list[str]:
        """The nodes in the order they ended."""
        return [event["node"] for event in self.of("step") if event["phase"] != "start"]


async def run_graph(deps: Dependencies, question: str, **knobs: Any) -> Run:
    """One run of the graph over `deps`, within the recursion limit of its budget."""
    context = RunContext(**knobs)
    events: list[dict[str, Any]] = []
    state: dict[str, Any] = {}
    parts = (
        build_graph(deps)
        .compile()
        .astream(
            {"messages": [HumanMessage(question)]},
            {"recursion_limit": recursion_limit(context)},
            context=context,
            stream_mode=["custom", "values"],
        )
    )
    async for mode, part in parts:
        if mode == "custom":
            events.append(part)
        else:
            state = part
    return Run(events, state)


@pytest.fixture
def toy() -> type[ToyStore]:
    """The class of toy legs."""
    return ToyStore


@pytest.fixture
def scripted() -> type[ScriptedChat]:
    """The class of scripted LLMs."""
    return ScriptedChat


@pytest.fixture
def garden() -> ToyStore:
    """A leg over three garden notes."""
    return ToyStore(GARDEN)


@pytest.fixture
def over() -> Callable[..., Dependencies]:
    """Makes dependencies over toy legs."""
    return dependencies_of


@pytest.fixture
def llm_behind(chat_server: ChatServer) -> Callable[..., OpenChat]:
    """Opens the real client of LLMs against the scripted server; nothing is tried twice."""

    def opener(timeout_s: float = 5) -> OpenChat:
        async def open_chat(model: str) -> LiteLLMChat:
            return LiteLLMChat(model, api_base=chat_server.url, timeout_s=timeout_s, retries=0)

        return open_chat

    return opener


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Runs the graph once."""
    return run_graph
