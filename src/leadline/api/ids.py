"""Ids in addresses: any text that whoever put a document in has chosen, slashes too, which a client writes as `%2F`.

The framework sees an address only decoded, where such a slash looks like one between two parts.
"""

from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import Path
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

ID_PATTERN: Final = r"^[^\x00-\x1f]+$"
# Of documents, passages and jobs. What no id of them can hold is refused before it is looked for.
Id = Annotated[str, Path(min_length=1, max_length=256, pattern=ID_PATTERN)]

_HELD: Final = "\ud800"  # stands for an encoded slash; decoding makes no half of a surrogate pair


class IdRoute(APIRoute):
    """A route that takes `%2F` for a part of an id."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See Starlette's Route."""
        raw: bytes = scope.get("raw_path") or b""
        if b"%2f" not in raw.lower():
            return super().matches(scope)
        parts = (unquote(part).replace("/", _HELD) for part in raw.decode("latin-1").split("/"))
        match, child = super().matches({**scope, "path": "/".join(parts)})
        if "path_params" in child:
            child["path_params"] = {name: value.replace(_HELD, "/") for name, value in child["path_params"].items()}
        return match, child
