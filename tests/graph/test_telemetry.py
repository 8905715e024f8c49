"""Spans, sent by the real exporter to a receiver that reads OTLP over HTTP, from a process of its own."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.servers.chat_server import ChatServer, says
from tests.servers.http_servers import Handler, running
from tests.servers.search_server import SearchServer

from leadline.telemetry import is_configured

QUESTION = "What is the vault code of the north pier?"
ANSWER = "The vault code of the north pier is 7741 [1]."
WORDS = ("vault", "pier", "7741")  # of question, document and answer

AUDITED = """
import json, sys
connects = []
sys.addaudithook(lambda event, args: connects.append(str(args[1])) if event == "socket.connect" else None)
if "blocked" in sys.argv[1]:
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] == "opentelemetry":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Absent())
import leadline.cli
sys.argv = ["leadline", *sys.argv[2:]]
code = 0
try:
    leadline.cli.main()
except SystemExit as ended:
    code = ended.code
exporters = sorted(name for name in sys.modules if name.startswith("opentelemetry.exporter"))
print(json.dumps({"code": code, "connects": connects, "exporters": exporters}), file=sys.stderr)
"""


@dataclass
class Receiver:
    """What came, as it came and read."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)

    @property
    def spans(self) -> list[Any]:
        """All spans that came."""
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        scopes = [scope for r in requests for resource in r.resource_spans for scope in resource.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        """Those of a name."""
        return [span for span in self.spans if span.name == name]


class _Otlp(Handler):
    def respond(self) -> None:
        assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
        self.served.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(200, b"", {"Content-Type": "application/x-protobuf"})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver of traces."""
    with running(_Otlp) as http:
        http.served = Receiver(http.url)
        yield http.served


Command = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs `leadline` in a process that notes each connection and each exporter it imports, over one document."""
    folder = tmp_path_factory.mktemp("telemetry")
    (folder / "vault.md").write_text("# Vault\n\nThe vault code of the north pier is 7741.\n")

    def run(*words: str, blocked: bool = False, **environ: str) -> dict[str, Any]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "LEADLINE_"))}
        begun = time.monotonic()
        ended = subprocess.run(
            [sys.executable, "-c", AUDITED, "blocked" if blocked else "open", *words],
            check=False,
            cwd=folder,
            env={**clean, "LEADLINE_VECTOR_BACKEND": "faiss", **environ},
            capture_output=True,
            text=True,
            timeout=120,
        )
        *said, audit = ended.stderr.strip().splitlines()
        return {**json.loads(audit), "out": ended.stdout, "said": "\n".join(said), "seconds": time.monotonic() - begun}

    assert run("ingest", "vault.md")["code"] == 0
    return run


def value(span: Any, key: str) -> Any:
    """An attribute of a span; None where it has none of this name."""
    for attribute in span.attributes:
        if attribute.key == key:
            return getattr(attribute.value, str(attribute.value.WhichOneof("value")))
    return None


def test_a_run_its_nodes_calls_and_searches_are_one_tree(
    command: Command, receiver: Receiver, chat_server: ChatServer, search_server: SearchServer
) -> None:
    """One trace: the run, below it the nodes, below those the calls; names and numbers, and nobody's words."""
    chat_server.script(says(ANSWER))
    search_server.json_results = [{"title": "Piers", "url": "https://example.org/piers", "content": "Of piers."}]
    done = command(
        *("ask", QUESTION, "--json"),
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
        LEADLINE_RUN__LLM="openai/scripted",
        LEADLINE_LLM_API_BASE=chat_server.url,
        LEADLINE_RUN__WEB="always",
        LEADLINE_RUN__WEB_CONSENT="yes",
        LEADLINE_WEB_PROVIDER="searxng",
        LEADLINE_WEB_URL=search_server.origin,
        LEADLINE_WEB_PAGES="0",
    )
    assert json.loads(done["out"])["answer"] == ANSWER
    (run,) = receiver.named("run")
    assert {span.trace_id for span in receiver.spans} == {run.trace_id}
    by_id = {span.span_id: span for span in receiver.spans}
    above = {span.name: by_id[span.parent_span_id].name for span in receiver.spans if span.parent_span_id}
    nodes = ("planner", "hybrid", "web", "aggregator", "reranker", "compressor", "reasoning", "reflection")
    assert {name: above[f"node {name}"] for name in nodes} == dict.fromkeys(nodes, "run")
    assert {above[f"search {leg}"] for leg in ("vector", "bm25", "graph")} == {"node hybrid"}
    assert (above["llm"], above["web search"]) == ("node reasoning", "node web")
    (llm,) = receiver.named("llm")
    assert (value(llm, "gen_ai.request.model"), value(llm, "gen_ai.usage.input_tokens")) == ("openai/scripted", 11)
    assert (value(run, "leadline.status"), value(run, "leadline.usage.llm_calls")) == ("answered", 1)
    assert value(receiver.named("node hybrid")[0], "leadline.candidates.vector") == 1
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in receiver.spans)
    assert all(word.encode() not in body for body in receiver.bodies for word in WORDS)


def test_a_call_that_fails_is_seen_without_what_was_said(
    command: Command, receiver: Receiver, chat_server: ChatServer
) -> None:
    """The span of a call that an LLM's server refuses has the kind of error as its status; its words stay here."""
    chat_server.script(says(ANSWER, status=400, message="The vault is closed."))
    command(
        *("ask", QUESTION),
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{receiver.url}/v1/traces",
        LEADLINE_RUN__LLM="openai/scripted",
        LEADLINE_LLM_API_BASE=chat_server.url,
    )
    (llm,) = receiver.named("llm")
    assert (llm.status.code, value(llm, "error.type")) == (2, "ChatFailed")
    assert all(word.encode() not in body for body in receiver.bodies for word in WORDS)


def test_nothing_is_sent_unless_it_is_asked_for(command: Command) -> None:
    """Without an exporter no connection is opened and no exporter imported; nor with one that is switched off."""
    switched_off = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}
    for environ in ({}, switched_off):
        done = command("ask", QUESTION, **environ)
        assert (done["code"], done["connects"], done["exporters"]) == (0, [], [])
        assert "7741" in done["out"]


def test_a_missing_extra_is_named(command: Command) -> None:
    """An exporter is asked for and its packages aren't there: the run answers, and says what to install."""
    done = command("ask", QUESTION, blocked=True, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert (done["code"], done["connects"]) == (0, [])
    assert "leadline[telemetry]" in done["said"]


def test_a_receiver_that_is_down_costs_no_answer(command: Command) -> None:
    """Spans that nobody takes are dropped after some seconds: the answer comes as ever, and the process ends."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes connections, answers nothing
        endpoints = ("http://127.0.0.1:9", f"http://127.0.0.1:{deaf.getsockname()[1]}")

        def ask(endpoint: str) -> dict[str, Any]:
            return command("ask", QUESTION, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_EXPORTER_OTLP_TIMEOUT="60")

        with ThreadPoolExecutor() as both:
            for done in both.map(ask, endpoints):
                assert done["code"] == 0
                assert "7741" in done["out"]
                assert done["seconds"] < 45


@pytest.mark.parametrize(
    ("environ", "sent"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, False),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://collector:4318"}, False),
    ],
)
def test_the_standard_variables_decide(environ: dict[str, str], sent: bool) -> None:
    """As OpenTelemetry's specification has it: an endpoint or `otlp` sends, `none` and a disabled SDK don't."""
    assert is_configured(environ) is sent
