"""What every response says to a browser, whom a browser may bring along, and what is never said at all."""

import asyncio
import logging
import logging.config
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.conftest import FEW
from tests.servers.chat_server import LITELLM_WARNINGS, ChatServer, Reply, says
from tests.servers.guarded_server import Guarded

from leadline import App, Settings, ingest_paths, load_settings, open_library
from leadline.api.tokens import add_token
from leadline.logs import log_config

pytestmark = LITELLM_WARNINGS

Serving = Callable[[Settings], AbstractContextManager[str]]

QUESTION = {"question": "What does error E-217 mean?", "stream": False, "web": "never"}
POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "font-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/health", 200),
        ("GET", "/nothing", 404),
        ("PUT", "/chat", 405),
        ("POST", "/chat", 422),
        ("GET", "/static/style.css", 200),
    ],
)
def test_every_response_has_the_headers(client: httpx.Client, method: str, path: str, status: int) -> None:
    """Good ones, errors, the page: scripts and styles of this server only, no guessing, no frames, no referrer."""
    answer = client.request(method, path)
    assert answer.status_code == status
    assert set(answer.headers["content-security-policy"].split("; ")) == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "server" not in answer.headers or answer.headers["server"] == "uvicorn"


def test_answers_are_kept_nowhere(client: httpx.Client) -> None:
    """Neither streamed nor whole ones, nor documents, nor errors."""
    answers = [client.post("/chat", json={**QUESTION, "stream": stream}) for stream in (True, False)]
    answers += [client.get("/documents"), client.get("/threads"), client.get("/nothing")]
    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}


def test_a_refusal_has_the_headers_too(guarded: Guarded) -> None:
    """401 and 403 come before the routes."""
    with guarded.client(None) as stranger:
        for answer in (stranger.get("/collections"), stranger.get("/about", headers={"host": "evil.example"})):
            assert answer.status_code in (401, 403, 429)
            assert set(answer.headers["content-security-policy"].split("; ")) == POLICY


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "localhost.evil.example"}, 403),
        ({"host": "docs.example.evil"}, 403),
        ({"host": "evil@localhost"}, 403),  # what isn't a plain host[:port] is nobody's
        ({"host": "evil:80@docs.example"}, 403),
        ({"host": "docs.example/evil.example"}, 403),
        ({"host": "docs.example?evil.example"}, 403),
        ({"host": "docs.example#evil.example"}, 403),
        ({"host": "docs.example, evil.example"}, 403),
        ({"host": "docs.example:evil"}, 403),
        ({"host": "http://docs.example"}, 403),
        ({"host": "docs.example\\"}, 403),
        ({"host": "[::1"}, 403),
        ({"host": "[::1]:8321"}, 200),
        ({"host": "docs.example."}, 200),
        ({"host": "docs.example:"}, 200),
        ({"host": "localhost", "origin": "https://evil@docs.example"}, 403),
        ({"host": "localhost", "origin": "https://docs.example/evil"}, 403),
        ({"host": "localhost", "origin": "docs.example"}, 403),
        ({"host": ""}, 403),
        ({"host": "docs.example"}, 200),
        ({"host": "DOCS.example:8443"}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "docs.example", "origin": "https://docs.example"}, 200),
        ({"host": "localhost", "origin": "https://docs.example"}, 200),  # a proxy that keeps the name to itself
        ({"origin": "https://app.example"}, 200),
        ({"origin": "https://APP.example"}, 200),
        ({"origin": "http://app.example"}, 403),
        ({"origin": "https://app.example:444"}, 403),
        ({"origin": "https://app.example.evil"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
    ],
)
def test_names_and_pages_that_may_ask(named: str, headers: dict[str, str], status: int) -> None:
    """This machine and the allowed names; their own pages and the allowed ones; nothing that only looks like them."""
    answer = httpx.get(f"{named}/health", headers=headers, trust_env=False)
    assert answer.status_code == status


