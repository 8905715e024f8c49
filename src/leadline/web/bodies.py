"""HTTP requests with hard limits: bytes as they arrive, bytes after unpacking, one encoding, plain errors.

Knows HTTP over `httpcore`: no cookies, no proxies, no redirects, nothing from the environment. Who may be asked is
decided by the caller's connection pool.
"""

import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

import httpcore

from leadline.errors import WebUnavailable

USER_AGENT: Final = f"leadline/{version('leadline')} (fetches single pages for a question that a person asked)"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `headers` by name in lower case; of a name that comes twice, the first."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


async def exchange(
    pool: httpcore.AsyncConnectionPool,
    request: httpcore.Request,
    *,
    max_bytes: int,
    wanted: Callable[[Answer], bool] = lambda _: True,
) -> Answer:
    """One request and its response; the body is read only where `wanted` says so of the head.

    Raises WebUnavailable for whatever goes wrong, and for a body of more than `max_bytes`, packed or unpacked.
    """
    try:
        response = await pool.handle_async_request(request)
        try:
            head = Answer(response.status, _headers(response))
            if not wanted(head):
                return head
            return Answer(head.status, head.headers, await _body(response, head.headers, max_bytes))
        finally:
            await response.aclose()
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
        raise WebUnavailable(f"{type(error).__name__}: {str(error)[:200]}".rstrip(": ") + ".") from error


def _headers(response: httpcore.Response) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in response.headers:
        headers.setdefault(name.decode("latin-1").lower(), _text(value))
    return headers


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


async def _body(response: httpcore.Response, headers: Mapping[str, str], max_bytes: int) -> bytes:
    stated = headers.get("content-length", "")
    if stated.isdecimal() and int(stated[:19]) > max_bytes:
        raise _too_large(max_bytes)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return await _plain(response.aiter_stream(), max_bytes)
    if encoding in ("gzip", "x-gzip"):
        return await _unpacked(response.aiter_stream(), max_bytes)
    raise WebUnavailable(f"The body is packed as {encoding[:40]}, which was not asked for.")


async def _plain(stream: AsyncIterator[bytes], max_bytes: int) -> bytes:
    body = bytearray()
    async for part in stream:
        body += part
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


async def _unpacked(stream: AsyncIterator[bytes], max_bytes: int) -> bytes:
    """Unpacks as it arrives, and never more than one byte over the limit: a small body may hold a huge one."""
    unpacker = zlib.decompressobj(wbits=31)
    body, arrived = bytearray(), 0
    async for part in stream:
        arrived += len(part)
        try:
            body += unpacker.decompress(part, max_bytes + 1 - len(body))
        except zlib.error:
            raise WebUnavailable("The packed body is damaged.") from None
        if max(len(body), arrived) > max_bytes:
            raise _too_large(max_bytes)
        if unpacker.eof:
            return bytes(body)
    raise WebUnavailable("The packed body broke off.")


def _too_large(max_bytes: int) -> WebUnavailable:
    return WebUnavailable(f"It is larger than {max_bytes:,} bytes.")
