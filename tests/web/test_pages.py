"""The fetch of single pages: what goes out, where it may go, and what is taken in."""

import gzip
import socket
import ssl
import time
import zlib
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from tests.servers.certificates import self_signed_context
from tests.servers.http_servers import Handler, running

from leadline.errors import PageUnavailable
from leadline.web import PageFetcher
from leadline.web.addresses import is_public

HTML = "<html><body><p>Four metres.</p></body></html>"


async def test_a_page_comes_with_its_address_kind_and_time(search_server: Any) -> None:
    """The body as it came, the charset that the server states, and the time in UTC."""
    url = search_server.page("/tides", HTML, headers={"Content-Type": 'Text/HTML; Charset="ISO-8859-1"; x=y'})
    page = await search_server.fetcher().fetch(f"{url}?a=1#noon")
    assert (page.url, page.media_type, page.charset) == (f"{url}?a=1", "text/html", "iso-8859-1")
    assert page.body == HTML.encode()
    assert page.retrieved_at.endswith("+00:00")


async def test_nothing_but_the_request_goes_out(search_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte: line, host, an honest name, what can be read. No cookie that an earlier page set, no referrer."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    cookie = {"Content-Type": "text/html", "Set-Cookie": "id=8841; Path=/"}
    second = search_server.page("/second", HTML, headers=cookie)
    first = search_server.page("/first", "", status=302, location="/second", headers=cookie)
    fetcher = search_server.fetcher()
    assert (await fetcher.fetch(first)).url == second
    await fetcher.fetch(second)
    requests = search_server.recorded.decode().split("\r\n\r\n")
    assert len(requests) == 4
    for request in requests[:-1]:
        line, *headers = request.split("\r\n")
        assert line in ("GET /first HTTP/1.1", "GET /second HTTP/1.1")
        names = [header.partition(":")[0] for header in headers]
        assert names == ["Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"]
        assert "leadline/" in headers[1]


@pytest.mark.parametrize("to", ["http://10.0.0.1/", "http://169.254.169.254/latest/meta-data", "file:///etc/passwd"])
async def test_every_redirect_is_checked_anew(search_server: Any, to: str) -> None:
    """A public page that leads inside leads nowhere."""
    url = search_server.page("/", "", status=302, location=to)
    with pytest.raises(PageUnavailable):
        await search_server.fetcher().fetch(url)
    assert len(search_server.fetched) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "localhost.", "LOCALHOST"])
async def test_this_machine_is_never_fetched_from(search_server: Any, host: str) -> None:
    """Without the tests' own permission, no name of this machine is connected to."""
    search_server.page("/", HTML)
    port = search_server.origin.rsplit(":", 1)[1]
    with pytest.raises(PageUnavailable, match="no public address"):
        await PageFetcher().fetch(f"http://{host}:{port}/")
    assert not search_server.recorded


def resolver(*answers: list[str]) -> Any:
    """A name server that gives these answers one after the other, and remembers the names."""
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        resolve.names.append(host)  # type: ignore[attr-defined]
        return left.pop(0)

    resolve.names = []  # type: ignore[attr-defined]
    return resolve


async def test_a_name_is_resolved_once_and_that_very_address_is_used(
    search_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that answers otherwise the second time (DNS rebinding) isn't asked a second time."""
    search_server.page("/", HTML)
    connected: list[Any] = []
    connect = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", lambda sock, to: (connected.append(to[0]), connect(sock, to))[1])
    port = search_server.origin.rsplit(":", 1)[1]
    resolve = resolver(["127.0.0.1"], ["10.0.0.1"])
    page = await search_server.fetcher(resolver=resolve).fetch(f"http://tides.example:{port}/")
    assert page.url == f"http://tides.example:{port}/"
    assert resolve.names == ["tides.example"]
    assert connected == ["127.0.0.1"]
    assert f"Host: tides.example:{port}".encode() in search_server.recorded


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["127.0.0.1", "::ffff:10.0.0.1"], []])
async def test_a_name_that_also_leads_inside_is_refused_whole(search_server: Any, addresses: list[str]) -> None:
    """One address that isn't permitted, or none at all, and nothing is connected to."""
    port = search_server.origin.rsplit(":", 1)[1]
    with pytest.raises(PageUnavailable):
        await search_server.fetcher(resolver=resolver(addresses)).fetch(f"http://tides.example:{port}/")
    assert not search_server.recorded


