"""What a caller with a token is told of the server's folders, and what one at this machine is."""

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

import httpx
from tests.api.conftest import FEW

from leadline import Settings, load_settings
from leadline.api.access import Caller
from leadline.api.cleaning import Cleaning
from leadline.api.tokens import add_token
from leadline.graph.seal import hash_of_result, sealed
from leadline.state import Result

Serving = Callable[[Settings], AbstractContextManager[str]]


def _reasons(url: str, headers: dict[str, str]) -> dict[str, str]:
    """Of each part that a run went on without: why."""
    asked = {"question": "What is the bollard pull of the tug Anvil?"}
    answer = httpx.post(f"{url}/chat", json=asked, headers=headers, timeout=60, trust_env=False)
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert events[-1]["type"] == "final"
    return {event["part"]: event["reason"] for event in events if event["type"] == "degraded"}


def test_why_a_part_failed_names_no_folder_to_a_token(copied: Path, tmp_path: Path, serving: Serving) -> None:
    """An index that can't be read is told with its place to whoever is at the machine, without it to a token."""
    folder = shutil.copytree(copied, tmp_path / "data")
    for path in (folder / "indexes" / "default" / "bm25").iterdir():
        path.write_bytes(b"no index")
    settings = load_settings(data_dir=folder, run={"web": "never", **FEW})
    with serving(settings) as url:
        here = _reasons(url, {})
        secret = add_token(folder, "ana", None, may_write=False)
        away = _reasons(url, {"Authorization": f"Bearer {secret}"})
    assert str(folder) in here["bm25"]
    assert "the data folder/indexes" in away["bm25"]
    assert str(tmp_path) not in away["bm25"]


def test_an_error_in_a_result_names_no_folder_and_the_seal_holds() -> None:
    """Message, hint and reason are without the folder and the caller's mark; the hash is that of what is told."""
    place = Path("/srv/leadline/data")
    told = {"message": f"{place}/catalog.db is damaged.", "hint": f"See @ana/t1 in {place}."}
    verdict = {"evidence": "nothing", "grounding": "not_attempted", "action": "finish", "reason": told["message"]}
    made = {"status": "error", "verdict": verdict, "error": {"code": "store", **told}, "record": {"nodes": []}}
    result = sealed(cast(Result, made))
    cleaned = Cleaning(Caller("ana"), place).result(result)
    assert cleaned["error"] == {"code": "store", "message": "the data folder/catalog.db is damaged.", "hint": "See t1."}
    assert cleaned["verdict"]["reason"] == "the data folder/catalog.db is damaged."
    assert cleaned["record"]["result_hash"] == hash_of_result(cleaned)
    assert Cleaning(Caller(), place).result(result) is result
