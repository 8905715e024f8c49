"""Jobs of a real server: asked about while they run, deleted under them, killed and stopped in mid-embed."""

import hashlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from tests.api.uploading import (
    PATIENCE_S,
    answer,
    client_of,
    documents,
    error,
    finished,
    kept,
    long_text,
    until,
    upload,
)
from tests.servers.programs import Program, free_port

from leadline import Settings, load_settings

Serving = Callable[[Settings], AbstractContextManager[str]]
SECRET = "The code of the old lighthouse is 7719."
QUESTION = "What is the code of the old lighthouse?"


class Leadline(Program):
    """`leadline serve` over a data folder, as a person starts it."""

    def __init__(self, folder: Path) -> None:
        super().__init__("leadline serve", folder.parent / "log", patience_s=30)
        self.folder, self.port = folder, free_port()
        self.client = client_of(f"http://127.0.0.1:{self.port}")

    def start(self) -> None:
        """Starts it and waits until it answers."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE_")}
        program = "from leadline.cli import main; main()"
        command = [sys.executable, "-c", program, "serve", "--port", str(self.port), "--data-dir", self.folder]
        self.run(command, self._answers, env=environment, cwd=self.folder.parent)

    def _answers(self) -> bool:
        try:
            return self.client.get("/health").status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leadline]:
    """A server that runs, and that tests start again after they ended it."""
    program = Leadline(tmp_path_factory.mktemp("program") / "data")
    program.start()
    try:
        yield program
    finally:
        program.kill()
        program.client.close()


def many_chunks(colour: str) -> dict[str, bytes | str]:
    """Little text in so many passages that they are embedded in three steps; one of them has the secret."""
    sections = [f"# Light {n}\n\nLight {n} is {colour}." for n in range(600)]
    return {"lighthouse.md": "\n\n".join([*sections, f"# Code\n\n{SECRET}"])}


def embedded(folder: Path) -> int:
    """How many vectors the catalog has cached so far."""
    with sqlite3.connect(folder / "catalog.db") as connection:
        return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])


def test_a_question_beside_an_upload_says_what_is_still_being_indexed(serving: Serving, tmp_path: Path) -> None:
    """Asked right behind the upload: no answer yet, and why; once it is in, the answer, and nothing of that."""
    with serving(load_settings(data_dir=tmp_path / "data")) as url, client_of(url) as client:
        accepted = upload(client, {"lighthouse.md": long_text(10, SECRET)})
        early = answer(client, QUESTION)
        assert early["indexing"] == ["lighthouse.md"]
        assert early["status"] == "abstained"
        assert "1 document is still being indexed." in early["answer"]
        assert documents(client)["lighthouse.md"]["status"] == "indexing"
        assert finished(client, accepted)["status"] == "done"
        late = answer(client, QUESTION)
        assert (late["indexing"], late["status"]) == ([], "answered")
        assert "7719" in late["answer"]


def test_an_answer_beside_an_upload_names_it_too(serving: Serving, tmp_path: Path) -> None:
    """What is there answers; that something isn't yet stands beside the answer, and concerns no other collection."""
    with serving(load_settings(data_dir=tmp_path / "data")) as url, client_of(url) as client:
        finished(client, upload(client, {"code.md": f"# Codes\n\n{SECRET}\n"}))
        finished(client, upload(client, {"code.md": f"# Codes\n\n{SECRET}\n"}, collection="other"))
        accepted = upload(client, {"more.md": long_text(10)})
        result = answer(client, QUESTION)
        assert ("7719" in result["answer"], result["indexing"]) == (True, ["more.md"])
        assert "indexed" not in result["answer"]
        assert answer(client, QUESTION, collection="other")["indexing"] == []
        finished(client, accepted)


def test_a_server_killed_in_mid_embed_goes_on_when_it_is_started_again(program: Leadline) -> None:
    """The job runs again at once, with the files that are left; then all of it answers."""
    client = program.client
    files, before = many_chunks("white"), embedded(program.folder)
    accepted = upload(client, files)
    job_id = accepted.json()["id"]
    until(client, job_id, "running")
    while embedded(program.folder) == before:
        assert client.get(f"/jobs/{job_id}").json()["status"] == "running"
        time.sleep(0.02)
    program.kill()
    program.start()
    job = finished(client, accepted)
    assert (job["status"], job["attempts"], job["error"]) == ("done", 2, None)
    assert {item["status"] for item in job["items"]} == {"done"}
    assert {name: each["status"] for name, each in documents(client).items()} == dict.fromkeys(files, "ready")
    assert "7719" in answer(client, QUESTION)["answer"]
    assert [each for each in kept(program.folder) if each.startswith("incoming-")] == []


def test_a_server_that_is_stopped_gives_its_job_back(program: Leadline) -> None:
    """It ends in order in mid-embed; the job waits, no try of it is lost, and the next server finishes it."""
    client = program.client
    before = embedded(program.folder)
    accepted = upload(client, many_chunks("green"), collection="stopped")
    job_id = accepted.json()["id"]
    until(client, job_id, "running")
    while embedded(program.folder) == before:
        assert client.get(f"/jobs/{job_id}").json()["status"] == "running"
        time.sleep(0.02)
    program.stop()
    with sqlite3.connect(program.folder / "catalog.db") as connection:
        kept_job = connection.execute("SELECT status, attempts, claim FROM jobs WHERE id = ?", [job_id])
        assert kept_job.fetchall() == [("queued", 0, None)]
    program.start()
    job = finished(client, accepted)
    assert (job["status"], job["attempts"]) == ("done", 1)
    assert "7719" in answer(client, QUESTION, collection="stopped")["answer"]


