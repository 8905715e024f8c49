"""Several processes that serve: they share one address, stand in for each other, and end together."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
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


@contextmanager
def served(folder: Path, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`leadline serve --workers 2` in a group of processes of its own, and where it listens, once both workers do."""
    words = ["leadline", "serve", "--port", "0", "--workers", "2", "--data-dir", str(folder)]
    code = f"import sys; from leadline.cli import main; sys.argv = {words!r}; main()"
    environment = {**os.environ, "TMPDIR": str(log.parent)}
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


def test_a_killed_worker_is_stood_in_for_and_ctrl_c_ends_all(copied: Path, tmp_path: Path) -> None:
    """While one is dead the other answers; a new one comes. Ctrl-C ends the server, its workers and their files."""
    folder = shutil.copytree(copied, tmp_path / "data")
    (tmp_path / "log").touch()
    with served(folder, tmp_path / "log") as (process, url):
        asked = httpx.post(f"{url}/chat", json=QUESTION, timeout=60, trust_env=False)
        assert asked.json()["status"] == "answered"
        workers = set(map(int, re.findall(r"Started server process \[(\d+)\]", (tmp_path / "log").read_text())))
        assert len(workers) == 2
        assert workers < children(process.pid)
        killed = workers.pop()
        os.kill(killed, signal.SIGKILL)
        for _ in range(20):
            assert httpx.get(f"{url}/health", timeout=10, trust_env=False).json() == {"status": "ok"}
        wait_for(lambda: (tmp_path / "log").read_text().count("Application startup complete") == 3, START_S)
        everyone = {process.pid, *children(process.pid)}
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.wait(60) == 0
        wait_for(lambda: not any(map(lives, everyone)))
    assert [found.name for found in tmp_path.glob("leadline-metrics-*")] == []
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_workers_end_with_a_supervisor_that_is_killed(copied: Path, tmp_path: Path) -> None:
    """Even a kill that it can't see leaves no process behind that holds the port."""
    folder = shutil.copytree(copied, tmp_path / "data")
    (tmp_path / "log").touch()
    with served(folder, tmp_path / "log") as (process, url):
        workers = children(process.pid)
        process.kill()
        process.wait()
        wait_for(lambda: not any(map(lives, workers)))
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health", timeout=10, trust_env=False)


def test_workers_that_cannot_begin_are_not_begun_for_ever(tmp_path: Path) -> None:
    """What is wrong for one is wrong for the next: a data folder that is a file ends the server, with a reason."""
    (tmp_path / "file").touch()
    code = (
        "import sys\nfrom leadline import load_settings\nfrom leadline.api.workers import serve_by_many\n"
        f"sys.exit(0 if serve_by_many(load_settings(data_dir={str(tmp_path / 'file')!r}, port=0, workers=2)) else 7)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=START_S, text=True)
    assert done.returncode == 7, done.stderr
    assert "failed to start" in done.stderr


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
    (tmp_path / "log").touch()
    with served(folder, tmp_path / "log") as (process, url):
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
