"""`leadline eval answers`: whole answers on judged questions, with parts of the graph switched off."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli.command import FAILED, AsJson, DataDir, LockTimeout, run
from leadline.cli.display import say, table
from leadline.cli.evaluation import Folders, SampleOfBoth, Seed, measure

if TYPE_CHECKING:
    from leadline.evaluation.ablation import Ablation
    from leadline.evaluation.statistics import Estimate

Llm = Annotated[str | None, typer.Option("--llm", help="A LiteLLM model string; without, answers are quoted.")]
OnlyFull = Annotated[bool, typer.Option("--no-ablation", help="Only the graph as it is: a quarter of the time.")]
Least = Annotated[
    list[str] | None,
    typer.Option(
        "--least", metavar="FIGURE=VALUE", help="Exit with 1 if the full graph's figure is worse, such as right=0.5."
    ),
]

COLUMNS = {
    "right": "right",
    "f1": "F1",
    "cited_rightly": "cited rightly",
    "abstained_wrongly": "abstained wrongly",
    "abstained_rightly": "abstained rightly",
    "warned_rightly": "warned rightly",
    "wrong": "wrong",
    "accuracy": "accuracy",
}


def answers(  # noqa: PLR0913 - one parameter an option
    folders: Folders,
    llm: Llm = None,
    only_full: OnlyFull = False,
    least: Least = None,
    sample: SampleOfBoth = None,
    seed: Seed = 13,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Measure whole answers, with parts of the graph off.

    They are right, cited rightly, abstained from or wrong; with the loop, the sign or the web off.
    """
    bounds = dict(_bound(wanted) for wanted in least or [])

    async def work() -> int:
        from leadline.evaluation.ablation import FULL, VARIANTS, evaluate_answers
        from leadline.evaluation.answers import below

        variants = VARIANTS[:1] if only_full else VARIANTS
        ask = partial(evaluate_answers, folders, llm=llm, variants=variants, sample=sample, seed=seed)
        found = await measure(ask, _show, data_dir=data_dir, lock_timeout=lock_timeout, as_json=as_json)
        missed = {name: below(of[FULL]["figures"], bounds) for name, of in found.items()}
        for name, figures in missed.items():
            _say_missed(name, figures, bounds)
        return FAILED if any(missed.values()) else 0

    run(work(), as_json=as_json)


def _say_missed(name: str, missed: Mapping[str, float | None], bounds: Mapping[str, float]) -> None:
    for figure, value in missed.items():
        told = "not known" if value is None else f"{value:.3f}"
        say(f"{name}: {figure} is {told}, worse than {bounds[figure]:g}.", style="red", stderr=True)


def _bound(wanted: str) -> tuple[str, float]:
    from leadline.evaluation.answers import Answers

    figure, _, value = wanted.partition("=")
    if figure not in Answers.__annotations__:
        allowed = ", ".join(Answers.__annotations__)
        raise typer.BadParameter(f"{figure!r} is no figure: {allowed}.", param_hint="--least")
    try:
        return figure, float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is no number.", param_hint="--least") from None


def _show(name: str, variants: Mapping[str, "Ablation"]) -> None:
    first = next(iter(variants.values()))["figures"]
    asked = f"{first['answerable']} answerable and {first['unanswerable']} unanswerable questions"
    say(f"{name}: {asked}", style="bold")
    rows = []
    for variant, of in variants.items():
        figures: Mapping[str, Any] = of["figures"]
        rows.append([variant, *(_value(figures[key]) for key in COLUMNS), figures["failed"], _gain(of["full_gains"])])
    table(["", *COLUMNS.values(), "failed", "full gains"], rows)


def _value(estimate: "Estimate | None") -> str:
    return "-" if estimate is None else f"{estimate['value']:.3f}"


def _gain(estimate: "Estimate | None") -> str:
    if estimate is None:
        return "-"
    return f"{estimate['value']:+.3f} ({estimate['low']:+.3f} to {estimate['high']:+.3f})"
