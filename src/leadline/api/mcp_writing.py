"""The tools of the MCP server that change documents: only there where the user has allowed it.

Files are read from folders that the user has opened, and from nowhere else.
"""

import asyncio
import posixpath
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from leadline.config import COLLECTION_PATTERN
from leadline.errors import ConfigError, DocumentUnknown, IngestError, StoreError
from leadline.graph.run import App
from leadline.ingest.pipeline import File, FileRow, ingest_files
from leadline.ingest.uploads import clean_name
from leadline.knowledge import documents

CollectionName = Annotated[
    str | None, Field(pattern=COLLECTION_PATTERN, description="Collection; left out: that of the settings.")
]


class Added(BaseModel):
    """What became of a document that was put in: `added`, `replaced` or `unchanged`.

    `uri` is what it is called in its collection: a text's name with its folders, or a file's path below the opened one.
    """

    doc_id: str
    file_name: str
    uri: str
    status: str
    chunks: int
    notes: list[str]


class Removed(BaseModel):
    """A document that was deleted, and in how many conversations answers made from it went with it."""

    doc_id: str
    file_name: str
    chunks: int
    conversations: int


class WritingTools:
    """The tools that change the documents. Each raises LeadlineError."""

    def __init__(self, app: App, folders: Sequence[Path]) -> None:
        self._app = app
        self._folders = [folder.resolve() for folder in folders]

    async def add_document(
        self,
        name: Annotated[
            str | None,
            Field(
                max_length=1000,
                description="For `text`: a name with a suffix such as .md, with folders before it if need be.",
            ),
        ] = None,
        text: Annotated[str | None, Field(description="The document's text.")] = None,
        path: Annotated[
            str | None,
            Field(
                max_length=4096,
                description="Instead: a file in a folder that the user has opened, whole or from that folder on.",
            ),
        ] = None,
        collection: CollectionName = None,
    ) -> Added:
        """Put a document in: a text under a name, or a file. The one of that name, or of the file's path below the
        opened folder, is replaced."""
        if path is not None and text is None and name is None:
            row = await self._taken_in(await asyncio.to_thread(self._opened, path), collection)
        elif text is not None and name is not None and path is None:
            with tempfile.TemporaryDirectory(prefix="leadline-") as folder:
                file = File(Path(folder) / "text", _called(name), "")
                await asyncio.to_thread(file.path.write_text, text, encoding="utf-8", errors="surrogatepass")
                row = await self._taken_in(file, collection)
        else:
            raise ConfigError("A document is a `name` with its `text`, or a `path`.")
        if row.status == "replaced":
            await self._app.forget_deleted()
        notes = [*row.notes, *([f"same content as {row.copy_of}"] if row.copy_of else [])]
        return Added(
            doc_id=row.doc_id or "",
            file_name=row.file_name,
            uri=row.uri,
            status=row.status,
            chunks=row.chunks,
            notes=notes,
        )

    async def delete_document(
        self,
        document: Annotated[str, Field(min_length=1, description="Its doc_id, or its whole name or URI.")],
        collection: CollectionName = None,
    ) -> Removed:
        """Delete a document, and with it the stored answers made from it."""
        name = collection or self._app.settings.run.collection
        view = _only_one(await documents.list_documents(self._app.library, name), document)
        report = await documents.remove_document(self._app.library, view)
        conversations = await self._app.forget_deleted()
        return Removed(doc_id=view.doc_id, file_name=view.file_name, chunks=report.chunks, conversations=conversations)

    def _opened(self, path: str) -> File:
        """The file, called as the command line calls it when it takes in the opened folder. Links are followed first.

        A path that isn't whole is taken from each folder in turn. Raises ConfigError.
        """
        tried = [_resolved(folder / path, path) for folder in self._folders]
        inside = [(wanted, folder) for wanted in tried if (folder := self._folder_of(wanted)) is not None]
        if not inside:
            opened = ", ".join(map(str, self._folders)) or "none; `leadline mcp --allow-write --add-from DIR` opens one"
            raise ConfigError(f"{path!r} is in no folder that may be read from.", hint=f"Open folders: {opened}.")
        for wanted, folder in inside:
            if _is_file(wanted):
                uri = wanted.relative_to(folder).as_posix()
                self._refuse_a_second(uri, folder)
                return File(wanted, uri, "")
        raise ConfigError(f"There is no file {path!r}.")

    def _folder_of(self, wanted: Path) -> Path | None:
        return next((folder for folder in self._folders if wanted.is_relative_to(folder)), None)

    def _refuse_a_second(self, uri: str, folder: Path) -> None:
        """Of two files at one path below two folders the first folder's has the name: the other would replace it."""
        for earlier in self._folders[: self._folders.index(folder)]:
            other = earlier / uri
            if _is_file(other) and _resolved(other, uri) == other:  # a link is called as what it leads to
                raise ConfigError(
                    f"Two files would both be called {uri!r}: one would replace the other.",
                    hint=f"That of {earlier} has the name; open the folder that holds both instead.",
                )

    async def _taken_in(self, file: File, collection: str | None) -> FileRow:
        base = await self._app.library.collection(collection or self._app.settings.run.collection, create=True)
        [row] = [row async for row in ingest_files(base, [file], self._app.settings)]
        if row.error is not None:
            raise IngestError(row.error)
        return row


def _called(name: str) -> str:
    """What a text is called: its name below the folders that stand in it, each cleaned as an upload's name is.

    Raises UploadRefused where nothing is left.
    """
    *folders, last = posixpath.normpath("/" + name.replace("\\", "/")).split("/")
    return "/".join([*(clean_name(folder) for folder in folders if folder), clean_name(last)])


def _resolved(path: Path, said: str) -> Path:
    """The path without links. Raises ConfigError where none can be called so: a NUL, a link that leads to itself."""
    try:
        return path.resolve()
    except (ValueError, OSError, RuntimeError) as error:
        raise ConfigError(f"{said!r} can't be the path of a file.") from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that this user may not look into
        return False


def _only_one(listed: Sequence[documents.DocumentView], wanted: str) -> documents.DocumentView:
    """The document with this id, else with this URI or name. Raises DocumentUnknown, StoreError for several."""
    found = [view for view in listed if view.doc_id == wanted]
    found = found or [view for view in listed if wanted in (view.uri, view.file_name)]
    if not found:
        raise DocumentUnknown(f"There is no document {wanted!r}.", hint="list_documents lists what is there.")
    if len(found) > 1:
        ids = ", ".join(f"{view.doc_id} ({view.uri})" for view in found)
        raise StoreError(f"{len(found)} documents are called {wanted!r}.", hint=f"Give the id of one: {ids}.")
    return found[0]
