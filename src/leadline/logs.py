"""How a server logs: lines for people, or one JSON object a line for programs. Both name the run a line belongs to.

Debug lines are Leadline's own: what libraries say at that level may hold prompts.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final, Literal

from leadline.telemetry import run_id

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
_ACCESS: Final = "uvicorn.access"


class JsonLines(logging.Formatter):
    """One object: time, level, logger, message; run and exception where there is one, fields of a request."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        record = _without_query(record)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if run := run_id():
            line["run"] = run
        line |= _request(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, default=str)  # in ASCII: no terminal, file or lone surrogate can break it


class TextLines(logging.Formatter):
    """Time, level, message, and the run where there is one. What more lines it has are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, what raised it below."""
        said = super().format(_without_query(record))
        run = run_id()
        first, *more = said.splitlines()
        return "\n  ".join([f"{first} [{run[:8]}]" if run else first, *more])


def _without_query(record: logging.LogRecord) -> logging.LogRecord:
    """uvicorn's line about a request without the query: people put tokens there, where none are looked for."""
    if record.name != _ACCESS or not isinstance(record.args, tuple) or len(record.args) != 5:
        return record
    client, method, path, version, status = record.args
    kept = logging.makeLogRecord(record.__dict__)
    kept.args = (client, method, str(path).partition("?")[0], version, status)
    return kept


def _request(record: logging.LogRecord) -> dict[str, Any]:
    """What uvicorn's line about a request is made of."""
    if record.name != _ACCESS or not isinstance(record.args, tuple) or len(record.args) != 5:
        return {}
    client, method, path, _, status = record.args
    return {"client": client, "method": method, "path": path, "status": status}


def log_config(log_format: LogFormat, log_level: LogLevel = "info") -> dict[str, Any]:
    """For `logging.config.dictConfig` and uvicorn's `log_config`. Plain data: worker processes get it as it is."""
    formatters: dict[str, Any] = {
        "json": {"()": "leadline.logs.JsonLines"},
        "text": {"()": "leadline.logs.TextLines", "format": "%(asctime)s %(levelname)s: %(message)s"},
    }
    level = log_level.upper()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": formatters[log_format]},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"},
            "stdout": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stdout"},
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "leadline": {"level": level},
            "uvicorn": {"level": "INFO" if level == "DEBUG" else level},
            "uvicorn.error": {},
            _ACCESS: {"handlers": ["stdout"], "level": "INFO" if level == "DEBUG" else level, "propagate": False},
        },
    }
