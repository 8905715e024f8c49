"""Where a fetch may go: only to public addresses, however one is written and whatever a name resolves to."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import PageUnavailable
from leadline.web.addresses import checked_url, is_public

INSIDE = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.8.8.8 168.63.129.16
169.254.169.254 169.254.0.1 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1
198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1::1 2002:a00:1::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1
fe80::1%eth0 fec0::1 ff02::1 ff0e::1
""".split()
OUTSIDE = """
1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 172.32.0.1 192.167.1.1 223.255.255.254
2606:4700::1111 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1
""".split()


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_that_are_no_websites_are_refused(address: str) -> None:
    """Private, shared, loopback, link-local, multicast, reserved, documentation and metadata addresses."""
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", OUTSIDE)
def test_public_addresses_are_permitted(address: str) -> None:
    """The neighbours of the refused ranges, and IPv6 forms of public IPv4 addresses."""
    assert is_public(ip_address(address))


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_in_ipv6_is_judged_as_itself(number: int) -> None:
    """Mapped, translated or tunnelled: the same answer as for the address itself."""
    plain = is_public(IPv4Address(number))
    for outer in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert is_public(IPv6Address(outer)) == plain


BAD = [
    "ftp://a.example/",
    "file:///etc/passwd",
    "gopher://a.example/",
    "javascript:alert(1)",
    "data:text/html,x",
    "//a.example/",
    "http:///path",
    "http://user:pw@a.example/",
    "http://a.example@10.0.0.1/",
    "http://a.example:22/",
    "http://a.example:0/",
    "http://a.example:99999/",
    "http://a.example/\r\nHost: inside",
    "http://a.example/ x",
    "http://[::1",
    "http://" + "a" * 3000 + ".example/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://127.1/",
    "http://0177.0.0.1/",
    "http://127.0.0.01/",
    "http://1.2.3.4.5/",
    "http://256.0.0.1/",
    "http://①②⑦.1/",
    "http://0X7F.0.0.0X1/",
    "http://[fe80::1%25eth0]/",
    "http://a..example/ü",
    "http://ü..example/",
    "http://\u202eevil.example/",
]


@pytest.mark.parametrize("url", BAD)
def test_addresses_that_hide_something_are_refused(url: str) -> None:
    """Other schemes, credentials, foreign ports, line breaks, and hosts written as numbers."""
    with pytest.raises(PageUnavailable):
        checked_url(url)


@pytest.mark.parametrize(
    ("url", "netloc"),
    [
        ("https://A.Example/x?y=1#z", "a.example"),
        ("http://a.example:8080/", "a.example:8080"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://8.8.8.8/", "8.8.8.8"),
        ("http://[2606:4700::1111]:8443/", "[2606:4700::1111]:8443"),
        ("http://a.example./", "a.example"),
        ("http://①②⑦.①.①.①/", "127.1.1.1"),
    ],
)
def test_a_host_is_taken_as_name_servers_see_it(url: str, netloc: str) -> None:
    """In ASCII and lower case, the port kept, the fragment gone. Numbers in fancy digits are the address they mean."""
    parts = checked_url(url)
    assert parts.netloc == netloc
    assert not parts.fragment
