"""Which loader reads a file, and which files are refused."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.errors import EmptyFile, FileTooLarge, UnreadableFile, UnsupportedFile
from leadline.ingest.extracted import Limits
from leadline.ingest.loaders import load


@pytest.mark.parametrize("data", [b"", b"   \n\t \r\n", b"\xef\xbb\xbf", "\u200b\u200b".encode()])
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv"])
def test_a_file_without_text_is_refused(name: str, data: bytes) -> None:
    """0 bytes, blanks and invisible characters are nothing to search."""
    with pytest.raises(EmptyFile):
        load(data, name)


def test_an_unknown_suffix_lists_what_is_supported() -> None:
    """The message helps to choose another format."""
    with pytest.raises(UnsupportedFile, match=r"\.docx.*\.pdf"):
        load(b"x", "talk.key")
    with pytest.raises(UnsupportedFile, match="without a suffix"):
        load(b"x", "README")


def test_a_file_that_isnt_what_its_name_says_is_refused(make_pdf: Callable[..., bytes]) -> None:
    """A PDF called .md isn't read as text, nor text called .pdf as a PDF."""
    for data, name in (
        (make_pdf(["A"]), "a.md"),
        (b"# Title\n", "a.pdf"),
        (b"PK\x03\x04zzz", "a.txt"),
        (b"hi", "a.docx"),
    ):
        with pytest.raises(UnreadableFile, match="name"):
            load(data, name)


def test_suffixes_are_read_in_any_case_and_from_any_system() -> None:
    """NOTES.TXT and a path from Windows are text files too."""
    assert load(b"hello", "NOTES.TXT").text == "hello"
    assert load(b"hello", "C:\\docs\\notes.txt").text == "hello"


def test_limits_of_bytes_and_characters_hold(tmp_path: Path) -> None:
    """A file over a limit is refused by name of the setting that raises it, not cut."""
    path = tmp_path / "big.txt"
    path.write_bytes(b"x" * 101)
    with pytest.raises(FileTooLarge, match=r"100 bytes\. .*LEADLINE_MAX_FILE_MB"):
        load(path, path.name, Limits(max_bytes=100))
    with pytest.raises(FileTooLarge, match=r"50 characters\. .*LEADLINE_MAX_CHARS"):
        load(path, path.name, Limits(max_chars=50))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_refused(tmp_path: Path) -> None:
    """Reading one would wait for a writer for ever."""
    pipe = tmp_path / "pipe.md"
    os.mkfifo(pipe)
    with pytest.raises(UnreadableFile, match="regular file"):
        load(pipe, pipe.name)


def test_a_missing_file_is_an_error_of_ours(tmp_path: Path) -> None:
    """A file that vanished is reported like any bad file, and as one that isn't there."""
    with pytest.raises(UnreadableFile, match="No such file"):
        load(tmp_path / "gone.txt", "gone.txt")
