"""What a server counts, and what its log says: JSON lines that name their run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.servers.chat_server import LITELLM_WARNINGS, says
from tests.servers.programs import free_port

from leadline import load_settings
from leadline.api.metrics import FOLDER, metrics_folder
from leadline.api.tokens import add_token
from leadline.logs import log_config

pytestmark = LITELLM_WARNINGS

QUESTION = "What does error E-217 mean?"
Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def figures(client: httpx.Client) -> Figures:
    """Everything that is counted now: name and labels → value."""
    text = client.get("/metrics").raise_for_status().text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def grown(before: Figures, after: Figures, name: str, **labels: str) -> float:
    """By how much one of them grew, summed over the labels that aren't given."""

    def total(counted: Figures) -> float:
        return sum(value for (n, has), value in counted.items() if n == name and labels.items() <= dict(has).items())

    return total(after) - total(before)


def ask(client: httpx.Client, **more: Any) -> httpx.Response:
    """One question, answered as a whole."""
    return client.post("/chat", json={"question": QUESTION, "web": "never", "stream": False, **more})


def test_a_run_is_counted(client: httpx.Client) -> None:
    """A run by its status, each node's seconds, and the request by the template of its route."""
    before = figures(client)
    events = client.post("/chat", json={"question": QUESTION, "web": "never"}).text
    after = figures(client)
    steps = [json.loads(line.removeprefix("data: ")) for line in events.splitlines() if '"type":"step"' in line]
    assert grown(before, after, "leadline_runs_total", status="answered") == 1
    assert grown(before, after, "leadline_run_seconds_count") == 1
    for node in ("planner", "hybrid", "aggregator", "reranker", "compressor", "reasoning", "reflection"):
        ended = [step["seconds"] for step in steps if (step["node"], step["phase"]) == (node, "end")]
        assert grown(before, after, "leadline_node_seconds_count", node=node, outcome="end") == len(ended) > 0
        assert grown(before, after, "leadline_node_seconds_sum", node=node) == pytest.approx(sum(ended))
    assert grown(before, after, "leadline_http_requests_total", method="POST", route="/chat", status="200") == 1
    assert after["leadline_runs_in_flight", ()] == 0
    assert after["leadline_http_requests_in_flight", ()] == 1  # this one


def test_what_an_llm_costs_is_counted(written: Any) -> None:
    """Tokens of prompt and reply, calls, the first token's time; and a draft that was shown and taken back."""
    written.chat.script(says("It means that the moon is full [1]."))
    with httpx.Client(base_url=written.url, timeout=60, trust_env=False) as client:
        before = figures(client)
        client.post("/chat", json={"question": QUESTION})
        after = figures(client)
    calls = len(written.chat.requests)
    assert calls > 0
    assert grown(before, after, "leadline_llm_calls_total") == calls
    assert grown(before, after, "leadline_llm_tokens_total", kind="prompt") == 11 * calls
    assert grown(before, after, "leadline_llm_tokens_total", kind="completion") == 7 * calls
    assert grown(before, after, "leadline_first_token_seconds_count") == 1
    assert grown(before, after, "leadline_retracts_total") == 1


def test_a_client_that_goes_away_is_a_cancelled_run(written: Any) -> None:
    """A run whose reader left is counted as cancelled and is in flight no more."""
    written.chat.script(says("It means that something is wrong [1].", end="hang", hang_s=20))
    with httpx.Client(base_url=written.url, timeout=60, trust_env=False) as client:
        before = figures(client)
        with client.stream("POST", "/chat", json={"question": QUESTION}) as response:
            lines = response.iter_lines()  # dropping it would close the stream
            next(line for line in lines if line == "event: token")
            assert figures(client)["leadline_runs_in_flight", ()] == 1
        limit = time.monotonic() + 20
        while grown(before, after := figures(client), "leadline_runs_total", status="cancelled") < 1:
            assert time.monotonic() < limit
            time.sleep(0.05)
        assert after["leadline_runs_in_flight", ()] == 0


def test_no_label_is_a_clients_to_choose(client: httpx.Client) -> None:
    """Addresses, ids, methods and questions of a client never become labels: they could be any number."""
    secret = "walrus-4711"
    client.get(f"/{secret}")
    client.get(f"/threads/{secret}")
    client.request("PROPFIND", f"/{secret}")
    client.get("/health", params={"q": secret})
    client.post("/chat", json={"question": f"Where is {secret}?", "thread_id": secret, "stream": False})
    text = client.get("/metrics").text
    assert secret not in text.lower()
    assert 'method="other"' in text
    assert 'route="/threads/{thread_id}"' in text


