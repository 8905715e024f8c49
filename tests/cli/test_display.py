"""What is printed is safe, whatever documents and file names hold."""

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.cli.display import plain, print_json, short, table

HOSTILE = "a\x1b[2Jb\x07\x9b31mc\u202egnp.exe\u2066d\U000e0041\rend"


def is_steering(character: str) -> bool:
    """Whether a character may do something to a terminal but be shown."""
    code = ord(character)
    return (code < 0x20 and character not in "\n\t") or 0x7F <= code < 0xA0 or 0x202A <= code <= 0x202E


def test_escape_sequences_become_visible() -> None:
    """Control characters show as pictures of themselves; direction marks and hidden tags go."""
    assert plain(HOSTILE) == "a␛[2Jb␇\ufffd31mcgnp.exed␍end"


def test_scripts_that_need_joiners_keep_them() -> None:
    """Persian half spaces and joined emoji are text, not tricks."""
    assert plain("می\u200cخواهم 👩\u200d💻") == "می\u200cخواهم 👩\u200d💻"


def test_windows_line_ends_are_line_ends() -> None:
    """CRLF is one line end; `one_line` folds all white space."""
    assert plain("a\r\nb") == "a\nb"
    assert plain("a\r\n\tb  c", one_line=True) == "a b c"


def test_only_what_is_cut_off_says_so() -> None:
    """A short text is shown whole, without a mark; a long one is no longer than asked for with it."""
    assert short("nine\n words", 20) == "nine words"
    assert short("ten chars!", 10) == "ten chars!"
    assert short("eleven chars", 10) == "eleven ch…"
    assert short("one two three", 9) == "one two…"


@given(st.text())
def test_nothing_steering_is_left(text: str) -> None:
    """No input leaves a control or direction character in the output, and cleaning twice changes nothing."""
    assert not any(is_steering(character) for character in plain(text))
    assert plain(plain(text)) == plain(text)


@given(st.dictionaries(st.text(), st.text()))
def test_json_is_safe_and_says_the_same(value: dict[str, str]) -> None:
    """JSON output parses back to what was given and holds no raw steering character."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        print_json(value)
    assert json.loads(out.getvalue()) == value
    assert not any(is_steering(character) for character in out.getvalue())


def test_json_fits_an_old_code_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the output can't hold a letter it is escaped, so that a program still reads it."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="cp1252"))
    print_json({"q": "本社 ü"})
    sys.stdout.flush()
    assert json.loads(raw.getvalue()) == {"q": "本社 ü"}


def test_a_table_in_a_pipe_is_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    """Line breaks and tabs inside a cell can't make another row or column."""
    table(["file", "chunks"], [["a\nb\tc.md", 3]])
    assert capsys.readouterr().out == "file\tchunks\na b c.md\t3\n"
