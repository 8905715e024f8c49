"""What the server counts, and `GET /metrics` in Prometheus' text format.

Several workers count into the files of one folder (`metrics_folder`), and whichever is asked adds them up. A label is
a name of a fixed list: never a text, an id, or what a client may choose.
"""

import asyncio
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, get_args

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leadline.api.access import Who
from leadline.errors import Forbidden
from leadline.events import (
    DegradedEvent,
    EscalateEvent,
    FinalEvent,
    RetractEvent,
    RetryEvent,
    RunEvent,
    StepEvent,
    TokenEvent,
)
from leadline.stores.catalog_job_rows import JobStatus, jobs_by_status
from leadline.stores.lease import process_start
from leadline.telemetry import name_request

router = APIRouter(tags=["health"])

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"  # the client library's own, read when it is imported
FOLDERS: Final = "leadline-metrics-"  # then the server's process, so that the next one knows whose a folder is
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNKNOWN: Final = "none"  # of a request that no route is for
TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counters of one server process. It is a `RunObserver`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.runs = self._counter("runs", "Runs, by how they ended", "status")
        self.running = self._gauge("runs_in_flight", "Runs that are going on")
        self.run_seconds = self._histogram("run_seconds", "Seconds of a run")
        self.first_token = self._histogram("first_token_seconds", "Seconds to the first token of a run's answer")
        self.node_seconds = self._histogram("node_seconds", "Seconds of a node, by its end", "node", "outcome")
        self.tokens = self._counter("llm_tokens", "Tokens of LLMs", "kind")
        self.llm_calls = self._counter("llm_calls", "Calls of LLMs")
        self.cost = self._counter("llm_cost", "Money that calls of LLMs cost, as LiteLLM reports it")
        self.web_calls = self._counter("web_calls", "Searches of the web")
        self.degraded = self._counter("degraded", "Parts that runs did without", "part")
        self.retries = self._counter("retries", "Searches made again with another query or width")
        self.escalations = self._counter("escalations", "Runs sent on to the web")
        self.retracts = self._counter("retracts", "Drafts that were shown and rejected")
        self.requests = self._counter("http_requests", "Requests", "method", "route", "status")
        self.request_seconds = self._histogram("http_request_seconds", "Seconds of a request", "route")
        self.requested = self._gauge("http_requests_in_flight", "Requests that are going on")

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"leadline_{name}", f"{about}.", labels, registry=self.registry)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(f"leadline_{name}", f"{about}.", registry=self.registry, multiprocess_mode="livesum")

    def _histogram(self, name: str, about: str, *labels: str) -> Histogram:
        return Histogram(f"leadline_{name}", f"{about}.", labels, registry=self.registry, buckets=SECONDS)

    def begun(self) -> None:
        """See `RunObserver.begun`."""
        self.running.inc()

    def happened(self, event: RunEvent, seconds: float, *, first: bool) -> None:
        """See `RunObserver.happened`."""
        match event:
            case StepEvent(phase="end" | "skip" | "error"):
                self.node_seconds.labels(event.node, event.phase).observe(event.seconds)
            case TokenEvent() if first:
                self.first_token.observe(seconds)
            case DegradedEvent():
                self.degraded.labels(event.part).inc()
            case RetryEvent():
                self.retries.inc()
            case EscalateEvent():
                self.escalations.inc()
            case RetractEvent():
                self.retracts.inc()
            case FinalEvent():
                self._spent(event.result.get("usage", {}))
            case _:
                pass

    def _spent(self, usage: dict[str, Any]) -> None:
        for kind in ("prompt", "completion"):
            self.tokens.labels(kind).inc(max(0, usage.get(f"{kind}_tokens", 0)))
        self.llm_calls.inc(max(0, usage.get("llm_calls", 0)))
        self.cost.inc(max(0.0, usage.get("cost", 0.0)))
        self.web_calls.inc(max(0, usage.get("web_calls", 0)))

    def ended(self, status: str, seconds: float) -> None:
        """See `RunObserver.ended`."""
        self.running.dec()
        self.runs.labels(status).inc()
        self.run_seconds.observe(seconds)

    def request(self, scope: Scope, status: int, seconds: float) -> None:
        """A request was answered. Of its address only the template of its route is kept."""
        route = getattr(scope.get("route"), "path", None) or UNKNOWN
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.requests.labels(method, route, str(status)).inc()
        self.request_seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All that was counted, by every worker."""
        folder = os.environ.get(FOLDER)
        if not folder:
            return generate_latest(self.registry)
        _forget_dead(Path(folder))
        together = CollectorRegistry()
        MultiProcessCollector(together, folder)  # type: ignore[no-untyped-call]
        return generate_latest(together)


def _forget_dead(folder: Path) -> None:
    """What a worker that was killed had going on is not going on any more; what it counted stays counted."""
    for file in folder.glob("gauge_live*_*.db"):
        pid = _process_of(file)
        if pid.isdecimal() and process_start(int(pid)) is None:
            mark_process_dead(int(pid), str(folder))  # type: ignore[no-untyped-call]


def _process_of(file: Path) -> str:
    """Who counts into a file of the client library's."""
    return file.stem.rpartition("_")[2]


@contextmanager
def metrics_folder(workers: int) -> Iterator[None]:
    """Where several workers count together, for as long as the block lasts; one alone needs none.

    Has to be open before the workers start. A folder that the environment names is taken, and not removed. Those of
    servers that were killed are: they could not do it themselves.
    """
    if workers < 2 or os.environ.get(FOLDER):
        yield
        return
    for left in filter(_is_left, Path(tempfile.gettempdir()).glob(f"{FOLDERS}*")):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{FOLDERS}{os.getpid()}-") as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]


def _is_left(folder: Path) -> bool:
    """Whether this is a folder of this user's whose server and workers are all gone."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
        return False
    server = folder.name.removeprefix(FOLDERS).partition("-")[0]
    processes = [server, *(_process_of(file) for file in folder.glob("*.db"))]
    return all(pid.isdecimal() and process_start(int(pid)) is None for pid in processes)


class Observed:
    """ASGI middleware: names each request for the logs (`X-Run-Id`) and counts it. The outermost one."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        named, status, begun = name_request(), 500, time.monotonic()

        async def tell(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Run-Id"] = named
            await send(message)

        self.metrics.requested.inc()
        try:
            await self.app(scope, receive, tell)
        finally:
            self.metrics.requested.dec()
            self.metrics.request(scope, status, time.monotonic() - begun)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request, who: Who) -> Response:
    """What was counted, in Prometheus' text format. Only for callers who may see every collection."""
    if who.collections is not None:
        raise Forbidden("This token may not see figures of all collections.", hint="Use one without --collection.")
    state = request.app.state
    jobs = await asyncio.to_thread(jobs_by_status, state.leadline.library.catalog)
    return Response(await asyncio.to_thread(state.metrics.text) + _told(jobs), media_type=TYPE)


class _Jobs:
    """The jobs, which the catalog counts for all workers alike: no counter of a process's own."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Metric]:
        """The one family."""
        family = GaugeMetricFamily("leadline_jobs", "Jobs of uploads in the catalog, by status.", labels=["status"])
        for status in get_args(JobStatus):
            family.add_metric([status], self._numbers.get(status, 0))
        yield family


def _told(jobs: Mapping[str, int]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Jobs(jobs))
    return generate_latest(registry)
