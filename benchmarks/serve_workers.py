"""What the system knows of the processes that serve: which they are, their memory, time and connections. Linux only."""

import os
import re
import subprocess
import time
from pathlib import Path


def workers(server: subprocess.Popen[bytes]) -> list[int]:
    """The processes that serve."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def memory_mb(pid: int) -> float:
    """What a process holds."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def cpu_s(server: subprocess.Popen[bytes]) -> float:
    """The processor's time that the workers took so far."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in workers(server)]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")


def connections(pid: int, port: int) -> int:
    """How many clients of this port a process has."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{line[9]}]" for line in lines if line[3] == "01" and int(line[1].split(":")[1], 16) == port}
    return sum(str(file.readlink()) in sockets for file in Path(f"/proc/{pid}/fd").iterdir())


def wait_for_two(server: subprocess.Popen[bytes]) -> None:
    """Until there is another worker in place of the one that was killed."""
    limit = time.monotonic() + 60
    while len(workers(server)) < 2 and time.monotonic() < limit:
        time.sleep(0.1)
