"""The end of a run as a Result: the object that every surface shows.

Pure functions over the state and the decision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.config import RunContext
from leadline.decision import Decision
from leadline.nodes.candidates import context_rows
from leadline.nodes.record import record_of, without_folder
from leadline.nodes.wording import abstention
from leadline.state import Citation, Document, Evidence, Grounding, RAGState, Result, Usage, Verdict

NEAREST = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """What a result says of the installation: names of the models, and the generation of the documents.

    `settings` are those that retrieval depends on, `library` tells this one from others: see `nodes.record`.
    """

    models: Mapping[str, str]
    generation: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    library: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """A draft after its check: the text with only real markers, what it cites, and how it and its evidence stand.

    `changes` says what of the draft was rewritten or left out, `left_open` what was not checked; "" for nothing.
    `usage`, `degraded` and `limits` are what the check spent, what failed in it, and what kept it from a call.
    """

    text: str
    citations: Sequence[Citation]
    grounding: Grounding
    evidence: Evidence
    changes: str = ""
    left_open: str = ""
    usage: Usage = field(default_factory=Usage)
    degraded: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)


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
    verdict = verdict_of(decision, checked)
    result = Result(
        question=state["question"],
        status=status,
        answer=checked.text if answered else _no_answer(state, status),
        citations=list(checked.citations) if answered else [],
        verdict=verdict,
        flags=list(decision.flags),
        context=context_rows(state, checked.citations),
        queries=_queries(state),
        web_used=state.get("web_used", False),
        degraded=degraded,
        usage=state.get("usage", {}),
        limits=state.get("limits", []),
        models={**facts.models, "llm": without_folder(context.llm or "extractive")},
        generation=facts.generation,
        indexing=state.get("indexing", []),
        record=record_of(state, context, facts.settings, facts.library, verdict),
    )
    if status == "error":
        result["error"] = {
            "code": "store",
            "message": f"{decision.reason} Failed: {', '.join(degraded) or 'no search is set up'}.",
            "hint": "Run `leadline verify` to see the state of the indexes.",
        }
    return result


def _queries(state: RAGState) -> list[str]:
    """Each text that was searched for, in the documents or the web, once."""
    passes = state.get("passes", [])
    return list(dict.fromkeys(query for each in passes for query in (each["query"], each.get("web_query")) if query))


def verdict_of(decision: Decision, checked: Checked) -> Verdict:
    """What was decided, and on what."""
    return Verdict(
        evidence=checked.evidence, grounding=checked.grounding, action=decision.action, reason=decision.reason
    )


def _no_answer(state: RAGState, status: str) -> str:
    if status != "abstained":
        return ""
    return abstention(state["question"], nearest_files(state), len(state.get("indexing", [])))


def nearest_files(state: RAGState) -> list[str]:
    """Names of the files whose passages came nearest, best first, each once."""
    return [str(document["metadata"]["file_name"]) for document in nearest_documents(state)]


def nearest_documents(state: RAGState) -> list[Document]:
    """The best passage of each of the files whose passages came nearest."""
    best: dict[str, Document] = {}
    for document in state.get("documents", []):
        best.setdefault(str(document["metadata"]["file_name"]), document)
    return [*best.values()][:NEAREST]
