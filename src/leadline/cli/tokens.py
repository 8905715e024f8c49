"""`leadline tokens`: who may ask a server, and what each may see."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.cli.command import AsJson, DataDir, is_filled, option, run, settings_for
from leadline.cli.display import print_json, say, table

if TYPE_CHECKING:
    from leadline.config import Settings

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is.", show_default=False)]
Collections = Annotated[
    list[str] | None,
    option("--collection", "-c", help="May see this collection; again for more.", default="all"),
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="May not upload or delete documents.")]


def add(
    name: Name,
    collection: Collections = None,
    read_only: ReadOnly = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and show it, this once.

    From then on the server lets nobody in without one. The conversations of a name stay with it.
    """

    async def work() -> int:
        from leadline.api.tokens import add_token, read_tokens

        settings = settings_for(data_dir)
        first = read_tokens(settings.data_dir) is None
        unknown = await _unknown(settings, collection or [])
        token = add_token(settings.data_dir, name, collection or None, may_write=not read_only)
        if first:
            say(FIRST, style="yellow", stderr=True)
        for each in unknown:
            say(f"There is no collection {each} yet: until there is, {name} sees nothing of it.", stderr=True)
        if as_json:
            print_json({"name": name, "token": token})
            return 0
        say("Send it as `Authorization: Bearer …`. It is not kept, and can't be shown again.", stderr=True)
        say(token)
        return 0

    run(work(), as_json=as_json)


def ls(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the tokens: names and rights, not the tokens themselves."""

    async def work() -> int:
        from leadline.api.tokens import read_tokens

        tokens = read_tokens(settings_for(data_dir).data_dir)
        if as_json:
            kept = [asdict(token) for token in tokens or ()]
            print_json([{key: value for key, value in each.items() if key != "sha256"} for each in kept])
        elif tokens:
            rows = [[t.name, _seen(t.collections), "all" if t.may_write else "read only", t.created_at] for t in tokens]
            table(["name", "collections", "rights", "made"], rows)
        else:
            say("There is no token." if tokens is None else NOBODY, stderr=True)
        return 0

    run(work(), as_json=as_json)


def rm(name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """End a token. A server that runs knows at once."""

    async def work() -> int:
        from leadline.api.tokens import remove_token

        left = remove_token(settings_for(data_dir).data_dir, name)
        if as_json:
            print_json({"name": name, "left": left})
            return 0
        say(f"The token {name} is no longer known.")
        if not left:
            say(NOBODY, stderr=True)
        return 0

    run(work(), as_json=as_json)


FIRST = "This is the first token here: from now on the server, also one that runs, lets nobody in without one."
NOBODY = "No token is left, so nobody is let in. Remove tokens.json to serve this machine without tokens again."


async def _unknown(settings: "Settings", collections: list[str]) -> list[str]:
    """Those that aren't there. A data folder that isn't either is not made for this."""
    from leadline.knowledge import open_library
    from leadline.knowledge.library import DEFAULT

    if not collections:
        return []
    there = [DEFAULT]
    if is_filled(settings):
        async with open_library(settings) as library:
            there = await library.collections()
    return [name for name in collections if name not in there]


def _seen(collections: tuple[str, ...] | None) -> str:
    return "all" if collections is None else ", ".join(collections)
