"""Documents over a real connection: what is uploaded is asked about, read, downloaded, replaced and deleted."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.api.uploading import answer, client_of, documents, error, finished, kept, upload

from leadline import Settings, ingest_paths, load_settings, open_library
from leadline.api.tokens import add_token
from leadline.drafts import WebPassage
from leadline.stores.catalog_web import save_web_search

Serving = Callable[[Settings], AbstractContextManager[str]]
PUMP = "# Pump P-7\n\nThe pump P-7 holds 40 litres of oil.\n\n## Valve\n\nThe valve opens at 12 bar.\n"
QUESTION = "How much oil does the pump P-7 hold?"


@dataclass(frozen=True)
class Running:
    """A server over a data folder of its own, and a client of it."""

    folder: Path
    client: httpx.Client


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for the file: each test has a collection of its own."""
    from tests.api.conftest import running_server

    folder = tmp_path_factory.mktemp("documents") / "data"
    settings = load_settings(data_dir=folder, rate_per_minute=10_000)
    with running_server(settings) as url, client_of(url) as client:
        yield Running(folder, client)


def test_an_upload_answers_questions_once_it_is_in(running: Running) -> None:
    """202 and a job at once; then the document is listed with its file, and answers with its name cited."""
    accepted = upload(running.client, {"pump.md": PUMP}, collection="ask")
    assert accepted.json()["status"] == "queued"
    job = finished(running.client, accepted)
    assert (job["status"], job["attempts"], job["error"]) == ("done", 1, None)
    assert job["created_at"] <= job["updated_at"]
    assert [(item["file_name"], item["status"], item["chunks"]) for item in job["items"]] == [("pump.md", "done", 2)]
    document = documents(running.client, collection="ask")["pump.md"]
    assert document["doc_id"] == job["items"][0]["doc_id"]
    assert (document["status"], document["chunks"], document["bytes"]) == ("ready", 2, len(PUMP))
    assert (document["has_file"], document["pages"], document["error"]) == (True, None, None)
    result = answer(running.client, QUESTION, collection="ask")
    assert "40 litres" in result["answer"]
    assert result["citations"][0]["file_name"] == "pump.md"
    assert result["indexing"] == []


def test_a_document_is_read_passage_by_passage(running: Running) -> None:
    """In pages, with their places; each passage alone leads to the one before and the one behind."""
    doc_id = finished(running.client, upload(running.client, {"pump.md": PUMP}, collection="read"))["items"][0][
        "doc_id"
    ]
    whole = running.client.get(f"/documents/{doc_id}").json()
    assert (whole["collection"], whole["total"], whole["file_name"]) == ("read", 2, "pump.md")
    first, second = whole["passages"]
    assert (first["index"], first["text"]) == (0, "The pump P-7 holds 40 litres of oil.")
    assert PUMP[first["start_char"] : first["end_char"]] == first["text"]
    assert second["headings"] == ["Pump P-7", "Valve"]
    page = running.client.get(f"/documents/{doc_id}", params={"offset": 1, "limit": 1}).json()
    assert (page["passages"], page["total"]) == ([second], 2)
    assert running.client.get(f"/documents/{doc_id}", params={"limit": 0}).json()["passages"] == []
    assert error(running.client.get(f"/documents/{doc_id}", params={"limit": 501})) == (422, "invalid_request")
    chunk = running.client.get(f"/chunks/{first['chunk_id']}").json()
    assert (chunk["text"], chunk["doc_id"], chunk["collection"]) == (first["text"], doc_id, "read")
    assert (chunk["previous"], chunk["next"]) == (None, second["chunk_id"])
    assert running.client.get(f"/chunks/{chunk['next']}").json()["previous"] == first["chunk_id"]


