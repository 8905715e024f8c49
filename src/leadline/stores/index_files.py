"""The small files that stand beside an index: written whole or not at all, and read with suspicion."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from leadline.errors import ManifestMismatch, StoreDamaged, StoreError

MANIFEST = "leadline.json"


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces `path` so that after a crash it holds the old or the new content, never a part."""
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_manifest(folder: Path, manifest: Mapping[str, str | int]) -> None:
    """Notes what the index in `folder` is built with."""
    write_atomically(folder / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode())


def check_manifest(folder: Path, expected: Mapping[str, str | int]) -> None:
    """Raises ManifestMismatch if the index in `folder` was built otherwise, StoreDamaged if that can't be read."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
        differing = {key: found[key] for key, value in expected.items() if found[key] != value}
    except FileNotFoundError:
        raise damaged(folder, f"{MANIFEST} is missing") from None
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(folder, f"{MANIFEST} is not a manifest ({error})") from error
    if differing:
        wanted = {key: expected[key] for key in differing}
        raise ManifestMismatch(
            f"The index in {folder} was built with {differing}, the settings say {wanted}.",
            hint="Set it back, or use another collection.",
        )


def damaged(place: Path, reason: str) -> StoreDamaged:
    """The error for an index that can't be read."""
    return StoreDamaged(
        f"The index at {place} can't be read: {reason}.",
        hint="Nothing in it was changed. Move its folder away; `leadline verify --repair` builds it from the catalog.",
    )


def unusable(place: Path, error: OSError) -> StoreError:
    """The error for a folder that the system lets nobody read from or write to, or whose disk is full."""
    return StoreError(
        f"The index at {place} could not be used: {error.strerror or error}. Nothing of what it held is lost.",
        hint="Make room on its disk, give this user the right to write there, or set another data folder.",
    )
