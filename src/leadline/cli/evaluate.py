"""`leadline eval`: measures on judged questions."""

from pathlib import Path
from typing import Annotated

import typer

from leadline.cli.command import AsJson, DataDir, LockTimeout, run, settings_for
from leadline.cli.display import print_json, say, table

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR...", exists=True, file_okay=False, help="Folders with corpus.jsonl, queries.jsonl and qrels.tsv."
    ),
]
Depth = Annotated[int, typer.Option(min=10, max=1000, help="How many documents each leg ranks.")]
Sample = Annotated[int | None, typer.Option(min=1, help="Ask only this many of each set's questions.")]
Seed = Annotated[int, typer.Option(help="Which questions a sample draws.")]


def retrieval(  # noqa: PLR0913 - one parameter an option
    folders: Folders,
    depth: Depth = 100,
    sample: Sample = None,
    seed: Seed = 13,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Measure each leg, the fused and the reranked order: nDCG@10, recall and MRR.

    The indexes are built in a temporary folder; with --data-dir they stay, and the next run embeds nothing again.
    """

    async def work() -> int:
        from leadline.cli.progress import progress_bars
        from leadline.evaluation.runner import evaluate_retrieval

        settings = settings_for(data_dir, lock_timeout)
        with progress_bars() as bars:
            figures = await evaluate_retrieval(
                folders,
                settings=settings if data_dir else None,
                depth=depth,
                sample=sample,
                seed=seed,
                progress=bars.set,
            )
        if as_json:
            print_json(figures)
            return 0
        for name, legs in figures.items():
            say(name, style="bold")
            columns = list(next(iter(legs.values())))
            table(["leg", *columns], [[leg, *(_figure(row[c]) for c in columns)] for leg, row in legs.items()])
        return 0

    run(work(), as_json=as_json)


def _figure(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"
