"""Which files lie under the paths a person names, and what each is called inside its collection.

Knows folders, links and suffixes. Opens no file.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from leadline.errors import ConfigError, UnreadableFile
from leadline.ingest.loaders import is_supported

# What a data folder holds; named here again, since importing the catalog takes a while.
DATA_FOLDER = ("catalog.db", "indexes")


def iter_files(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The files to ingest under `paths`, each with its URI, in the order of `paths` and sorted inside each folder.

    A file given by name comes whatever its suffix, so that its refusal is seen; in a folder only supported ones come.
    The URI is the path relative to the folder given, with `/`; for a file given by name, its name. Hidden files and
    folders are skipped, data folders of Leadline too, and so are links that lead out of the folder. Raises
    UnreadableFile, before the first file, for a path that isn't there, and ConfigError when two files would share a
    URI: one would replace the other.
    """
    roots = [*paths]
    for root in roots:
        if not root.exists():
            raise UnreadableFile(f"There is no file or folder {root.name!r}.", hint="Check the path.")
    seen: dict[str, Path] = {}
    for root in roots:
        for path, uri in _under(root):
            other = seen.setdefault(uri, path)
            if other.resolve() != path.resolve():
                raise ConfigError(
                    f"Two files would both be called {uri!r}: one would replace the other.",
                    hint="Ingest their common folder, or each into a collection of its own.",
                )
            if other is path:
                yield path, uri


def unread_kinds(paths: Iterable[Path]) -> Counter[str]:
    """Suffix → number, of the files in the folders of `paths` that are left out because no loader reads their kind."""
    names = (path.name for root in paths for path in _visible(root))
    return Counter(Path(name).suffix.lower() or "no suffix" for name in names if not is_supported(name))


def _under(root: Path) -> Iterator[tuple[Path, str]]:
    if root.is_dir():
        yield from _walk(root)
    else:
        yield root, root.name


def _walk(root: Path) -> Iterator[tuple[Path, str]]:
    inside = root.resolve()
    for path in _visible(root):
        wanted = is_supported(path.name) and path.is_file()
        if wanted and path.resolve().is_relative_to(inside):
            yield path, path.relative_to(root).as_posix()


def _visible(root: Path) -> Iterator[Path]:
    """What stands in a folder and those below it, but for what is hidden."""
    for folder, folders, names in os.walk(root):  # links to folders are not followed
        if {*DATA_FOLDER} <= {*names, *folders}:  # of Leadline: its files are no documents
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(folder) / name
