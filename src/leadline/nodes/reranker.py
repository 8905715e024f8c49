"""Scores the documents against the question by a logit whose sign says whether they hold the answer.

Knows the reranker's contract, the run's cache of scores (raw logits: no zero point goes in) and that a collection may
have a zero point of its own. When the reranker fails the fused order stands and every document counts as not scored: no
threshold ever meets a score it wasn't made for.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence

from langgraph.runtime import Runtime

from leadline.calibration import Zero
from leadline.config import RunContext
from leadline.errors import ConfigError, ModelError, RerankerRefused
from leadline.models.base import Reranker
from leadline.models.sign import signed
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
    top = runtime.context.rerank_top_k
    try:
        async with asyncio.timeout(timeout_s):
            model = await load()
            scores = await _scores(model, state.get("queries") or [state["question"]], state)
            zero = await _zero(model, runtime.context.collection, zero_points)
        ranked = apply_scores(documents, [signed(_best(scores, document) - zero.value) for document in documents])
    except (ConfigError, RerankerRefused):
        raise
    except Exception as error:  # noqa: BLE001 a named degrade point: whatever broke, the fused order stands
        return {"documents": documents, "context": documents[:top], "degraded": [degrade(runtime, "reranker", error)]}
    update: RAGUpdate = {"documents": ranked, "context": ranked[:top], "scores": scores}
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


def _best(scores: Scores, document: Document) -> float:
    chunk_id = document["metadata"]["chunk_id"]
    given = [known[chunk_id] for known in scores.values() if is_scored(known.get(chunk_id, 0.0))]
    return max(given, default=math.nan)  # not 0.0: that would be taken for a logit of exactly zero


def passage_text(document: Document) -> str:
    """What the reranker reads of a document: its headings, then its text."""
    headings = document["metadata"].get("headings") or []
    return "\n".join([*headings, document["content"]])
