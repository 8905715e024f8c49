"""The end of a run as a Result: the object that every surface shows.

Pure functions over the state and the decision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.config import RunContext
from leadline.decision import Decision
from leadline.nodes.wording import abstention
from leadline.state import Citation, ContextRow, Document, Evidence, Grounding, RAGState, Result, Verdict

NEAREST = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """What a result says of the installation: names of the models, and the generation of the documents."""

    models: Mapping[str, str]
    generation: int


@dataclass(frozen=True, slots=True)
class Checked:
    """A draft after its check: the text with only real markers, what it cites, and how it and its evidence stand."""

    text: str
    citations: Sequence[Citation]
    grounding: Grounding
    evidence: Evidence


def result_of(
    state: RAGState,
    context: RunContext,
    decision: Decision,
    checked: Checked,
    facts: Facts,
) -> Result:
    """The whole result. An answer and citations stand in it only when the run answered."""
    status = decision.status or "error"
    answered = status == "answered"
    degraded = state.get("degraded", [])
    result = Result(
        question=state["question"],
        status=status,
        answer=checked.text if answered else _no_answer(state, status),
        citations=list(checked.citations) if answered else [],
        verdict=verdict_of(decision, checked),
        flags=list(decision.flags),
        context=context_rows(state),
        queries=list(dict.fromkeys(search["query"] for search in state.get("passes", []))),
        web_used=state.get("web_used", False),
        degraded=degraded,
        usage=state.get("usage", {}),
        models={**facts.models, "llm": context.llm or "extractive"},
        generation=facts.generation,
    )
    if status == "error":
        result["error"] = {
            "code": "store",
            "message": f"{decision.reason} Failed: {', '.join(degraded) or 'no search is set up'}.",
            "hint": "Run `leadline verify` to see the state of the indexes.",
        }
    return result


def verdict_of(decision: Decision, checked: Checked) -> Verdict:
    """What was decided, and on what."""
    return Verdict(
        evidence=checked.evidence, grounding=checked.grounding, action=decision.action, reason=decision.reason
    )


def _no_answer(state: RAGState, status: str) -> str:
    return abstention(state["question"], nearest_files(state)) if status == "abstained" else ""


def nearest_files(state: RAGState) -> list[str]:
    """Names of the files whose passages came nearest, best first, each once."""
    return [str(document["metadata"]["file_name"]) for document in nearest_documents(state)]


def nearest_documents(state: RAGState) -> list[Document]:
    """The best passage of each of the files whose passages came nearest."""
    best: dict[str, Document] = {}
    for document in state.get("documents", []):
        best.setdefault(str(document["metadata"]["file_name"]), document)
    return [*best.values()][:NEAREST]


def context_rows(state: RAGState) -> list[ContextRow]:
    """Every passage the run looked at, best first: which were given to the writer, and why the others weren't."""
    kept = {document["metadata"]["chunk_id"]: place for place, document in enumerate(state.get("context", []))}
    shown = {block["chunk_id"] for block in state.get("evidence", []) if block["sentences"]}
    return [_row(document, kept, shown) for document in state.get("documents", [])]


def _row(document: Document, kept: Mapping[str, int], shown: set[str]) -> ContextRow:
    metadata = document["metadata"]
    chunk_id = metadata["chunk_id"]
    if chunk_id not in kept:
        why = f"ranked below the best {len(kept)}"
    elif chunk_id not in shown:
        why = f"ranked {kept[chunk_id] + 1}, not shown to the writer"
    else:
        why = f"ranked {kept[chunk_id] + 1}, shown to the writer"
    return ContextRow(
        chunk_id=chunk_id,
        file_name=metadata["file_name"],
        rerank_score=document["rerank_score"],
        found_by=metadata.get("found_by", {}),
        kept=chunk_id in shown,
        why=why,
    )