def test_a_document_deleted_while_it_is_taken_in_does_not_come_back(serving: Serving, tmp_path: Path) -> None:
    """The job ends and says so; nothing of it is found, listed or kept. Uploaded again it is there."""
    folder = tmp_path / "data"
    with serving(load_settings(data_dir=folder)) as url, client_of(url) as client:
        text = long_text(15, SECRET)
        accepted = upload(client, {"lighthouse.md": text})
        job = until(client, accepted.json()["id"], "running")
        doc_id = job["items"][0]["doc_id"]
        assert client.delete(f"/documents/{doc_id}").status_code == 200
        assert documents(client) == {}
        assert error(client.get(f"/documents/{doc_id}")) == (404, "document_unknown")
        job = finished(client, accepted)
        assert job["status"] == "failed"
        assert "deleted" in job["items"][0]["error"]
        assert documents(client) == {}
        assert answer(client, QUESTION)["status"] == "abstained"
        assert kept(folder) == []
        again = finished(client, upload(client, {"lighthouse.md": f"# Codes\n\n{SECRET}\n"}))
        assert again["status"] == "done"
        assert "7719" in answer(client, QUESTION)["answer"]


def test_a_document_deleted_while_it_waits_is_never_read(serving: Serving, tmp_path: Path) -> None:
    """Its job ends at once, and its bytes are gone at once."""
    folder = tmp_path / "data"
    with serving(load_settings(data_dir=folder)) as url, client_of(url) as client:
        busy = upload(client, {"busy.md": long_text(15)})
        until(client, busy.json()["id"], "running")
        waiting = upload(client, {"waiting.md": f"# Codes\n\n{SECRET}\n"})
        doc_id = waiting.json()["items"][0]["doc_id"]
        document = client.get(f"/documents/{doc_id}").json()
        assert (document["status"], document["passages"], document["total"]) == ("indexing", [], 0)
        assert client.delete(f"/documents/{doc_id}").json()["chunks"] == 0
        job = client.get(f"/jobs/{waiting.json()['id']}").json()
        assert (job["status"], job["attempts"]) == ("failed", 0)
        assert hashlib.sha256(f"# Codes\n\n{SECRET}\n".encode()).hexdigest() not in kept(folder)
        assert finished(client, busy)["status"] == "done"
        assert documents(client).keys() == {"busy.md"}


def test_a_document_deleted_while_its_new_version_waits_is_gone_whole(serving: Serving, tmp_path: Path) -> None:
    """The version that answers and the one that waits: neither is left, nor the bytes of either."""
    folder = tmp_path / "data"
    with serving(load_settings(data_dir=folder)) as url, client_of(url) as client:
        finished(client, upload(client, {"code.md": f"# Codes\n\n{SECRET}\n"}))
        busy = upload(client, {"busy.md": long_text(15)})
        until(client, busy.json()["id"], "running")
        waiting = upload(client, {"code.md": f"# Codes\n\n{SECRET} It was changed.\n"})
        document = documents(client)["code.md"]
        assert (document["status"], document["chunks"]) == ("indexing", 1)
        replies = [client.delete(f"/documents/{document['doc_id']}") for _ in range(2)]
        assert [reply.status_code for reply in replies] == [200, 404]
        assert finished(client, waiting)["status"] == "failed"
        finished(client, busy)
        assert documents(client).keys() == {"busy.md"}
        assert kept(folder) == [hashlib.sha256(long_text(15).encode()).hexdigest()]


def test_jobs_are_listed_newest_first(serving: Serving, tmp_path: Path) -> None:
    """Those of the collection, each as it is asked for alone."""
    with serving(load_settings(data_dir=tmp_path / "data")) as url, client_of(url) as client:
        done = [finished(client, upload(client, {f"{n}.md": f"# {n}\n\nText {n}.\n"})) for n in range(3)]
        finished(client, upload(client, {"x.md": "# X\n\nText.\n"}, collection="other"))
        assert client.get("/jobs").json()["jobs"] == done[::-1]
        assert error(client.get("/jobs/nothing")) == (404, "job_unknown")


def test_what_stops_a_job_is_seen_and_tried_again(serving: Serving, tmp_path: Path) -> None:
    """A model that can't be loaded: the error stands with the job while it waits, without a path of the machine."""
    folder = tmp_path / "data"
    settings = load_settings(data_dir=folder, embedding_model=str(folder / "no-model"))
    with serving(settings) as url, client_of(url) as client:
        job_id = upload(client, {"a.md": "# A\n\nText.\n"}).json()["id"]
        limit = time.monotonic() + PATIENCE_S
        while not (job := client.get(f"/jobs/{job_id}").json())["error"]:
            assert time.monotonic() < limit, "nothing was said of it"
            time.sleep(0.02)
        assert job["attempts"] >= 1
        assert "no-model" in job["error"]
        assert str(folder) not in job["error"]
        assert job["items"][0]["status"] in ("queued", "running")
    with serving(load_settings(data_dir=folder)) as url, client_of(url) as client:
        assert until(client, job_id, "done")["error"] is None
