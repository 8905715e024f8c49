"""`leadline serve`: the page and the HTTP API, on this machine, or for others where tokens say who may ask."""

import asyncio
import errno
import os
import socket
from typing import TYPE_CHECKING, Annotated

from leadline.cli.command import FAILED, AsJson, DataDir, LockTimeout, option, run, settings_for
from leadline.cli.display import say
from leadline.errors import ConfigError, LeadlineError

if TYPE_CHECKING:
    from leadline.config import Settings

Host = Annotated[str | None, option(help="Address to listen on.", default="127.0.0.1")]
Port = Annotated[int | None, option(min=0, max=65535, help="Port; 0 takes a free one.", default="8321")]
Workers = Annotated[int | None, option(min=1, max=64, help="Processes that serve.", default="1")]


def serve(
    host: Host = None,
    port: Port = None,
    workers: Workers = None,
    data_dir: DataDir = None,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> None:
    """Serve the page and the HTTP API.

    For this machine only, unless there are tokens (`leadline tokens add`).
    """

    async def work() -> int:
        given = {"host": host, "port": port, "workers": workers}
        settings = settings_for(data_dir, lock_timeout)
        settings = settings.model_copy(update={key: value for key, value in given.items() if value is not None})
        _refuse_strangers(settings)
        return await _serve(settings)

    run(work(), as_json=as_json)


def _refuse_strangers(settings: "Settings") -> None:
    from leadline.api.hosts import is_loopback
    from leadline.api.tokens import read_tokens

    tokens = read_tokens(settings.data_dir)
    # Whoever comes through a proxy on this machine asks by one of the names, and seems to be here.
    doors = [host for host in (settings.host, *settings.allowed_hosts) if not is_loopback(host)]
    if not doors:
        return
    if not tokens:
        raise ConfigError(
            f"{doors[0]} would let other machines ask this server, and there are no tokens to keep strangers out.",
            hint="`leadline tokens add NAME` makes one; or listen on 127.0.0.1, without LEADLINE_ALLOWED_HOSTS.",
        )
    if not settings.allowed_hosts:
        raise ConfigError(
            f"Others would ask {settings.host} by a name, and none is allowed.",
            hint="LEADLINE_ALLOWED_HOSTS=docs.example,192.0.2.7 lists the names and addresses they use.",
        )


def _refuse_taken(settings: "Settings") -> None:
    """Tries the address before the models are loaded for it; a server that takes it meanwhile is told of later."""
    place = f"{settings.host}:{settings.port}"
    try:
        kind, how, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(kind, how, protocol) as tried:
            if os.name == "posix":  # elsewhere it would let two servers have one address
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that no host can have
        hint = "--host and --port name another place."
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            hint = "Another program listens there, perhaps another `leadline serve`. --port 0 takes a free port."
        raise LeadlineError(
            f"The server can't listen on {place}: {getattr(error, 'strerror', None) or error}.", hint=hint
        ) from None


async def _serve(settings: "Settings") -> int:
    from leadline.api.workers import serve_alone, serve_by_many
    from leadline.cli.llm import check_llms_served
    from leadline.knowledge import open_library

    _refuse_taken(settings)
    await asyncio.to_thread(check_llms_served, settings)
    async with open_library(settings):  # what is wrong with the data folder is said here, not in a server's log
        pass
    say("Ctrl-C ends the server.", stderr=True)
    # The supervisor of several has nothing else to do in this process.
    well = serve_by_many(settings) if settings.workers > 1 else await serve_alone(settings)
    return 0 if well else FAILED
