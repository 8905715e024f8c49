"""Runs the server in this process or in several, and ends all of them.

Several are kept by uvicorn's supervisor: it hands each the same socket, starts another for one that dies, and ends
them when it is told to. Each opens the application for itself. Knows processes only.
"""

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from leadline.config import Settings
from leadline.logs import log_config

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger(__name__)

# What is going on gets this long to end by itself.
GRACE_S: Final = 10
# A worker that loads models on a busy machine isn't hung.
HUNG_S: Final = 30
# A worker whose pipe is closed gets this long until it has an exit code.
ENDING_S: Final = 5


class Supervisor(Multiprocess):
    """Sees at once that a worker has ended which it had just asked for a sign of life.

    uvicorn's own holds the worker's end of their pipe open too, so that nothing tells it: it waits for as long as a
    hung worker gets, and hears no Ctrl-C meanwhile.
    """

    def keep_subprocess_alive(self) -> None:
        """Starts others for the workers that ended or hang, unless they could not begin."""
        for process in self.processes:
            process.child_conn.close()
            if not process.is_alive(timeout=self.config.timeout_worker_healthcheck):
                process.process.join(ENDING_S)  # killed before, one that could not begin would be begun for ever
                process.kill()
        super().keep_subprocess_alive()


async def serve_alone(settings: Settings) -> bool:
    """Serves in this process until it is interrupted; whether it could."""
    from leadline.api.app import create_app

    server = uvicorn.Server(server_config(settings, app=create_app(settings)))
    # CancelledError: Ctrl-C is how a server ends; uvicorn raises it again at its end. SystemExit: uvicorn can't listen
    # there, has said why, and would end the process with a code that means something else here.
    with contextlib.suppress(asyncio.CancelledError, SystemExit):
        await server.serve()
        await asyncio.sleep(0)  # where the first of them arrives
    return server.started


def serve_by_many(settings: Settings, *, grace_s: int = GRACE_S) -> bool:
    """Serves in `settings.workers` processes until this one is interrupted or ended; whether they could start.

    What is going on then gets `grace_s` seconds to end by itself.
    """
    from leadline.api.metrics import metrics_folder

    app = partial(worker_app, settings)
    config = server_config(settings, app=app, factory=True, workers=settings.workers, grace_s=grace_s)
    with metrics_folder(settings.workers):
        try:
            listening = config.bind_socket()
        except SystemExit:  # it has said why
            return False
        with listening:
            supervisor = Supervisor(config, sockets=[listening])
            supervisor.run()
    return all(process.exitcode != STARTUP_FAILURE for process in supervisor.processes)


def worker_app(settings: Settings) -> "FastAPI":
    """The application of one worker, which ends when its supervisor does, however that ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        from leadline.api.app import create_app  # here, where the supervisor knows already that this process lives

        return create_app(settings)
    except Exception:
        log.exception("A worker could not begin.")
        sys.exit(STARTUP_FAILURE)  # another try would end the same way; anything else is tried again for ever


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def server_config(settings: Settings, *, grace_s: int = GRACE_S, **given: Any) -> uvicorn.Config:
    """How uvicorn is to serve `app`, one of those `given`."""
    return uvicorn.Config(
        http="leadline.api.wire:BoundedHttp",  # by name: a supervisor has no need of all that it imports
        ws="none",  # no route speaks it
        host=settings.host,
        port=settings.port,
        log_config=log_config(settings.log_format, settings.log_level),
        server_header=False,
        timeout_graceful_shutdown=grace_s,
        timeout_worker_healthcheck=HUNG_S,
        **given,
    )
