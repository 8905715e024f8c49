"""The web page: its files, served as they are in the package. Nothing is built, nothing comes from elsewhere.

Knows which files there are; any other name is not found, whatever it looks like. Doesn't know what the page does.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from fastapi import APIRouter, HTTPException, Request, Response

router = APIRouter(include_in_schema=False)

PAGE: Final = "index.html"
# Named here: what the machine's own table says of .js differs from machine to machine.
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page. `tag` changes with its bytes."""

    body: bytes
    media_type: str
    tag: str


@router.api_route("/", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """The page."""
    return _answer(request, PAGE)


@router.api_route("/static/{name:path}", methods=["GET", "HEAD"])
async def static(name: str, request: Request) -> Response:
    """What the page is made of."""
    return _answer(request, name)


@cache
def page_files() -> dict[str, PageFile]:
    """The files of the page by their names below /static."""
    return dict(_found(files("leadline.api") / "static", ""))


def _found(folder: Traversable, above: str) -> list[tuple[str, PageFile]]:
    found: list[tuple[str, PageFile]] = []
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = above + each.name
        if each.is_dir():
            found += _found(each, f"{name}/")
        elif media_type := TYPES.get(name[name.rfind(".") :] if "." in name else ""):
            body = each.read_bytes()
            found.append((name, PageFile(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:32]}"')))
    return found


def _answer(request: Request, name: str) -> Response:
    file = page_files().get(name)
    if file is None:
        raise HTTPException(404, "The page has no such file.")
    # Asked for again at every visit: a new version of the server is never shown with an old page.
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)
