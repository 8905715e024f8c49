"""Whether a disk takes what is about to be written, for engines that can't cope with one that doesn't."""

import os
import shutil
import tempfile
from pathlib import Path

try:
    import resource
except ImportError:  # Windows sets no such limits
    LIMIT = None
else:
    LIMIT = resource.RLIMIT_FSIZE


def lacking(folder: Path, size: int, *, largest: int = 0) -> str | None:
    """Why `size` more bytes can't be written to `folder`, or a file there can't come to `largest`; None if they can.

    The bytes are taken for a moment, since a quota shows in no other way. That is done in 0.1 ms by most file systems;
    those that can't set bytes aside write into each block.
    """
    free = shutil.disk_usage(folder).free
    if free < size:
        return f"{free // 2**20} MiB are left"
    limit = resource.getrlimit(LIMIT)[0] if LIMIT is not None else -1
    if 0 <= limit < largest:
        return f"no file may grow beyond {limit / 2**20:.1f} MiB"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size if limit < 0 else min(size, limit))
    except OSError as error:
        return error.strerror or str(error)
    return None