async def test_a_redirect_resolves_its_name_anew(search_server: Any) -> None:
    """The second step's answer is checked as the first one's was."""
    port = search_server.origin.rsplit(":", 1)[1]
    search_server.page("/", "", status=307, location=f"http://inside.example:{port}/secret")
    resolve = resolver(["127.0.0.1"], ["192.168.1.1"])
    with pytest.raises(PageUnavailable, match=r"inside\.example leads to 192\.168\.1\.1"):
        await search_server.fetcher(resolver=resolve).fetch(f"http://tides.example:{port}/")
    assert resolve.names == ["tides.example", "inside.example"]


async def test_an_address_that_is_silent_does_not_hide_the_next(search_server: Any) -> None:
    """Of several permitted addresses the first that answers is used."""
    search_server.page("/", HTML)
    port = search_server.origin.rsplit(":", 1)[1]
    resolve = resolver(["127.0.0.2", "127.0.0.1"])
    loopback = search_server.fetcher(resolver=resolve, permitted=lambda address: address.is_loopback)
    with pytest.MonkeyPatch.context() as patch:  # the guard of the tests knows one address of this machine
        patch.setattr("tests.conftest._REACHABLE", {"127.0.0.1", "127.0.0.2"}, raising=False)
        page = await loopback.fetch(f"http://tides.example:{port}/")
    assert page.body == HTML.encode()


