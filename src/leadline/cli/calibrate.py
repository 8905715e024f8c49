"""`leadline calibrate`: what the reranker's logits mean on a collection, from judged questions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli.command import AsJson, DataDir, LockTimeout, option, run, settings_for, settings_of_filled
from leadline.cli.display import print_json, say, table
from leadline.errors import ConfigError

if TYPE_CHECKING:
    from leadline.config import Settings
    from leadline.evaluation.calibrator import Made

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)  # of the questions, in the table

Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR", exists=True, file_okay=False, help="Folder with queries.jsonl and qrels.tsv.", show_default=False
    ),
]
Collection = Annotated[
    str | None,
    option(
        "--collection",
        "-c",
        help="Collection that the questions are about.",
        default="default, or for a folder with corpus.jsonl one of the folder's name, filled from it",
    ),
]
Clear = Annotated[bool, typer.Option("--clear", help="Remove the collection's calibrations instead.")]
Sample = Annotated[int | None, typer.Option(min=1, help="Ask only this many of the questions.")]
Seed = Annotated[int, typer.Option(help="Which questions a sample draws.")]
Plot = Annotated[
    Path | None, typer.Option(help="Draw the risk-coverage curve into this .svg or .png file.", show_default=False)
]


def calibrate(  # noqa: PLR0913 - one parameter an option
    folder: Folder = None,
    collection: Collection = None,
    clear: Clear = False,
    sample: Sample = None,
    seed: Seed = 13,
    plot: Plot = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Set the reranker's zero point from judged questions.

    It is that of a collection, and kept with it. Documents in qrels.tsv are called by file name, path or id.
    """

    async def work() -> int:
        if clear:
            return await _clear(settings_of_filled(data_dir, lock_timeout), folder, collection, as_json)
        settings = settings_for(data_dir, lock_timeout)
        if folder is None:
            raise ConfigError("No folder of judged questions is given.", hint="leadline calibrate DIR, or --clear.")
        from leadline.cli.progress import progress_bars
        from leadline.evaluation.calibrator import calibrate as make
        from leadline.evaluation.curve import check_picture

        if plot is not None:
            check_picture(plot)
        with progress_bars() as bars:
            made = await make(
                folder, settings=settings, collection=collection, sample=sample, seed=seed, progress=bars.set
            )
        _show(made, settings, plot, as_json)
        return 0

    run(work(), as_json=as_json)


async def _clear(settings: "Settings", folder: Path | None, collection: str | None, as_json: bool) -> int:
    from leadline.evaluation.calibrator import clear, own_collection

    own = None if folder is None else own_collection(folder)
    name = collection or own or settings.run.collection
    gone = await clear(settings, name)
    if as_json:
        print_json({"collection": name, "cleared": gone})
    elif gone:
        say(f"Removed the calibration of {name} for {', '.join(gone)}.")
    else:
        say(f"The collection {name} has no calibration.")
    return 0


def _show(made: "Made", settings: "Settings", plot: Path | None, as_json: bool) -> None:
    from leadline.calibration import zero_of
    from leadline.evaluation.calibration import doubts
    from leadline.evaluation.curve import save_curve

    calibration = made.calibration
    if plot is not None:
        title = f"Risk and coverage: {calibration.dataset}, {made.reranker}"
        zero = zero_of(calibration, settings.max_wrong)
        save_curve(plot, calibration, zero, title=title, max_wrong=settings.max_wrong)
    if as_json:
        curve = calibration.to_json()["curve"]
        shown = {"collection": made.collection, **made.described, "doubts": doubts(calibration), "curve": curve}
        print_json({**shown, "plot": None if plot is None else str(plot)})
        return
    say(made.collection, style="bold")
    table(["calibration", made.reranker], rows(made.described))
    table(["answered", "of all", "threshold", "wrong", "share", "95% interval"], _curve_rows(made))
    for doubt in doubts(calibration):
        say(doubt, style="yellow")
    if plot is not None:
        say(f"The curve is drawn in {plot}.")


def rows(described: dict[str, Any]) -> list[list[object]]:
    """A calibration as `Calibrations.describe` tells it, for the table of a collection."""
    told: list[list[object]] = []
    if described["basis"] != "none":
        told = [
            ["zero point", f"{described['zero_point']:+.3f} ({_BASIS[described['basis']]})"],
            ["calibrated", f"{described['made']} from {_questions(described)} of {described['dataset']}"],
            ["at zero", f"{described['answered']} of {described['questions']} answered, {_share(described)} wrong"],
        ]
        if described["changes_since"]:
            told.append(["changed since", f"the documents, {described['changes_since']} times"])
    told += [["not applied", f"a calibration for another model, {name}"] for name in described["others"]]
    return told + ([["warning", described["warning"]]] if described["warning"] else [])


_BASIS = {
    "calibrated": "relevant is as likely as not",
    "assured": "max_wrong, by the upper end of the 95% interval",
    "measured": "max_wrong as measured: the questions are too few to be sure",
    "unreached": "relevant is as likely as not; max_wrong is not reached",
}


def _questions(described: dict[str, Any]) -> str:
    return f"{described['questions']} questions, {described['unanswerable']} of them unanswerable,"


def _share(described: dict[str, Any]) -> str:
    low, high = described["risk_interval"]
    return f"{described['risk']:.1%} of those ({low:.1%} to {high:.1%})"


def _curve_rows(made: "Made") -> list[list[object]]:
    """The points nearest to some shares of the questions."""
    calibration = made.calibration
    wanted = (share * calibration.questions for share in SHARES)
    nearest = [min(calibration.curve, key=lambda point: abs(point.answered - count)) for count in wanted]
    return [
        [
            point.answered,
            f"{point.answered / calibration.questions:.0%}",
            f"{point.threshold:+.3f}",
            point.wrong,
            f"{point.risk:.1%}",
            f"{point.interval[0]:.1%} to {point.interval[1]:.1%}",
        ]
        for point in dict.fromkeys(nearest)
    ]
