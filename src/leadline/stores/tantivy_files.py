"""Whether the files of a tantivy index are whole, by the checksums it writes and doesn't check itself.

Each file of a segment ends with a footer: its JSON, the JSON's length and a magic number. Reading a cut file through
tantivy can end the process (it maps files into memory), so they are read here first: about a second a gigabyte.
"""

import json
import struct
import zlib
from pathlib import Path

from leadline.stores.index_files import damaged

META = "meta.json"
EXTENSIONS = ("fast", "fieldnorm", "idx", "pos", "store", "term")
FOOTER_END = struct.Struct("<II")
MAGIC = 1337
# A writer may merge segments away while they are looked at; then there is a new meta.json to look at.
TRIES = 5


def check(folder: Path) -> bool:
    """True for a whole index, False where there is none yet. Raises StoreDamaged."""
    reason = ""
    for _ in range(TRIES):
        meta = _meta(folder)
        if meta is None:
            return False
        reason = _first_fault(folder, meta)
        if not reason:
            return True
        if meta == _meta(folder):
            break
    raise damaged(folder, reason)


def _meta(folder: Path) -> bytes | None:
    try:
        return (folder / META).read_bytes()
    except FileNotFoundError:
        if folder.is_dir() and any(path.suffix.removeprefix(".") in EXTENSIONS for path in folder.iterdir()):
            raise damaged(folder, f"{META} is missing") from None
        return None


def _first_fault(folder: Path, meta: bytes) -> str:
    try:
        segments = json.loads(meta)["segments"]
        names = [name for segment in segments for name in _file_names(segment)]
    except (ValueError, KeyError, TypeError) as error:
        return f"{META} is not an index's ({error})"
    return next(filter(None, (_fault(folder / name) for name in names)), "")


def _file_names(segment: dict[str, object]) -> list[str]:
    stem = str(segment["segment_id"]).replace("-", "")
    names = [f"{stem}.{extension}" for extension in EXTENSIONS]
    deletes = segment["deletes"]
    if isinstance(deletes, dict):
        names.append(f"{stem}.{deletes['opstamp']}.del")
    return names


def _fault(path: Path) -> str:
    try:
        content = path.read_bytes()
        length, magic = FOOTER_END.unpack(content[-FOOTER_END.size :])
        start = len(content) - FOOTER_END.size - length
        footer = json.loads(content[start : start + length])
        whole = magic == MAGIC and zlib.crc32(memoryview(content)[:start]) == footer["crc"]
    except FileNotFoundError:
        return f"{path.name} is missing"
    except (struct.error, ValueError, KeyError, TypeError):
        whole = False
    return "" if whole else f"{path.name} is cut short or changed"
