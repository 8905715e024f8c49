"""Scores the documents against the question by a logit whose sign says whether they hold the answer.

Knows the reranker's contract, the run's cache of scores (raw logits: no zero point goes in) and that a collection may
have a zero point of its own. When the reranker fails the fused order stands and every document counts as not scored: no
threshold ever meets a score it wasn't made for.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from langgraph.runtime import Runtime

from leadline.calibration import Zero
from leadline.config import RunContext
from leadline.errors import ConfigError, ModelError, RerankerRefused
from leadline.models.base import Reranker
from leadline.models.sign import signed
from leadline.nodes.allowance import time_left
from leadline.nodes.hops import bridge
from leadline.nodes.progress import degrade
from leadline.ranking import apply_scores, is_scored
from leadline.state import Document, RAGState, RAGUpdate

CALIBRATION = "calibration"  # what a run does without where `max_wrong` can't be kept to

Scores = dict[str, dict[str, float]]
ZeroPoints = Callable[[str, str], Awaitable[Zero]]  # of a collection, for the reranker of this name


async def reranker(
    state: RAGState,
    runtime: Runtime[RunContext],
    *,
    load: Callable[[], Awaitable[Reranker]],
    timeout_s: float,
    zero_points: ZeroPoints | None = None,
) -> RAGUpdate:
    """Writes `context`, the best of `documents`, and all `documents` with their logits.

    A chunk is scored once per question of the run (one batched call for those not scored yet) and keeps its best
    score, from which the collection's zero point is taken. Raises RerankerRefused and ConfigError: a sign that can't be
    trusted, or a setting that needs a package, must not be worked around silently.
    """
    documents = state.get("documents", [])
    if not documents:
        return {}
    left = max(0.0, time_left(state, runtime.context.budgets, time.time()))
    known = _scored_before(state)
    rank = partial(_ranked, runtime=runtime, load=load, zero_points=zero_points)
    try:
        async with asyncio.timeout(min(left, timeout_s)):
            return await rank(state)
    except (ConfigError, RerankerRefused):
        raise
    except Exception as error:  # noqa: BLE001 a named degrade point: whatever broke, the fused order stands
        if isinstance(error, TimeoutError) and left < timeout_s:
            if known:  # of what a pass brings when there is no time to read it nothing is used
                return {**await rank({**state, "documents": known}), "limits": ["seconds"]}
            error = ModelError("The run's time was up before the passages were ranked.")
        context = documents[: runtime.context.rerank_top_k]
        return {"documents": documents, "context": context, "degraded": [degrade(runtime, "reranker", error)]}


def _scored_before(state: RAGState) -> list[Document]:
    """The documents that every question of the run has a score of."""
    questions = state.get("queries") or [state["question"]]
    scored = [state.get("scores", {}).get(question, {}) for question in questions]
    return [d for d in state["documents"] if all(d["metadata"]["chunk_id"] in known for known in scored)]


async def _ranked(
    state: RAGState,
    *,
    runtime: Runtime[RunContext],
    load: Callable[[], Awaitable[Reranker]],
    zero_points: ZeroPoints | None,
) -> RAGUpdate:
    documents = state["documents"]
    model = await load()
    scores = await _scores(model, state.get("queries") or [state["question"]], state)
    zero = await _zero(model, runtime.context.collection, zero_points)
    led = {chunk: (origin, logit - zero.value) for chunk, (origin, logit) in (await _joint(model, state)).items()}
    ranked = apply_scores(documents, [signed(_best(scores, d) - zero.value) for d in documents], led=led)
    update: RAGUpdate = {"documents": ranked, "context": ranked[: runtime.context.rerank_top_k], "scores": scores}
    update |= {"strict": zero.strict, "zero_point": zero.value}
    if zero.warning and CALIBRATION not in state.get("degraded", []):
        update["degraded"] = [degrade(runtime, CALIBRATION, ConfigError(zero.warning))]
    return update


async def _zero(model: Reranker, collection: str, zero_points: ZeroPoints | None) -> Zero:
    if zero_points is None:
        return Zero(0.0, "none")
    name = await asyncio.to_thread(lambda: model.name)  # may read the weights, to tell them from others
    return await zero_points(collection, name)


async def _scores(model: Reranker, questions: Sequence[str], state: RAGState) -> Scores:
    scores = {question: dict(known) for question, known in state.get("scores", {}).items()}
    for question in questions:
        known = scores.setdefault(question, {})
        new = [document for document in state["documents"] if document["metadata"]["chunk_id"] not in known]
        if not new:
            continue
        logits = await asyncio.to_thread(model.score, question, [passage_text(document) for document in new])
        if len(logits) != len(new):
            raise ModelError(f"The reranker {model.name} gave {len(logits)} scores for {len(new)} passages.")
        if not any(is_scored(logit) for logit in logits):
            raise ModelError(f"The reranker {model.name} gave no finite score.")
        for document, logit in zip(new, logits, strict=True):
            known[document["metadata"]["chunk_id"]] = float(logit) if is_scored(logit) else 0.0
    return scores


async def _joint(model: Reranker, state: RAGState) -> dict[str, tuple[str, float]]:
    """Chunk id of a passage that a hop led to → where the hop began, and its logit, read after the sentence there.

    By itself it may share no word with the question. Only the order is made by this: whether a passage holds the answer
    is told by its own logit, as that of any other.
    """
    documents = {str(document["metadata"]["chunk_id"]): document for document in state["documents"]}
    texts: dict[tuple[str, str], str] = {}
    for chunk_id, document in documents.items():
        led_by = document["metadata"].get("led_by") or {}
        if origin := documents.get(begun := str(led_by.get("chunk_id"))):
            texts[chunk_id, begun] = f"{bridge(origin, led_by['name'])}\n{passage_text(document)}"
    if not texts:
        return {}
    logits = await asyncio.to_thread(model.score, state["question"], list(texts.values()))
    return {chunk: (begun, float(logit)) for (chunk, begun), logit in zip(texts, logits, strict=True)}


def _best(scores: Scores, document: Document) -> float:
    chunk_id = document["metadata"]["chunk_id"]
    given = [known[chunk_id] for known in scores.values() if is_scored(known.get(chunk_id, 0.0))]
    return max(given, default=math.nan)  # not 0.0: that would be taken for a logit of exactly zero


def passage_text(document: Document) -> str:
    """What the reranker reads of a document: its headings, then its text."""
    headings = document["metadata"].get("headings") or []
    return "\n".join([*headings, document["content"]])
