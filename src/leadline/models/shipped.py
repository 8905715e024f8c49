"""Reads a weight file that belongs to the package, and only the one that was shipped."""

import hashlib
from pathlib import Path

from leadline.errors import ModelUnavailable


def read(path: Path, sha256: str) -> bytes:
    """The content of the file. Raises ModelUnavailable if it can't be read or has another hash."""
    hint = "Install leadline again: the file belongs to the package."
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelUnavailable(f"The model's file {path} can't be read: {error.strerror}.", hint=hint) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ModelUnavailable(f"The model's file {path} is not the one that was shipped.", hint=hint)
    return content
