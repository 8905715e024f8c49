"""Uploads before they are documents: the names they are given, and their bytes beside the catalog."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline import load_settings, open_library
from leadline.errors import StoreError, UploadRefused
from leadline.ingest.uploads import MAX_NAME, clean_name, uploaded_file
from leadline.knowledge.identity import source_id
from leadline.stores.catalog import Catalog
from leadline.stores.catalog_jobs import add_job
from leadline.stores.uploads import FOLDER, Incoming, drop_unused, folder_of, path_of, size_of, tidy


@pytest.mark.parametrize(
    ("given_name", "label"),
    [
        ("notes.md", "notes.md"),
        ("../../x.txt", "x.txt"),
        ("..\\x.txt", "x.txt"),
        ("/etc/x", "x"),
        ("C:\\dir\\a.txt", "a.txt"),
        ("a\0b.txt", "ab.txt"),
        ("a\r\nb.txt", "ab.txt"),
        ("CON", "CON"),
        ("  two   blanks .md ", "two blanks .md"),
        ("\u202etxt.exe", "txt.exe"),
        ("caf\u0065\u0301.md", "caf\u00e9.md"),
        ("文書.pdf", "文書.pdf"),
        ("می\u200cخواهم.txt", "می\u200cخواهم.txt"),
        ("<b>.md", "<b>.md"),
        ("folder/", "folder"),
    ],
)
def test_a_name_is_only_a_label(given_name: str, label: str) -> None:
    """Its last part in one spelling, without folders and without what can't be seen; the suffix stays."""
    assert clean_name(given_name) == label


@pytest.mark.parametrize("name", ["", "..", "../..", "\0", " . ", "\u200b\u202e", "///"])
def test_a_name_of_nothing_is_refused(name: str) -> None:
    """There must be something left to call the document."""
    with pytest.raises(UploadRefused, match="no name"):
        clean_name(name)


def test_a_long_name_is_cut_and_still_another() -> None:
    """Three hundred characters come down to the limit, with their suffix; names that begin alike stay apart."""
    one, other = (clean_name(f"{'あ' * 300}{end}.md") for end in "xy")
    assert one != other
    assert max(len(one), len(other)) <= MAX_NAME
    assert one.endswith(".md")
    assert clean_name(one) == one


@given(st.text(max_size=400))
def test_no_name_leads_anywhere(name: str) -> None:
    """Whatever is given, a label has no separator and no control character, isn't too long, and stays as it is."""
    try:
        label = clean_name(name)
    except UploadRefused:
        return
    assert not set("/\\\0\r\n") & set(label)
    assert label not in (".", "..")
    assert 0 < len(label) <= MAX_NAME
    assert clean_name(label) == label


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """An open catalog."""
    catalog = Catalog(tmp_path / "data")
    catalog.open()
    yield catalog
    catalog.close()


def receive(catalog: Catalog, data: bytes, name: str = "a.md") -> str:
    """Uploads bytes: the hash under which they are."""
    with Incoming(catalog) as incoming:
        incoming.write(data)
        incoming.close()
        add_job(catalog, "c", [uploaded_file("c", name, incoming)], incoming.keep)
        return incoming.file_hash


def names(catalog: Catalog) -> list[str]:
    """What lies in the folder of uploads."""
    return sorted(path.name for path in folder_of(catalog).iterdir())


def test_bytes_are_kept_under_their_hash(catalog: Catalog) -> None:
    """In a folder and a file that nobody else may read; the document is the one of that name."""
    file_hash = receive(catalog, b"deep water")
    assert file_hash == hashlib.sha256(b"deep water").hexdigest()
    path = path_of(catalog, file_hash)
    assert path.read_bytes() == b"deep water"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert size_of(catalog, file_hash) == 10
    assert names(catalog) == [file_hash]
    with Incoming(catalog) as incoming:
        assert uploaded_file("c", "a.md", incoming).doc_id == source_id("c", "a.md")


def test_what_is_not_kept_leaves_nothing(catalog: Catalog) -> None:
    """Not of an upload that was refused, nor of one that broke off."""

    def break_off() -> None:
        with Incoming(catalog) as incoming:
            incoming.write(b"half")
            raise ValueError("broke off")

    with pytest.raises(ValueError, match="broke off"):
        break_off()
    with Incoming(catalog) as incoming:
        incoming.write(b"whole")
        incoming.close()
    assert names(catalog) == []


def test_a_folder_that_can_not_be_written_is_an_error(catalog: Catalog) -> None:
    """It is said, and nothing is half there."""
    folder_of(catalog).write_text("in the way")
    with pytest.raises(StoreError, match="could not be stored"), Incoming(catalog):
        pass


def test_no_hash_leads_out_of_the_folder(catalog: Catalog) -> None:
    """What somebody else calls the hash of a document is never a path here."""
    outside = catalog.path
    assert size_of(catalog, f"../{outside.name}") is None
    assert size_of(catalog, str(outside)) is None
    assert size_of(catalog, "") is None
    assert outside.is_file()


def test_bytes_that_a_job_needs_are_not_dropped(catalog: Catalog) -> None:
    """Others are, and dropping twice is legal."""
    needed = receive(catalog, b"needed")
    orphan = path_of(catalog, hashlib.sha256(b"orphan").hexdigest())
    orphan.write_bytes(b"orphan")
    assert drop_unused(catalog, [needed, orphan.name]) == 1
    assert drop_unused(catalog, [orphan.name]) == 0
    assert size_of(catalog, needed) == 6


def test_a_start_removes_what_a_killed_process_left(catalog: Catalog, tmp_path: Path) -> None:
    """Files half received, and bytes that nobody needs; not what a living process is just receiving."""
    program = (
        "import os, sys; from pathlib import Path; from leadline.stores.catalog import Catalog;"
        "from leadline.stores.uploads import Incoming;"
        "Incoming(Catalog(Path(sys.argv[1]))).__enter__().write(b'half'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "data"], check=False, timeout=60)
    path_of(catalog, "0" * 64).write_bytes(b"orphan")
    (folder_of(catalog) / "README").write_text("somebody's own")
    assert len(names(catalog)) == 3
    with Incoming(catalog) as incoming:
        incoming.write(b"on its way")
        assert tidy(catalog) == 2
        assert len(names(catalog)) == 2
        incoming.close()


async def test_bytes_go_with_the_last_document_that_has_them(tmp_path: Path) -> None:
    """However that is deleted, and by whomever: here the second of two documents, in two collections."""
    settings = load_settings(data_dir=tmp_path / "data")
    data = b"The tide turns at six."
    async with open_library(settings) as library:
        kept = path_of(library.catalog, hashlib.sha256(data).hexdigest())
        kept.parent.mkdir()
        kept.write_bytes(data)
        bases = [await library.collection(name, create=True) for name in ("one", "two")]
        for base in bases:
            await base.add_documents([data.decode()])
        first, second = [(await base.list_sources())[0] for base in bases]
        assert first.file_hash == second.file_hash == kept.name
        await bases[0].delete(first.doc_id)
        assert kept.exists()
        await bases[1].clear()
        assert not kept.exists()
    assert (tmp_path / "data" / FOLDER).is_dir()
