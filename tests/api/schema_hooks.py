"""What schemathesis can't know of the server it tries: `LEADLINE_TEST_SCHEMA_IDS` names what is there."""

import json
import os
from typing import Any

import schemathesis

REAL_IDS: dict[str, str] = json.loads(os.environ["LEADLINE_TEST_SCHEMA_IDS"])


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Data that fits the schema names what is there: no LLM that isn't offered, no field that nothing has."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if isinstance(case.body, dict):
        case.body |= {name: None for name in ("llm", "filters") if name in case.body}
    if case.method == "GET" and case.path_parameters:
        case.path_parameters |= {name: value for name, value in REAL_IDS.items() if name in case.path_parameters}
