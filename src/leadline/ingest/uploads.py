"""What is made of the name somebody gives an upload, and which document an upload is.

The name is only a label: it names the document, tells the format by its suffix, and is never a path. Pure functions.
"""

import hashlib
import unicodedata
from pathlib import PurePosixPath
from typing import Final

from leadline.errors import UploadRefused
from leadline.knowledge.identity import source_id
from leadline.stores.catalog_job_rows import UploadedFile
from leadline.stores.uploads import Incoming

MAX_NAME: Final = 200  # characters
_MAX_SUFFIX: Final = 20
_JOINERS: Final = "\u200c\u200d"  # part of the spelling in some scripts
_MARK: Final = 8  # digits that tell two long names apart which begin alike


def clean_name(name: str) -> str:
    """The label for a file of this name: its last part, without what can't be seen, in one spelling, not too long.

    The suffix stays. Raises UploadRefused where nothing is left.
    """
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    seen = "".join(char for char in unicodedata.normalize("NFC", last) if _is_seen(char))
    label = " ".join(seen.split())
    if label.strip(". ") == "":
        raise UploadRefused("A file has no name.", hint="Give each file a name with a suffix that tells its format.")
    return label if len(label) <= MAX_NAME else _shortened(label)


def uploaded_file(collection: str, name: str, received: Incoming) -> UploadedFile:
    """The received file as a job takes it: the document is that of this name in this collection, old or new."""
    return UploadedFile(source_id(collection, name), name, received.file_hash, received.bytes)


def _is_seen(char: str) -> bool:
    """Neither a control character nor one that only changes how others are shown, such as their direction."""
    return char in _JOINERS or unicodedata.category(char) not in ("Cc", "Cf", "Cs")


def _shortened(label: str) -> str:
    suffix = PurePosixPath(label).suffix
    suffix = suffix if len(suffix) <= _MAX_SUFFIX else ""
    mark = "~" + hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    return label[: MAX_NAME - len(mark) - len(suffix)].rstrip() + mark + suffix
