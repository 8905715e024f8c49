"""Several processes that serve: they share one address, stand in for each other, and end together."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.api.test_metrics import Figures, figures, grown
from tests.servers.chat_server import ChatServer, Reply
from uvicorn.config import STARTUP_FAILURE

from leadline.api.workers import worker_app

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals, and asks ps who lives")

START_S = 120
QUESTION = {"question": "What does error E-217 mean?", "stream": False, "web": "never"}


def children(pid: int) -> set[int]:
    """The processes that this one started and that live."""
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return {int(found) for found in done.stdout.split()}


def lives(pid: int) -> bool:
    """Whether a process is there, and more than a name in a table."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")


def wait_for(what: Callable[[], object], seconds: float = 30) -> None:
    """Until it is true."""
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit
        time.sleep(0.05)


def by_command(folder: Path) -> str:
    """What `leadline serve --workers 2` does, as a program."""
    words = ["leadline", "serve", "--port", "0", "--workers", "2", "--data-dir", str(folder)]
    return f"import sys; from leadline.cli import main; sys.argv = {words!r}; main()"


def by_two(folder: Path, **more: int) -> str:
    """Two workers without the command, with arguments that it doesn't give; code 7 where they could not begin."""
    return (
        "import sys\nfrom leadline import load_settings\nfrom leadline.api.workers import serve_by_many\n"
        f"settings = load_settings(data_dir={str(folder)!r}, port=0, workers=2)\n"
        f"sys.exit(0 if serve_by_many(settings, **{more!r}) else 7)"
    )


@contextmanager
def served(code: str, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Workers in a group of processes of their own, and where they listen, once both do."""
    environment = {**os.environ, "TMPDIR": str(log.parent), "LEADLINE_RUN__TOP_K": "3"}
    log.touch()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=out, stderr=out, start_new_session=True, env=environment
        )
    try:
        wait_for(lambda: log.read_text().count("Application startup complete") == 2 or process.poll(), START_S)
        found = re.search(r"running on (http://127\.0\.0\.1:\d+)", log.read_text())
        assert found is not None, log.read_text()
        yield process, found[1]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def counted(url: str, before: Figures) -> float:
    """How many requests for what isn't there came since, as some worker says over a connection of its own."""
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        return grown(before, figures(client), "leadline_http_requests_total", status="404")


def test_a_killed_worker_is_stood_in_for_and_ctrl_c_ends_all(copied: Path, tmp_path: Path) -> None:
    """Whichever worker is asked tells the sum of all. While one is dead the other answers, and the sum stays; a new one
    comes. Ctrl-C ends the server, its workers and their files."""
    folder, log = shutil.copytree(copied, tmp_path / "data"), tmp_path / "log"
    with served(by_command(folder), log) as (process, url):
        asked = httpx.post(f"{url}/chat", json=QUESTION, timeout=60, trust_env=False)
        assert asked.json()["status"] == "answered"
        workers = set(map(int, re.findall(r"Started server process \[(\d+)\]", log.read_text())))
        assert len(workers) == 2
        assert workers < children(process.pid)
        limit = time.monotonic() + 90
        while len(list(tmp_path.glob("leadline-metrics-*/counter_*.db"))) < 2:  # until both have had a connection
            assert time.monotonic() < limit
            httpx.get(f"{url}/health", trust_env=False)
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            before = figures(client)
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(lambda _: httpx.get(f"{url}/nothing", trust_env=False), range(20)))
        assert {counted(url, before) for _ in range(6)} == {20}
        killed = workers.pop()
        os.kill(killed, signal.SIGKILL)
        for _ in range(20):
            assert httpx.get(f"{url}/health", timeout=10, trust_env=False).json() == {"status": "ok"}
        wait_for(lambda: log.read_text().count("Application startup complete") == 3, START_S)
        assert counted(url, before) == 20
        everyone = {process.pid, *children(process.pid)}
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.wait(60) == 0
        wait_for(lambda: not any(map(lives, everyone)))
    assert [found.name for found in tmp_path.glob("leadline-metrics-*")] == []
    assert "Traceback" not in log.read_text()


