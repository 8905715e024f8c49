"""What a person is told who typed something wrong, or looked for it in the wrong place."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.servers.chat_server import running_chat_server

from leadline.cli.llm import WELL_KNOWN
from leadline.models import providers

QUESTION = "What does error E-217 mean?"


@pytest.mark.parametrize(
    ("llm", "named"),
    [
        ("nonsense", "nonsense"),
        ("gpt 99", "gpt 99"),
        ("bogusprovider/model", "bogusprovider/model"),
        ("local:/nope.gguf", "/nope.gguf"),
        ("local:~nosuchuser/nope.gguf", "~nosuchuser/nope.gguf can't be read"),
        ("local:", "no file is named"),
    ],
)
def test_an_llm_that_cannot_be_is_refused_before_the_search(leadline: Any, filled: Path, llm: str, named: str) -> None:
    """By its name, whether it is asked or only explains; nothing was looked for and nothing is answered."""
    for words in (["ask", QUESTION], ["explain", QUESTION]):
        done = leadline(*words, "--llm", llm, "--data-dir", filled, "--trace" if words[0] == "ask" else "--yes")
        assert (done.code, done.out) == (2, "")
        assert named in done.err
        assert "Looking" not in done.err
        assert "hybrid" not in done.err


@pytest.mark.parametrize("words", [("serve", "--port", 0), ("serve", "--workers", 2), ("mcp", "--allow-write")])
def test_an_llm_that_cannot_be_ends_a_server_at_its_start(
    leadline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...]
) -> None:
    """Not its first question: the same words as for one question, and nothing is made for it."""
    monkeypatch.setenv("LEADLINE_RUN__LLM", "nonsense")
    done = leadline(*words, "--data-dir", tmp_path / "new")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: LiteLLM knows no provider for the model 'nonsense'.\n")
    assert not (tmp_path / "new").exists()


def test_an_llm_that_is_offered_and_cannot_be_ends_a_server_too(
    leadline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of those that a client may choose, here a file that isn't there."""
    monkeypatch.setenv("LEADLINE_LLMS", f"openai/good,local:{tmp_path / 'none.gguf'}")
    done = leadline("serve", "--port", 0, "--data-dir", tmp_path / "new")
    assert (done.code, done.out) == (2, "")
    assert "none.gguf can't be read" in done.err


def test_well_known_providers_are_known_without_a_look() -> None:
    """LiteLLM has each of them, and naming one doesn't load it: a server's start would take twice as long."""
    litellm = providers.library()
    for provider in WELL_KNOWN:
        assert providers.provider_of(litellm, f"{provider}/a-model", None) == provider
    code = (
        "import sys\nfrom leadline import load_settings\nfrom leadline.cli.llm import check_llms_served\n"
        "check_llms_served(load_settings(llms=['openai/a', 'ollama/b'], run={'llm': 'anthropic/c'}))\n"
        "print('litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "False\n"


def test_an_agents_server_makes_no_data_folder_of_a_mistyped_name(leadline: Any, tmp_path: Path) -> None:
    """It reads, and is refused as commands that read are; only one that may write makes it."""
    (tmp_path / "hollow").mkdir()
    for name in ("mistyped", "hollow"):
        done = leadline("mcp", "--data-dir", tmp_path / name)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"Error: The data folder {tmp_path / name} ")
        assert "leadline ingest PATH" in done.err
    assert not (tmp_path / "mistyped").exists()
    assert [*(tmp_path / "hollow").iterdir()] == []


