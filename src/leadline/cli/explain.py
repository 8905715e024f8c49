"""`leadline explain`: what became of a document in an answer, stage by stage; without one, of every candidate."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leadline.cli.command import (
    FAILED,
    AsJson,
    Collection,
    DataDir,
    LockTimeout,
    context_for,
    option,
    refuse_empty,
    run,
    settings_of_filled,
    without_retries,
)
from leadline.cli.display import plain, print_json, say, short

if TYPE_CHECKING:
    from leadline.graph.explain import Explanation, Passage
    from leadline.records import Pass, Result

SHOWN = 12  # passages of a document on a screen; --json has all
BEGINS_CHARS = 100

Question = Annotated[str, typer.Argument(help="The question.", show_default=False)]
Doc = Annotated[
    str | None,
    option("--doc", help="A document: its name, path or id, or a part of one.", default="all that was found"),
]
Depth = Annotated[
    int, typer.Option("--depth", min=1, max=10_000, help="How deep to look for what was not found, in hits a leg.")
]
Llm = Annotated[str | None, option(help="Have the answer written by this LLM.", default="none: no LLM is called")]
Web = Annotated[Literal["never", "always"], typer.Option(help="Search the web too.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Allow the web search without being asked.")]


def explain(  # noqa: PLR0913 - one parameter an option
    question: Question,
    doc: Doc = None,
    depth: Depth = 1000,
    llm: Llm = None,
    web: Web = "never",
    yes: Yes = False,
    collection: Collection = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Show which stage lost a document, or why it was used."""
    given: dict[str, Any] = {"collection": collection, "web": web, "web_consent": "yes" if yes else None}

    async def work() -> int:
        from leadline.cli.consent import consent_asker
        from leadline.cli.llm import check_llm
        from leadline.graph.explain import explain
        from leadline.graph.run import open_app

        refuse_empty(question)
        settings = settings_of_filled(data_dir, lock_timeout)
        context = context_for(settings, **given).model_copy(update={"llm": llm})
        await asyncio.to_thread(check_llm, llm, settings)
        result: Result | None
        async with open_app(settings, ask_consent=consent_asker(settings.data_dir, lambda: None)) as app:
            context = await without_retries(app.library, context)
            if doc is None:
                result = asked = await app.ask(question, context=context)
                code = _end(asked, as_json)
            else:
                found = await explain(app, question, doc, context, depth=depth)
                result, code = found.result, _show_found(found, as_json)
        if web == "always" and result is not None and not (result["web_used"] or "web" in result["degraded"]):
            say("The web was not asked: nobody allowed it. --yes does.", style="yellow", stderr=True)
        return code

    run(work(), as_json=as_json)


def _show_found(found: "Explanation", as_json: bool) -> int:
    if as_json:
        print_json(found.to_json())
    else:
        _show(found)
    return FAILED if found.stage == "run_failed" else 0


def _end(result: "Result", as_json: bool) -> int:
    """All candidates of a run."""
    from leadline.cli.answer import show_error
    from leadline.cli.candidates import show_candidates
    from leadline.graph.explain import run_json

    if as_json:
        print_json({"question": result["question"], "run": run_json(result), "context": result["context"]})
    elif "error" in result:
        show_error(result["error"])
    else:
        if result["context"]:
            show_candidates(result["context"], len(_searches(result)))
        else:
            say("Nothing was found.")
        _show_run(result)
    return FAILED if result["status"] == "error" else 0


def _show(found: "Explanation") -> None:
    document = found.document
    if document is None:
        say(f"{plain(found.wanted, one_line=True)}: not a document of this library", style="bold")
    else:
        count = f"{document.chunks} passage{'s' if document.chunks != 1 else ''}"
        about = f"{count}, collection {document.collection}, id {document.doc_id[:12]}"
        say(f"{plain(document.file_name, one_line=True)}  ({about})", style="bold")
    style = "green" if found.used else "yellow"
    say(f"{'Used' if found.used else _HEADS.get(found.stage, 'Not used')}: {_sentence(found.why)}", style=style)
    if found.stage == "not_cited" and found.result is not None:
        _show_rivals(found, found.result)
    if found.hint:
        say(found.hint)
    if found.passages:
        _show_passages(found)
    for leg, why in found.failed.items():
        say(f"Looking deeper, {leg} failed: {plain(why, one_line=True)}", style="yellow")
    if found.result is not None:
        _show_run(found.result)


