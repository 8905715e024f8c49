"""Many clients at once against `leadline serve` with two workers and a scripted LLM, and a worker that is killed.

Each client asks for a code word of its own, in a conversation of its own. A tenth reads slowly, a tenth goes away in
mid-answer. Counted are errors and events that were lost, doubled or somebody else's; measured the time to the first
event and the first token, as multiples of one request to the idle server, and the memory of the workers. Then a worker
is killed while it streams. Prints a table and one JSON object. Usage: python benchmarks/serve.py [--small | REQUESTS]
"""

import asyncio
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from serve_client import Stream, ask
from serve_workers import connections, cpu_s, memory_mb, wait_for_two, workers

HERE = Path(__file__).resolve().parent
LEADLINE = [sys.executable, "-c", "from leadline.cli import main; main()"]
SETTINGS = {
    "LEADLINE_RUN__LLM": "openai/scripted",
    "LEADLINE_RUN__WEB": "never",
    "LEADLINE_RUN__TOP_K": "3",  # the reranker is not what is measured, and it keeps its last scores
    "LEADLINE_LLMS": "openai/scripted,openai/slow",
    "LEADLINE_RATE_PER_MINUTE": "1000000",
    "LEADLINE_MAX_RUNNING": "1000",
    "LEADLINE_WORKERS": "2",
    "LEADLINE_LOG_LEVEL": "warning",
}
IDLE = 10  # requests to the idle server


@dataclass(frozen=True)
class Load:
    """How many clients, each with how many requests."""

    clients: int
    requests: int
    streams: int  # that are going on when a worker is killed


FULL, SMALL = Load(200, 2000, 40), Load(10, 30, 4)


@dataclass
class Counts:
    """What all requests came to."""

    done: list[Stream] = field(default_factory=list)
    slow: list[Stream] = field(default_factory=list)
    dropped: int = 0
    busy: int = 0  # a conversation whose client had just dropped the run before
    faults: list[str] = field(default_factory=list)


