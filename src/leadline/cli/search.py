"""`leadline search`: passages without an answer, and which leg found each at which rank."""

from typing import Annotated, Any

import typer

from leadline.cli.command import (
    AsJson,
    Collection,
    DataDir,
    LockTimeout,
    refuse_empty,
    run,
    say_empty,
    say_problems,
    settings_of_filled,
)
from leadline.cli.display import plain, print_json, say, short

SNIPPET_CHARS = 300

Query = Annotated[str, typer.Argument(help="What to look for.", show_default=False)]
K = Annotated[int, typer.Option("-k", min=1, max=1000, help="How many passages.")]


def search(
    query: Query,
    k: K = 10,
    collection: Collection = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Show passages for a query, and where each leg ranked them."""

    async def work() -> int:
        from leadline.knowledge import open_library

        refuse_empty(query)
        settings = settings_of_filled(data_dir, lock_timeout)
        async with open_library(settings) as library:
            base = await library.collection(collection or settings.run.collection)
            found = await base.search(query, k)
            if not await base.count():
                say_empty(base.name)
            await say_problems(base)
        if as_json:
            print_json({"query": query, "results": found})
            return 0
        for place, document in enumerate(found, 1):
            _show(place, document)
        if not found:
            say("Nothing found.")
        return 0

    run(work(), as_json=as_json)


def _show(place: int, document: Any) -> None:
    metadata = document["metadata"]
    page = f", page {metadata['page']}" if metadata.get("page") is not None else ""
    ranks = ", ".join(f"{leg} {found['rank'] + 1}" for leg, found in metadata["found_by"].items())
    say(f"{place:>3}. {plain(metadata['file_name'], one_line=True)}{page}  ({ranks})", style="bold")
    for other in metadata.get("also_in", []):
        say(f"     also in {plain(other['file_name'], one_line=True)}", style="dim")
    say(f"     {short(document['content'], SNIPPET_CHARS)}")