def test_a_file_is_given_back_as_it_was_and_runs_nowhere(running: Running) -> None:
    """Byte by byte, as an attachment under its own name, of no type a browser would run."""
    page = b"<!doctype html><html><script>alert(1)</script><p>Low water is at six.</p></html>"
    job = finished(running.client, upload(running.client, {'b"ä<i>.html': page}, collection="file"))
    response = running.client.get(f"/documents/{job['items'][0]['doc_id']}/file")
    assert (response.status_code, response.content) == (200, page)
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''b%22%C3%A4%3Ci%3E.html"
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]


def test_a_file_put_in_on_the_command_line_is_not_kept_here(running: Running, tmp_path: Path) -> None:
    """It is listed and read like any other; its file has a 404 of its own, and no path of the machine is told."""
    (tmp_path / "local.md").write_text("# Local\n\nThe local beacon is green.\n")

    async def put() -> None:
        settings = load_settings(data_dir=running.folder)
        async with open_library(settings) as library:
            await ingest_paths(await library.collection("line", create=True), [tmp_path], settings)

    asyncio.run(put())
    document = documents(running.client, collection="line")["local.md"]
    assert (document["has_file"], document["bytes"]) == (False, None)
    refused = running.client.get(f"/documents/{document['doc_id']}/file")
    assert error(refused) == (404, "file_not_kept")
    for response in (refused, running.client.get(f"/documents/{document['doc_id']}")):
        assert str(tmp_path) not in response.text


def test_the_same_name_replaces_the_document_and_its_bytes(running: Running) -> None:
    """One document: the new text answers, the old one is nowhere, nor are its bytes. The same bytes change nothing."""
    first = finished(running.client, upload(running.client, {"pump.md": PUMP}, collection="again"))
    changed = PUMP.replace("40", "55")
    second = finished(running.client, upload(running.client, {"pump.md": changed}, collection="again"))
    assert second["items"][0]["doc_id"] == first["items"][0]["doc_id"]
    assert second["items"][0]["status"] == "done"
    assert list(documents(running.client, collection="again")) == ["pump.md"]
    assert "55 litres" in answer(running.client, QUESTION, collection="again")["answer"]
    third = finished(running.client, upload(running.client, {"pump.md": changed}, collection="again"))
    assert (third["status"], third["items"][0]["status"]) == ("done", "unchanged")
    hashes = kept(running.folder)
    assert hashlib.sha256(changed.encode()).hexdigest() in hashes


def test_deleting_says_what_was_removed_and_leaves_nothing(running: Running) -> None:
    """Counts by index, answers in conversations too; then it is 404 everywhere, answers nothing, and has no bytes."""
    text = PUMP.replace("P-7", "P-8")
    job = finished(running.client, upload(running.client, {"p8.md": text}, collection="gone"))
    doc_id = job["items"][0]["doc_id"]
    answer(running.client, QUESTION.replace("P-7", "P-8"), collection="gone", thread_id="about-p8")
    chunk_id = running.client.get(f"/documents/{doc_id}").json()["passages"][0]["chunk_id"]
    deleted = running.client.delete(f"/documents/{doc_id}").json()
    assert (deleted["doc_id"], deleted["file_name"], deleted["chunks"]) == (doc_id, "p8.md", 2)
    assert deleted["indexes"]["vector"] == deleted["indexes"]["bm25"] == deleted["indexes"]["content"] == 2
    assert (deleted["conversations"], deleted["owed"]) == (1, {})
    for path in (f"/documents/{doc_id}", f"/documents/{doc_id}/file"):
        assert error(running.client.get(path)) == (404, "document_unknown")
    assert error(running.client.delete(f"/documents/{doc_id}")) == (404, "document_unknown")
    assert error(running.client.get(f"/chunks/{chunk_id}")) == (404, "passage_unknown")
    assert documents(running.client, collection="gone") == {}
    assert answer(running.client, QUESTION.replace("P-7", "P-8"), collection="gone")["status"] == "abstained"
    assert hashlib.sha256(text.encode()).hexdigest() not in kept(running.folder)


