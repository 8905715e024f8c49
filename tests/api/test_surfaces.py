"""One result on every surface: command line, HTTP (stream or not), Studio and a notebook give the same object.

Studio is asked in `tests/graph/test_studio.py`, where its server runs. What comes is compared with what is stored in
`golden/results.json`. Where a change of it is meant, remove that file: the next run writes it anew, and fails once, so
that somebody looks at it.
"""

import asyncio
import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest
from nbclient import NotebookClient
from tests.api.conftest import running_server

from leadline import Settings, ingest_paths, open_library
from leadline.cli import main

GOLDEN = Path(__file__).with_name("golden") / "results.json"
DOCUMENTS = {
    "vault.md": "# The vault\n\nThe vault code is 7719. It was set in May by Dana Fox.\n",
    "garden.md": "# The garden\n\nTomatoes want six hours of sun. Water them in the morning.\n",
}
ELSEWHERE = "Who won the football world cup in 1990?"
# Nobody can be asked on any of these surfaces, so that consent to the web is denied.
QUESTIONS = {
    "answered": ("What is the vault code?", "never"),
    "abstained": (ELSEWHERE, "never"),
    "web denied": (ELSEWHERE, "always"),
    "small talk": ("hi", "auto"),
}
Results = dict[str, Any]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with two documents, which all surfaces use at once."""
    folder = tmp_path_factory.mktemp("surfaces")
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    asyncio.run(_fill(Settings(data_dir=folder / "data"), [folder / name for name in DOCUMENTS]))
    return folder / "data"


async def _fill(settings: Settings, files: list[Path]) -> None:
    async with open_library(settings) as library:
        await ingest_paths(await library.collection(), files, settings)


@pytest.fixture(scope="module")
def served(data_dir: Path) -> Iterator[httpx.Client]:
    """Leadline's own server."""
    with running_server(Settings(data_dir=data_dir)) as url, httpx.Client(base_url=url, timeout=120) as client:
        yield client


def _command_line(data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Results:
    results = {}
    for name, (question, web) in QUESTIONS.items():
        words = ["leadline", "ask", question, "--web", web, "--json", "--data-dir", str(data_dir)]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit):
            main()
        results[name] = json.loads(capsys.readouterr().out)
    return results


def test_the_command_line(data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`leadline ask --json`."""
    compare(_command_line(data_dir, capsys, monkeypatch))


def test_one_object_over_http(served: httpx.Client) -> None:
    """`POST /chat` with `stream: false`."""
    compare(
        {
            name: served.post("/chat", json={"question": question, "web": web, "stream": False}).json()
            for name, (question, web) in QUESTIONS.items()
        }
    )


def test_the_last_event_over_http(served: httpx.Client) -> None:
    """`POST /chat`: the `final` event."""
    compare(
        {
            name: _final(served.post("/chat", json={"question": question, "web": web}).text)
            for name, (question, web) in QUESTIONS.items()
        }
    )


def _final(stream: str) -> Any:
    *_, last = (line for line in stream.splitlines() if line.startswith("data: "))
    event = json.loads(last.removeprefix("data: "))
    assert event["type"] == "final"
    return event["result"]


NOTEBOOK = """
import json
from leadline import RunContext, load_settings, open_app

results = {{}}
async with open_app(load_settings(data_dir={data_dir!r})) as app:
    for name, (question, web) in {questions!r}.items():
        results[name] = await app.ask(question, context=RunContext(web=web))
print(json.dumps(results))
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook(data_dir: Path, tmp_path: Path) -> None:
    """What `app.ask` gives in a notebook's kernel."""
    source = NOTEBOOK.format(data_dir=str(data_dir), questions=QUESTIONS)
    cell = nbformat.v4.new_code_cell(source)  # type: ignore[no-untyped-call]  # nbformat has no types
    notebook = nbformat.v4.new_notebook(cells=[cell])  # type: ignore[no-untyped-call]  # the same
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    printed = "".join(output["text"] for output in notebook.cells[0].outputs if output.get("name") == "stdout")
    compare(json.loads(printed))


def compare(results: Results) -> None:
    """Asserts that they are the stored ones."""
    plain = json.loads(json.dumps({name: _normalised(result) for name, result in results.items()}))
    if not GOLDEN.exists():
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        pytest.fail(f"{GOLDEN} was written: look at it.")
    differences = list(_differences(json.loads(GOLDEN.read_text("utf-8")), plain))
    assert not differences, "\n".join(differences)


# What says of a place or a time where, or when, and nothing of the answer.
_OF_THE_PLACE = {"seconds", "retrieved_at", "library", "settings_hash", "result_hash", "leadline", "file_hash"}
_NAMES_OF_MODELS = {"embedder", "reranker"}


def _normalised(result: Any) -> Any:
    """The result with its ids numbered in the order in which they come, and without times, hashes and versions."""
    ids: dict[str, str] = {}

    def plain(value: Any, key: str = "") -> Any:
        if key in _OF_THE_PLACE or key in _NAMES_OF_MODELS:
            return f"<{key}>" if value else value
        if key == "why":  # it may tell a logit
            return re.sub(r"-?\d+\.\d+", "<logit>", value)
        if key in ("chunk_id", "doc_id", "content_hash", "hops_from"):
            return ids.setdefault(value, f"<{key} {len(ids) + 1}>")
        if isinstance(value, dict):
            return {ids.get(name, name): plain(item, name) for name, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list) else value

    return plain(result)


def _differences(wanted: Any, found: Any, where: str = "") -> Iterator[str]:
    """Where the two differ. A score may be a little another one on another processor."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            if key not in wanted or key not in found:
                yield f"{where}.{key} is only {'stored' if key in wanted else 'here'}"
            else:
                yield from _differences(wanted[key], found[key], f"{where}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _differences(one, other, f"{where}[{number}]")
    elif isinstance(wanted, float) and isinstance(found, float):
        if not math.isclose(wanted, found, abs_tol=0.2):
            yield f"{where}: {wanted} became {found}"
    elif wanted != found or type(wanted) is not type(found):
        yield f"{where}: {wanted!r} became {found!r}"
