"""The folders of an embedded Qdrant collection: which shard counts, what it was made with, whether it is whole, and
whether there is room for more.

Knows names and sizes, and opens no shard.
"""

import json
import os
import shutil
from pathlib import Path

from leadline.errors import StoreError
from leadline.stores import index_files, room
from leadline.stores.qdrant_engine import Shape

FORMAT = 1
SHARD = "shard-"
PART = ".part"
SEAL = "seal.json"
# Left on the disk before records are written, and before less is: on opening, for a deletion, for an index.
WRITE_MB, TOUCH_MB = 64, 16
BLOCK = 512


def shards(folder: Path) -> list[str]:
    """The names of the whole shards, the one that counts last. There are two after a crash in the midst of a clear."""
    names = [path.name for path in folder.glob(f"{SHARD}*") if _number(path.name)]
    return sorted(names, key=_number)


def leftovers(folder: Path) -> list[str]:
    """The names of shards that were being made or removed."""
    return [path.name for path in folder.glob(f"{SHARD}*{PART}")]


def after(shard: str) -> str:
    """The name of the shard that follows."""
    return f"{SHARD}{_number(shard) + 1}"


def write_shape(shard: Path, shape: Shape) -> None:
    """Notes what the shard is made with."""
    manifest: dict[str, str | int] = {"backend": "qdrant", "format": FORMAT}
    index_files.write_manifest(shard, {**manifest, "metric": shape.metric, "dimension": shape.dimension})


def read_shape(shard: Path) -> Shape:
    """What the shard was made with. Raises StoreDamaged, or ManifestMismatch for another format."""
    index_files.check_manifest(shard, {"backend": "qdrant", "format": FORMAT})
    found = json.loads((shard / index_files.MANIFEST).read_bytes())
    try:
        return Shape(str(found["metric"]), int(found["dimension"]))
    except (KeyError, TypeError, ValueError) as error:
        raise index_files.damaged(shard, f"{index_files.MANIFEST} is not a manifest ({error})") from error


def write_seal(shard: Path) -> None:
    """Notes the size of every file of a closed shard."""
    index_files.write_atomically(shard / SEAL, json.dumps(_sizes(shard)).encode())


def check_seal(shard: Path) -> None:
    """Raises StoreDamaged if a file is gone or shorter than when the shard was closed; without a seal it wasn't."""
    try:
        sealed = {str(name): int(size) for name, size in json.loads((shard / SEAL).read_bytes()).items()}
    except FileNotFoundError:
        return
    except (ValueError, TypeError, AttributeError) as error:
        raise index_files.damaged(shard, f"{SEAL} is not a seal ({error})") from error
    sizes = _sizes(shard)
    for name, size in sealed.items():
        if name not in sizes:
            raise index_files.damaged(shard, f"{name} is missing")
        if sizes[name] < size:
            raise index_files.damaged(shard, f"{name} is cut short, {sizes[name]} bytes of {size}")


def break_seal(shard: Path) -> None:
    """Takes the seal off, for good, before anything is written."""
    (shard / SEAL).unlink(missing_ok=True)
    _wait_for_disk(shard)


def rename(old: Path, new: Path) -> None:
    """Renames a folder; after a crash it has one name or the other, after this call the new one."""
    old.rename(new)
    _wait_for_disk(new.parent)


def ensure_room(folder: Path, megabytes: int) -> None:
    """Raises StoreError if the disk of `folder` has less than that left.

    The engine writes into mapped files that have no room on the disk yet: where there is none, the process dies.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    lacking = room.lacking(nearest, megabytes * 2**20)
    if lacking:
        raise StoreError(
            f"The disk of {folder} is full: {lacking}, and Qdrant needs {megabytes}; nothing was written.",
            hint="Make room on it.",
        )


def has_room_for_another(shard: Path) -> bool:
    """Whether the disk has room for the shard a second time, as when it is written anew."""
    used = sum(path.stat().st_blocks * BLOCK for path in shard.rglob("*") if path.is_file())
    return shutil.disk_usage(shard).free > used + WRITE_MB * 2**20


def _number(name: str) -> int:
    """The number of a whole shard; 0 for what isn't one."""
    number = name.removeprefix(SHARD)
    return int(number) if number.isdecimal() else 0


def _sizes(shard: Path) -> dict[str, int]:
    files = (path for path in shard.rglob("*") if path.is_file() and path.name != SEAL)
    return {path.relative_to(shard).as_posix(): path.stat().st_size for path in files}


def _wait_for_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