def test_two_documents_of_the_same_bytes_share_a_file(running: Running) -> None:
    """Under two names, in two collections: the file is there until the last of them is deleted."""
    text = PUMP.replace("P-7", "P-9")
    one = finished(running.client, upload(running.client, {"one.md": text}, collection="left"))["items"][0]
    other = finished(running.client, upload(running.client, {"other.md": text}, collection="right"))["items"][0]
    running.client.delete(f"/documents/{one['doc_id']}")
    assert running.client.get(f"/documents/{other['doc_id']}/file").text == text
    running.client.delete(f"/documents/{other['doc_id']}")
    assert hashlib.sha256(text.encode()).hexdigest() not in kept(running.folder)


def test_a_file_that_can_not_be_taken_in_says_why_and_leaves_no_bytes(running: Running) -> None:
    """The others go in. It is listed as failed until it is deleted or uploaded again whole."""
    files = {"empty.md": b"", "good.md": PUMP, "photo.pdf": b"\x89PNG\r\n\x1a\nxx", "program.exe": b"MZ"}
    job = finished(running.client, upload(running.client, files, collection="mixed"))
    assert job["status"] == "partial"
    assert {item["file_name"]: item["status"] for item in job["items"]} == {
        "empty.md": "failed",
        "good.md": "done",
        "photo.pdf": "failed",
        "program.exe": "failed",
    }
    listed = documents(running.client, collection="mixed")
    assert "0 bytes" in listed["empty.md"]["error"]
    assert "PNG" in listed["photo.pdf"]["error"]
    assert "No loader for .exe" in listed["program.exe"]["error"]
    assert [listed[name]["has_file"] for name in files] == [False, True, False, False]
    for name in ("empty.md", "photo.pdf", "program.exe"):
        data = files[name]
        assert isinstance(data, bytes)
        assert hashlib.sha256(data).hexdigest() not in kept(running.folder)
    finished(running.client, upload(running.client, {"empty.md": "# Now\n\nIt has a text.\n"}, collection="mixed"))
    gone = running.client.delete(f"/documents/{listed['program.exe']['doc_id']}").json()
    assert (gone["chunks"], gone["indexes"]) == (0, {})
    left = documents(running.client, collection="mixed")
    assert {name: document["status"] for name, document in left.items()} == {
        "empty.md": "ready",
        "good.md": "ready",
        "photo.pdf": "failed",
    }


def test_a_bad_new_version_leaves_the_old_one_in_place(running: Running) -> None:
    """The document still answers, with the error of the newest upload beside it."""
    finished(running.client, upload(running.client, {"pump.md": PUMP}, collection="keep"))
    job = finished(running.client, upload(running.client, {"pump.md": b""}, collection="keep"))
    assert (job["status"], job["error"]) == ("failed", job["items"][0]["error"])
    document = documents(running.client, collection="keep")["pump.md"]
    assert (document["status"], document["chunks"], document["has_file"]) == ("ready", 2, True)
    assert "0 bytes" in document["error"]
    assert "40 litres" in answer(running.client, QUESTION, collection="keep")["answer"]


def test_passages_of_the_web_are_looked_up_too(running: Running) -> None:
    """With address and time, of no collection; while they are kept."""
    page = WebPassage(
        "https://example.org/tides", "Tides", "High water is at noon.", "2026-01-01T00:00:00+00:00", 5, 27
    )

    async def keep() -> None:
        async with open_library(load_settings(data_dir=running.folder)) as library:
            save_web_search(library.catalog, "tides", [page], expires=9e9, forget_before=0)

    asyncio.run(keep())
    chunk = running.client.get(f"/chunks/{page.chunk_id}").json()
    assert (chunk["text"], chunk["source_type"], chunk["url"]) == (page.text, "web", page.url)
    assert (chunk["collection"], chunk["file_name"], chunk["retrieved_at"]) == (None, "Tides", page.retrieved_at)


