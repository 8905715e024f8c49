"""The bodies of uploads: limits that hold while they are read, names, what is no upload, and what is left of those."""

import asyncio
import hashlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from pypdf import PdfWriter
from tests.api.conftest import running_server
from tests.api.test_documents import PUMP
from tests.api.uploading import answer, client_of, documents, error, finished, kept, upload

from leadline import load_settings

MB = 1_000_000


class Small:
    """A server with small limits."""

    def __init__(self, url: str, folder: Path, client: httpx.Client) -> None:
        self.url, self.folder, self.client = url, folder, client
        self.port = urlsplit(url).port or 0


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    """Three files, 4 MB together, 2 MB each, two pages."""
    folder = tmp_path_factory.mktemp("small") / "data"
    limits = {"max_upload_files": 3, "max_upload_mb": 4, "max_file_mb": 2, "max_pages": 2}
    settings = load_settings(data_dir=folder, rate_per_minute=10_000, **limits)
    with running_server(settings) as url, client_of(url) as client:
        yield Small(url, folder, client)


@pytest.fixture(autouse=True)
def nothing_left(small: Small) -> Iterator[None]:
    """Whatever is refused, the folder holds afterwards what it held before, and no job was made."""
    yield
    deadline = time.monotonic() + 20
    while any(name.startswith("incoming-") for name in kept(small.folder)):
        assert time.monotonic() < deadline, kept(small.folder)
        time.sleep(0.05)


def test_too_large_a_file_is_refused_by_name(small: Small) -> None:
    """413 names the file and the limit; nothing of the upload is kept, not even the files before it."""
    before = kept(small.folder)
    response = upload(small.client, {"first.md": PUMP, "large.txt": b"x" * (2 * MB + 1)})
    assert error(response) == (413, "upload_too_large")
    assert "large.txt is larger than a file may be, 2 MB." in response.text
    assert kept(small.folder) == before
    assert upload(small.client, {"just.txt": b" " * (2 * MB)}).status_code == 202


def test_too_large_an_upload_is_refused(small: Small) -> None:
    """By its declared length, before it is read."""
    before = kept(small.folder)
    response = upload(small.client, {f"{n}.txt": b"x" * (2 * MB) for n in range(3)})
    assert error(response) == (413, "too_large")
    assert "An upload may have 4 MB." in response.text
    assert kept(small.folder) == before


def test_too_many_files_are_refused(small: Small) -> None:
    """413 with the number that is allowed; none is taken in."""
    before = kept(small.folder)
    response = upload(small.client, {f"{n}.md": PUMP for n in range(4)})
    assert error(response) == (413, "upload_too_large")
    assert "An upload may have 3 files." in response.text
    assert kept(small.folder) == before


def test_an_endless_stream_is_cut_off(small: Small) -> None:
    """Without a length, a body is refused when it has passed a limit: the server reads no further and keeps nothing."""
    before = kept(small.folder)
    head = b'--b\r\nContent-Disposition: form-data; name="files"; filename="endless.txt"\r\n\r\n'
    sent = 0
    with socket.create_connection(("127.0.0.1", small.port), timeout=30) as connection:
        connection.sendall(
            b"POST /documents HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\n%x\r\n%s\r\n" % (len(head), head)
        )
        piece = b"x" * 100_000
        try:
            for _ in range(5000):  # half a gigabyte
                connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                sent += len(piece)
        except OSError:
            pass  # the server has closed the connection
    assert sent < 100 * MB
    assert kept(small.folder) == before


def test_an_endless_number_of_tiny_files_is_cut_off(small: Small) -> None:
    """A hundred thousand of them: the first one too many ends it."""
    part = b'--b\r\nContent-Disposition: form-data; name="files"; filename="%d.txt"\r\n\r\nx\r\n'
    pulled = 0

    def body() -> Iterator[bytes]:
        nonlocal pulled
        for pulled in range(0, 100_000, 100):
            yield b"".join(part % n for n in range(pulled, pulled + 100))

    headers = {"content-type": "multipart/form-data; boundary=b"}
    response = small.client.post("/documents", content=body(), headers=headers)
    assert error(response) == (413, "upload_too_large")
    assert pulled < 99_000


def test_a_document_of_too_many_pages_fails_with_the_limit(small: Small) -> None:
    """The upload is taken; its file has failed and says how many pages are allowed."""
    writer = PdfWriter()
    for _ in range(3):
        writer.add_blank_page(200, 200)
    path = small.folder.parent / "pages.pdf"
    writer.write(path)
    job = finished(small.client, upload(small.client, {"pages.pdf": path.read_bytes()}))
    assert job["status"] == "failed"
    assert "3 pages, more than 2" in job["items"][0]["error"]


def test_a_failed_upload_is_seen_in_the_collection_it_began(small: Small) -> None:
    """Nothing of it could be read: the collection is there, empty, and by its name the job and the reason are found."""
    job = finished(small.client, upload(small.client, {"photo.pdf": b"no PDF"}, collection="begun"))
    assert job["status"] == "failed"
    listed = small.client.get("/collections").json()["collections"]
    assert {"name": "begun", "documents": 0, "chunks": 0} in listed
    assert [each["id"] for each in small.client.get("/jobs?collection=begun").json()["jobs"]] == [job["id"]]
    failed = documents(small.client, collection="begun")["photo.pdf"]
    assert (failed["status"], failed["error"]) == ("failed", job["items"][0]["error"])
    assert failed["error"]


