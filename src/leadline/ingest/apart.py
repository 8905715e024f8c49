"""Reading in a process of its own, for files and web pages.

Either may be made to hold up, break or fill the memory of any parser, and one in C holds up every thread of its
process: here the process is ended after a while, and only that file is lost. It gets the bytes and no key or setting of
the environment, and takes no notice of signals that are meant for whoever started it. Run as a program it is that
process.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from types import TracebackType
from typing import IO, Any, Final, Literal, Self

from leadline.errors import EmptyFile, FileTooLarge, IngestError, UnreadableFile, UnsupportedFile, raised_at
from leadline.ingest.extracted import Block, Extracted, Limits, too_slow

log = logging.getLogger(__name__)

Job = Literal["file", "page"]

MEMORY_BYTES: Final = 4 << 30
_GRACE_S: Final = 1.0  # after the time it has, before it ends itself: whoever should have ended it may be gone
_ERRORS: Final = {kind.__name__: kind for kind in (EmptyFile, FileTooLarge, UnreadableFile, UnsupportedFile)}
_ALARM: Final = getattr(signal, "SIGALRM", 0)
# What Python needs to start as this one did.
_ENVIRONMENT: Final = ("PATH", "PYTHONPATH", "PYTHONHOME", "SYSTEMROOT", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


class ReadingProcess:
    """Reads one file or page after another in another process, for the length of a `with` block.

    The process starts with the first one, and anew after one that was its end. One thread at a time may read; leaving
    the block from another thread ends what is being read.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._end()

    @property
    def closed(self) -> bool:
        """Whether the block was left."""
        return self._closed

    def load(self, data: bytes, file_name: str, limits: Limits) -> Extracted:
        """`loaders.load` in at most `limits.max_seconds`. Blocks. Raises what that raises, and as `read` does."""
        return self.read("file", data, limits.max_seconds, file_name=file_name, limits=asdict(limits))

    def read(self, job: Job, data: bytes, seconds: float, **options: Any) -> Extracted:
        """What the job's function makes of the bytes and the options, which must go into JSON. Blocks.

        Raises what that raises, FileTooLarge where it takes more than `seconds`, and UnreadableFile where it breaks.
        """
        process = self._started()
        expired = threading.Event()
        watch = threading.Timer(seconds, _expire, (process, expired))
        watch.start()
        try:
            line = _asked(process, {"job": job, "bytes": len(data), "seconds": seconds, "options": options}, data)
        finally:
            watch.cancel()
            watch.join()
        if expired.is_set() or not line.endswith(b"\n"):
            code = self._end()
            if expired.is_set() or (code and code == -_ALARM):
                raise too_slow(seconds)
            raise UnreadableFile(f"It can't be read: the parser broke ({_how(code)}).")
        said = json.loads(line)
        if said.get("last"):
            self._end()
        return _from_json(said)

    def _started(self) -> subprocess.Popen[bytes]:
        self._check_open()
        if self._process is not None and self._process.poll() is not None:
            self._end()  # it was ended while it had nothing to do
        if self._process is None:
            environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
            try:
                with _deaf():
                    self._process = subprocess.Popen(  # noqa: S603 - this interpreter and this very module
                        [sys.executable, "-P", "-m", __name__],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        env=environment,
                        process_group=0,  # Ctrl-C in a terminal goes to a whole group
                    )
            except OSError as error:
                raise UnreadableFile(f"No process can be started to read the file: {error.strerror}.") from error
        self._check_open()  # again: it may have been closed meanwhile
        return self._process

    def _check_open(self) -> None:
        if self._closed:
            self._end()
            raise UnreadableFile("Reading was ended.")

    def _end(self) -> int:
        """Ends the process, if there is one, and gives its exit code; the next one starts afresh."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with suppress(OSError):  # on Windows: it has ended by itself
            process.kill()
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # what it was not told any more
                if pipe is not None:
                    pipe.close()
        return code


@contextmanager
def _deaf() -> Iterator[None]:
    """A process that is started in the block never hears that whoever started it is to end: that one decides what
    becomes of a file. Only the calling thread holds the signals back, and hears of them afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _expire(process: subprocess.Popen[bytes], expired: threading.Event) -> None:
    expired.set()
    process.kill()


