"""`leadline serve`: the HTTP API, on this machine only."""

from typing import Annotated

import typer

from leadline.cli.command import AsJson, DataDir, LockTimeout, run, settings_for
from leadline.cli.display import say
from leadline.errors import ConfigError

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
        import uvicorn

        from leadline.api.app import create_app
        from leadline.api.hosts import is_loopback
        from leadline.knowledge import open_library

        settings = settings_for(data_dir, lock_timeout)
        address = settings.host if host is None else host
        if not is_loopback(address):
            raise ConfigError(
                f"{address} would let other machines ask this server, and it knows no tokens to keep strangers out.",
                hint="Listen on 127.0.0.1 and put a server that checks who may ask in front of it.",
            )
        async with open_library(settings):  # what is wrong with the data folder is said here, not in a server's log
            pass
        at = settings.port if port is None else port
        config = uvicorn.Config(create_app(settings), host=address, port=at, log_level="info", server_header=False)
        server = uvicorn.Server(config)
        say(f"Leadline listens on http://{address}:{at} (Ctrl-C ends it).", stderr=True)
        await server.serve()
        return 0 if server.started else 1

    run(work(), as_json=as_json)
