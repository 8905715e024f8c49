"""`leadline serve`: the HTTP API, on this machine only."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.cli.command import FAILED, AsJson, DataDir, LockTimeout, run, settings_for
from leadline.cli.display import say
from leadline.errors import ConfigError

if TYPE_CHECKING:
    from leadline.config import Settings

Host = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.", show_default="8321")]


def serve(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Serve the HTTP API on this machine."""

    async def work() -> int:
        from leadline.api.hosts import is_loopback

        settings = settings_for(data_dir, lock_timeout)
        address = settings.host if host is None else host
        if not is_loopback(address):
            raise ConfigError(
                f"{address} would let other machines ask this server, and it knows no tokens to keep strangers out.",
                hint="Listen on 127.0.0.1 and put a server that checks who may ask in front of it.",
            )
        return await _serve(settings, address, settings.port if port is None else port)

    run(work(), as_json=as_json)


async def _serve(settings: "Settings", host: str, port: int) -> int:
    import uvicorn

    from leadline.api.app import create_app
    from leadline.knowledge import open_library

    async with open_library(settings):  # what is wrong with the data folder is said here, not in a server's log
        pass
    config = uvicorn.Config(create_app(settings), host=host, port=port, log_level="info", server_header=False)
    server = uvicorn.Server(config)
    say("Ctrl-C ends the server.", stderr=True)
    # CancelledError: Ctrl-C is how a server ends; uvicorn raises it again at its end. SystemExit: uvicorn can't listen
    # there, has said why, and would end the process with a code that means something else here.
    with contextlib.suppress(asyncio.CancelledError, SystemExit):
        await server.serve()
        await asyncio.sleep(0)  # where the first of them arrives
    return 0 if server.started else FAILED
