"""The notebooks run from top to bottom, offline, in a folder of their own."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Runs before the first cell: the kernel is a process of its own, so the tests' own guard doesn't reach it.
OFFLINE = """
import socket
_connect = socket.socket.connect
def _guarded(self, address, *rest):
    if self.family != getattr(socket, "AF_UNIX", None) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise AssertionError(f"a notebook may not reach {address}")
    return _connect(self, address, *rest)
socket.socket.connect = _guarded
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell succeeds, prints what it promises, and writes nothing beside the notebook."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "notebooks").mkdir()
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # nbformat has no types
    notebook.cells.insert(0, nbformat.v4.new_code_cell(OFFLINE))  # type: ignore[no-untyped-call]  # the same
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path / "notebooks"}}).execute()
    printed = "".join(str(o.get("text", "")) for cell in notebook.cells for o in cell.get("outputs", []))
    for promised in PROMISED[path.stem]:
        assert promised in printed
    assert list((tmp_path / "notebooks").iterdir()) == []


PROMISED = {
    "01-quickstart": ["tide-gauge-manual.pdf, page 3", "ANSWERED", "ABSTAINED", "reflection", "verdict:"],
    "02-retrieval": ["nDCG@10", "vector", "bm25", "graph", "fused", "reranked"],
}


def test_notebooks_are_kept_without_output() -> None:
    """What is stored is the source only: outputs would go stale and hide what a reader gets."""
    assert [path.stem for path in NOTEBOOKS] == list(PROMISED)
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # nbformat has no types
        assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
