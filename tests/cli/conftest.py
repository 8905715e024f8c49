"""A command line in this process, and a data folder with the example documents in it."""

import asyncio
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline import load_settings, open_library
from leadline.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "documents"


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


Leadline = Callable[..., Done]


@pytest.fixture
def leadline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Leadline:
    """Runs `leadline` with the given words, in an empty working directory, as in a pipe."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["leadline", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Done(int(ended.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the examples, made by one real ingest. Copy it before changing it."""
    folder = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["leadline", "ingest", str(EXAMPLES), "--data-dir", str(folder)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    return folder


@pytest.fixture
def filled(filled_once: Path, tmp_path: Path) -> Path:
    """A copy of the filled data folder."""
    return shutil.copytree(filled_once, tmp_path / "data")


@pytest.fixture
def nothing_in_it(tmp_path: Path) -> Path:
    """A data folder whose one collection has no document."""

    async def make() -> None:
        async with open_library(load_settings(data_dir=tmp_path / "empty")):
            pass

    asyncio.run(make())
    return tmp_path / "empty"
