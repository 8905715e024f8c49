"""One result on every surface: the command line and the HTTP API give the same object for the same question."""

import json
import sys
from pathlib import Path

import httpx
import pytest

from leadline.cli import main

KEYS = {
    "question": str,
    "status": str,
    "answer": str,
    "citations": list,
    "verdict": dict,
    "flags": list,
    "context": list,
    "queries": list,
    "web_used": bool,
    "degraded": list,
    "usage": dict,
    "limits": list,
    "models": dict,
    "generation": int,
    "indexing": list,
    "record": dict,
}
CITATION_KEYS = {
    "n",
    "chunk_id",
    "doc_id",
    "file_name",
    "page",
    "start_char",
    "end_char",
    "quote",
    "sentence",
    "verified",
    "source_type",
    "url",
    "retrieved_at",
}


@pytest.mark.parametrize("question", ["What does error E-217 mean?", "Who won the football world cup in 1990?", "hi"])
def test_command_line_and_server_agree(
    question: str,
    client: httpx.Client,
    copied: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`ask --json` and `POST /chat` with `stream: false` differ in nothing but what was spent."""
    words = ["leadline", "ask", question, "--web", "never", "--json", "--data-dir", str(copied)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        main()
    printed = json.loads(capsys.readouterr().out)
    served = client.post("/chat", json={"question": question, "web": "never", "stream": False}).json()
    assert {key: type(value) for key, value in served.items()} == KEYS
    assert all(set(citation) == CITATION_KEYS for citation in served["citations"])
    assert printed.pop("usage").keys() == served.pop("usage").keys()
    assert printed["record"].pop("result_hash") != served["record"].pop("result_hash")  # that of the seconds too
    assert printed == served
