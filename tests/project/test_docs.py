"""What the documentation says of names, defaults and places is what the code has."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

import annotated_types as bounds
import pytest
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from leadline import ingest_paths, load_settings, open_library
from leadline.config import ENV_NOT_SETTINGS, ENV_PREFIX, Settings
from leadline.ingest.loaders import LOADERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (*ROOT.glob("*.md"), *DOCS.glob("*.md"), *ROOT.glob("[a-z]*/README.md"))
ROW = re.compile(r"^\| `(LEADLINE_[A-Z_]+)` \| (.*?) \| (.*?) \| .+ \|$", re.MULTILINE)
NAMED = re.compile(r"\bLEADLINE_[A-Z0-9_]*[A-Z0-9]\b")
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s]+)\)")
# What a name may also be: a table of settings, a switch of the tests, not a setting by itself.
GROUPS = {"LEADLINE_RUN", "LEADLINE_RUN__BUDGETS", *ENV_NOT_SETTINGS}
OF_EACH_KIND = ("visitor-faq.html", "tide-gauge-manual.pdf", "port-dues-2026.csv", "hinweise-sportboote.md")
# Of a passage's metadata what tells people where it is, and isn't in an index.
ONLY_SHOWN = {"total_chunks", "start_char", "end_char", "headings", "found_by", "also_in"}
KINDS: Mapping[Any, str] = {
    str: "text",
    SecretStr: "text",
    int: "integer",
    float: "number",
    bool: "`true`, `false`",
    Path: "folder",
    list: "list",
    dict: "mapping",
}


def knobs(model: type[BaseModel] = Settings, prefix: str = ENV_PREFIX) -> dict[str, tuple[str, str]]:
    """Name in the environment → what it takes and its default, as the page of settings writes them."""
    found: dict[str, tuple[str, str]] = {}
    for name, field in model.model_fields.items():
        variable, kind = f"{prefix}{name.upper()}", field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= knobs(kind, f"{variable}__")
        else:
            found[variable] = (takes(field), default(field))
    return found


def takes(field: FieldInfo) -> str:
    """A setting's kind and range, in words."""
    kind: Any = field.annotation
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if isinstance(kind, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    words = KINDS[get_origin(kind) or kind]
    return f"{words} {span({type(each): each for each in field.metadata})}".strip()


def span(limits: Mapping[type, Any]) -> str:
    """`0 to 8`, `1 or more`, `above 0, below 1`."""
    low, high = limits.get(bounds.Ge), limits.get(bounds.Le)
    if low and high:
        return f"{low.ge} to {high.le}"
    words = [f"{low.ge} or more"] if low else []
    words += [f"above {limits[bounds.Gt].gt}"] if bounds.Gt in limits else []
    words += [f"at most {high.le}"] if high else []
    words += [f"below {limits[bounds.Lt].lt}"] if bounds.Lt in limits else []
    return ", ".join(words)


def default(field: FieldInfo) -> str:
    """A setting's default, as the environment would have it."""
    value = field.get_default(call_default_factory=True, validated_data={})
    if value in (None, [], {}):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_the_page_of_settings_is_the_code() -> None:
    """Every setting stands there once, with its kind, its range and its default, and none that isn't one."""
    rows = ROW.findall((DOCS / "settings.md").read_text(encoding="utf-8"))
    assert len(rows) == len({name for name, *_ in rows})
    assert {name: (kind, value) for name, kind, value in rows} == knobs()


@pytest.mark.parametrize("page", [*PAGES, ROOT / ".env.example"], ids=lambda page: page.name)
def test_no_page_names_a_setting_that_is_none(page: Path) -> None:
    """What looks like a setting is one, or an entry of one that is a mapping."""
    mappings = tuple(f"{name}__" for name, (kind, _) in knobs().items() if kind == "mapping")
    named = set(NAMED.findall(page.read_text(encoding="utf-8")))
    assert {name for name in named - knobs().keys() - GROUPS if not name.startswith(mappings)} == set()


def test_the_example_of_a_toml_file_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file as it is printed sets what it says, groups included."""
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```toml\n(.*?)```", (DOCS / "settings.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "leadline.toml").write_text(example, encoding="utf-8")
    settings = load_settings()
    assert settings.vector_options["url"] in example
    assert (settings.run.top_k, settings.run.budgets.seconds) == (20, 60)


def test_every_line_of_the_example_of_an_env_file_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes the `# ` from a line gets a file that can be read."""
    monkeypatch.chdir(tmp_path)
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    switched_on = [line.removeprefix("# ") for line in lines if line.startswith("# LEADLINE_")]
    assert len(switched_on) > 10
    (tmp_path / ".env").write_text("\n".join(switched_on), encoding="utf-8")
    load_settings()


def test_every_kind_of_file_is_listed() -> None:
    """The suffixes on the page are those that have a reader."""
    rows = [line for line in (DOCS / "files.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert {suffix for row in rows for suffix in re.findall(r"`(\.\w+)`", row.split("|")[2])} == LOADERS.keys()


async def test_every_field_of_a_filter_is_listed_and_works(tmp_path: Path) -> None:
    """The examples of filters find something, and passages have no other fields than those on the page."""
    section = (DOCS / "stores.md").read_text(encoding="utf-8").split("## Filters")[1].split("| where |")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| `")]
    listed = {field for cells in rows for field in re.findall(r"`(\w+)`", cells[0])}
    examples = [json.loads(cells[2].strip("`")) for cells in rows if cells[2]]
    settings = load_settings(data_dir=tmp_path / "data")
    async with open_library(settings) as library:
        base = await library.collection()
        await ingest_paths(base, [ROOT / "examples" / "documents" / name for name in OF_EACH_KIND], settings)
        passages = await base.search("harbour", 200)
        found = [await base.search("harbour", 200, where=where) for where in examples]
    assert all(found), [where for where, passed in zip(examples, found, strict=True) if not passed]
    assert {field for passage in passages for field in passage["metadata"]} - ONLY_SHOWN == listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    """A link within the repository names a file that is there, and a heading in it."""
    lost = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        goal = page.parent / path if path else page
        if not goal.exists() or (anchor and anchor not in anchors(goal)):
            lost.append(target)
    assert lost == []


def anchors(page: Path) -> set[str]:
    """The headings of a page, as its links name them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_extra_is_listed() -> None:
    """The extras on the page are those of the package."""
    rows = (DOCS / "settings.md").read_text(encoding="utf-8").split("## Extras")[1].splitlines()
    listed = {extra for row in rows if row.startswith("| ") for extra in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert listed == project["optional-dependencies"].keys()