def _asked(process: subprocess.Popen[bytes], request: Mapping[str, Any], data: bytes) -> bytes:
    """The line that the process answers, or what there was of it."""
    assert process.stdin is not None, "asked for"
    assert process.stdout is not None, "asked for"
    with suppress(OSError):  # it is gone
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.write(data)
        process.stdin.flush()
        return process.stdout.readline()
    return b""


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _to_json(extracted: Extracted) -> dict[str, Any]:
    """Each path of headings and each header once: every block of a long file lies under some."""
    blocks = extracted.blocks
    paths = {path: place for place, path in enumerate(dict.fromkeys(block.headings for block in blocks))}
    prefixes = {prefix: place for place, prefix in enumerate(dict.fromkeys(block.prefix for block in blocks))}
    return {
        "text": extracted.text,
        "blocks": [[b.start, b.end, b.kind, paths[b.headings], b.page, prefixes[b.prefix]] for b in blocks],
        "paths": list(paths),
        "prefixes": list(prefixes),
        "metadata": dict(extracted.metadata),
        "notes": extracted.notes,
        "encoding": extracted.encoding,
    }


def _from_json(said: Mapping[str, Any]) -> Extracted:
    if "error" in said:
        raise _ERRORS[said["error"]](said["message"], hint=said["hint"])
    if "broke" in said:
        log.warning("A file could not be read: %s", said["where"])
        raise UnreadableFile(f"It can't be read: {said['broke']}")
    paths, prefixes = [tuple(path) for path in said["paths"]], said["prefixes"]
    blocks = tuple(
        Block(start, end, kind, paths[path], page, prefixes[prefix])
        for start, end, kind, path, page, prefix in said["blocks"]
    )
    return Extracted(said["text"], blocks, said["metadata"], tuple(said["notes"]), said["encoding"])


def _main() -> None:
    """Answers each request by a line of JSON, until there are no more."""
    _limit_memory()
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # a parser that prints must not answer
    while line := requests.readline():
        answer = _answered(json.loads(line), requests)
        # In ASCII: a text may hold halves of characters, and is to arrive as it is.
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _answered(request: Mapping[str, Any], requests: IO[bytes]) -> dict[str, Any]:
    """The answer to one request; `last` where this process should have no other."""
    try:
        data = requests.read(request["bytes"])
        _end_after(request["seconds"] + _GRACE_S)
        return _to_json(_JOBS[request["job"]](data, **request["options"]))
    except IngestError as error:
        return {"error": type(error).__name__, "message": error.message, "hint": error.hint}
    except MemoryError:
        why = f"It can't be read with {MEMORY_BYTES >> 30} GB of memory."
        return {"error": UnreadableFile.__name__, "message": why, "hint": "Split it.", "last": True}
    except Exception as error:  # noqa: BLE001 - named degrade: what a hostile file does to a parser is that file's failure
        return {"broke": f"{type(error).__name__}: {error}", "where": raised_at(error)}
    finally:
        _end_after(0)


def _file(data: bytes, file_name: str, limits: Mapping[str, Any]) -> Extracted:
    from leadline.ingest.loaders import load

    return load(data, file_name, Limits(**limits))


def _page(data: bytes, kind: str, charset: str | None) -> Extracted:
    from leadline.ingest.web_text import page_text

    return page_text(data, kind, charset)


_JOBS: Final[Mapping[Job, Callable[..., Extracted]]] = {"file": _file, "page": _page}


def _limit_memory() -> None:
    with suppress(ImportError, OSError, ValueError):  # not every system can
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _end_after(seconds: float) -> None:
    """Lets the system end this process, also in the midst of a parser; 0: no more."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    _main()
