"""`leadline eval retrieval` and `eval abstention`: what is found, and whether it holds an answer."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli.command import AsJson, DataDir, LockTimeout, run
from leadline.cli.display import say, table
from leadline.cli.evaluation import Folders, Sample, SampleOfBoth, Seed, measure

if TYPE_CHECKING:
    from leadline.evaluation.abstention import Abstention

Depth = Annotated[int, typer.Option(min=10, max=1000, help="How many documents each leg ranks.")]
Joint = Annotated[bool, typer.Option("--joint", help="Put the documents of all sets into one index.")]

HEADLINES = {
    "auroc": "AUROC of the best logit",
    "accuracy_at_zero": "accuracy at zero",
    "answerable_all_negative": "answerable, context all negative",
    "unanswerable_all_negative": "unanswerable, context all negative",
    "aurc": "area under risk-coverage",
}
NO_UNANSWERABLE = (
    "No question of this set is known to have no answer, so only the answerable half is measured. Such questions have "
    '"metadata": {"answerable": false}, or none but grades of 0 in qrels.tsv.'
)
NO_ANSWERABLE = "No question of this set has a relevant document, so only the unanswerable half is measured."


def retrieval(  # noqa: PLR0913 - one parameter an option
    folders: Folders,
    joint: Joint = False,
    depth: Depth = 100,
    sample: Sample = None,
    seed: Seed = 13,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Measure the legs and the orders made of them.

    Of each leg, the fused, the reranked and the blended order: nDCG@10, recall and MRR.
    """

    async def work() -> int:
        from leadline.evaluation.runner import evaluate_retrieval

        ask = partial(evaluate_retrieval, folders, joint=joint, depth=depth, sample=sample, seed=seed)
        await measure(ask, _show_retrieval, data_dir=data_dir, lock_timeout=lock_timeout, as_json=as_json)
        return 0

    run(work(), as_json=as_json)


def abstention(
    folders: Folders,
    sample: SampleOfBoth = None,
    seed: Seed = 13,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well the sign tells what can be answered.

    The sign of the best logit is to tell questions that the documents answer from those they don't.
    """

    async def work() -> int:
        from leadline.evaluation.abstention import evaluate_abstention

        ask = partial(evaluate_abstention, folders, sample=sample, seed=seed)
        await measure(ask, _show_abstention, data_dir=data_dir, lock_timeout=lock_timeout, as_json=as_json)
        return 0

    run(work(), as_json=as_json)


def _show_retrieval(name: str, legs: Mapping[str, Mapping[str, float]]) -> None:
    say(name, style="bold")
    columns = list(next(iter(legs.values())))
    differences = {leg: row for leg, row in legs.items() if row.keys() - columns}
    table(
        ["leg", *columns],
        [[leg, *(_figure(row[c]) for c in columns)] for leg, row in legs.items() if leg not in differences],
    )
    if differences:
        columns = list(next(iter(differences.values())))
        columns.remove("queries")
        rows = [[leg, *(f"{row[c]:+.3f}" for c in columns)] for leg, row in differences.items()]
        table(["difference", *columns], rows)


def _show_abstention(name: str, figures: "Abstention") -> None:
    say(
        f"{name}: {figures['answerable']} answerable and {figures['unanswerable']} unanswerable questions", style="bold"
    )
    estimates: Mapping[str, Any] = figures
    table(
        ["figure", "value", "low", "high"],
        [
            [words, *(_figure(estimates[key][bound]) for bound in ("value", "low", "high"))]
            for key, words in HEADLINES.items()
            if estimates[key]
        ],
    )
    if not figures["unanswerable"]:
        say(NO_UNANSWERABLE)
    if not figures["answerable"]:
        say(NO_ANSWERABLE)
    table(
        ["threshold", "answered", "coverage", "risk"],
        [
            [
                _threshold(p["threshold"]),
                p["answered"],
                _figure(p["coverage"]),
                "-" if p["risk"] is None else _figure(p["risk"]),
            ]
            for p in figures["risk_coverage"]
        ],
    )


def _figure(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _threshold(logit: float) -> str:
    return f"{logit:+.2f}" if logit else "0"