@pytest.fixture(scope="module")
def named(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that may be asked as docs.example, and from the pages of https://app.example."""
    from tests.api.conftest import running_server

    folder = shutil.copytree(copied, tmp_path_factory.mktemp("named") / "data")
    with running_server(
        load_settings(data_dir=folder, allowed_hosts=["docs.example"], cors_origins=["https://app.example"])
    ) as url:
        yield url


def test_origins_are_named_never_reflected(named: str) -> None:
    """Only an allowed page may read; no cookie is asked for; a refused preflight is in the one shape."""
    with httpx.Client(base_url=named, trust_env=False) as client:
        asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
        good = client.options("/chat", headers={"origin": "https://app.example", **asks})
        assert (good.status_code, good.headers["access-control-allow-origin"]) == (200, "https://app.example")
        assert "access-control-allow-credentials" not in good.headers
        read = client.get("/health", headers={"origin": "https://app.example"})
        assert read.headers["access-control-allow-origin"] == "https://app.example"
        for origin in ("https://evil.example", "null"):
            bad = client.options("/chat", headers={"origin": origin, **asks})
            assert bad.status_code == 403
            assert "access-control-allow-origin" not in bad.headers
        put = client.options("/chat", headers={"origin": "https://app.example", "access-control-request-method": "PUT"})
        assert (put.status_code, put.json()["error"]["code"]) == (400, "cors")


def test_without_allowed_origins_no_page_is_told_anything(client: httpx.Client) -> None:
    """No header of CORS, whatever is asked."""
    for origin in ("https://app.example", str(client.base_url)):
        asked = client.options("/chat", headers={"origin": origin, "access-control-request-method": "POST"})
        assert asked.status_code in (403, 405)
        assert not [name for name in asked.headers if name.startswith("access-control")]


def test_a_fault_is_told_without_its_words(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the answer nor the log has the message of an error that nobody expected: it may quote a document."""

    quoted = "Orla Quist"

    async def broken(app: App, *_: Any) -> Any:
        raise ValueError(f"the patient is {quoted}")  # the log shows this line, as it stands here

    monkeypatch.setattr(App, "threads", broken)
    answer = client.get("/threads")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "Quist" not in answer.text + caplog.text
    assert "ValueError" in caplog.text
    assert "threads.py" in caplog.text


def test_an_error_repeats_little(client: httpx.Client) -> None:
    """A body of a thousand wrong fields, or one with a field of a megabyte, gets a short answer."""
    many = client.post("/chat", json={"question": "x", **{f"field{n}": n for n in range(1000)}})
    long = client.post("/chat", json={"question": "x", "f" * 1_000_000: 1})
    for answer in (many, long):
        assert answer.status_code == 422
        assert len(answer.content) < 4000


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_log_holds_no_secret_and_no_text(
    copied: Path,
    tmp_path: Path,
    serving: Serving,
    chat_server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    log_format: str,
) -> None:
    """At its most talkative: no token, no key, no word of a document, question or answer, also where things fail."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-key-8841")
    (tmp_path / "secret.txt").write_text("The patient Orla Quist takes zebranol.")
    folder = shutil.copytree(copied, tmp_path / "data")
    token = add_token(folder, "ana", None, may_write=True)
    run = {"web": "never", "llm": "openai/scripted", **FEW}
    settings = load_settings(data_dir=folder, llm_api_base=chat_server.url, llm_retries=0, log_level="debug", run=run)
    asyncio.run(_ingest(settings, tmp_path / "secret.txt"))
    chat_server.script(
        says("Orla Quist takes zebranol [1]."), Reply(status=500, message="zebranol sk-planted-key-8841")
    )
    written: list[str] = []
    with serving(settings) as url:
        config = log_config(log_format, "debug")  # type: ignore[arg-type]
        logging.config.dictConfig(config)
        handler = _Kept(written, config["formatters"]["lines"])
        loggers = [logging.getLogger(name) for name in ("", "uvicorn.access")]
        try:
            for logger in loggers:
                logger.addHandler(handler)
            _ask_around(url, token, tmp_path)
        finally:
            for logger in loggers:
                logger.removeHandler(handler)
    log = "\n".join(written)
    assert "POST /chat" in log
    for planted in (token, token[-20:], "wrong-token-5513", "sk-planted-key-8841", "Quist", "zebranol"):
        assert planted not in log, [line for line in written if planted in line]


class _Kept(logging.Handler):
    """Keeps the lines that the server's own formatter makes."""

    def __init__(self, written: list[str], formatter: dict[str, Any]) -> None:
        super().__init__(logging.DEBUG)
        made = logging.config.BaseConfigurator({}).resolve(formatter["()"])
        self.setFormatter(made(formatter.get("format")) if "format" in formatter else made())
        self._written = written

    def emit(self, record: logging.LogRecord) -> None:
        """Formats and keeps."""
        self._written.append(self.format(record))


async def _ingest(settings: Settings, path: Path) -> None:
    async with open_library(settings) as library:
        await ingest_paths(await library.collection(), [path], settings)


def _ask_around(url: str, token: str, folder: Path) -> None:
    """Good requests and bad ones, each with something that must not be told on."""
    known = {"Authorization": f"Bearer {token}"}
    asked = {"question": "What does the patient Orla Quist take?", "thread_id": "t"}
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        client.get("/documents", headers={"Authorization": "Bearer wrong-token-5513"})
        client.headers.update(known)
        for stream in (False, True, False):  # the first is answered, the others meet a broken LLM
            client.post("/chat", json={**asked, "stream": stream})
        client.post("/chat", json={**asked, "Quist": 1})
        client.post("/chat", content=b'{"question": "zebranol', headers={"content-type": "application/json"})
        job = client.post("/documents", files={"files": ("broken.docx", b"zebranol, not a document")}).json()
        while client.get(f"/jobs/{job['id']}").json()["status"] in ("queued", "running"):
            time.sleep(0.02)
        for document in client.get("/documents").json()["documents"]:
            client.get(f"/documents/{document['doc_id']}")
