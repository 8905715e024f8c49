"""Spans, sent by the real exporter to a receiver that reads OTLP over HTTP, from a process of its own."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
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

# Each command is a process of its own: a fork of one that has imported what they all import, and started no thread.
AUDITED = """
import json, os, signal, sys, time
connects = []
sys.addaudithook(lambda event, args: connects.append(str(args[1])) if event == "socket.connect" else None)
import leadline.cli, leadline.graph.run, leadline.ingest.pipeline

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def leadline_command(words, environ, blocked, out, err):
    signal.alarm(120)
    for number, path in enumerate([os.devnull, out, err]):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), number)
    os.environ.clear()
    os.environ.update(environ)
    if blocked:
        for name in [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]:
            del sys.modules[name]
        sys.meta_path.insert(0, Absent())
    sys.argv = ["leadline", *words]
    code = 0
    try:
        leadline.cli.main()
    except SystemExit as ended:
        code = ended.code
    exporters = sorted(name for name in sys.modules if name.startswith("opentelemetry.exporter"))
    print(json.dumps({"code": code, "connects": connects, "exporters": exporters}), file=sys.stderr)
    sys.exit()

for line in sys.stdin:
    begun, seconds, children = time.monotonic(), {}, []
    for asked in json.loads(line):
        children.append(os.fork())
        if not children[-1]:
            leadline_command(**asked)  # ends as any process does
    for _ in children:
        child, status = os.wait()
        assert status == 0, status
        seconds[child] = time.monotonic() - begun
    print(json.dumps([seconds[child] for child in children]), flush=True)
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


class Commands:
    """Runs `leadline` in processes that note each connection and each exporter they import."""

    def __init__(self, program: "subprocess.Popen[str]", folder: Path) -> None:
        self._program, self._folder, self._count = program, folder, 0

    def __call__(self, *words: str, blocked: bool = False, **environ: str) -> dict[str, Any]:
        """What one command left: `code`, `out`, `said`, `connects`, `exporters`, and how many `seconds` it took."""
        return self.at_once(self.asked(*words, blocked=blocked, **environ))[0]

    def asked(self, *words: str, blocked: bool = False, **environ: str) -> dict[str, Any]:
        """A command to run."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "LEADLINE_"))}
        self._count += 1
        out, err = (str(self._folder / f"{stream}{self._count}") for stream in ("out", "err"))
        environ = {**clean, "LEADLINE_VECTOR_BACKEND": "faiss", **environ}
        return {"words": words, "environ": environ, "blocked": blocked, "out": out, "err": err}

    def at_once(self, *asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Runs them beside each other."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(asked) + "\n")
        self._program.stdin.flush()
        took = json.loads(self._program.stdout.readline())
        return [self._left(each, seconds) for each, seconds in zip(asked, took, strict=True)]

    def _left(self, asked: dict[str, Any], seconds: float) -> dict[str, Any]:
        *said, audit = Path(asked["err"]).read_text("utf-8").strip().splitlines()
        out = Path(asked["out"]).read_text("utf-8")
        return {**json.loads(audit), "out": out, "said": "\n".join(said), "seconds": seconds}


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Commands over one document."""
    folder = tmp_path_factory.mktemp("telemetry")
    (folder / "vault.md").write_text("# Vault\n\nThe vault code of the north pier is 7741.\n")
    start = [sys.executable, "-c", AUDITED]
    with subprocess.Popen(start, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        commands = Commands(program, folder)
        assert commands("ingest", "vault.md")["code"] == 0
        yield commands


def value(span: Any, key: str) -> Any:
    """An attribute of a span; None where it has none of this name."""
    for attribute in span.attributes:
        if attribute.key == key:
            return getattr(attribute.value, str(attribute.value.WhichOneof("value")))
    return None


def test_a_run_its_nodes_calls_and_searches_are_one_tree(
    command: Commands, receiver: Receiver, chat_server: ChatServer, search_server: SearchServer
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
    command: Commands, receiver: Receiver, chat_server: ChatServer
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


def test_nothing_is_sent_unless_it_is_asked_for(command: Commands) -> None:
    """Without an exporter no connection is opened and no exporter imported; nor with one that is switched off."""
    switched_off = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}
    for environ in ({}, switched_off):
        done = command("ask", QUESTION, **environ)
        assert (done["code"], done["connects"], done["exporters"]) == (0, [], [])
        assert "7741" in done["out"]


def test_a_missing_extra_is_named(command: Commands) -> None:
    """An exporter is asked for and its packages aren't there: the run answers, and says what to install."""
    done = command("ask", QUESTION, blocked=True, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert (done["code"], done["connects"]) == (0, [])
    assert "leadline[telemetry]" in done["said"]


def test_a_receiver_that_is_down_costs_no_answer(command: Commands) -> None:
    """Spans that nobody takes are dropped after some seconds: the answer comes as ever, and the process ends."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes connections, answers nothing
        endpoints = ("http://127.0.0.1:9", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        environs = [{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_TIMEOUT": "60"} for url in endpoints]
        for done in command.at_once(*(command.asked("ask", QUESTION, **environ) for environ in environs)):
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
