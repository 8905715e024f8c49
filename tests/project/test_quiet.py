"""Nothing leaves the machine unless it is asked for, and nothing is written beside the data folder: whole programs are
watched, the native code of libraries too, which no hook of Python sees."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from tests.servers.programs import Program, free_port

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
QUESTION = "What is the vault code of the north pier?"
# onnxruntime, left as it comes, first looks up its maker's host 5 to 9 s after a model was opened.
LIFE_S = 15.0
END_S = 20.0

# -D: the program keeps its own process id, and gets its signals itself. --seccomp-bpf: only these calls are stopped at,
# else all took twice as long. `execve` is the first line of a trace, by which its end is known.
STRACE = ("strace", "-D", "-f", "--seccomp-bpf", "-s", "0", "-e", "trace=execve,connect,sendto,sendmsg,sendmmsg", "-o")
FAMILY = re.compile(r"sa_family=(\w+)")
PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
HOST = re.compile(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"')
DOMAIN = 53
# Connects a datagram's socket to an address that is nobody's, which sends nothing.
REACHES_OUT = "import socket; socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"


def outside(trace: Path) -> list[str]:
    """The calls that reach for another machine or ask for a name: everything but loopback, unix and netlink sockets."""
    return [line for line in trace.read_text("ascii").splitlines() if any(map(_is_outside, _addresses(line)))]


def _addresses(line: str) -> list[str]:
    """The socket addresses in a call; a call without one goes over a connection that was opened by another."""
    return re.split(r"(?=sa_family=)", line)[1:]


def _is_outside(address: str) -> bool:
    found = FAMILY.match(address)
    if found is None or found[1] not in ("AF_INET", "AF_INET6"):
        return found is None or found[1] not in ("AF_UNIX", "AF_NETLINK", "AF_UNSPEC")
    port, host = PORT.search(address), HOST.search(address)
    if port is None or host is None or int(port[1]) == DOMAIN:
        return True
    return not ip_address(host[1] or host[2]).is_loopback


@pytest.fixture
def watch(tmp_path: Path) -> tuple[str, ...]:
    """How a command is begun to be watched; the path of the trace follows. Skips where that can't be done."""
    if shutil.which("strace") is None:
        pytest.skip("There is no strace on this machine: apt-get install strace")
    trace = tmp_path / "probe.trace"
    probe = subprocess.run([*STRACE, trace, sys.executable, "-c", REACHES_OUT], capture_output=True, check=False)
    if probe.returncode or not ended(trace):
        pytest.skip(f"strace may not watch programs on this machine: {probe.stderr.decode()[-200:]}")
    assert len(outside(trace)) == 1  # it is seen, if anything is
    return STRACE


def ended(trace: Path) -> bool:
    """Whether the trace is whole; strace ends a little after the program."""
    limit = time.monotonic() + END_S
    while time.monotonic() < limit:
        lines = trace.read_text("ascii").splitlines() if trace.exists() else []
        begun = lines and lines[0].split()[0]
        if any(line.split()[0] == begun and " +++ " in line for line in lines):
            return True
        time.sleep(0.05)
    return False


def environment(folder: Path) -> dict[str, str]:
    """Of somebody new: an empty home, and no setting but where the data is."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LEADLINE_DATA_DIR": str(folder / "data")}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A file to put in."""
    path = tmp_path / "vault.md"
    path.write_text("# Vault\n\nThe vault code of the north pier is 7741.\n", "utf-8")
    return path