def test_workers_end_with_a_supervisor_that_is_killed(copied: Path, tmp_path: Path) -> None:
    """Even a kill that it can't see leaves no process behind that holds the port."""
    folder = shutil.copytree(copied, tmp_path / "data")
    with served(by_command(folder), tmp_path / "log") as (process, url):
        workers = children(process.pid)
        process.kill()
        process.wait()
        wait_for(lambda: not any(map(lives, workers)))
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health", timeout=10, trust_env=False)


def test_workers_that_cannot_begin_are_not_begun_for_ever(tmp_path: Path) -> None:
    """What is wrong for one is wrong for the next: a data folder that is a file ends the server, with a reason."""
    (tmp_path / "file").touch()
    code = [sys.executable, "-c", by_two(tmp_path / "file")]
    done = subprocess.run(code, capture_output=True, check=False, timeout=START_S, text=True)
    assert done.returncode == 7, done.stderr
    assert "failed to start" in done.stderr


GONE = """
import sys, time
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import multiprocess
import leadline.api.hosts  # which `leadline serve` asks before
from leadline.api.workers import Supervisor

class Worker(multiprocess.Process):
    def target(self, sockets=None):
        self.child_conn.poll(60)  # until it is asked for a sign of life, which it never gives
        sys.exit(STARTUP_FAILURE)

multiprocess.Process = Worker
if __name__ == "__main__":
    supervisor = Supervisor(uvicorn.Config("nothing:there", timeout_worker_healthcheck=600), sockets=[])
    supervisor.run()
    print([process.exitcode for process in supervisor.processes], "fastapi" in sys.modules)
"""


def test_a_worker_that_ends_while_it_is_asked_is_not_waited_for(tmp_path: Path) -> None:
    """Its end is seen when it comes, not when a hung worker would be given up; its exit code is its own.

    And the supervisor has loaded nothing of the application.
    """
    (tmp_path / "gone.py").write_text(GONE)
    words = [sys.executable, tmp_path / "gone.py"]
    done = subprocess.run(words, capture_output=True, check=True, timeout=START_S, text=True)
    assert done.stdout.strip() == f"[{STARTUP_FAILURE}] False"


def test_an_application_that_cannot_be_made_ends_its_worker() -> None:
    """With the code by which the supervisor knows that another try would end the same way."""
    with pytest.raises(SystemExit) as ended:
        worker_app(None)  # type: ignore[arg-type]
    assert ended.value.code == STARTUP_FAILURE


def test_ended_from_outside_nothing_is_left(
    copied: Path, tmp_path: Path, chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM to the supervisor alone, as a service manager sends it, while an answer is being written without end.

    The stream is cut off without a final event, so that nobody takes it for whole; exit code 0, every worker gone.
    """
    for name, value in {"LEADLINE_RUN__LLM": "openai/scripted", "LEADLINE_LLM_API_BASE": chat_server.url}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    chat_server.script(Reply(tokens=("The battery voltage is low. ",) * 1000, pause_s=0.1))
    folder = shutil.copytree(copied, tmp_path / "data")
    with served(by_two(folder, grace_s=1), tmp_path / "log") as (process, url):
        workers = children(process.pid)
        asked = {**QUESTION, "stream": True}
        seen: list[str] = []
        with httpx.stream("POST", f"{url}/chat", json=asked, timeout=60, trust_env=False) as answer:
            try:
                for line in answer.iter_lines():
                    if line == "event: token" and line not in seen:
                        process.terminate()
                    seen.append(line)
            except httpx.RemoteProtocolError:
                pass  # as it should
        assert "event: token" in seen
        assert "event: final" not in seen or '"status":"interrupted"' in seen[-2]
        assert process.wait(60) == 0
        wait_for(lambda: not any(map(lives, workers)))
    assert [found.name for found in tmp_path.glob("leadline-metrics-*")] == []
