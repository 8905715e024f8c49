"""What tests of uploads share: a client that uploads, and waits for a job."""

import time
from pathlib import Path
from typing import Any

import httpx

PATIENCE_S = 90.0


def client_of(url: str, token: str = "") -> httpx.Client:
    """A client of the server at `url`."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=url, timeout=60, trust_env=False, headers=headers)


def upload(client: httpx.Client, files: dict[str, bytes | str], **query: str) -> httpx.Response:
    """Sends files by their names."""
    form = [("files", (name, data if isinstance(data, bytes) else data.encode())) for name, data in files.items()]
    return client.post("/documents", files=form, params=query)


def until(client: httpx.Client, job_id: str, *statuses: str) -> dict[str, Any]:
    """The job once it has one of the statuses."""
    limit = time.monotonic() + PATIENCE_S
    while True:
        job: dict[str, Any] = client.get(f"/jobs/{job_id}").raise_for_status().json()
        if job["status"] in statuses:
            return job
        assert time.monotonic() < limit, job
        time.sleep(0.05)


def finished(client: httpx.Client, accepted: httpx.Response) -> dict[str, Any]:
    """The job of an accepted upload at its end."""
    assert accepted.status_code == 202, accepted.text
    return until(client, accepted.json()["id"], "done", "partial", "failed")


def documents(client: httpx.Client, **query: str) -> dict[str, dict[str, Any]]:
    """File name → document, as the collection lists them."""
    listed = client.get("/documents", params=query).raise_for_status().json()["documents"]
    return {document["file_name"]: document for document in listed}


def answer(client: httpx.Client, question: str, **given: Any) -> dict[str, Any]:
    """The result of a question."""
    body = {"question": question, "web": "never", "stream": False, **given}
    result: dict[str, Any] = client.post("/chat", json=body).raise_for_status().json()
    return result


def error(response: httpx.Response) -> tuple[int, str]:
    """The status and code of an error in the one shape."""
    found = response.json()["error"]
    assert set(found) == {"code", "message", "hint"}
    return response.status_code, found["code"]


def kept(folder: Path) -> list[str]:
    """What lies in the folder of uploads of a data folder."""
    uploads = folder / "uploads"
    return sorted(path.name for path in uploads.iterdir()) if uploads.is_dir() else []


def long_text(sections: int, secret: str = "") -> str:
    """A document that takes a while: some hundred words a section; `secret` is the last one."""
    words = "The harbour keeps a light for every ship that comes in by night and a pilot for every one that asks."
    text = [f"# Section {n}\n\n" + " ".join(f"{words} ({n}.{k})" for k in range(12)) for n in range(sections)]
    return "\n\n".join([*text, f"# The end\n\n{secret}\n"])