def test_collections_are_listed_with_what_is_in_them(running: Running) -> None:
    """Also one that something is only being taken into; one that isn't there is 404."""
    finished(running.client, upload(running.client, {"a.md": PUMP, "b.md": "# B\n\nText.\n"}, collection="counted"))
    upload(running.client, {"a.md": PUMP}, collection="brand-new")
    found = {each["name"]: each for each in running.client.get("/collections").json()["collections"]}
    assert found["counted"] == {"name": "counted", "documents": 2, "chunks": 3}
    assert {"default", "brand-new"} <= found.keys()
    assert list(found) == sorted(found)
    for path in ("/documents", "/jobs"):
        assert running.client.get(path, params={"collection": "brand-new"}).status_code == 200
        assert error(running.client.get(path, params={"collection": "nowhere"})) == (404, "collection_unknown")
        assert error(running.client.get(path, params={"collection": "../x"})) == (422, "invalid_request")


@pytest.mark.parametrize("path", ["/documents/{}", "/documents/{}/file", "/chunks/{}", "/jobs/{}"])
@pytest.mark.parametrize(
    "wanted", ["0" * 32, "nothing", "%2e%2e", "a%00b", "x" * 300, "..%2F..%2Fcatalog.db", "%F0%9F%90%9F"]
)
def test_an_id_that_is_not_there_is_not_found(running: Running, path: str, wanted: str) -> None:
    """404, or 422 for what can't be one; never the program's own fault."""
    status, code = error(running.client.get(path.format(wanted)))
    assert (status, code.endswith(("unknown", "not_found"))) == (404, True) or (status, code) == (
        422,
        "invalid_request",
    )


def test_what_a_token_may_not_see_is_not_there(serving: Serving, tmp_path: Path) -> None:
    """Another collection's documents, files, passages and jobs are 404 in the words of what doesn't exist; nothing can
    be put into it or deleted from it, and a token for reading changes nothing in its own."""
    settings = load_settings(data_dir=tmp_path / "data")
    tokens = {
        name: add_token(settings.data_dir, name, collections, may_write=may_write)
        for name, collections, may_write in [("ana", ["a"], True), ("ben", ["b"], True), ("reader", ["a"], False)]
    }
    with serving(settings) as url, client_of(url, tokens["ana"]) as ana, client_of(url, tokens["ben"]) as ben:
        job = finished(ana, upload(ana, {"secret.md": PUMP}, collection="a"))
        doc_id = job["items"][0]["doc_id"]
        chunk_id = ana.get(f"/documents/{doc_id}").json()["passages"][0]["chunk_id"]
        for path, real in [("documents", doc_id), ("chunks", chunk_id), ("jobs", job["id"])]:
            theirs, nobodys = ben.get(f"/{path}/{real}"), ben.get(f"/{path}/{'0' * 32}")
            assert theirs.status_code == nobodys.status_code == 404
            assert theirs.text.replace(real, "") == nobodys.text.replace("0" * 32, "")
        assert error(ben.get(f"/documents/{doc_id}/file")) == (404, "document_unknown")
        assert error(ben.delete(f"/documents/{doc_id}")) == (404, "document_unknown")
        for response in (ben.get("/documents?collection=a"), ben.get("/jobs?collection=a")):
            assert error(response) == (404, "collection_unknown")
            assert response.text == ben.get("/documents?collection=nowhere").text.replace("nowhere", "a")
        assert error(upload(ben, {"x.md": PUMP}, collection="a")) == (404, "collection_unknown")
        assert [each["name"] for each in ana.get("/collections").json()["collections"]] == ["a"]
        with client_of(url, tokens["reader"]) as reader:
            assert reader.get(f"/documents/{doc_id}/file").text == PUMP
            assert error(upload(reader, {"x.md": PUMP}, collection="a")) == (403, "forbidden")
            assert error(reader.delete(f"/documents/{doc_id}")) == (403, "forbidden")
        assert list(documents(ana, collection="a")) == ["secret.md"]
