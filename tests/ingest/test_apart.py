"""Reading in a process of its own: the same text, and a file made to do harm costs that file and nothing else."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leadline.errors import FileTooLarge, IngestError, UnreadableFile
from leadline.ingest.apart import ReadingProcess
from leadline.ingest.extracted import Extracted, Limits
from leadline.ingest.loaders import load
from leadline.ingest.prepare import prepare
from leadline.models.minilm import MiniLM

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples" / "documents").rglob("*") if path.is_file())


def tag(attributes: int) -> bytes:
    """A page of one tag, of which the HTML parser compares each attribute with all those before it."""
    return ("<p " + " ".join(f"a{n}=x" for n in range(attributes)) + ">x").encode()


HOLDS_UP = tag(400_000)


@pytest.fixture
def process() -> Iterator[ReadingProcess]:
    """A process to read in, ended afterwards."""
    with ReadingProcess() as opened:
        yield opened


def outcome(read: Callable[..., Extracted], *args: object) -> Extracted | tuple[type, str, str]:
    """What was read, or the error: its kind, message and hint."""
    try:
        return read(*args)
    except IngestError as error:
        return type(error), error.message, error.hint


def children() -> set[int]:
    """The ids of this process's children that are alive."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # ended meanwhile
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.add(int(stat.parent.name))
    return found


def test_examples_are_read_as_they_are_here(process: ReadingProcess) -> None:
    """Text, blocks with headings and pages, metadata, notes, encoding: all the same, one file after the other."""
    assert {path.suffix for path in EXAMPLES} > {".pdf", ".docx", ".csv", ".md"}
    for path in EXAMPLES:
        data = path.read_bytes()
        assert outcome(process.load, data, path.name, Limits()) == outcome(load, data, path.name, Limits())


@pytest.mark.parametrize(
    ("name", "data", "limits"),
    [
        ("empty.md", b"", Limits()),
        ("blank.txt", b"  \n ", Limits()),
        ("movie.mp4", b"x", Limits()),
        ("broken.docx", b"PK\x03\x04 nothing like a document", Limits()),
        ("long.txt", b"a word " * 1000, Limits(max_chars=1000)),
        ("big.txt", b"a word " * 1000, Limits(max_bytes=1000)),
        ("halves.md", b"# \xff\xfe\n\nhalf \xed\xa0\x80 of a sign \xed\xbf\xbf", Limits()),
        ("table.md", b"# T\n\n|a|b|\n|-|-|\n|1|2|\n|3|4|\n", Limits()),
    ],
)
def test_errors_and_odd_texts_come_as_they_are_here(
    process: ReadingProcess, name: str, data: bytes, limits: Limits
) -> None:
    """The same kind of error with the same words; halves of characters, and what stands before each row of a table."""
    assert outcome(process.load, data, name, limits) == outcome(load, data, name, limits)


def test_a_file_made_to_hold_up_its_parser_is_ended_and_the_next_one_is_read(process: ReadingProcess) -> None:
    """With the setting named that allows more time; nothing of the process is left."""
    before = children()
    begun = time.monotonic()
    with pytest.raises(FileTooLarge, match=r"within 0\.5 s.*LEADLINE_MAX_FILE_SECONDS"):
        process.load(HOLDS_UP, "page.html", Limits(max_seconds=0.5))
    assert time.monotonic() - begun < 10
    assert children() <= before
    assert process.load(b"Otters eat at noon.", "zoo.txt", Limits()).text == "Otters eat at noon."


def test_cutting_takes_of_the_same_time(tokenizer: MiniLM) -> None:
    """What is read in time but can't be cut in time is refused with the same words."""
    with pytest.raises(FileTooLarge, match="LEADLINE_MAX_FILE_SECONDS"):
        prepare(b"Otters eat at noon. " * 1000, "zoo.txt", tokenizer, Limits(max_seconds=1e-6))


def test_cutting_ends_with_whoever_waits_for_it(tokenizer: MiniLM) -> None:
    """A thread can't be ended, and a program that ends waits for its threads."""
    ends_at = time.monotonic() + 0.2
    with pytest.raises(UnreadableFile, match="was ended"):
        prepare(b"Otters eat at noon. " * 150_000, "zoo.txt", tokenizer, ended=lambda: time.monotonic() > ends_at)


def test_a_file_of_crumbs_is_refused() -> None:
    """Each paragraph takes memory beside its text."""
    with pytest.raises(FileTooLarge, match="more than 1,000 paragraphs"):
        load(b"a\n\n" * 1001, "crumbs.txt", Limits(max_blocks=1000))
    assert len(load(b"a\n\n" * 1000, "crumbs.txt", Limits(max_blocks=1000)).blocks) == 1000


