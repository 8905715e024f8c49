"""A query parameter that isn't known, or is given twice, is refused by name: a misspelled one would be left out."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

# OpenAI's clients add their own, such as `api-version`, and none of these routes reads any.
UNREAD_UNDER: Final = "/v1/"


def refuse_unknown_queries(request: Request) -> None:
    """For every route of the schema. Raises RequestValidationError."""
    route = request.scope.get("route")
    given = Counter(name for name, _ in request.query_params.multi_items())
    if not given or not isinstance(route, APIRoute) or not route.include_in_schema:
        return
    if route.path.startswith(UNREAD_UNDER):
        return
    known = set(_known(route.dependant))
    wrong = [
        {
            "type": "query",
            "loc": ("query", name),
            "msg": "Unknown parameter" if name not in known else "Given more than once",
        }
        for name, count in given.items()
        if name not in known or count > 1
    ]
    if wrong:
        raise RequestValidationError(wrong)


def _known(dependant: Dependant) -> Iterator[str]:
    yield from (param.alias for param in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _known(inner)
