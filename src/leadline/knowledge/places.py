"""Where the index of a leg is kept: a folder of the data folder, or a name on a server."""

import hashlib
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from leadline.config import COLLECTION_PATTERN
from leadline.errors import ConfigError

INDEXES: Final = "indexes"  # the folder of all that can be built again from the catalog
_OURS: Final = re.compile(r"(vector|bm25)(-\d+)?")
_LONGEST_NAME: Final = 20


def check_name(collection: str) -> None:
    """Raises ConfigError for what can't be the name of a collection."""
    if not re.fullmatch(COLLECTION_PATTERN, collection):
        raise ConfigError(
            f"{collection!r} can't be the name of a collection.", hint="Letters, digits, - and _; at most 63 of them."
        )


def folder(data_dir: Path, collection: str, leg: str, build: int) -> Path:
    """The folder of a leg's index; each one built has its own."""
    return data_dir / INDEXES / collection / (f"{leg}-{build}" if build else leg)


def index_name(identity: str, collection: str, leg: str, build: int) -> str:
    """The name of a leg's index on a server that others use too: at most 60 letters, digits and underscores.

    `identity` is the catalog's: two data folders never share an index.
    """
    plain = re.sub(r"[^a-z0-9]", "_", collection.lower())[:_LONGEST_NAME]
    if plain != collection:  # two collections may look alike in these letters
        plain += f"_{hashlib.sha256(collection.encode()).hexdigest()[:6]}"
    return f"leadline_{identity[:8]}_{plain}_{leg}_{build}"


def graph_key(collection: str, build: int) -> str:
    """What the rows of an entity graph in the catalog are marked with. No collection can be called so."""
    return f"{collection}#{build}" if build else collection


def remove_former(data_dir: Path, collection: str, builds: Mapping[str, int]) -> None:
    """Removes the folders of indexes that others have taken the place of, or that were never finished."""
    kept = {folder(data_dir, collection, leg, build).name for leg, build in builds.items()}
    parent = data_dir / INDEXES / collection
    for path in [*parent.iterdir()] if parent.is_dir() else []:
        if path.is_dir() and _OURS.fullmatch(path.name) and path.name not in kept:
            shutil.rmtree(path)
            for beside in parent.glob(f"{path.name}.*"):
                beside.unlink()
