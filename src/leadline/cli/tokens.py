"""`leadline tokens`: who may ask a server, and what each may see."""

from dataclasses import asdict
from typing import Annotated

import typer

from leadline.cli.command import AsJson, DataDir, run, settings_for
from leadline.cli.display import print_json, say, table

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is.", show_default=False)]
Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", "-c", help="May see this collection; again for more.", show_default="all"),
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
        from leadline.api.tokens import add_token

        folder = settings_for(data_dir).data_dir
        token = add_token(folder, name, collection or None, may_write=not read_only)
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


NOBODY = "No token is left, so nobody is let in. Remove tokens.json to serve this machine without tokens again."


def _seen(collections: tuple[str, ...] | None) -> str:
    return "all" if collections is None else ", ".join(collections)
