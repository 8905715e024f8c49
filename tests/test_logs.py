"""How a server logs."""

import json
import logging

import pytest

from leadline.logs import JsonLines, TextLines


@pytest.mark.parametrize("formatter", [JsonLines(), TextLines("%(message)s")])
def test_a_line_about_a_request_has_no_query(formatter: logging.Formatter) -> None:
    """People put tokens there, though none are looked for in it; the rest of the line stays."""
    args = ("127.0.0.1:5", "GET", "/collections?token=leadline_secret", "1.1", 401)
    record = logging.LogRecord("uvicorn.access", logging.INFO, __file__, 1, '%s - "%s %s HTTP/%s" %d', args, None)
    line = formatter.format(record)
    assert "secret" not in line
    assert "GET /collections HTTP/1.1" in line.replace('\\"', "")
    if isinstance(formatter, JsonLines):
        assert json.loads(line)["path"] == "/collections"
    assert "secret" in record.getMessage()  # the record itself is others' too