def reading(
    process: ReadingProcess, data: bytes, limits: Limits, *, for_s: float = 0.5
) -> "tuple[threading.Thread, list[object]]":
    """A thread that reads, `for_s` seconds after the process began; the list gets the outcome."""
    before, outcomes = children(), list[object]()
    thread = threading.Thread(target=lambda: outcomes.append(outcome(process.load, data, "page.html", limits)))
    thread.start()
    while not children() - before:
        time.sleep(0.01)
    time.sleep(for_s)
    return thread, outcomes


def test_a_parser_that_breaks_costs_its_file_only(process: ReadingProcess) -> None:
    """Here the process is killed, as the system does when memory runs out: said so, and the next file is read."""
    before = children()
    thread, outcomes = reading(process, HOLDS_UP, Limits())
    [child] = children() - before
    os.kill(child, signal.SIGKILL)
    thread.join(10)
    assert outcomes == [(UnreadableFile, "It can't be read: the parser broke (signal 9).", "")]
    assert process.load(b"Otters eat at noon.", "zoo.txt", Limits()).text == "Otters eat at noon."


def test_a_file_that_fills_the_memory_costs_itself_only() -> None:
    """Said so, and the next one is read. Here both processes are given little, so that a middling file is enough."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
        "from leadline.ingest.apart import ReadingProcess; from leadline.ingest.extracted import Limits\n"
        "with ReadingProcess() as process:\n"
        "    try: process.load('\U0001f9a6'.encode() * 30_000_000, 'otters.txt', Limits())\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
        "    print(process.load(b'Otters eat at noon.', 'zoo.txt', Limits()).text)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.splitlines() == [
        "UnreadableFile It can't be read with 4 GB of memory. Split it.",
        "Otters eat at noon.",
    ]


def test_a_process_that_was_ended_while_idle_costs_no_file(process: ReadingProcess) -> None:
    """Such as by the system, that takes from the largest process when memory runs out."""
    before = children()
    process.load(b"Otters eat at noon.", "zoo.txt", Limits())
    [child] = children() - before
    os.kill(child, signal.SIGKILL)
    while child in children():
        time.sleep(0.01)
    assert process.load(b"Cats eat at dusk.", "cats.txt", Limits()).text == "Cats eat at dusk."


@pytest.mark.parametrize("for_s", [0, 0.5])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_meant_for_the_program_leave_the_file_alone(process: ReadingProcess, number: int, for_s: float) -> None:
    """Ctrl-C and a service's end go to all processes; it is the program that decides what becomes of its files. Also
    when they come before the process has begun to read."""
    before = children()
    thread, outcomes = reading(process, tag(30_000), Limits(), for_s=for_s)
    [child] = children() - before
    os.kill(child, number)
    thread.join(60)
    assert isinstance(outcomes[0], Extracted)


def test_leaving_ends_what_is_being_read() -> None:
    """At once, from another thread: whoever is cancelled waits for no parser."""
    with ReadingProcess() as process:
        thread, outcomes = reading(process, HOLDS_UP, Limits())
        begun = time.monotonic()
    thread.join(10)
    assert time.monotonic() - begun < 5
    assert isinstance(outcomes[0], tuple)


def test_it_ends_by_itself_where_the_program_is_killed(tmp_path: Path) -> None:
    """In the midst of a parser that would go on for long: nobody is left to end it, so the system does."""
    page = tmp_path / "page.html"
    page.write_bytes(HOLDS_UP * 4)
    program = (
        "from leadline.ingest.apart import ReadingProcess; from leadline.ingest.extracted import Limits; import sys\n"
        "with ReadingProcess() as process:\n"
        "    process.load(b'x', 'a.txt', Limits()); print(process._process.pid, flush=True)\n"
        "    process.load(open(sys.argv[1], 'rb').read(), 'page.html', Limits(max_seconds=2))\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(page)], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        child = Path("/proc") / started.stdout.readline().strip()
        time.sleep(0.5)
        assert child.exists()
        started.kill()
    deadline = time.monotonic() + 20
    while child.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.exists()


def test_it_knows_no_secret(process: ReadingProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key of the environment, and no module of the folder it is started in."""
    for module in ("selectolax", "sitecustomize", "json"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-8841")
    before = children()
    assert process.load(b"<p>x", "page.html", Limits()).text == "x"
    [child] = children() - before
    environment = Path(f"/proc/{child}/environ").read_bytes()
    assert b"PATH=" in environment
    assert b"sk-8841" not in environment
