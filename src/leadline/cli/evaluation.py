"""What the evaluations share: their options, and how one is made and shown."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from leadline.cli.command import settings_for
from leadline.cli.display import print_json

if TYPE_CHECKING:
    from leadline.config import Settings
    from leadline.evaluation.index import Progress

T = TypeVar("T")

WHERE = "The indexes are built in a temporary folder; with --data-dir they stay, and the next run embeds nothing again."

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR", exists=True, file_okay=False, help="Folders with corpus.jsonl, queries.jsonl and qrels.tsv."
    ),
]
Sample = Annotated[int | None, typer.Option(min=1, help="Ask only this many of each set's questions.")]
SampleOfBoth = Annotated[
    int | None,
    typer.Option("--sample", min=1, help="Ask only this many of each set's answerable and unanswerable ones."),
]
Seed = Annotated[int, typer.Option(help="Which questions a sample draws, and which resamples an interval.")]


class Evaluate(Protocol[T]):
    """An evaluation with everything bound but where its indexes are and who is told how far it is."""

    async def __call__(self, *, settings: "Settings | None", progress: "Progress") -> dict[str, T]: ...


async def measure(
    evaluate: Evaluate[T],
    show: Callable[[str, T], None],
    *,
    data_dir: Path | None,
    lock_timeout: float | None,
    as_json: bool,
) -> dict[str, T]:
    """Dataset → figures, after they were printed: by `show`, one dataset after the other, or as JSON."""
    from leadline.cli.progress import progress_bars

    settings = settings_for(data_dir, lock_timeout)
    with progress_bars() as bars:
        found = await evaluate(settings=settings if data_dir else None, progress=bars.set)
    if as_json:
        print_json(found)
    else:
        for name, figures in found.items():
            show(name, figures)
    return found