async def test_tls_asks_for_the_certificate_of_the_name(tmp_path: Path) -> None:
    """The connection goes to the address, the certificate must be the name's: another name is refused."""

    class Page(Handler):
        def respond(self) -> None:
            self.answer(200, HTML.encode(), {"Content-Type": "text/html"})

    server_side = self_signed_context(tmp_path)
    asked: list[str | None] = []
    server_side.sni_callback = lambda _, name, __: asked.append(name)
    trusting = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))

    async def here(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    with running(Page, server_side) as server:
        options: Any = {"permitted": lambda address: address.is_loopback, "resolver": here}
        fetcher = PageFetcher(tls=trusting, **options)
        assert (await fetcher.fetch(f"{server.url}/")).body == HTML.encode()
        with pytest.raises(PageUnavailable, match="certificate"):
            await fetcher.fetch(f"https://tides.example:{server.server_port}/")
        with pytest.raises(PageUnavailable, match="certificate"):
            await PageFetcher(**options).fetch(f"{server.url}/")
    assert asked == [None, "tides.example", None]


async def test_redirects_end(search_server: Any) -> None:
    """A circle is left after a few turns; a redirect to nowhere is no page."""
    url = search_server.page("/round", "", status=301, location="/round")
    with pytest.raises(PageUnavailable, match="redirects more than"):
        await search_server.fetcher().fetch(url)
    assert len(search_server.fetched) == 6
    nowhere = search_server.page("/nowhere", "", status=302, location="http://[::1")
    with pytest.raises(PageUnavailable):
        await search_server.fetcher().fetch(nowhere)
    with pytest.raises(PageUnavailable, match="302"):
        await search_server.fetcher().fetch(search_server.page("/lost", HTML, status=302))


@pytest.mark.parametrize("kind", ["application/pdf", "image/png", "application/octet-stream", "application/json", ""])
async def test_only_pages_of_text_are_taken(search_server: Any, kind: str) -> None:
    """Anything else is refused by what the server says of it, before its body is read."""
    headers = {"Content-Type": kind} if kind else {}
    url = search_server.page("/", "", parts=(HTML.encode(),) * 2, pause_s=2, headers=headers)
    begun = time.monotonic()
    with pytest.raises(PageUnavailable, match="not a page of text"):
        await search_server.fetcher().fetch(url)
    assert time.monotonic() - begun < 1.5


@pytest.mark.parametrize("status", [204, 401, 403, 404, 410, 429, 500, 503])
async def test_an_error_page_is_no_page(search_server: Any, status: int) -> None:
    """What a server says beside an error status is never taken for its page."""
    with pytest.raises(PageUnavailable, match=str(status)):
        await search_server.fetcher().fetch(search_server.page("/", "" if status == 204 else HTML, status=status))


async def test_an_endless_page_is_left(search_server: Any) -> None:
    """By its stated length at once, else as soon as more has come than is allowed."""
    stated = search_server.page("/stated", "x" * 20_000)
    unstated = search_server.page("/unstated", "", parts=(b"x" * 6000,) * 50)
    for url in (stated, unstated):
        with pytest.raises(PageUnavailable, match="larger than 10,000"):
            await search_server.fetcher(max_bytes=10_000).fetch(url)


async def test_a_page_that_drips_is_left_in_time(search_server: Any) -> None:
    """The time is for the whole fetch: a byte now and then doesn't prolong it."""
    url = search_server.page("/", "", parts=(b"x",) * 100, pause_s=0.2)
    begun = time.monotonic()
    with pytest.raises(PageUnavailable, match="within 1 s"):
        await search_server.fetcher(timeout_s=1).fetch(url)
    assert time.monotonic() - begun < 3


def packed(body: bytes, encoding: str = "gzip") -> dict[str, Any]:
    """A page with this body and encoding."""
    return {"body": body, "headers": {"Content-Type": "text/html", "Content-Encoding": encoding}}


async def test_a_packed_page_is_unpacked(search_server: Any) -> None:
    """gzip is what was asked for."""
    page = await search_server.fetcher().fetch(search_server.page("/", **packed(gzip.compress(HTML.encode()))))
    assert page.body == HTML.encode()


BOMB = gzip.compress(b"\0" * 50_000_000, mtime=0)  # without the time, all workers name the tests alike


@pytest.mark.parametrize(
    ("body", "encoding", "why"),
    [
        (BOMB, "gzip", "larger than"),
        (gzip.compress(BOMB, mtime=0), "gzip, gzip", "not asked for"),
        (zlib.compress(HTML.encode()), "deflate", "not asked for"),
        (b"x", "br", "not asked for"),
        (HTML.encode(), "gzip", "damaged"),
        (gzip.compress(HTML.encode(), mtime=0)[:-20], "gzip", "broke off"),
        (b"", "gzip", "broke off"),
    ],
)
async def test_a_bomb_does_not_go_off(search_server: Any, body: bytes, encoding: str, why: str) -> None:
    """Unpacked only up to the limit; packed twice, in a way that wasn't asked for, or damaged: refused."""
    import tracemalloc

    url = search_server.page("/", **packed(body, encoding))
    tracemalloc.start()
    try:
        with pytest.raises(PageUnavailable, match=why):
            await search_server.fetcher(max_bytes=1_000_000).fetch(url)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


async def test_a_dead_server_is_a_page_less(search_server: Any) -> None:
    """A refused connection, a connection cut in mid-page, nonsense in place of HTTP."""
    cut = search_server.page(
        "/cut", "", parts=(b"x" * 10,), headers={"Content-Type": "text/html", "Content-Length": "99"}
    )
    nonsense = search_server.page("/odd", HTML, headers={"Content-Type": "text/html", "Transfer-Encoding": "chunked"})
    for url in ("http://127.0.0.1:9/", cut, nonsense):
        with pytest.raises(PageUnavailable):
            await search_server.fetcher().fetch(url)


def test_the_guard_is_on_unless_a_test_takes_it_off() -> None:
    """The permission is the constructor's default; no setting has a name for it."""
    from leadline.config import Settings

    assert PageFetcher()._backend._permitted is is_public
    assert not is_public(ip_address("127.0.0.1"))
    web_settings = {name for name in Settings.model_fields if name.startswith("web")}
    assert web_settings == {"web_timeout_s", "web_provider", "web_url", "web_pages", "web_cache_hours"}
