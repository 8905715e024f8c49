"""Walking folders."""

from pathlib import Path

import pytest

from leadline.errors import ConfigError, UnreadableFile
from leadline.ingest.files import DATA_FOLDER, iter_files
from leadline.knowledge.places import INDEXES
from leadline.stores.catalog import FILE_NAME


def write(root: Path, *names: str) -> None:
    """Small files of these names."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def test_files_come_sorted_with_uris_relative_to_the_folder(tmp_path: Path) -> None:
    """The order doesn't depend on the file system, and no absolute path gets out."""
    write(tmp_path, "b.md", "a/z.txt", "a/b/c.csv", "a.html")

    assert [uri for _, uri in iter_files([tmp_path])] == ["a.html", "b.md", "a/z.txt", "a/b/c.csv"]


def test_hidden_and_unsupported_files_are_passed_over(tmp_path: Path) -> None:
    """Only what a loader reads comes out of a folder; a file given by name comes anyway."""
    write(tmp_path, ".git/config.txt", ".secret.txt", "photo.png", "ok.txt")

    assert [uri for _, uri in iter_files([tmp_path])] == ["ok.txt"]
    assert [uri for _, uri in iter_files([tmp_path / "photo.png"])] == ["photo.png"]


def test_a_data_folder_among_the_documents_is_passed_over(tmp_path: Path) -> None:
    """What Leadline keeps about documents is not a document, also where its folder isn't hidden."""
    (tmp_path / "kept" / "indexes").mkdir(parents=True)
    (tmp_path / "kept" / "catalog.db").touch()
    (tmp_path / "kept" / "indexes" / "meta.txt").write_text("x", encoding="utf-8")
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "a.txt").write_text("x", encoding="utf-8")
    assert [uri for _, uri in iter_files([tmp_path])] == ["indexes/a.txt"]
    assert DATA_FOLDER == (FILE_NAME, INDEXES)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    """A link can't pull in a file from elsewhere, nor make the walk endless."""
    write(tmp_path, "outside/secret.txt", "inside/ok.txt")
    root = tmp_path / "inside"
    (root / "leak.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    (root / "alias.txt").symlink_to(root / "ok.txt")

    assert [uri for _, uri in iter_files([root])] == ["alias.txt", "ok.txt"]


def test_a_missing_path_is_refused_before_the_first_file(tmp_path: Path) -> None:
    """Nothing is ingested when one of the paths is mistyped."""
    write(tmp_path, "ok.txt")
    with pytest.raises(UnreadableFile, match="nowhere"):
        next(iter_files([tmp_path, tmp_path / "nowhere"]))


def test_two_files_of_one_uri_are_refused(tmp_path: Path) -> None:
    """One would silently replace the other. The same file named twice comes once."""
    write(tmp_path, "a/readme.md", "b/readme.md")
    with pytest.raises(ConfigError, match=r"readme\.md"):
        list(iter_files([tmp_path / "a", tmp_path / "b"]))

    assert len(list(iter_files([tmp_path / "a", tmp_path / "a" / "readme.md"]))) == 1