def word(number: int, sounds: str) -> str:
    """A name that no other number has."""
    letters = "".join(
        sounds[(number // 5**place) % 5] + "aeiou"[(number // 5**place + place) % 5] for place in range(4)
    )
    return letters.capitalize()


def names(number: int) -> tuple[str, str]:
    """Whom a client asks about, and that one's code word."""
    return word(number, "bdklm"), word(number, "nprtz").lower()


def question(number: int) -> str:
    """What a client asks."""
    return f"What is the code word of {names(number)[0]}?"


def check(number: int, stream: Stream, into: Counts) -> None:
    """Counts a stream of that client's, and what is wrong with it."""
    own, faults = names(number)[1], list(stream.faults)
    if stream.dropped:
        into.dropped += 1
    elif stream.status != 200 or not stream.ended:
        faults.append(f"status {stream.status}, ended: {stream.ended}")
    else:
        answer = str(stream.result["answer"])
        if stream.result["status"] != "answered" or own not in answer or stream.result["degraded"]:
            faults.append(f"{stream.result['status']}, {stream.result['degraded']}: {answer!r} without {own}")
        if "".join(stream.tokens).strip() != answer or stream.result["question"] != question(number):
            faults.append(f"{''.join(stream.tokens)!r} was streamed, {answer!r} is the answer")
    into.faults += [f"client {number}: {fault}" for fault in faults]


async def client(port: int, number: int, requests: int, into: Counts) -> None:
    """One client: its questions one after the other, in its own conversation."""
    slow, drops = number % 10 == 3, number % 10 == 7
    body = {"question": question(number), "thread_id": f"client-{number}"}
    turn = 0
    while turn < requests:
        stream = await ask(port, body, slow=slow, drop=drops and turn % 2 == 0)
        if stream.status == 409 and drops:  # the server is still ending the run that was dropped
            into.busy += 1
            await asyncio.sleep(0.2)
            continue
        turn += 1
        check(number, stream, into)
        if stream.ended:
            (into.slow if slow else into.done).append(stream)


async def sample(pids: Sequence[int], into: list[tuple[int, float]], counts: Counts) -> None:
    """Notes the memory of all workers together by the requests done, until it is cancelled."""
    while True:
        done = len(counts.done) + len(counts.slow) + counts.dropped
        into.append((done, sum(memory_mb(pid) for pid in pids)))
        await asyncio.sleep(0.25)


def slope(samples: list[tuple[int, float]]) -> float:
    """MB a thousand requests, over the second half of them: the first fills what is kept on purpose."""
    half = [pair for pair in samples if pair[0] >= samples[-1][0] / 2]
    if len({done for done, _ in half}) < 2:
        return 0.0
    return 1000 * statistics.linear_regression(*zip(*half, strict=True)).slope


def in_quarters(samples: list[tuple[int, float]]) -> list[int]:
    """MB before the first request and after each quarter of them."""
    last = samples[-1][0]
    return [round(next(mb for done, mb in samples if done >= last * part / 4)) for part in range(5)]


def times(streams: Sequence[Stream], idle: Sequence[Stream], what: str) -> dict[str, float]:
    """Median and 99th percentile of the streams' times, over the idle server's median."""
    alone = statistics.median(getattr(stream, what) for stream in idle)
    measured = sorted(getattr(stream, what) for stream in streams)
    p99 = measured[min(len(measured) - 1, round(0.99 * len(measured)))]
    return {
        "idle_s": round(alone, 4),
        "p50": round(statistics.median(measured) / alone, 1),
        "p99": round(p99 / alone, 1),
    }


async def kill(port: int, server: subprocess.Popen[bytes], number: int) -> dict[str, Any]:
    """Kills one worker while `number` streams are going on; every client whose stream broke asks again at once."""
    started = [asyncio.Event() for _ in range(number)]
    bodies = [{"question": question(n), "thread_id": f"killed-{n}", "llm": "openai/slow"} for n in range(number)]
    running = [asyncio.create_task(ask(port, body, started=begun)) for body, begun in zip(bodies, started, strict=True)]
    await asyncio.wait_for(asyncio.gather(*(begun.wait() for begun in started)), 120)
    os.kill(max(workers(server), key=lambda pid: connections(pid, port)), signal.SIGKILL)
    first = await asyncio.gather(*running)
    broken = [n for n, stream in enumerate(first) if not stream.ended]
    again = [{**bodies[n], "llm": "openai/scripted"} for n in broken]
    after = await asyncio.gather(*(ask(port, body) for body in again))
    wrong = Counts()
    for n, stream in zip(broken, after, strict=True):
        check(n, stream, wrong)
    await asyncio.to_thread(wait_for_two, server)
    return {
        "streams": number,
        "interrupted": len(broken),
        "whole": sum(stream.ended for stream in first),
        "asked_again": len(after),
        "answered": sum(stream.ended for stream in after),
        "longest_s": round(max((stream.seconds for stream in after), default=0.0), 2),
        "workers_after": len(workers(server)),
        "faults": wrong.faults[:5],
    }


async def measure(port: int, server: subprocess.Popen[bytes], load: Load) -> dict[str, Any]:
    """The idle server, the load, the kill."""
    for _ in range(2):  # each worker loads its models, and knows each question
        await asyncio.gather(*(ask(port, {"question": question(n)}) for n in range(load.clients)))
    idle = [await ask(port, {"question": question(0)}) for _ in range(IDLE)]
    counts, samples = Counts(), list[tuple[int, float]]()
    sampler = asyncio.create_task(sample(workers(server), samples, counts))
    begun, spent = time.perf_counter(), cpu_s(server)
    each = load.requests // load.clients
    await asyncio.gather(*(client(port, n, each, counts) for n in range(load.clients)))
    seconds, spent = time.perf_counter() - begun, cpu_s(server) - spent
    await asyncio.sleep(0.5)
    sampler.cancel()
    runs = [stream.run for stream in (*counts.done, *counts.slow)]
    return {
        "clients": load.clients,
        "requests": load.requests,
        "requests_per_s": round(load.requests / seconds, 1),
        "cpu_s_per_request": round(spent / load.requests, 3),
        "answered": len(runs),
        "dropped": counts.dropped,
        "busy": counts.busy,
        "faults": len(counts.faults) + len(runs) - len(set(runs)),
        "first_faults": counts.faults[:5],
        "first_event": times(counts.done, idle, "first_event_s"),
        "first_token": times(counts.done, idle, "first_token_s"),
        "memory_mb": in_quarters(samples),
        "memory_mb_per_1000": round(slope(samples), 1),
        "in_flight_after": in_flight(port),
        "kill": await kill(port, server, load.streams),
    }


def in_flight(port: int) -> float:
    """The runs that the server still counts as going on."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        found = re.search(r"^leadline_runs_in_flight (\S+)$", response.read().decode(), re.MULTILINE)
    return float(found[1]) if found else -1.0


@contextmanager
def serving(folder: Path, clients: int) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The scripted LLM and the server, over one small document a client."""
    llm = subprocess.Popen([sys.executable, HERE / "serve_llm.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert llm.stdout is not None
    os.environ.update(SETTINGS, LEADLINE_LLM_API_BASE=f"http://127.0.0.1:{int(llm.stdout.readline())}/v1")
    os.environ["LEADLINE_DATA_DIR"] = str(folder / "data")
    documents = folder / "documents"
    documents.mkdir()
    for number in range(clients):
        name, code = names(number)
        (documents / f"{name}.md").write_text(f"The code word of {name} is {code}.\n")
    subprocess.run([*LEADLINE, "ingest", documents], check=True, stdout=subprocess.DEVNULL)
    port = free_port()
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*LEADLINE, "serve", "--port", str(port)], stdout=log, stderr=log)
    try:
        wait_for(port, server)
        yield port, server
    finally:
        server.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            server.wait(30)
        server.kill()
        llm.kill()
        said = (folder / "log").read_text(errors="replace").splitlines()
        print(f"The server's log has {len(said)} lines; the last: {said[-3:]}", file=sys.stderr)


def free_port() -> int:
    """A port of this machine that nobody has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Until the server is ready, which it says when its models are loaded."""
    limit = time.monotonic() + 120
    while True:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=60):
            return
        if server.poll() is not None or time.monotonic() > limit:
            raise SystemExit("the server did not start")
        time.sleep(0.2)


def table(told: dict[str, Any]) -> str:
    """For people."""
    rows = [(name, value) for name, value in told.items() if not isinstance(value, dict)]
    for part in ("first_event", "first_token"):
        rows += [(f"{part}, {name}", value) for name, value in told[part].items()]
    rows += [(f"kill: {name}", value) for name, value in told["kill"].items()]
    return "\n".join(f"{name:<28}{value}" for name, value in rows)


def main(load: Load) -> int:
    """Measures and tells; 1 where something was lost, mixed up or not answered."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), load.clients) as (port, server):
        told = asyncio.run(measure(port, server, load))
    print(table(told), file=sys.stderr)
    print(json.dumps(told))
    killed = told["kill"]
    well = not told["faults"] and not killed["faults"] and killed["asked_again"] == killed["answered"]
    return 0 if well and killed["interrupted"] and told["in_flight_after"] == 0 else 1


if __name__ == "__main__":
    wanted = [argument for argument in sys.argv[1:] if argument.isdecimal()]
    full = replace(FULL, requests=int(wanted[0])) if wanted else FULL
    sys.exit(main(SMALL if "--small" in sys.argv[1:] else full))
