"""Where a named model's files are, whether they may be read, and what identifies them.

Knows the hub's cache and the layout of a model's folder; imports no model library. Only safetensors are accepted:
pickled weights run code when they are read.
"""

import hashlib
import importlib.util
from pathlib import Path

from leadline.errors import MissingExtra, ModelUnavailable

EXTRA = "sentence-transformers"
FETCHED = ["*.safetensors", "*.safetensors.index.json", "*.json", "*.txt", "*.model"]
PICKLED = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt"}


def find(setting: str) -> Path:
    """The folder of the model that `setting` names, fetched from the hub only if it isn't in the hub's cache.

    Raises MissingExtra without the library, ModelUnavailable if there is no such model or its weights are pickled.
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingExtra(
            f"The model {setting} needs the extra `{EXTRA}`.", hint=f"Install it: pip install 'leadline[{EXTRA}]'."
        )
    if Path(setting).is_dir():
        return checked(Path(setting))
    from huggingface_hub import snapshot_download

    try:
        cached = Path(snapshot_download(setting, allow_patterns=FETCHED, local_files_only=True))
        if weight_files(cached):
            return checked(cached)
    except (OSError, ValueError):
        pass  # not in the cache, or not a hub name: the next call says which
    try:
        return checked(Path(snapshot_download(setting, allow_patterns=FETCHED)))
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"There is no folder and no reachable hub model {setting!r}: {first_line(error)}",
            hint="Check the name and the connection, or name a local folder.",
        ) from error


def checked(folder: Path) -> Path:
    """`folder`, if every model file in it is a safetensors file or has one beside it."""
    pickled = [path for path in folder.rglob("*") if path.suffix in PICKLED]
    unsafe = [path for path in pickled if not list(path.parent.glob("*.safetensors"))]
    if unsafe or not weight_files(folder):
        found = f"{unsafe[0].name}, a pickle" if unsafe else "no weights"
        raise ModelUnavailable(
            f"The model folder {folder} holds {found}; only safetensors are read.",
            hint="Save the model as safetensors: model.save_pretrained(folder, safe_serialization=True).",
        )
    return folder


def identity(setting: str, folder: Path) -> str:
    """The setting and what tells its weights from others: the hub's revision, else the hash of the weight files."""
    if folder.parent.name == "snapshots":
        return f"{setting}@{folder.name[:12]}"
    digest = hashlib.sha256()
    for path in weight_files(folder):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"{Path(setting).name}@{digest.hexdigest()[:12]}"


def weight_files(folder: Path) -> list[Path]:
    """All safetensors files below `folder`, in a fixed order."""
    return sorted(folder.rglob("*.safetensors"))


def first_line(error: Exception) -> str:
    """What an error says first: the hub's messages go on for paragraphs."""
    return str(error).strip().partition("\n")[0]
