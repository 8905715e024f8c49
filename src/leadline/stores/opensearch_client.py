"""A connection to an OpenSearch server, and its errors as ours.

Knows addresses, credentials and what the client library raises; knows nothing of what an index holds. No message
holds a password or the user part of an address.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from leadline.errors import ConfigError, MissingExtra, StoreError

if TYPE_CHECKING:
    from opensearchpy import AsyncOpenSearch

NO_INDEX = "index_not_found_exception"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is and who asks. `shown` is its address without the user part."""

    parts: SplitResult = field(repr=False)
    shown: str
    user: str | None
    password: str | None = field(repr=False)


def address(url: str, user: str | None, password: str | None) -> Address:
    """The address in `url`; a user in it counts where none is given. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        known = False
    if not known:
        raise ConfigError(
            "The url of OpenSearch isn't the address of a server.", hint="Write it like https://localhost:9200."
        )
    if user is None and parts.username:
        user, password = unquote(parts.username), unquote(parts.password or "")
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return Address(parts, f"{parts.scheme}://{host}{port}{parts.path}", user, password)


def connect(at: Address, *, verify_certs: bool, timeout: float) -> AsyncOpenSearch:
    """A client of the server; nothing is sent yet. Raises MissingExtra."""
    try:
        from opensearchpy import AsyncOpenSearch
    except ImportError as error:
        raise MissingExtra(
            "The opensearch backend needs the package opensearch-py.", hint="pip install 'leadline[opensearch]'"
        ) from error
    secure = at.parts.scheme == "https"
    return AsyncOpenSearch(
        hosts=[
            {
                "host": at.parts.hostname,
                "port": at.parts.port or (443 if secure else 80),
                "url_prefix": at.parts.path.strip("/"),
            }
        ],
        http_auth=(at.user, at.password or "") if at.user else None,
        use_ssl=secure,
        verify_certs=verify_certs,
        ssl_show_warn=False,
        timeout=timeout,
    )


@contextmanager
def errors_named(at: Address, timeout: float) -> Iterator[None]:
    """Turns the client library's errors into StoreError."""
    from opensearchpy import exceptions

    try:
        yield
    except exceptions.ConnectionTimeout as error:
        raise StoreError(
            f"OpenSearch at {at.shown} gave no answer within {timeout:g} s.",
            hint="Look whether it is overloaded, or set a longer timeout.",
        ) from error
    except exceptions.ConnectionError as error:
        if _is_about_tls(error.info):
            raise StoreError(
                f"OpenSearch at {at.shown} has no certificate that can be verified.",
                hint="Add its authority to the trusted ones (SSL_CERT_FILE); verify_certs=false is for tests only.",
            ) from error
        raise StoreError(
            f"OpenSearch at {at.shown} can't be reached.", hint="Look whether it runs, and at the url."
        ) from error
    except exceptions.TransportError as error:
        raise refusal(at, error.status_code, error.info) from error
    except (exceptions.OpenSearchException, exceptions.ImproperlyConfigured) as error:
        raise StoreError(
            f"OpenSearch at {at.shown} answered in an unknown form ({type(error).__name__}).",
            hint="Look whether the url is that of an OpenSearch server.",
        ) from error


def _is_about_tls(error: object) -> bool:
    """Whether a certificate is behind a connection that failed: the client library says so of few."""
    while isinstance(error, BaseException):
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__
    return False


def refusal(at: Address, status: int | str, info: Any) -> StoreError:
    """What a refused request means, and what to do about it."""
    if status == 401:
        return StoreError(
            f"OpenSearch at {at.shown} doesn't accept the user and password.", hint="Set `user` and `password`."
        )
    if status == 403:
        return StoreError(
            f"The user of OpenSearch at {at.shown} may not do this: {reason(info)}.",
            hint="Give it the rights to create, read, write and delete the index.",
        )
    if status == 429:
        return StoreError(f"OpenSearch at {at.shown} has too much to do.", hint="Try again later.")
    return StoreError(f"OpenSearch at {at.shown} refused a request ({status}): {reason(info)}.")


def reason(info: Any) -> str:
    """The cause in a server's error answer."""
    error = info.get("error", info) if isinstance(info, dict) else info
    if not isinstance(error, dict):
        return str(error)[:300]
    roots = error.get("root_cause") or [error]
    said = f"{roots[0].get('type', 'error')}: {roots[0].get('reason', 'no reason given')}"
    return said[:300].rstrip(".")


def is_missing_index(info: Any) -> bool:
    """Whether an error answer says that there is no such index, and nothing else."""
    error = info.get("error", info) if isinstance(info, dict) else info
    return isinstance(error, dict) and error.get("type") == NO_INDEX
