"""What a run is called in logs, and its spans for OpenTelemetry where an exporter is configured.

Knows the standard `OTEL_…` variables. Without an exporter in them nothing of OpenTelemetry is imported and nothing is
sent. Attributes are names, counts, seconds and statuses: never a question, a document or an answer, and of an error
only its kind.
"""

import asyncio
import logging
import os
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Final

log = logging.getLogger(__name__)

Attributes = Mapping[str, str | int | float | bool]

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
FLUSH_S: Final = 3.0

_run_id: ContextVar[str] = ContextVar("leadline_run_id", default="")


def run_id() -> str:
    """The id of the run or request that this code works for; empty outside of one."""
    return _run_id.get()


def name_request() -> str:
    """Gives what follows in this task a new id, which the run that it starts takes over."""
    _run_id.set(uuid.uuid4().hex)
    return _run_id.get()


class Span:
    """A span, or nothing where nobody traces."""

    def __init__(self, opened: Any = None) -> None:
        self._opened = opened

    def set(self, attributes: Attributes) -> None:
        """Adds attributes."""
        if self._opened is not None:
            self._opened.set_attributes(dict(attributes))

    def fail(self, kind: str) -> None:
        """Marks the span as failed. `kind` is a name, such as that of an exception's type, never a message."""
        if self._opened is not None:
            from opentelemetry.trace import Status, StatusCode

            self._opened.set_attribute("error.type", kind)
            self._opened.set_status(Status(StatusCode.ERROR, kind))


class Tracing:
    """The exporter of this process: opened once, by whoever opens an app first."""

    def __init__(self) -> None:
        self.tracer: Any = None
        self._provider: Any = None
        self._asked = False

    def start(self) -> None:
        """Opens the exporter that the environment names; does nothing without one, or when called again."""
        if self._asked:
            return
        self._asked = True
        if not is_configured(os.environ):
            return
        try:
            self._provider = _provider()
        except ImportError:
            log.warning("OTEL_… names an exporter, but its packages are missing: pip install 'leadline[telemetry]'")
            return
        self.tracer = self._provider.get_tracer("leadline")

    def flush(self) -> None:
        """Sends what has ended so far. Blocks, for FLUSH_S at most: a receiver that is down may be left alone then."""
        if self._provider is not None:
            sending = threading.Thread(target=self._provider.force_flush, daemon=True)
            sending.start()
            sending.join(FLUSH_S)


tracing: Final = Tracing()


def is_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces to be sent by OTLP."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if named := environ.get("OTEL_TRACES_EXPORTER", "").strip():
        return "otlp" in (name.strip() for name in named.split(","))
    return any(environ.get(name, "").strip() for name in _ENDPOINTS)


def _provider() -> Any:
    """One of our own: the global one may be that of a library, which would keep our spans to itself."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    protocol = next((value for name in _PROTOCOLS if (value := os.environ.get(name, "").strip())), "http/protobuf")
    if protocol != "http/protobuf":
        log.warning("Traces are sent as http/protobuf; the protocol %s is not spoken here", protocol)
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)  # it tells each try
    logging.getLogger("opentelemetry.util.re").addFilter(_without_words)
    # At the end of the process it would wait for a receiver that is down; `flush` was called by then.
    provider = TracerProvider(
        shutdown_on_exit=False, resource=Resource.create({} if named else {SERVICE_NAME: "leadline"})
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _without_words(record: logging.LogRecord) -> bool:
    """A header of `OTEL_EXPORTER_OTLP_HEADERS` that can't be read is told without its words: they hold a key."""
    record.args = ("it is not shown",)
    return True


@contextmanager
def span(name: str, attributes: Attributes | None = None, *, current: bool = True) -> Iterator[Span]:
    """A span around the block, below the one that is current. An exception fails it, a cancellation is said.

    In an async generator it can't be made the current one (`current`): whoever reads the generator may be elsewhere.
    """
    if tracing.tracer is None:
        yield Span()
        return
    opened = tracing.tracer.start_span(name, attributes=dict(attributes or {}))
    told = Span(opened)
    try:
        with _in(opened) if current else nullcontext():
            yield told
    except (asyncio.CancelledError, GeneratorExit):
        told.set({"leadline.cancelled": True})
        raise
    except Exception as error:
        told.fail(type(error).__name__)
        raise
    finally:
        opened.end()


def _in(opened: Any) -> AbstractContextManager[Any]:
    from opentelemetry.trace import use_span

    return use_span(opened, end_on_exit=False, record_exception=False, set_status_on_exception=False)


class RunScope:
    """A run's id and span. They are in force only in a `step`: whoever reads its events is not part of the run."""

    def __init__(self, attributes: Attributes) -> None:
        self.id = _run_id.get() or uuid.uuid4().hex
        self._opened = None
        if tracing.tracer is not None:
            named = {**attributes, "leadline.run_id": self.id}
            self._opened = tracing.tracer.start_span("run", attributes=named)
        self.span = Span(self._opened)

    @contextmanager
    def step(self) -> Iterator[None]:
        """One step of the run."""
        before = _run_id.set(self.id)
        try:
            with nullcontext() if self._opened is None else _in(self._opened):
                yield
        finally:
            _run_id.reset(before)

    def end(self) -> None:
        """The run is over."""
        if self._opened is not None:
            self._opened.end()
