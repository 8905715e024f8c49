"""What an agent may give a tool of the MCP server: the arguments of its schema and no others.

The SDK lets unknown arguments pass in silence, and an agent that asked for less would take an answer from everything
for what it asked for. Knows no tool.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.types import ToolAnnotations
from pydantic import ValidationError

from leadline.errors import QuestionRefused

MAX_NAMED: Final = 5  # problems in one message
MAX_NAME_CHARS: Final = 60
# Pydantic's name of what is wrong → our words, with what it says of the bounds. Never the value: it can be a text.
WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "is no argument of this tool",
    "string_type": "has to be a text",
    "string_too_short": "has to have at least {min_length} character(s)",
    "string_too_long": "can have at most {max_length} characters",
    "string_pattern_mismatch": "has to match {pattern}",
    "greater_than_equal": "has to be at least {ge}",
    "less_than_equal": "can be at most {le}",
    "int_type": "has to be a whole number",
    "int_parsing": "has to be a whole number",
    "int_from_float": "has to be a whole number",
}


class StrictTool(Tool):
    """A tool that says in a short sentence which argument is wrong and why, unknown ones included."""

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """What the tool gives for these arguments. Raises ToolError."""
        try:
            self.fn_metadata.arg_model.model_validate(arguments)
        except ValidationError as error:
            raise ToolError(_what_is_wrong(error, [*self.fn_metadata.arg_model.model_fields])) from None
        except QuestionRefused as error:
            raise ToolError(str(error)) from None
        return await super().run(arguments, context, convert_result)


def strict_tool(function: Callable[..., Any], annotations: ToolAnnotations) -> Tool:
    """The function as a tool whose schema has no room for arguments it doesn't take."""
    tool = StrictTool.from_function(function, annotations=annotations)
    known = tool.fn_metadata
    model = cast(type[ArgModelBase], types.new_class(known.arg_model.__name__, (known.arg_model,), {"extra": "forbid"}))
    fields = {name: getattr(known, name) for name in FuncMetadata.model_fields}
    tool.fn_metadata = _AsGiven(**fields | {"arg_model": model})
    tool.parameters = model.model_json_schema(by_alias=True)
    return tool


class _AsGiven(FuncMetadata):
    """Takes arguments as they come. The SDK reads texts that are JSON as data: no document could hold just that."""

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        return data


def _what_is_wrong(error: ValidationError, known: Sequence[str]) -> str:
    found = [(str(e["loc"][0]), e["type"], e["msg"], e.get("ctx", {})) for e in error.errors(include_url=False)]
    said = [
        f"{_shortened(name)} {WORDS[kind].format(**bounds) if kind in WORDS else message}"
        for name, kind, message, bounds in found
    ]
    more = [f"and {len(said) - MAX_NAMED} more"] if len(said) > MAX_NAMED else []
    return f"{'; '.join(said[:MAX_NAMED] + more)}. It takes: {', '.join(known)}."


def _shortened(name: str) -> str:
    return repr(name if len(name) <= MAX_NAME_CHARS else name[:MAX_NAME_CHARS] + "…")
