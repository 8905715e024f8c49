"""`leadline tokens`, and what `serve` asks of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.api.tokens import matching, read_tokens


def test_a_token_is_made_shown_once_listed_and_ended(leadline: Any, tmp_path: Path) -> None:
    """The token alone is on standard output, for a pipe; the list has its rights and not its hash."""
    place = ("--data-dir", tmp_path)
    made = leadline("tokens", "add", "ana", "-c", "papers", "-c", "notes", "--read-only", *place)
    assert made.code == 0
    token = matching(read_tokens(tmp_path) or (), made.out.strip())
    assert token is not None
    listed = leadline("tokens", "ls", *place)
    assert all(word in listed.out for word in ("ana", "notes, papers", "read only"))
    assert made.out.strip() not in listed.out
    (one,) = json.loads(leadline("tokens", "ls", "--json", *place).out)
    assert one == {
        "name": "ana",
        "collections": ["notes", "papers"],
        "may_write": False,
        "created_at": token.created_at,
    }
    ended = leadline("tokens", "rm", "ana", *place)
    assert (ended.code, read_tokens(tmp_path)) == (0, ())
    assert "nobody is let in" in ended.err
    assert "nobody is let in" in leadline("tokens", "ls", *place).err


def test_a_token_for_programs(leadline: Any, tmp_path: Path) -> None:
    """With --json one object holds it, and it is right for every collection."""
    made = json.loads(leadline("tokens", "add", "bot", "--json", "--data-dir", tmp_path).out)
    token = matching(read_tokens(tmp_path) or (), made["token"])
    assert (made["name"], token and token.collections, token and token.may_write) == ("bot", None, True)


def test_bad_names_are_bad_usage(leadline: Any, tmp_path: Path) -> None:
    """Exit code 2, and what would be right."""
    done = leadline("tokens", "add", "Ana B", "--data-dir", tmp_path)
    assert done.code == 2
    assert "Small letters" in done.err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "docs.example"])
def test_serving_others_needs_tokens_and_names(
    leadline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Each refusal says what to do next: first tokens, then the names under which the server is asked."""
    words = ("serve", "--host", host, "--data-dir", tmp_path)
    first = leadline(*words)
    assert first.code == 2
    assert "leadline tokens add" in first.err
    leadline("tokens", "add", "ana", "--data-dir", tmp_path)
    second = leadline(*words)
    assert second.code == 2
    assert "LEADLINE_ALLOWED_HOSTS" in second.err
    leadline("tokens", "rm", "ana", "--data-dir", tmp_path)
    monkeypatch.setenv("LEADLINE_ALLOWED_HOSTS", "docs.example")
    assert "no tokens" in leadline(*words).err
    behind_a_proxy = leadline("serve", "--port", "0", "--data-dir", tmp_path)
    assert (behind_a_proxy.code, "docs.example would let other machines" in behind_a_proxy.err) == (2, True)


def test_a_damaged_file_keeps_the_server_from_starting(leadline: Any, tmp_path: Path) -> None:
    """On this machine too: whoever wanted tokens doesn't get a server without."""
    (tmp_path / "tokens.json").write_text("{")
    done = leadline("serve", "--port", "0", "--data-dir", tmp_path)
    assert done.code == 1
    assert "tokens.json" in done.err
