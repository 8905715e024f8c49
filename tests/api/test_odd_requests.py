"""Requests that are odd but right, and such as nobody sends without a purpose."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

import httpx
import pytest
from starlette.requests import Request
from tests.api.conftest import running_server
from tests.api.uploading import error

from leadline import Settings, load_settings, open_library
from leadline.api.access import Caller
from leadline.api.app import create_app
from leadline.api.cleaning import Cleaning
from leadline.api.stats import without_folder
from leadline.errors import LeadlineError, ThreadElsewhere
from leadline.events import RunEvent, StepEvent
from leadline.graph.seal import hash_of_result, sealed
from leadline.state import Result

Serving = Callable[[Settings], AbstractContextManager[str]]


def _form(client: httpx.Client, disposition: str, *, boundary: str = "XX", more: str = "") -> httpx.Response:
    """An upload of one file whose part has this header."""
    part = f'Content-Disposition: form-data; name="files"; {disposition}\r\n{more}\r\nA word is here.'
    body = f"--{boundary}\r\n{part}\r\n--{boundary}--\r\n".encode()
    return client.post(
        "/documents", content=body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"}
    )


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A client of a server with an empty data folder."""
    settings = load_settings(data_dir=tmp_path_factory.mktemp("odd") / "data", rate_per_minute=10_000)
    with running_server(settings) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        yield client


def test_a_boundary_that_is_too_long_is_the_clients_fault(odd: httpx.Client) -> None:
    """It is told as every body that is no form is."""
    assert error(_form(odd, 'filename="a.txt"', boundary="X" * 300)) == (422, "upload_refused")


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ("filename*=UTF-8''Stra%C3%9Fe.txt", "Straße.txt"),
        ("filename*=iso-8859-1'de'Stra%DFe.txt", "Straße.txt"),
        ("filename=\"plain.txt\"; filename*=UTF-8''other.txt", "plain.txt"),
        ("filename*=UTF-8''..%2F..%2Fetc%2Fpasswd.txt", "passwd.txt"),
    ],
)
def test_a_name_in_the_extended_form_is_read(odd: httpx.Client, disposition: str, name: str) -> None:
    """Some libraries write names beyond ASCII so; a plain name comes first, and none is a path."""
    accepted = _form(odd, disposition)
    assert accepted.status_code == 202, accepted.text
    assert [item["file_name"] for item in accepted.json()["items"]] == [name]


def test_a_very_long_name_is_shortened_and_a_longer_one_named_as_the_reason(odd: httpx.Client) -> None:
    """In any script; what is refused is not said to be no form."""
    accepted = _form(odd, f'filename="{"𠮷" * 2000}.txt"')
    assert accepted.status_code == 202, accepted.text
    assert accepted.json()["items"][0]["file_name"].endswith(".txt")
    refused = _form(odd, f'filename="{"n" * 11_000}.txt"')
    assert error(refused) == (422, "upload_refused")
    assert "name of a file" in refused.json()["error"]["message"]
    assert error(_form(odd, 'filename="a.txt"', more="X: y\r\n" * 100)) == (422, "upload_refused")


def test_every_host_header_is_looked_at(odd: httpx.Client) -> None:
    """A second one that is a stranger's is refused, whichever a proxy would go by."""
    for hosts in (b"Host: localhost\r\nHost: evil.example\r\n", b"Host: evil.example\r\nHost: localhost\r\n"):
        with socket.create_connection(("127.0.0.1", cast(int, urlsplit(str(odd.base_url)).port))) as connection:
            connection.sendall(b"GET /documents HTTP/1.1\r\nConnection: close\r\n" + hosts + b"\r\n")
            assert connection.recv(65536).split(b" ")[1] in (b"403", b"400")  # h11 refuses any second one


def test_a_wrong_query_is_told_in_one_sentence(odd: httpx.Client) -> None:
    """Without the "or nothing" that no address can say."""
    said = odd.get("/documents", params={"collection": "no name"}).json()["error"]["message"]
    assert said.startswith("query.collection: ")
    assert "none" not in said.lower()


