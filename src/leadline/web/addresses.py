"""Where a fetch may go: to public addresses of the internet, whatever a name resolves to and however it is written.

Knows the address ranges. A name is resolved once and the connection is made to the very address that was checked, so
that no second answer of a name server can lead elsewhere.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

import httpcore

from leadline.errors import PageUnavailable
from leadline.web.results import is_web_address

IP = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
# Ranges and single addresses that Python calls global and that are no website's.
_REFUSED: tuple[IPv4Network | IPv6Network, ...] = (
    IPv4Network("100.64.0.0/10"),  # shared by the customers of a provider
    IPv4Network("168.63.129.16/32"),  # the metadata of Azure's machines
    IPv4Network("192.0.0.0/24"),  # protocol assignments, the metadata of Oracle's machines among them
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv6Network("2001::/23"),  # protocol assignments, Teredo among them
    IPv6Network("3fff::/20"),  # documentation
)
MAX_ADDRESSES = 3
"""Of one name, tried one after the other."""


def is_public(address: IP) -> bool:
    """Whether it is an address that anybody on the internet may have a website at.

    Of an IPv6 address that stands for an IPv4 one (mapped, NAT64, 6to4), the IPv4 address decides.
    """
    if isinstance(address, IPv6Address):
        if (inner := _embedded(address)) is not None:
            return is_public(inner)
        if address not in _GLOBAL_UNICAST:
            return False
    if any(address.version == network.version and address in network for network in _REFUSED):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour


def checked_url(url: str) -> SplitResult:
    """The parts of an address that may be fetched; its host in ASCII. Raises PageUnavailable.

    http and https only, no user name, and no port of another service. Hosts written as one number, in octal or in
    hexadecimal are refused: they are how an address is hidden, and readers disagree on what they mean.
    """
    if not is_web_address(url):
        raise PageUnavailable("It is no plain http or https address.")
    parts = urlsplit(url)
    host = _ascii(str(parts.hostname))
    last = host.rsplit(".", 1)[-1]
    if ":" not in host and (last.isdecimal() or last.startswith("0x")) and not _is_dotted(host):
        raise PageUnavailable("Its host is a number in disguise.")
    if parts.port is not None and parts.port < 1024 and parts.port not in (80, 443):
        raise PageUnavailable(f"Port {parts.port} is not one of the web.")
    shown = f"[{host}]" if ":" in host else host
    return parts._replace(netloc=shown if parts.port is None else f"{shown}:{parts.port}", fragment="")


def _ascii(host: str) -> str:
    host = host.rstrip(".")
    try:
        name = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        name = ""
    if not name or "%" in name or name.startswith(".") or ".." in name:
        raise PageUnavailable("Its host is no valid name.")
    return name.lower()


def _is_dotted(host: str) -> bool:
    try:
        return str(IPv4Address(host)) == host
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the machine's resolver has them. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to permitted addresses only. TLS still asks for, and checks, the certificate of the name."""

    def __init__(self, permitted: Callable[[IP], bool] = is_public, resolver: Resolve = resolve) -> None:
        self._permitted = permitted
        self._resolve = resolver
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of httpcore's backends
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolves once, checks every address, and connects to one of those. Raises PageUnavailable."""
        failure: Exception | None = None
        for address in (await self._addresses(host, port))[:MAX_ADDRESSES]:
            try:
                return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        assert failure is not None, "a name that resolves has an address"
        raise failure

    async def _addresses(self, host: str, port: int) -> list[IP]:
        """All of them, or none: a name that also leads inside is no website's."""
        try:
            found = [host] if _is_address(host) else await self._resolve(host, port)
        except (OSError, UnicodeError):
            found = []
        addresses = [ip_address(address) for address in dict.fromkeys(found)]
        if not addresses:
            raise PageUnavailable(f"The name {host} can't be resolved.")
        for address in addresses:
            if not self._permitted(address):
                raise PageUnavailable(f"{host} leads to {address}, which is no public address.")
        return addresses