@pytest.mark.parametrize("address", ["me:secret@host/v1", "ftp://me:secret@host", "http://[::1", "http://host:p", "x"])
def test_what_is_no_address_of_a_server_is_refused(
    leadline: Any, filled: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """With the setting's name, and without repeating what may hold a password."""
    monkeypatch.setenv("LEADLINE_LLM_API_BASE", address)
    done = leadline("ask", QUESTION, "--llm", "openai/foo", "--data-dir", filled)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: LEADLINE_LLM_API_BASE is no address of a server.\n")
    assert "secret" not in done.err


def test_a_missing_extra_is_told_with_the_missing_file(
    leadline: Any, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both at once, so that who installs the one doesn't stumble over the other."""
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    done = leadline("ask", QUESTION, "--llm", "local:/nope.gguf", "--data-dir", filled)
    assert done.code == 2
    assert "local-llm" in done.err
    assert "/nope.gguf can't be read" in done.err


def test_an_llm_server_that_is_down_is_told_with_its_address(
    leadline: Any, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is quoted, and the address stands in the reason, without the password in it."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        monkeypatch.setenv("LEADLINE_LLM_API_BASE", f"http://me:secret@127.0.0.1:{port}/v1")
        monkeypatch.setenv("LEADLINE_LLM_RETRIES", "0")
        done = leadline("ask", QUESTION, "--llm", "openai/foo", "--data-dir", filled)
    assert done.code == 0
    assert f"It was asked at http://127.0.0.1:{port}/v1 (LEADLINE_LLM_API_BASE)." in done.out
    assert "secret" not in done.out + done.err


def test_the_look_at_a_name_sends_nothing(leadline: Any, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server that is there only answers are wanted: the question refused, it was asked nothing."""
    with running_chat_server() as chat:
        monkeypatch.setenv("LEADLINE_LLM_API_BASE", chat.url)
        assert leadline("ask", QUESTION, "--llm", "nonsense", "--data-dir", filled).code == 2
        assert chat.requests == []


def test_a_taken_port_is_told_before_anything_starts(leadline: Any, tmp_path: Path) -> None:
    """One line and what to do, and no word of Ctrl-C."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = leadline("serve", "--port", port, "--data-dir", tmp_path / "new")
    assert done.code == 1
    assert done.err.startswith(f"Error: The server can't listen on 127.0.0.1:{port}: Address already in use.\n")
    assert "--port 0" in done.err
    assert "Ctrl-C" not in done.err
    assert not (tmp_path / "new").exists()


def test_a_host_that_cannot_be_is_told(leadline: Any, filled: Path) -> None:
    """As any other at which the server can't listen. In a process of its own: in this one no name is looked up."""
    leadline("tokens", "add", "ana", "--data-dir", filled)
    host = "a" * 70
    done = subprocess.run(
        [sys.executable, "-m", "leadline", "serve", "--host", host, "--data-dir", str(filled)],
        env={**os.environ, "LEADLINE_ALLOWED_HOSTS": "docs.example"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: The server can't listen on {host}:8321: ")
    assert "--host" in done.stderr


def test_a_document_of_another_collection_is_named_there(leadline: Any, filled: Path, tmp_path: Path) -> None:
    """`rm` removes nothing, and says which collection has one."""
    (tmp_path / "up.md").write_text("# Up\n\nThe lift goes up.", encoding="utf-8")
    leadline("ingest", tmp_path / "up.md", "-c", "extra", "--data-dir", filled)
    done = leadline("rm", "up.md", "--yes", "--data-dir", filled)
    assert done.code == 1
    assert "the collection extra: --collection extra" in done.err
    assert leadline("rm", "up.md", "--yes", "-c", "extra", "--data-dir", filled).code == 0


def test_the_first_token_and_an_unknown_collection_are_told(leadline: Any, filled: Path) -> None:
    """The first closes the server to everybody else; a collection that there isn't shows nothing to its token."""
    first = leadline("tokens", "add", "ana", "-c", "nope", "--data-dir", filled)
    assert first.code == 0
    assert "lets nobody in without one" in first.err
    assert "no collection nope" in first.err
    second = leadline("tokens", "add", "ben", "-c", "default", "--data-dir", filled)
    assert "lets nobody in" not in second.err
    assert "no collection" not in second.err


def test_what_a_reader_cannot_read_is_not_to_be_written(leadline: Any, filled: Path) -> None:
    """`replay` of a file that isn't there says what to give."""
    done = leadline("replay", "nofile.json", "--data-dir", filled)
    assert done.code == 1
    assert done.err == (
        "Error: nofile.json can't be read: No such file or directory.\n"
        "Give the file that `leadline ask --record` wrote.\n"
    )


def test_a_wrong_value_is_told_in_plain_words(leadline: Any) -> None:
    """Without what the library that checks values puts before them, as text and as JSON."""
    for words in ((), ("--json",)):
        done = leadline("ask", QUESTION, "--web", "sometimes", *words)
        assert done.code == 2
        assert "'sometimes' is not one of 'never', 'auto', 'always'" in done.err + done.out
        assert "Value error" not in done.err + done.out


def test_nothing_removed_is_not_told(leadline: Any, tmp_path: Path) -> None:
    """A sync says what it removed, and nothing where it removed nothing."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a.md", "b.md"):
        (docs / name).write_text(f"# {name}\n\nSome words of {name}.", encoding="utf-8")
    words = ("ingest", docs, "--sync", "--data-dir", tmp_path / "data")
    assert "Removed" not in leadline(*words).err
    (docs / "b.md").unlink()
    assert "Removed 1 documents that are gone." in leadline(*words).err


@pytest.mark.parametrize("words", [("ask", QUESTION), ("explain", QUESTION), ("search", QUESTION), ("rm", "a.md")])
def test_a_collection_that_cannot_be_is_told_plainly(leadline: Any, filled: Path, words: tuple[str, ...]) -> None:
    """The same ones by every command; of one that could be and isn't there, which ones there are."""
    done = leadline(*words, "-c", "a b", "--data-dir", filled)
    assert done.code == 2
    assert done.err == (
        "Error: 'a b' can't be the name of a collection.\nLetters, digits, - and _; at most 63 of them.\n"
    )
    done = leadline(*words, "-c", "nope", "--data-dir", filled)
    assert done.code == 1
    assert done.err.endswith("There is: default.\n")


def test_a_filter_on_a_field_of_no_document_is_an_error(
    leadline: Any, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the settings too: an answer of nothing would be taken for one of the documents."""
    monkeypatch.setenv("LEADLINE_RUN__FILTERS", '{"nofield": 1}')
    done = leadline("ask", QUESTION, "--data-dir", filled)
    assert done.code == 1
    assert "No document of the collection default has the field nofield." in done.err


def test_passages_of_one_file_are_told_apart(leadline: Any, tmp_path: Path) -> None:
    """A trace names the heading of each; who was shown and not cited is told what the answer stands on."""
    (tmp_path / "rooms.md").write_text(
        "# Rooms\n\n## Holidays\n\nEverybody has 28 days of holiday a year.\n\n"
        "## Sick leave\n\nWho is ill stays at home, on holiday too.\n",
        encoding="utf-8",
    )
    (tmp_path / "old.md").write_text("# Old rules\n\nHoliday was counted in days of the year then.\n", encoding="utf-8")
    data = ("--data-dir", tmp_path / "data")
    leadline("ingest", tmp_path / "rooms.md", tmp_path / "old.md", *data)
    question = "How many days of holiday does everybody have a year?"
    traced = leadline("ask", question, "--trace", *data)
    assert "rooms.md § Holidays" in traced.err
    assert "rooms.md § Sick leave" in traced.err
    told = leadline("explain", question, "--doc", "old.md", *data)
    assert "In the evidence, not used: shown to the writer" in told.out, told.out
    assert "No sentence of it is in the answer, which stands on [1] rooms.md, ranked 1 (+" in told.out