def test_jobs_are_told_by_status(client: httpx.Client) -> None:
    """Each status of a job has its number, also where it is none."""
    counted = figures(client)
    states = ("queued", "running", "done", "partial", "failed")
    assert {status: counted["leadline_jobs", (("status", status),)] for status in states} == dict.fromkeys(states, 0)


def test_every_response_names_its_run(client: httpx.Client) -> None:
    """`X-Run-Id` is the server's own, another one each time, also on an error; a client can't set it."""
    named = [client.get(path, headers={"X-Run-Id": "mine"}).headers["x-run-id"] for path in ("/health", "/nothing")]
    assert len({*named, "mine"}) == 3
    assert all(len(name) == 32 for name in named)


def test_figures_are_for_who_may_see_all(copied_data: Path, serving: Any) -> None:
    """Figures tell of every collection: a token for some of them gets 403, none at all 401."""
    some = add_token(copied_data, "some", ["default"], may_write=True)
    every = add_token(copied_data, "every", None, may_write=False)
    with serving(load_settings(data_dir=copied_data)) as url, httpx.Client(base_url=url, trust_env=False) as client:

        def status(token: str) -> int:
            return client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code

        assert (status(some), status(every), client.get("/metrics").status_code) == (403, 200, 401)
        named = client.get("/metrics").headers["x-run-id"]
        assert len(named) == 32


@contextmanager
def process_of(folder: Path, **environ: str) -> Iterator[tuple[str, Path]]:
    """`leadline serve` as a process: its address, and the file of its log."""
    port, log = free_port(), folder.with_name(f"{folder.name}.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("leadline"), "serve", "--port", str(port)],
            env={**os.environ, "LEADLINE_DATA_DIR": str(folder), **environ},
            stdout=output,
            stderr=output,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        limit = time.monotonic() + 90
        while not _lives(url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < limit, log.read_text()
            time.sleep(0.1)
        yield url, log
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _lives(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def copied_data(copied: Path, tmp_path: Path) -> Path:
    """A data folder of the test's own."""
    return Path(shutil.copytree(copied, tmp_path / "data"))


def test_a_log_for_programs_is_one_object_a_line(copied_data: Path) -> None:
    """Access lines and warnings alike, with the run that they belong to, which the response named; no question."""
    with process_of(copied_data, LEADLINE_LOG_FORMAT="json", LEADLINE_LOG_LEVEL="debug") as (url, log):
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            response = ask(client, thread_id="t1")
        text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    others = [line for line in text.splitlines() if not line.startswith("{")]
    assert others == ["Ctrl-C ends the server."]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    (access,) = [line for line in lines if line["logger"] == "uvicorn.access" and line.get("path") == "/chat"]
    assert (access["method"], access["status"], access["run"]) == ("POST", 200, response.headers["x-run-id"])
    assert "E-217" not in text


SAYS = """
import asyncio, logging, logging.config
from leadline.logs import log_config
from leadline.telemetry import name_request

logging.config.dictConfig(log_config({format!r}))
logging.getLogger("leadline.x").info("before")
named = name_request()
try:
    raise ValueError("line one\\nline two")
except ValueError:
    logging.getLogger("leadline.x").exception("it %s", "br\\udc80ke\\nERROR: in two")
logging.getLogger("other").info("not ours")
print(named)
"""


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_an_exception_stays_with_its_line(log_format: str) -> None:
    """JSON: within the one object. Text: below it and indented, so that no message can pass for a line of its own.

    Both name the run, neither breaks at what can't be encoded, and other libraries' chatter is left out.
    """
    ended = subprocess.run(
        [sys.executable, "-c", SAYS.format(format=log_format)], capture_output=True, text=True, check=True, timeout=60
    )
    named, said = ended.stdout.strip(), ended.stderr.strip().splitlines()
    if log_format == "json":
        first, second = map(json.loads, said)
        assert "run" not in first
        assert (second["run"], second["message"], second["level"]) == (named, "it br\udc80ke\nERROR: in two", "error")
        assert second["exception"].splitlines()[-1] == "line two"
    else:
        assert said[0].endswith("INFO: before")
        assert said[1].endswith(rf"ERROR: it br\udc80ke [{named[:8]}]")
        assert all(line.startswith("  ") for line in said[2:])
        assert said[-1] == "  line two"
    assert "not ours" not in ended.stderr


def test_a_folder_that_the_environment_names_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs workers in another way names the folder; it is used and not removed."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with metrics_folder(2):
        assert os.environ[FOLDER] == str(tmp_path)
    assert tmp_path.is_dir()
    assert log_config("json")["formatters"] == {"lines": {"()": "leadline.logs.JsonLines"}}
