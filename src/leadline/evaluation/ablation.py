"""Asks judged questions of the whole graph, as it is and with one part of it switched off.

Knows how a part is switched off and how a question is asked unattended. Doesn't know what makes an answer right.
"""

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.messages import HumanMessage

from leadline.config import RunContext, Settings
from leadline.evaluation.answers import Answers, Asked, Outcome, figures, gained, outcome
from leadline.evaluation.datasets import Dataset, load_datasets
from leadline.evaluation.index import Progress, evaluation_library, source_id, take_in
from leadline.evaluation.statistics import Estimate
from leadline.graph.build import Dependencies, build_graph
from leadline.graph.opening import dependencies
from leadline.graph.run import recursion_limit
from leadline.models.base import Reranker
from leadline.ranking import is_scored

FULL = "full"
log = logging.getLogger(__name__)

# Above any logit, so that the order stays and every sign is positive.
LIFT = 1000.0


@dataclass(frozen=True, slots=True)
class Variant:
    """A way of running the graph: with other dependencies, other knobs, or both."""

    name: str
    knobs: Mapping[str, Any]
    change: Callable[[Dependencies], Dependencies] = lambda deps: deps


class Ablation(TypedDict):
    """The figures of one way of asking, and how much more accurate the full graph is."""

    figures: Answers
    full_gains: Estimate | None


class _NoSign:
    """A reranker of which every passage counts as relevant; the order is its own."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    @property
    def name(self) -> str:
        return self._reranker.name

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        return [logit + LIFT if is_scored(logit) else logit for logit in self._reranker.score(question, passages)]

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        return self._reranker.score_sentences(question, sentences)


def without_sign(deps: Dependencies) -> Dependencies:
    """Dependencies under which no passage is ever irrelevant."""

    async def load() -> Reranker:
        return _NoSign(await deps.reranker())

    return replace(deps, reranker=load)


VARIANTS = (
    Variant(FULL, {}),
    Variant("loop off", {"max_retries": 0}),
    Variant("sign off", {}, without_sign),
    Variant("web off", {"web": "never"}),
)


async def evaluate_answers(  # noqa: PLR0913 - keyword-only options
    folders: Sequence[Path],
    *,
    settings: Settings | None = None,
    llm: str | None = None,
    variants: Sequence[Variant] = VARIANTS,
    sample: int | None = None,
    seed: int = 13,
    progress: Progress = lambda _task, _done, _total: None,
) -> dict[str, dict[str, Ablation]]:
    """Dataset → variant → figures. Every question is asked unattended, in each of the ways, and stands alone.

    With `settings` the indexes stay in their data folder; without, they are built in a temporary one. `sample` asks
    that many answerable and that many unanswerable questions of each set. The web is searched only where the settings
    say yes to it. Raises DatasetError before anything is built. Cost: a whole run per question and variant.
    """
    datasets = load_datasets(folders)
    found: dict[str, dict[str, Ablation]] = {}
    async with evaluation_library(settings) as (library, at):
        deps = dependencies(at, library)
        for folder, dataset in zip(folders, datasets, strict=True):
            drawn = dataset if sample is None else dataset.sampled(sample, seed=seed)
            collection = await library.collection(dataset.name, create=True)
            await take_in(collection, dataset, library.embedder, at.chunk_tokens, progress)
            base = at.run.model_copy(update={"collection": dataset.name, **({"llm": llm} if llm else {})})
            questions = questions_of(drawn, gold_answers(folder), dataset.name)
            outcomes: dict[str, list[Outcome]] = {}
            for variant in variants:
                context = RunContext.model_validate({**base.model_dump(), **variant.knobs})
                task = f"{dataset.name}: {variant.name}"
                outcomes[variant.name] = await ask_all(questions, variant.change(deps), context, task, progress)
            found[dataset.name] = compared(outcomes, seed=seed)
    return found


def compared(outcomes: Mapping[str, Sequence[Outcome]], *, seed: int) -> dict[str, Ablation]:
    """The figures of each variant, and what the full graph gains over it."""
    full = outcomes.get(FULL)
    return {
        name: Ablation(
            figures=figures(of, seed=seed),
            full_gains=gained(full, of, seed=seed) if full is not None and name != FULL else None,
        )
        for name, of in outcomes.items()
    }


async def ask_all(
    questions: Sequence[Asked], deps: Dependencies, context: RunContext, task: str, progress: Progress
) -> list[Outcome]:
    """The outcome of each question, in their order. Whatever a run raises is a failure of that question."""
    graph = build_graph(deps).compile()
    options: dict[str, Any] = {"config": {"recursion_limit": recursion_limit(context)}, "context": context}

    async def ask(text: str) -> Any:
        return (await graph.ainvoke({"messages": [HumanMessage(text)]}, **options))["result"]

    outcomes = []
    for done, asked in enumerate(questions, 1):
        outcomes.append(await _outcome(asked, ask))
        progress(task, done, len(questions))
    return outcomes


async def _outcome(asked: Asked, ask: Callable[[str], Awaitable[Any]]) -> Outcome:
    begun = time.perf_counter()
    try:
        return outcome(asked, await ask(asked.text), time.perf_counter() - begun)
    except Exception as error:  # noqa: BLE001 - counted as what it is, a question without an answer
        log.warning("No answer to %r: %s: %s", asked.text[:80], type(error).__name__, error)
        return Outcome(asked.answerable, failed=True, seconds=time.perf_counter() - begun)


def questions_of(dataset: Dataset, gold: Mapping[str, Sequence[str]], collection: str) -> list[Asked]:
    """The dataset's questions with what is judged of them, those with an answer first."""
    answerable = [
        Asked(
            query,
            text,
            answerable=True,
            gold=tuple(gold.get(query, ())),
            relevant=frozenset(source_id(collection, dataset.name, document) for document in dataset.qrels[query]),
        )
        for query, text in dataset.queries.items()
    ]
    others = [Asked(query, text, False, (), frozenset()) for query, text in dataset.unanswerable.items()]
    return [*answerable, *others]


def gold_answers(folder: Path) -> dict[str, list[str]]:
    """Query → its right answers, where `queries.jsonl` has them. The file must be one that `load_dataset` reads."""
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {
        row["_id"]: [answer for answer in row["answers"] if isinstance(answer, str)]
        for row in rows
        if isinstance(row.get("answers"), list)
    }
