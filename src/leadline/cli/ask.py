"""`leadline ask`: a question, its answer, and what the answer stands on."""

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leadline.cli.command import (
    ABSTAINED,
    FAILED,
    AsJson,
    Collection,
    DataDir,
    LockTimeout,
    context_for,
    option,
    refuse_empty,
    run,
    say_problems,
    settings_of_filled,
    without_retries,
)

if TYPE_CHECKING:
    from leadline.cli.answer import RunView
    from leadline.config import RunContext, Settings
    from leadline.knowledge import Library
    from leadline.records import Document

NEAREST = 3
EXIT_CODES = {"answered": 0, "abstained": ABSTAINED}

Question = Annotated[str, typer.Argument(help="The question.", show_default=False)]
Web = Annotated[
    Literal["never", "auto", "always"] | None,
    option(help="Web search; auto: only when the documents hold no answer.", default="auto"),
]
Llm = Annotated[
    str | None,
    option(help="local, or a LiteLLM model string such as openai/gpt-4o-mini.", default="none: quotation"),
]
Trace = Annotated[bool, typer.Option("--trace", help="Show each step's time and decision.")]
ShowPrompts = Annotated[bool, typer.Option("--show-prompts", help="Show the exact messages sent to the LLM.")]
Thread = Annotated[str | None, option("--thread", help="Continue (or begin) this conversation.", default="new")]
Record = Annotated[
    Path | None,
    typer.Option("--record", help="Also write the answer with all about its run to this file, for replay."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Allow the web search without being asked.")]


def ask(  # noqa: PLR0913 - one parameter an option
    question: Question,
    web: Web = None,
    llm: Llm = None,
    collection: Collection = None,
    thread: Thread = None,
    trace: Trace = False,
    show_prompts: ShowPrompts = False,
    yes: Yes = False,
    record: Record = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question from the documents, with sources. Exit code 4: no answer was found."""
    given = {"collection": collection, "web": web, "llm": llm, "show_prompts": show_prompts or None}
    given["web_consent"] = "yes" if yes else None

    async def work() -> int:
        from leadline.cli.answer import RunView
        from leadline.cli.llm import check_llm

        refuse_empty(question)
        settings = settings_of_filled(data_dir, lock_timeout)
        context = context_for(settings, **given)
        await asyncio.to_thread(check_llm, context.llm, settings)
        asked = {"llm": context.llm, "llm_at": settings.llm_api_base}
        view = RunView(trace=trace, prompts=show_prompts, as_json=as_json, **asked)
        return await _answer(question, settings, context, view, thread=thread, record=record)

    run(work(), as_json=as_json)


async def _answer(
    question: str,
    settings: "Settings",
    context: "RunContext",
    view: "RunView",
    *,
    thread: str | None,
    record: Path | None,
) -> int:
    from leadline.cli.consent import consent_asker
    from leadline.events import FinalEvent
    from leadline.graph.run import open_app

    result: dict[str, Any] = {}
    async with open_app(settings, ask_consent=consent_asker(settings.data_dir, view.pause)) as app:
        library, collection = app.library, context.collection
        context = await without_retries(library, context)
        with view:
            async for event in app.stream(question, context=context, thread_id=thread):
                view.show(event)
                result = event.result if isinstance(event, FinalEvent) else result
            shown = [] if view.as_json else await nearest_passages(library, collection, result)
            headings = await headings_of(library, collection, result) if view.trace else {}
            view.end(result, shown, headings)
            if record is not None:
                await asyncio.to_thread(write_record, record, result)
            await problems_of(library, collection, result)
    return EXIT_CODES.get(result["status"], FAILED)


async def headings_of(library: "Library", collection: str, result: dict[str, Any]) -> dict[str, list[str]]:
    """chunk_id → the headings that a candidate stands under; of those that are in the catalog."""
    from leadline.knowledge.lookup import live_passages

    live = await live_passages(library, collection, [row["chunk_id"] for row in result["context"]])
    return {chunk_id: place["headings"] for chunk_id, place in live.items()}


async def problems_of(library: "Library", collection: str, result: dict[str, Any]) -> None:
    """Says what wasn't searched, where something was; of a collection that isn't open the run has said why not."""
    if result["queries"] and library.is_open(collection):
        await say_problems(await library.collection(collection))


def write_record(path: Path, result: dict[str, Any]) -> None:
    """Writes the result, whole or not at all. Its quotes and file names are for its owner alone to read."""
    text = json.dumps(result, ensure_ascii=False, indent=1, default=str) + "\n"
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        Path(unfinished).replace(path)
    finally:
        Path(unfinished).unlink(missing_ok=True)


async def nearest_passages(library: "Library", collection: str, result: dict[str, Any]) -> "list[Document]":
    """The passages that came nearest to an answer where there is none, with their text. Best first."""
    from leadline.errors import TextMissing
    from leadline.stores.base import Hit

    rows = [row for row in result["context"] if row["rank"] is not None][:NEAREST]
    if result["status"] != "abstained" or not rows:
        return []
    hits = [Hit(row["chunk_id"], row["rerank_score"], rank) for rank, row in enumerate(rows)]
    try:
        return await (await library.collection(collection)).hydrate(hits, "nearest")
    except TextMissing:  # all of them came from the web: the catalog has no text of those
        return []
