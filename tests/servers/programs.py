"""Servers that are programs of their own: started, waited for until they answer, and ended."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

READY_S = 60.0
PAUSE_S = 0.05


def free_port() -> int:
    """A port of this machine that nobody has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def is_open(port: int) -> bool:
    """Whether somebody listens on that port of this machine."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


class Program:
    """A program that serves. It can be started again after it was ended; what it says is kept in the file `log`."""

    def __init__(self, name: str, log: Path, *, patience_s: float = 10.0) -> None:
        self._name, self._log, self._patience_s = name, log, patience_s
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, command: Sequence[str | Path], answers: Callable[[], bool], **options: Any) -> None:
        """Starts it, with the `options` of Popen, and waits until it answers; else the test fails with what it said."""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, **options)
        deadline = time.monotonic() + READY_S
        while not answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                pytest.fail(f"{self._name} did not start: {self._log.read_text('utf-8', 'replace')[-2000:]}")
            time.sleep(PAUSE_S)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends it in order, by this signal, and at once where that takes too long. Legal at any time."""
        if self._process is not None:
            self._process.send_signal(how)
            self.wait()

    def wait(self) -> None:
        """Waits until it has ended by itself; ends it at once where that takes too long."""
        if self._process is not None:
            try:
                self._process.wait(self._patience_s)
            except subprocess.TimeoutExpired:
                self.kill()
            self._close_input()

    def kill(self) -> None:
        """Ends it at once, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._close_input()

    def interrupt(self, how: str) -> None:
        """Has it end ("killed") or stand still ("stopped"), as a machine under load does, until `resume`."""
        assert self._process is not None
        if how == "killed":
            self.kill()
        else:
            self._signal_family(signal.SIGSTOP)

    def resume(self, how: str) -> None:
        """Undoes `interrupt`."""
        assert self._process is not None
        if how == "killed":
            self.start()
        else:
            self._signal_family(signal.SIGCONT)

    def _signal_family(self, how: signal.Signals) -> None:
        """To the program and the processes it has started."""
        family = [self._process.pid] if self._process else []
        for pid in family:
            os.kill(pid, how)
            family += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split())

    def start(self) -> None:
        """Starts it and waits until it answers."""
        raise NotImplementedError

    def _close_input(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
