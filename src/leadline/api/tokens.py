"""Tokens: who may ask a server, what each may see. Kept as hashes; a token itself is shown once, when it is made.

Knows the file. Doesn't know requests.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from leadline.config import COLLECTION_PATTERN
from leadline.errors import ConfigError, StoreDamaged

FILE: Final = "tokens.json"
NAME_PATTERN: Final = r"[a-z0-9][a-z0-9_-]{0,31}"
RESERVED: Final = "local"  # whoever is at the machine
LOCK_S: Final = 10


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token. `collections`: those that it may see; None: all."""

    name: str
    sha256: str
    collections: tuple[str, ...] | None
    may_write: bool
    created_at: str


def read_tokens(folder: Path) -> tuple[Token, ...] | None:
    """The tokens of a data folder; None where there never was one. Raises StoreDamaged."""
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, error) from None
    try:
        return tuple(_token(each) for each in json.loads(text)["tokens"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from None


def add_token(folder: Path, name: str, collections: Iterable[str] | None, *, may_write: bool) -> str:
    """Makes a token and returns it: it can't be had again. Raises ConfigError, StoreDamaged."""
    if not re.fullmatch(NAME_PATTERN, name) or name == RESERVED:
        raise ConfigError(
            f"{name!r} can't be the name of a token.",
            hint=f"Small letters, digits, - and _; at most 32 of them, and not {RESERVED}.",
        )
    seen = None if collections is None else tuple(sorted(set(collections)))
    for collection in seen or ():
        if not re.fullmatch(COLLECTION_PATTERN, collection):
            raise ConfigError(
                f"{collection!r} can't be the name of a collection.",
                hint="Letters, digits, - and _; at most 63 of them.",
            )
    secret = f"leadline_{secrets.token_urlsafe(32)}"
    with _alone(folder):
        kept = read_tokens(folder) or ()
        if any(token.name == name for token in kept):
            raise ConfigError(
                f"There is a token {name} already.", hint=f"`leadline tokens rm {name}` ends it; then add it again."
            )
        made = Token(name, digest(secret), seen, may_write, datetime.now(UTC).isoformat(timespec="seconds"))
        _write(folder, (*kept, made))
    return secret


def remove_token(folder: Path, name: str) -> int:
    """Ends a token; how many are left. Raises ConfigError, StoreDamaged.

    With none left nobody is let in: only a data folder that never had a token is open to this machine.
    """
    with _alone(folder):
        kept = read_tokens(folder) or ()
        left = tuple(token for token in kept if token.name != name)
        if len(left) == len(kept):
            raise ConfigError(f"There is no token {name}.", hint="`leadline tokens ls` lists them.")
        _write(folder, left)
    return len(left)


def digest(secret: str) -> str:
    """What is kept of a token: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def matching(tokens: Iterable[Token], secret: str) -> Token | None:
    """The token that this is. Takes as long whichever it is, or none."""
    given, found = digest(secret), None
    for token in tokens:
        if hmac.compare_digest(given, token.sha256):
            found = token
    return found


def _token(kept: dict[str, Any]) -> Token:
    token = Token(**{**kept, "collections": None if kept["collections"] is None else tuple(kept["collections"])})
    typed = isinstance(token.may_write, bool) and all(isinstance(c, str) for c in token.collections or ())
    if not typed or not re.fullmatch(NAME_PATTERN, token.name) or not re.fullmatch("[0-9a-f]{64}", token.sha256):
        raise ValueError("not a token")
    return token


def _damaged(path: Path, error: Exception) -> StoreDamaged:
    return StoreDamaged(
        f"The tokens in {path} can't be read: {type(error).__name__}.",
        hint="Put the file back from a copy, or remove it and add the tokens again.",
    )


def _alone(folder: Path) -> FileLock:
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{FILE}.lock", timeout=LOCK_S)


def _write(folder: Path, tokens: Iterable[Token]) -> None:
    """Whole or not at all, and for the owner's eyes."""
    new = folder / f"{FILE}.new"
    with suppress(FileNotFoundError):
        new.unlink()
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"tokens": [asdict(token) for token in tokens]}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / FILE)
