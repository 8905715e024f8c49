"""The file of tokens: what is kept, who may read it, and what happens when it is changed, damaged or gone."""

import json
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leadline.api.gate import TokenBook
from leadline.api.tokens import FILE, add_token, matching, read_tokens, remove_token
from leadline.errors import ConfigError, StoreDamaged


def test_a_token_is_found_by_its_secret_alone(tmp_path: Path) -> None:
    """Its name, its hash, and a secret with a letter more or less are other people's."""
    secret = add_token(tmp_path, "ana", ["papers"], may_write=False)
    tokens = read_tokens(tmp_path) or ()
    found = matching(tokens, secret)
    assert found is not None
    assert (found.name, found.collections, found.may_write) == ("ana", ("papers",), False)
    for wrong in ("", "ana", found.sha256, secret[:-1], secret + "x", secret.lower()):
        assert matching(tokens, wrong) is None


def test_no_secret_is_kept(tmp_path: Path) -> None:
    """The file holds hashes, and only its owner may read it. No two secrets are alike."""
    made = {add_token(tmp_path, f"t{n}", None, may_write=True) for n in range(20)}
    assert len(made) == 20
    assert all(len(secret) > 43 for secret in made)
    kept = (tmp_path / FILE).read_text()
    assert not any(secret.removeprefix("leadline_") in kept for secret in made)
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["", "local", "Ana", "a b", "../x", "@ana", "-a", "a" * 33, "é", "a\n"])
def test_names_are_plain(tmp_path: Path, name: str) -> None:
    """What would not be seen, or be taken for somebody else, is refused and nothing is written."""
    with pytest.raises(ConfigError, match="name of a token"):
        add_token(tmp_path, name, None, may_write=True)
    assert read_tokens(tmp_path) is None


def test_a_name_is_given_once_and_taken_back_once(tmp_path: Path) -> None:
    """A second token of a name, and the end of one that isn't there, are errors that say what to do."""
    first = add_token(tmp_path, "ana", None, may_write=True)
    with pytest.raises(ConfigError, match="already"):
        add_token(tmp_path, "ana", None, may_write=True)
    assert matching(read_tokens(tmp_path) or (), first)
    assert remove_token(tmp_path, "ana") == 0
    assert matching(read_tokens(tmp_path) or (), first) is None
    with pytest.raises(ConfigError, match="no token ana"):
        remove_token(tmp_path, "ana")


def test_tokens_made_at_once_are_all_kept(tmp_path: Path) -> None:
    """Two that write the file at the same time don't lose each other's."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: add_token(tmp_path, f"t{n}", None, may_write=True), range(24)))
    assert len(read_tokens(tmp_path) or ()) == 24


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"tokens": [{"name": "x"}]}', '{"tokens": 3}', '{"tokens": [null]}', "\x00\xff"]
)
def test_a_damaged_file_is_an_error_and_kept(tmp_path: Path, text: str) -> None:
    """It lets nobody in, and adding a token doesn't write over it."""
    (tmp_path / FILE).write_text(text, encoding="latin-1")
    with pytest.raises(StoreDamaged):
        TokenBook(tmp_path).tokens()
    with pytest.raises(StoreDamaged):
        add_token(tmp_path, "ana", None, may_write=True)
    assert (tmp_path / FILE).read_text(encoding="latin-1") == text


def test_a_file_with_rights_of_another_type_is_damaged(tmp_path: Path) -> None:
    """ "false" in quotes is no way to be allowed to write."""
    add_token(tmp_path, "ana", None, may_write=False)
    kept = json.loads((tmp_path / FILE).read_text())
    kept["tokens"][0]["may_write"] = "false"
    (tmp_path / FILE).write_text(json.dumps(kept))
    with pytest.raises(StoreDamaged):
        read_tokens(tmp_path)


def test_a_server_notices_every_change(tmp_path: Path) -> None:
    """New tokens, ended ones, and the file's coming; after it has once been there, nobody is let in without one."""
    book = TokenBook(tmp_path)
    assert book.tokens() is None
    for n in range(5):
        add_token(tmp_path, f"t{n}", None, may_write=True)
        assert len(book.tokens() or ()) == n + 1
    remove_token(tmp_path, "t0")
    assert [token.name for token in book.tokens() or ()] == ["t1", "t2", "t3", "t4"]
    (tmp_path / FILE).unlink()
    assert book.tokens() == ()


def test_a_server_for_others_needs_tokens_always(tmp_path: Path) -> None:
    """Bound to more than this machine, no file means nobody, not everybody."""
    assert TokenBook(tmp_path, always=True).tokens() == ()
