"""Settings: where they come from, and what is refused."""

from pathlib import Path

import pytest

from leadline.config import load_settings
from leadline.errors import ConfigError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_unknown_settings_are_refused_wherever_they_stand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, with what is allowed: in the environment, in .env, in leadline.toml."""
    (folder / ".env").write_text("LEADLINE_CHUNKTOKENS=100\n")
    with pytest.raises(ConfigError, match="chunktokens"):
        load_settings()
    (folder / ".env").unlink()
    (folder / "leadline.toml").write_text("chunktokens = 100\n")
    with pytest.raises(ConfigError, match="chunktokens"):
        load_settings()
    (folder / "leadline.toml").unlink()
    monkeypatch.setenv("LEADLINE_CHUNKTOKENS", "100")
    with pytest.raises(ConfigError, match="LEADLINE_CHUNKTOKENS") as caught:
        load_settings()
    assert "LEADLINE_CHUNK_TOKENS" in caught.value.hint


def test_what_a_dotenv_file_says_to_others_is_let_be(folder: Path) -> None:
    """An API key or another program's setting beside ours is no error; ours are read."""
    (folder / ".env").write_text("OPENAI_API_KEY=secret\nleadline_port=9000\nLEADLINE_RUN__TOP_K=7\n")
    settings = load_settings()
    assert (settings.port, settings.run.top_k) == (9000, 7)


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """`LEADLINE_DATA_DIR=` doesn't spread the data over the working directory."""
    monkeypatch.setenv("LEADLINE_DATA_DIR", "")
    assert load_settings().data_dir == Path(".leadline")


@pytest.mark.parametrize(("name", "value"), [("STEMMER", "pinboard"), ("CHUNK_TOKENS", "9"), ("PORT", "abc")])
def test_a_bad_value_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """The message names the setting and, where there is a choice, what may be chosen."""
    monkeypatch.setenv(f"LEADLINE_{name}", value)
    with pytest.raises(ConfigError, match=name.lower()):
        load_settings()


@pytest.mark.parametrize(
    "value", ["https://app.example, http://LAN:3000", '["https://app.example", "http://lan:3000"]']
)
def test_a_list_in_one_variable(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Several values are separated by commas, or in JSON."""
    monkeypatch.setenv("LEADLINE_CORS_ORIGINS", value)
    assert load_settings().cors_origins == ["https://app.example", "http://lan:3000"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CORS_ORIGINS", "*"),
        ("CORS_ORIGINS", "app.example"),
        ("CORS_ORIGINS", "https://app.example/page"),
        ("ALLOWED_HOSTS", "*"),
        ("ALLOWED_HOSTS", "https://docs.example"),
        ("ALLOWED_HOSTS", "docs.example:8321"),
    ],
)
def test_who_else_may_ask_is_named_one_by_one(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """No star, and nothing that never matches: an origin has a scheme and no path, a host has neither nor a port."""
    monkeypatch.setenv(f"LEADLINE_{name}", value)
    with pytest.raises(ConfigError, match=name.lower()):
        load_settings()


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("LEADLINE_CHUNKTOKENS", "LEADLINE_CHUNK_TOKENS"),
        ("LEADLINE_TOP_K", "LEADLINE_RUN__TOP_K"),
        ("LEADLINE_RUN__RERANK_TOPK", "run.rerank_top_k"),
        ("LEADLINE_RUN__BUDGETS__SECOND", "run.budgets.seconds"),
    ],
)
def test_what_was_meant_is_named(monkeypatch: pytest.MonkeyPatch, wrong: str, meant: str) -> None:
    """The nearest setting, those of a run and its budgets among them, and no list that it would be lost in."""
    monkeypatch.setenv(wrong, "3")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert caught.value.hint == f"Did you mean {meant}?"


def test_a_name_like_no_other_gets_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """All there are, as they are written there."""
    monkeypatch.setenv("LEADLINE_QQQ", "3")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert "Did you mean" not in caught.value.hint
    assert {"LEADLINE_PORT,", "LEADLINE_RUN__TOP_K,", "LEADLINE_RUN__BUDGETS__TOKENS,"} <= {*caught.value.hint.split()}


def test_a_bad_value_of_a_right_name_gets_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is the value."""
    monkeypatch.setenv("LEADLINE_CHUNK_TOKENS", "3")
    with pytest.raises(ConfigError, match=r"chunk_tokens: .* 32") as caught:
        load_settings()
    assert caught.value.hint == ""


def test_a_filter_in_variables_of_its_own_has_numbers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is JSON is that, everything else a text: in the environment and in .env. A text of digits is quoted.

    In a mapping that is whole JSON already, and in leadline.toml, a text stays one.
    """
    (folder / ".env").write_text("LEADLINE_RUN__FILTERS__PAGE=3\nLEADLINE_RUN__FILTERS__SIGNED=true\n")
    monkeypatch.setenv("LEADLINE_RUN__FILTERS__LANGUAGE", "de")
    monkeypatch.setenv("LEADLINE_RUN__FILTERS__YEAR__$GTE", "2024")
    monkeypatch.setenv("LEADLINE_RUN__FILTERS__CODE", '"17"')
    expected = {"page": 3, "signed": True, "language": "de", "year": {"$gte": 2024}, "code": "17"}
    assert load_settings().run.filters == expected
    for name in ("LANGUAGE", "YEAR__$GTE", "CODE"):
        monkeypatch.delenv(f"LEADLINE_RUN__FILTERS__{name}")
    (folder / ".env").write_text('LEADLINE_RUN__FILTERS={"page": "3"}\n')
    assert load_settings().run.filters == {"page": "3"}
    (folder / ".env").unlink()
    (folder / "leadline.toml").write_text('[run.filters]\npage = "3"\n')
    assert load_settings().run.filters == {"page": "3"}
