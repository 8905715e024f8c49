"""What is said of the headers that an exporter is to send, which hold keys."""

import pytest

from leadline.telemetry import Tracing

pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")


def test_a_header_that_cannot_be_read_is_not_quoted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A colon in the place of the equals sign is told, and the key behind it isn't."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key: hunter2")
    tracing = Tracing()
    tracing.start()
    assert tracing.tracer is not None
    assert "Header format invalid" in caplog.text
    assert "hunter2" not in caplog.text