def test_a_hostile_line_holds_nothing_up(small: Small) -> None:
    """A line of a million letters is taken in, or refused, in a while; others are answered meanwhile."""
    accepted = upload(small.client, {"line.md": b"a" * MB}, collection="hostile")
    slowest = 0.0
    while small.client.get(f"/jobs/{accepted.json()['id']}").json()["status"] in ("queued", "running"):
        began = time.monotonic()
        assert small.client.get("/health").status_code == 200
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.05)
    assert slowest < 5


def test_a_client_that_goes_away_leaves_nothing(small: Small) -> None:
    """Half a file is removed when the connection ends, and the server goes on."""
    before = kept(small.folder)
    head = b'--b\r\nContent-Disposition: form-data; name="files"; filename="half.txt"\r\n\r\n' + b"x" * 100_000
    with socket.create_connection(("127.0.0.1", small.port), timeout=30) as connection:
        connection.sendall(
            b"POST /documents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\n" + head
        )
        deadline = time.monotonic() + 20
        while kept(small.folder) == before:
            assert time.monotonic() < deadline, "it is received as it comes"
            time.sleep(0.02)
    deadline = time.monotonic() + 20
    while kept(small.folder) != before:
        assert time.monotonic() < deadline, "what was half received stays"
        time.sleep(0.02)
    assert small.client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("body", "content_type", "says"),
    [
        (b"{}", "application/json", "not multipart/form-data"),
        (b"", "multipart/form-data; boundary=b", "broke off"),
        (b"nonsense", "multipart/form-data; boundary=b", "not multipart/form-data"),
        (b"--b--\r\n", "multipart/form-data; boundary=b", "holds no file"),
        (b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.md"\r\n\r\nhalf', "", "broke off"),
        (b'--b\r\nContent-Disposition: form-data; name="files"; filename=""\r\n\r\nx\r\n--b--\r\n', "", "no name"),
        (b'--b\r\nContent-Disposition: form-data; name="other"; filename="a.md"\r\n\r\nx\r\n--b--\r\n', "", "'other'"),
        (b"--b\r\nX: y\r\n\r\nx\r\n--b--\r\n", "", "There is no field ''"),
        (b"--b\r\n" + b"X: " + b"y" * 11_000 + b"\r\n\r\nx\r\n--b--\r\n", "", "takes more than"),
    ],
)
def test_what_is_no_upload_is_refused(small: Small, body: bytes, content_type: str, says: str) -> None:
    """422 in the one shape, with what is wrong; nothing is kept and no job made."""
    before = kept(small.folder)
    headers = {"content-type": content_type or "multipart/form-data; boundary=b"}
    response = small.client.post("/documents", content=body, headers=headers, params={"collection": "none"})
    assert error(response) == (422, "upload_refused")
    assert says in response.json()["error"]["message"]
    assert kept(small.folder) == before
    assert error(small.client.get("/jobs", params={"collection": "none"})) == (404, "collection_unknown")


def test_two_files_of_one_name_are_refused(small: Small) -> None:
    """One would replace the other, and nobody could say which."""
    form = [("files", ("a/x.md", b"one")), ("files", ("b/x.md", b"two"))]
    response = small.client.post("/documents", files=form)
    assert error(response) == (422, "upload_refused")
    assert "both called x.md" in response.text


def test_names_never_lead_anywhere(small: Small) -> None:
    """Whatever a file is called, its bytes are under their hash in the one folder, and its label is only shown."""
    names = ["../../x.txt", "..\\y.txt", "/etc/z.txt", "a\0b.txt", "CON.txt", "n" * 300 + ".txt", "文書.txt"]
    labels = set()
    for number, name in enumerate(names):
        data = f"The tide table has {number} errors.".encode()
        # As some clients send names: raw, between quotes.
        raw = name.encode().replace(b"\\", b"\\\\")
        head = b'--b\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n\r\n' % raw
        response = small.client.post(
            "/documents",
            content=head + data + b"\r\n--b--\r\n",
            headers={"content-type": "multipart/form-data; boundary=b"},
            params={"collection": "names"},
        )
        job = finished(small.client, response)
        assert job["status"] == "done", job
        assert hashlib.sha256(data).hexdigest() in kept(small.folder)
        labels.add(job["items"][0]["file_name"])
    assert {"x.txt", "y.txt", "z.txt", "ab.txt", "CON.txt", "文書.txt"} < labels
    assert documents(small.client, collection="names").keys() == labels
    assert not list(small.folder.parent.glob("*.txt"))
    assert "文書.txt" in {
        c["file_name"]
        for c in answer(small.client, "How many errors has the tide table?", collection="names")["context"]
    }


async def test_uploads_at_once_are_all_taken_in(small: Small) -> None:
    """From many clients, in one collection: every document is there, each once."""
    async with httpx.AsyncClient(base_url=small.url, timeout=90, trust_env=False) as client:
        texts = {f"{n}.md": f"# Berth {n}\n\nBerth {n} is {n + 5} metres deep.\n" for n in range(12)}
        sent = [
            client.post("/documents", files=[("files", (name, text.encode()))], params={"collection": "many"})
            for name, text in texts.items()
        ]
        accepted = await asyncio.gather(*sent)
    for response in accepted:
        assert (await asyncio.to_thread(finished, small.client, response))["status"] == "done"
    found = documents(small.client, collection="many")
    assert found.keys() == texts.keys()
    assert {document["status"] for document in found.values()} == {"ready"}
