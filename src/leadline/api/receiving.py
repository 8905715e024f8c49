"""A multipart body read as it comes: files go to disk piece by piece, and a limit ends it where it is passed.

Knows the form of a body and the limits of a file. Doesn't know what becomes of the files.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from leadline.config import Settings
from leadline.errors import UploadRefused, UploadTooLarge
from leadline.ingest.uploads import clean_name
from leadline.stores.catalog import Catalog
from leadline.stores.uploads import Incoming

FIELD: Final = "files"
_PIECE: Final = 1 << 20  # bytes given to the disk at once
_HEADER: Final = 10_000  # bytes of a header of a part: a name of 2,000 characters, whatever its script, has room
_HEADERS: Final = 32  # of a part
_SHOWN: Final = 60  # characters of a client's own words in an error
# As browsers write what can't stand between quotes.
_ESCAPES: Final = {"%22": '"', "%0D": "\r", "%0A": "\n"}
_ESCAPED: Final = re.compile("|".join(_ESCAPES), re.IGNORECASE)
# As some libraries write a name beyond ASCII, although forms aren't to have it so.
_EXTENDED: Final = re.compile(r"""filename\*\s*=\s*"?(utf-8|iso-8859-1)'[^']*'([^;"\s]+)""", re.IGNORECASE)


@dataclass(slots=True)
class ReceivedFile:
    """A file of an upload. `name` is its label."""

    name: str
    incoming: Incoming


@asynccontextmanager
async def received_files(request: Request, catalog: Catalog, settings: Settings) -> AsyncIterator[list[ReceivedFile]]:
    """The files of a multipart body, on disk. Those that nobody kept are removed at the end of the block.

    Raises UploadRefused, UploadTooLarge, StoreError; ClientDisconnect when the client goes away.
    """
    with ExitStack() as stack:
        reading = _Reading(catalog, settings, stack)
        parser = _parser(request, reading.body)
        async for piece in request.stream():
            try:
                parser.write(piece)
            except FormParserError as error:
                raise _no_form() from error
            await reading.take()
        if not reading.body.whole:
            raise UploadRefused("The upload broke off before its end.", hint="Send it again.")
        if not reading.files:
            raise UploadRefused("The upload holds no file.", hint=f"Send each in a field called `{FIELD}`.")
        yield reading.files


@dataclass(slots=True)
class _Body:
    """What the parser said since it was last asked: a new part with its headers, bytes of it, its end."""

    told: list[dict[bytes, bytes] | bytes | None] = field(default_factory=list)
    whole: bool = False
    _headers: dict[bytes, bytes] = field(default_factory=dict)
    _name: bytes = b""
    _value: bytes = b""

    def callbacks(self) -> dict[str, object]:
        """What the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": lambda: self.told.append(self._headers),
            "on_part_data": lambda data, start, end: self.told.append(bytes(data[start:end])),
            "on_part_end": lambda: self.told.append(None),
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._headers = {}

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        if len(self._value) > _HEADER:
            raise UploadRefused(
                f"The name of a file takes more than {_HEADER:,} bytes.", hint="Give the file a shorter name."
            )

    def _header_end(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def _end(self) -> None:
        self.whole = True


class _Reading:
    """Puts what the parser says on disk, and keeps to the limits."""

    def __init__(self, catalog: Catalog, settings: Settings, stack: ExitStack) -> None:
        self.body = _Body()
        self.files: list[ReceivedFile] = []
        self._catalog = catalog
        self._settings = settings
        self._stack = stack
        self._waiting = bytearray()

    async def take(self) -> None:
        """Works through what came."""
        told, self.body.told = self.body.told, []
        for each in told:
            if isinstance(each, dict):
                await asyncio.to_thread(self._begin, each)
            elif each is None:
                await asyncio.to_thread(self._end)
            else:
                self._waiting += each
                self._check_size()
                if len(self._waiting) >= _PIECE:
                    await asyncio.to_thread(self._write)

    def _begin(self, headers: dict[bytes, bytes]) -> None:
        name = self._name_of(headers)
        if len(self.files) == self._settings.max_upload_files:
            raise UploadTooLarge(
                f"An upload may have {self._settings.max_upload_files:,} files.", hint="Send the others afterwards."
            )
        if any(file.name == name for file in self.files):
            raise UploadRefused(
                f"Two files of this upload are both called {name}.", hint="Rename one, or one would replace the other."
            )
        self.files.append(ReceivedFile(name, self._stack.enter_context(Incoming(self._catalog))))

    def _name_of(self, headers: dict[bytes, bytes]) -> str:
        _, options = parse_options_header(headers.get(b"content-disposition"))
        field_name = _text(options.get(b"name", b""))
        if field_name != FIELD:
            raise UploadRefused(
                f"There is no field {field_name[:_SHOWN]!r}.", hint=f"Files go in fields called `{FIELD}`."
            )
        given = _text(options.get(b"filename", b""))
        if not given and (extended := _EXTENDED.search(_text(headers[b"content-disposition"]))):
            return clean_name(unquote(extended[2], encoding=extended[1]))
        return clean_name(_ESCAPED.sub(lambda found: _ESCAPES[found[0].upper()], given))

    def _check_size(self) -> None:
        file, most = self.files[-1], self._settings.max_file_mb
        if file.incoming.bytes + len(self._waiting) > most * 1_000_000:
            raise UploadTooLarge(
                f"{file.name} is larger than a file may be, {most:g} MB.",
                hint="Split it, or raise LEADLINE_MAX_FILE_MB where the server runs.",
            )

    def _write(self) -> None:
        piece, self._waiting = bytes(self._waiting), bytearray()
        self.files[-1].incoming.write(piece)

    def _end(self) -> None:
        self._write()
        self.files[-1].incoming.close()


def _parser(request: Request, body: _Body) -> MultipartParser:
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise _no_form()
    told: Any = body.callbacks()
    try:
        return MultipartParser(boundary, told, max_header_count=_HEADERS, max_header_size=2 * _HEADER)
    except FormParserError as error:  # a boundary that is too long
        raise _no_form() from error


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _no_form() -> UploadRefused:
    return UploadRefused(
        "The body is not multipart/form-data.", hint=f"Send the files as a form, each in a field called `{FIELD}`."
    )
