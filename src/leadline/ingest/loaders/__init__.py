"""From a file to its text: which loader reads it, chosen by its name and checked against its first bytes.

Knows the suffixes and signatures of files. Each format has a module of its own, imported when first needed. Knows no
chunks and no stores.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path, PurePath
from stat import S_ISREG

from leadline.errors import EmptyFile, FileTooLarge, UnreadableFile, UnsupportedFile
from leadline.ingest.extracted import Extracted, Limits

Loader = Callable[[bytes, Limits], Extracted]

_PLAIN = ".txt .text .rst .adoc .org .tex .srt .vtt"
_LINES = (
    ".log .json .jsonl .ndjson .yaml .yml .toml .ini .cfg .conf .env .xml .sql .sh .py .pyi .js .ts .tsx .jsx .css "
    ".java .kt .c .h .cc .cpp .hpp .cs .go .rs .rb .php .pl .lua .r .jl .swift .scala"
)
LOADERS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(_PLAIN.split(), ("plain", "load_plain")),
    **dict.fromkeys(_LINES.split(), ("plain", "load_lines")),
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), ("markdown", "load_markdown")),
    **dict.fromkeys((".html", ".htm", ".xhtml"), ("html", "load_html")),
    **dict.fromkeys((".csv", ".tsv", ".tab", ".psv"), ("csv_table", "load_csv")),
    ".pdf": ("pdf", "load_pdf"),
    ".docx": ("docx_file", "load_docx"),
}
"""Suffix in lower case → module and function."""

_SIGNATURES = (
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"\x1f\x8b", "gzip"),
    (b"\x7fELF", "ELF"),
    (b"{\\rtf", "RTF"),
)
_EXPECTED = {".pdf": "PDF", ".docx": "zip"}


def load(source: Path | bytes, file_name: str, limits: Limits | None = None) -> Extracted:
    """The text of a file.

    Raises UnsupportedFile (no loader for this suffix), FileTooLarge, EmptyFile (0 bytes, or nothing but blanks) and
    UnreadableFile (damaged, locked, or other than its name says).
    """
    limits = limits or Limits()
    loader = _loader(file_name)
    data = read_bytes(source, limits)
    if not data:
        raise EmptyFile("The file is empty (0 bytes).")
    _check_signature(data, file_name)
    extracted = loader(data, limits)
    if len(extracted.blocks) > limits.max_blocks:
        raise FileTooLarge(f"It has more than {limits.max_blocks:,} paragraphs and rows.", hint="Split it.")
    if not extracted.text.strip():
        raise EmptyFile("The file holds no text.")
    return extracted


def read_bytes(source: Path | bytes, limits: Limits) -> bytes:
    """The bytes of a file, never more of it in memory than the limit allows."""
    if isinstance(source, bytes):
        data = source
    else:
        try:
            if not S_ISREG(source.stat().st_mode):  # to open a pipe waits for a writer, who may never come
                raise UnreadableFile("This is no regular file.", hint="Save what it gives as a file first.")
            with source.open("rb") as file:
                data = file.read(limits.max_bytes + 1)
        except OSError as error:
            hint = "" if isinstance(error, FileNotFoundError) else "Check who may read it."
            raise UnreadableFile(f"The file can't be read ({error.strerror}).", hint=hint) from error
    if len(data) > limits.max_bytes:
        raise FileTooLarge(
            f"The file is larger than {limits.max_bytes:,} bytes.", hint="Split it, or raise LEADLINE_MAX_FILE_MB."
        )
    return data


def _loader(file_name: str) -> Loader:
    suffix = suffix_of(file_name)
    if suffix not in LOADERS:
        raise UnsupportedFile(
            f"No loader for {suffix or 'a file without a suffix'}.", hint=f"Supported: {' '.join(sorted(LOADERS))}."
        )
    module, function = LOADERS[suffix]
    loader: Loader = getattr(import_module(f"{__name__}.{module}"), function)
    return loader


def suffix_of(file_name: str) -> str:
    """The suffix in lower case, with its dot. File names from Windows count too."""
    return PurePath(file_name.replace("\\", "/")).suffix.lower()


def _check_signature(data: bytes, file_name: str) -> None:
    suffix = suffix_of(file_name)
    start = data[:1024].lstrip() if suffix == ".pdf" else data[:16]
    found = next((name for signature, name in _SIGNATURES if start.startswith(signature)), None)
    expected = _EXPECTED.get(suffix)
    if suffix == ".pdf" and b"%PDF-" in data[:1024]:
        found = "PDF"
    if (expected is not None and found != expected) or (expected is None and found is not None):
        what = f"The file is {found}" if found else "The content is something else"
        raise UnreadableFile(f"{what}, not what its name ({suffix}) says.", hint="Give it the right suffix.")


def is_supported(file_name: str) -> bool:
    """Whether there is a loader for files of this name."""
    return suffix_of(file_name) in LOADERS