async def _put_in(settings: Settings, ids: list[str]) -> None:
    async with open_library(settings) as library:
        base = await library.collection()
        await base.add_documents([f"The word of number {n} is tern." for n in range(len(ids))], ids=ids)


def test_a_slash_in_an_id_is_a_part_of_it(serving: Serving, tmp_path: Path) -> None:
    """A document whose id is "a/file" is another than the file of "a"; each is read and deleted by its own address."""
    settings = load_settings(data_dir=tmp_path / "data")
    ids = ["a", "a/file", "a/b c/%2F"]
    asyncio.run(_put_in(settings, ids))
    with serving(settings) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        listed = {each["doc_id"] for each in client.get("/documents").json()["documents"]}
        assert listed == set(ids)
        for number, doc_id in enumerate(ids):
            address = f"/documents/{quote(doc_id, safe='')}"
            document = client.get(address).raise_for_status().json()
            assert (document["doc_id"], document["total"]) == (doc_id, 1)
            assert f"number {number}" in document["passages"][0]["text"]
            assert error(client.get(f"{address}/file")) == (404, "file_not_kept")
        assert client.delete(f"/documents/{quote('a/file', safe='')}").json()["chunks"] == 1
        assert {each["doc_id"] for each in client.get("/documents").json()["documents"]} == set(ids) - {"a/file"}
        assert error(client.get("/documents/a%2Fnothing")) == (404, "document_unknown")
        assert error(client.get("/documents/a%2F%00")) == (422, "invalid_request")


async def test_a_step_that_failed_names_no_folder_to_a_token() -> None:
    """Its details are told like every other failure: without the folder and the caller's mark, however deep."""
    step = StepEvent(
        node="hybrid",
        phase="error",
        details={"error": "/srv/leadline/data/catalog.db is locked", "more": [{"in": "@ana/t1"}, 3]},
    )

    async def one() -> AsyncGenerator[RunEvent, None]:
        yield step

    (told,) = [event async for event in Cleaning(Caller("ana"), Path("/srv/leadline/data")).events(one())]
    assert cast(StepEvent, told).details == {"error": "the data folder/catalog.db is locked", "more": [{"in": "t1"}, 3]}


def test_where_models_are_is_nobodys_business() -> None:
    """A token is told of a local LLM that it is one; a model in a folder has the folder's last name in the figures."""
    verdict = {"evidence": "relevant", "grounding": "grounded", "action": "finish", "reason": "It is there."}
    models = {"llm": "local:/srv/weights/qwen.gguf"}
    made = {"status": "answered", "verdict": verdict, "models": models, "record": {"nodes": []}}
    result = sealed(cast(Result, made))
    told = Cleaning(Caller("ana"), Path("/srv/leadline/data")).result(result)
    assert told["models"] == {"llm": "local"}
    assert told["record"]["result_hash"] == hash_of_result(told)
    assert Cleaning(Caller(), Path("/srv/leadline/data")).result(result) is result
    assert without_folder("/srv/weights/minilm") == "minilm"
    assert without_folder("intfloat/e5-small") == "intfloat/e5-small"


async def test_a_conversation_from_before_names_no_collection_that_is_not_seen_now(tmp_path: Path) -> None:
    """A token that was made anew for another collection, and goes on with a conversation of the old one by its id."""
    elsewhere = ThreadElsewhere("The conversation t1 is about the collection secret.", hint="Ask in secret.")
    api = create_app(Settings(data_dir=tmp_path))
    for caller, told in ((Caller("ana", frozenset({"open"})), False), (Caller("root"), True), (Caller(), True)):
        request = Request({"type": "http", "app": api, "headers": [], "state": {"caller": caller}})
        answer = await api.exception_handlers[LeadlineError](request, elsewhere)
        assert answer.status_code == 409
        assert (b"secret" in answer.body) is told
