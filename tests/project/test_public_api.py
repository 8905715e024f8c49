"""The names that other people's code may import, and what importing costs."""

import json
import subprocess
import sys
from pathlib import Path

import leadline

HEAVY = ["chromadb", "fastapi", "langgraph", "litellm", "networkx", "numpy", "onnxruntime", "sqlalchemy", "torch"]

AUDIT = """
import json, os, sys
seen = []
def hook(event, args):
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        seen.append(f"open {args[0]} {args[1]}")
    elif event == "open" and args[1] is None and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        seen.append(f"os.open {args[0]}")
    elif event.startswith(("socket.connect", "socket.getaddrinfo", "os.mkdir", "os.rename", "os.remove", "sqlite3.")):
        seen.append(f"{event} {args}")
sys.addaudithook(hook)
import leadline
print(json.dumps({"seen": seen, "modules": sorted(m for m in sys.modules if "." not in m)}))
"""


def test_public_names_are_sorted_and_real() -> None:
    """`leadline.__all__` is sorted, and every name in it can be had."""
    assert leadline.__all__ == sorted(leadline.__all__)
    missing = [name for name in leadline.__all__ if getattr(leadline, name, None) is None]
    assert missing == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelled name fails as for any other module."""
    assert not hasattr(leadline, "open_ap")


def test_import_touches_nothing_and_loads_nothing_heavy(tmp_path: Path) -> None:
    """`import leadline` writes no file, opens no socket or database, and imports no heavy library."""
    folder = tmp_path / "readonly"
    folder.mkdir(mode=0o555)
    out = subprocess.run(
        [sys.executable, "-B", "-c", AUDIT], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    report = json.loads(out.stdout)
    assert report["seen"] == []
    assert set(HEAVY) & set(report["modules"]) == set()
    assert list(folder.iterdir()) == []