_HEADS = {"not_cited": "In the evidence, not used", "check_failed": "In the evidence, not confirmed"}


def _sentence(why: str) -> str:
    return f"{plain(why, one_line=True)}."


def _show_rivals(found: "Explanation", result: "Result") -> None:
    """What the answer stands on instead of this document."""
    from leadline.cli.answer import score

    cited = [row for row in result["context"] if row["fate"] == "cited" and row["rank"] is not None]
    best = found.passages[0].row
    if not cited or best is None or best["rank"] is None:
        return
    stands_on = ", ".join(
        f"[{row['n']}] {row['file_name']}, ranked {(row['rank'] or 0) + 1} ({score(row['rerank_score'])})"
        for row in cited
    )
    own = f"ranked {best['rank'] + 1} ({score(best['rerank_score'])})"
    say(f"No sentence of it is in the answer, which stands on {plain(stands_on, one_line=True)}; its best is {own}.")


def _show_passages(found: "Explanation") -> None:
    from leadline.cli.candidates import FATES, logit_cell, passage_cell, place_cell, show_rows

    assert found.result is not None, "passages are told of where there was a run"
    passes = len(_searches(found.result))
    legs = _legs(found)
    shown = found.passages[:SHOWN]
    rows = []
    for passage in shown:
        row = passage.row
        logit = passage.logit if row is None else row["rerank_score"]
        rows.append(
            [
                passage_cell(passage.chunk_index, passage.page),
                *(_leg_cell(passage, leg, passes) for leg in legs),
                place_cell(None if row is None else row["fused_rank"]),
                place_cell(None if row is None else row["rank"]),
                logit_cell(logit) if row is not None or logit is None else f"({logit_cell(logit)})",
                FATES.get(passage.stage, passage.stage),
            ]
        )
    say()
    show_rows(["passage", *legs, "fused", "rank", "logit", "fate"], rows)
    if len(found.passages) > SHOWN:
        say(f"and {len(found.passages) - SHOWN} more passages: --json has all of them.", style="dim")
    _show_legend(found, passes)


def _legs(found: "Explanation") -> list[str]:
    from leadline.cli.candidates import leg_names

    rows = [passage.row for passage in found.passages if passage.row is not None]
    return leg_names(rows, (deep.leg for passage in found.passages for deep in passage.deep))


def _leg_cell(passage: "Passage", leg: str, passes: int) -> str:
    """A rank as the run had it, or in brackets as a deeper search has it."""
    from leadline.cli.candidates import DASH, rank_cell

    if passage.row is not None:
        return rank_cell(passage.row["found_by"].get(leg), passes)
    ranks = [(each.rank, each.in_pass) for each in passage.deep if each.leg == leg and each.rank is not None]
    if not ranks:
        return DASH
    rank, in_pass = min(ranks)
    return f"({rank_cell({'rank': rank, 'in_pass': in_pass}, passes)})"


def _show_legend(found: "Explanation", passes: int) -> None:
    from leadline.cli.candidates import LEGEND

    parts = []
    if passes > 1:
        parts.append(LEGEND)
    if any(passage.deep for passage in found.passages):
        parts.append(f"(34): the rank in a search for {found.depth} a leg, not the run's own")
    if parts:
        say("; ".join(parts) + ".", style="dim")
    best = found.passages[0]
    if best.begins:
        say(f'The best of them begins: "{short(best.begins, BEGINS_CHARS)}"', style="dim")


def _searches(result: "Result") -> "list[Pass]":
    record = result.get("record")
    return record["passes"] if record else []


def _show_run(result: "Result") -> None:
    """How the run went on the whole, for whoever wonders about one document of it."""
    verdict = result["verdict"]
    say()
    say(f"The run {_STATUS.get(result['status'], result['status'])}: {plain(verdict['reason'], one_line=True)}")
    searches = _searches(result)
    if len(searches) > 1:
        for number, search in enumerate(searches, start=1):
            what = "the web" if search["sources"] == ["web"] else f"{search['width']} a leg"
            say(f"  search {number} ({what}): {plain(search['query'], one_line=True)}", style="dim")
    for part in result["degraded"]:
        say(f"Without {part}.", style="yellow")


_STATUS = {"answered": "answered", "abstained": "gave no answer", "interrupted": "broke off"}
