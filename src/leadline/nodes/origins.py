"""Which documents the answers of a conversation come from, and the taking out of those whose documents are gone.

Knows how the origins are kept: with the answer's message, in the state of any checkpointer. Doesn't know what is gone:
the documents are asked.
"""

from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from leadline.state import Citation, Document, Origin, RAGState, Result

REMOVED = "[This answer was removed: a document it was made from was deleted or replaced.]"

# Of some chunks, the ids of those whose text the documents still hold.
StillThere = Callable[[Sequence[Origin]], Awaitable[Set[str]]]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What may be used of earlier turns. `removed` are the messages that stand in for answers that may not."""

    messages: list[AnyMessage]
    result: Result | None
    removed: list[AnyMessage]


def origins_of(documents: Sequence[Document]) -> list[Origin]:
    """The chunks, each once. What comes from the web is nobody's to delete here, so it isn't among them."""
    metadata = [document["metadata"] for document in documents if document["metadata"]["source_type"] != "web"]
    return unique([Origin(chunk_id=m["chunk_id"], doc_id=m["doc_id"], file_hash=m["file_hash"]) for m in metadata])


def unique(origins: Sequence[Origin]) -> list[Origin]:
    """Each chunk once."""
    return [*{origin["chunk_id"]: origin for origin in origins}.values()]


def made_from(state: RAGState, citations: Sequence[Citation], *, quoted: bool) -> list[Origin]:
    """The chunks an answer is made from: those it quotes, else all that its writer saw.

    A writer may use a passage without a marker, and an answer that could not be checked has no citation at all.
    """
    shown = [block["document"] for block in state.get("evidence", []) if block["sentences"]]
    if quoted and citations:
        cited = {citation["chunk_id"] for citation in citations}
        shown = [document for document in shown if document["metadata"]["chunk_id"] in cited]
    return origins_of(shown)


def answer_message(
    text: str, *, answer_from: Sequence[Origin], question_from: Sequence[Origin], question: str = ""
) -> AIMessage:
    """The answer as the conversation keeps it, with the question it answers, as that was made to stand alone, and with
    what both come from."""
    kept = {"answer": list(answer_from), "question": list(question_from)}
    return AIMessage(text, additional_kwargs={"origins": kept, "asked": question})


def origins_in(messages: Sequence[AnyMessage]) -> list[Origin]:
    """Everything that the words of these messages may come from."""
    kept = [_kept(message) for message in messages]
    return unique([origin for each in kept for name in ("answer", "question") for origin in each.get(name, [])])


def question_origins(message: AnyMessage) -> list[Origin]:
    """What the question that this message answers comes from, as it was made to stand alone."""
    return list(_kept(message).get("question", []))


def question_in(message: AnyMessage) -> str:
    """The question that this message answers, as it was made to stand alone; empty where none is known."""
    asked = message.additional_kwargs.get("asked", "") if isinstance(message, AIMessage) else ""
    return asked if isinstance(asked, str) else ""


def _kept(message: AnyMessage) -> dict[str, Any]:
    kept = message.additional_kwargs.get("origins", {}) if isinstance(message, AIMessage) else {}
    return kept if isinstance(kept, dict) else {}


async def usable(messages: Sequence[AnyMessage], result: Result | None, still_there: StillThere) -> Conversation:
    """The turns without the answers whose documents are gone. Asks once, and not at all where no answer has origins."""
    origins = origins_in(messages)
    there = await still_there(origins) if origins else frozenset[str]()
    return without_deleted(messages, result, there)


def without_deleted(messages: Sequence[AnyMessage], result: Result | None, there: Set[str]) -> Conversation:
    """The turns with a note in the place of each answer that has an origin which isn't `there`.

    What a person said stays. The result is that of the last finished turn; of one that can't be kept stays the
    person's own question.
    """
    removed: dict[int, AnyMessage] = {
        place: AIMessage(REMOVED, id=message.id)
        for place, message in enumerate(messages)
        if any(origin["chunk_id"] not in there for origin in origins_in([message]))
    }
    kept = [removed.get(place, message) for place, message in enumerate(messages)]
    # Behind an answer that stays stands its result. Else its question may be made from an answer that is gone.
    stays = bool(kept) and isinstance(kept[-1], AIMessage) and len(kept) - 1 not in removed
    if removed and result is not None and not stays:
        result = _bare(result, messages)
    return Conversation(kept, result, list(removed.values()))


def _bare(result: Result, messages: Sequence[AnyMessage]) -> Result:
    said = [message.text for message in messages if isinstance(message, HumanMessage)]
    answer = REMOVED if result.get("answer") else ""
    emptied: Any = {"answer": answer, "citations": [], "context": [], "queries": []}
    bare: Result = {**result, **emptied, "question": said[-1].strip() if said else ""}
    bare.pop("record", None)  # it names files, and its queries may hold words of their passages
    return bare