def run(folder: Path, *words: str | Path) -> str:
    """What a command says that goes well."""
    done = subprocess.run(words, env=environment(folder), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def serving(name: str, begun: Sequence[str | Path], url: str, folder: Path, env: dict[str, str]) -> Iterator[None]:
    """A program that serves while the block runs, which has ended and left its trace after it."""
    program = Program(name, folder / "log", patience_s=END_S)

    def answers() -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(url, timeout=2, trust_env=False).is_success
        return False

    program.run(begun, answers, cwd=folder, env=env)
    try:
        yield
    finally:
        program.stop()


def studio_of_make(folder: Path) -> tuple[list[str], dict[str, str]]:
    """What `make studio` runs `langgraph` with: its words and its environment, from the Makefile as it is."""
    stand_in = folder / "bin" / "langgraph"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" > '{folder}/words'\nenv -0 > '{folder}/environ'\n", "utf-8")
    stand_in.chmod(0o700)
    made = ("make", "-C", str(ROOT), "-o", ".venv/.installed-test", "studio", "VENV=.venv", f"BIN={stand_in.parent}")
    run(folder, *made)
    words, environ = ((folder / name).read_text("utf-8").rstrip("\0").split("\0") for name in ("words", "environ"))
    pairs = dict(pair.split("=", 1) for pair in environ)
    return words, {name: value for name, value in pairs.items() if not name.startswith("MAKE")}


@contextmanager
def studio(folder: Path, watch: tuple[str, ...]) -> Iterator[None]:
    """Studio's server as `make studio` starts it, but on a free port, and with its own folder to write into."""
    words, env = studio_of_make(folder)
    config = Path(shutil.copy(ROOT / "langgraph.json", folder))
    config.write_text(config.read_text("utf-8").replace('"."', json.dumps(str(ROOT))), "utf-8")
    port = free_port()
    begun: list[str | Path] = [*watch, folder / "trace", BIN / "langgraph", *words, "--port", str(port)]
    with serving("make studio", begun, f"http://127.0.0.1:{port}/ok", folder, env):
        yield


@contextmanager
def served_question(folder: Path, watch: tuple[str, ...], document: Path) -> Iterator[None]:
    """`leadline serve`, to which a document was uploaded, and then a question put."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    begun: list[str | Path] = [*watch, folder / "trace", BIN / "leadline", "serve", "--port", str(port)]
    with (
        serving("leadline serve", begun, f"{url}/ready", folder, environment(folder)),
        httpx.Client(base_url=url, timeout=60, trust_env=False) as client,
    ):
        job = client.post("/documents", files={"files": (document.name, document.read_bytes())}).json()
        limit = time.monotonic() + 60
        while (state := client.get(f"/jobs/{job['id']}").json()["status"]) != "done":
            assert state in ("queued", "running"), state
            assert time.monotonic() < limit
            time.sleep(0.1)
        assert "7741" in client.post("/chat", json={"question": QUESTION, "stream": False}).json()["answer"]
        yield


def test_no_program_reaches_for_another_machine(watch: tuple[str, ...], document: Path, tmp_path: Path) -> None:
    """Not the server that took a document, answered and lived on; not Studio's, as `make` starts it; not a command."""
    folders = {name: tmp_path / name for name in ("serve", "studio", "ingest", "ask")}
    for folder in folders.values():
        folder.mkdir()
    with studio(folders["studio"], watch), served_question(folders["serve"], watch, document):
        since = time.monotonic()
        for name, word in (("ingest", str(document)), ("ask", QUESTION)):
            run(folders["ask"], *watch, folders[name] / "trace", BIN / "leadline", name, word)
        time.sleep(max(0.0, since + LIFE_S - time.monotonic()))
    traces = {name: folder / "trace" for name, folder in folders.items()}
    assert all(map(ended, traces.values()))
    assert {name: outside(trace) for name, trace in traces.items()} == {name: [] for name in folders}


def test_nothing_is_written_into_the_home_folder(document: Path, tmp_path: Path) -> None:
    """By a command that takes a document in, and by one that answers: no library leaves anything there either."""
    folder = tmp_path / "somebody"
    env = environment(folder)
    run(folder, BIN / "leadline", "ingest", document)
    assert "7741" in run(folder, BIN / "leadline", "ask", QUESTION)
    assert not [*Path(env["HOME"]).iterdir()]
