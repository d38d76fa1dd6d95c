"""No URL of a caller, however it is spelled, passes for public where it is not."""

import random
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import LOOPBACK

from penstock.domain.job_errors import UrlNotAllowed
from penstock.safe_fetch.policy import check_url, is_allowed

# -- URLs

REFUSED = [
    ("", "scheme"),
    ("example.com/image.png", "scheme"),
    ("//example.com/image.png", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("ftp://example.com/image.png", "scheme"),
    ("gopher://127.0.0.1:6379/_INFO", "scheme"),
    ("data:image/png;base64,AAAA", "scheme"),
    ("javascript:alert(1)", "scheme"),
    ("http://", "no host"),
    ("http:///image.png", "no host"),
    ("http:/example.com", "no host"),
    ("http://:80/", "no host"),
    ("http://anna:hunter2@example.com/", "user name"),
    ("http://anna@example.com/", "user name"),
    ("http://example.com:80@127.0.0.1/", "user name"),
    ("http://anna:hunter2@example.com:x/", "user name"),
    ("http://example.com/a b", "white space"),
    (" http://example.com/", "white space"),
    ("http://example.com/\r\nHost: evil", "white space"),
    ("http://exa\tmple.com/", "white space"),
    ("http://exam\u00adple.com/", "white space"),
    ("http://example.com\\@127.0.0.1/", "backslash"),
    ("http:\\\\127.0.0.1\\", "backslash"),
    ("http://example.com/" + "a" * 2048, "too long"),
    ("http://example.com:22/", "port"),
    ("http://example.com:6379/", "port"),
    ("http://example.com:0/", "port"),
    ("http://example.com:99999/", "port"),
    ("http://example.com:80x/", "port"),
    ("http://8.8.8.8:25/", "port"),
    ("http://127.0.0.1/", "not public"),
    ("http://127.0.0.1./", "not public"),
    ("http://127.0.0.1:8080/", "not public"),
    ("http://0.0.0.0/", "not public"),
    ("http://10.1.2.3/", "not public"),
    ("http://172.31.255.255/", "not public"),
    ("http://192.168.0.1/", "not public"),
    ("http://100.64.0.1/", "not public"),
    ("http://169.254.169.254/latest/meta-data/", "not public"),
    ("http://100.100.100.200/", "not public"),
    ("http://168.63.129.16/", "not public"),
    ("http://198.18.0.1/", "not public"),
    ("http://192.0.2.1/", "not public"),
    ("http://224.0.0.1/", "not public"),
    ("http://255.255.255.255/", "not public"),
    ("http://\uff11\uff12\uff17.0.0.1/", "not public"),
    ("http://127\u30020\u30020\u30021/", "not public"),
    ("http://\u2460\u2461\u2466.0.0.1/", "not public"),
    ("http://[::]/", "not public"),
    ("http://[::1]/", "not public"),
    ("http://[0:0:0:0:0:0:0:1]:8080/", "not public"),
    ("http://[::127.0.0.1]/", "not public"),
    ("http://[::ffff:127.0.0.1]/", "not public"),
    ("http://[::ffff:7f00:1]/", "not public"),
    ("http://[::ffff:8.8.8.8]/", "not public"),
    ("http://[64:ff9b::127.0.0.1]/", "not public"),
    ("http://[64:ff9b::a9fe:a9fe]/", "not public"),
    ("http://[64:ff9b:1::8.8.8.8]/", "not public"),
    ("http://[2002:7f00:1::]/", "not public"),
    ("http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "not public"),
    ("http://[fe80::1]/", "not public"),
    ("http://[fc00::1]/", "not public"),
    ("http://[fd00:ec2::254]/", "not public"),
    ("http://[ff02::1]/", "not public"),
    ("http://[2001:db8::1]/", "not public"),
    ("http://[3fff::1]/", "not public"),
    ("http://2130706433/", "odd spelling"),
    ("http://0x7f000001/", "odd spelling"),
    ("http://017700000001/", "odd spelling"),
    ("http://0177.0.0.1/", "odd spelling"),
    ("http://0x7f.1/", "odd spelling"),
    ("http://127.1/", "odd spelling"),
    ("http://127.0.0.0x1/", "odd spelling"),
    ("http://0/", "odd spelling"),
    ("http://256.256.256.256/", "odd spelling"),
    ("http://1.2.3.4.5/", "odd spelling"),
    ("http://%31%32%37.0.0.1/", "percent"),
    ("http://127.0.0.1%2f.example.com/", "percent"),
    ("http://[fe80::1%25eth0]/", "percent"),
    ("http://localhost/", "local name"),
    ("http://LOCALHOST./", "local name"),
    ("http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3/", "local name"),
    ("http://app.localhost:8080/", "local name"),
    ("http://printer.local/", "local name"),
    ("http://metadata.google.internal/computeMetadata/v1/", "local name"),
    ("http://intranet/", "local name"),
    ("http://[::1/", "not a valid name"),
    ("http://[nonsense]/", "not a valid name"),
    ("http://exa<mple.com/", "not a valid name"),
    ("http://example..com/", "not a valid name"),
    ("http://localhost../", "not a valid name"),
    ("http://\u2100.example.com/", "not a valid name"),
    ("http://" + "a" * 64 + ".com/", "not a valid name"),
    ("http://" + "a." * 130 + "com/", "not a valid name"),
]


@pytest.mark.parametrize(("url", "why"), REFUSED)
def test_a_hostile_url_is_refused_saying_why(url: str, why: str):
    with pytest.raises(UrlNotAllowed) as refusal:
        check_url(url)
    assert refusal.value.code == "url_not_allowed"
    assert why in refusal.value.message
    assert "anna" not in refusal.value.message
    assert "hunter2" not in refusal.value.message


@pytest.mark.parametrize(
    ("url", "as_fetched"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:8443/A?b=c#part", "https://example.com:8443/A?b=c"),
        ("http://example.com./image.png", "http://example.com/image.png"),
        ("http://my_bucket.example.com/", "http://my_bucket.example.com/"),
        ("https://m\u00fcnchen.example/stra\u00dfe", "https://xn--mnchen-3ya.example/stra%C3%9Fe"),
        ("https://\u4f8b\u3048.jp/", "https://xn--r8jz45g.jp/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("https://example.com/a%2Fb%7e?sign=%2F+%3d&x='", "https://example.com/a%2Fb%7e?sign=%2F+%3d&x='"),
    ],
)
def test_a_public_url_is_told_as_it_will_be_fetched(url: str, as_fetched: str):
    assert check_url(url) == as_fetched
    assert check_url(as_fetched) == as_fetched


def test_a_host_in_an_allowed_network_may_use_any_port():
    assert check_url("http://127.0.0.1:5000/", LOOPBACK) == "http://127.0.0.1:5000/"
    assert check_url("http://localhost:5000/", LOOPBACK) == "http://localhost:5000/"
    with pytest.raises(UrlNotAllowed, match="not public"):
        check_url("http://10.0.0.1/", LOOPBACK)
    with pytest.raises(UrlNotAllowed, match="port"):
        check_url("http://8.8.8.8:5000/", LOOPBACK)


@settings(deadline=None)
@given(st.text() | st.text().map("http://".__add__))
def test_any_text_is_either_ascii_and_stable_or_refused(url: str):
    try:
        checked = check_url(url)
    except UrlNotAllowed:
        return
    assert checked.isascii()
    assert check_url(checked) == checked


# -- addresses


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::8.8.8.8", "100.63.255.255"])
def test_public_addresses_are_allowed(address: str):
    assert is_allowed(ip_address(address))


@pytest.mark.parametrize(
    ("address", "network", "allowed"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("fd00::1", "fd00::/8", True),
        ("64:ff9b::10.1.2.3", "10.0.0.0/8", True),
        ("192.168.0.1", "10.0.0.0/8", False),
        ("::ffff:10.1.2.3", "10.0.0.0/8", False),
        ("::ffff:10.1.2.3", "::/0", False),
        ("100.100.100.200", "100.64.0.0/10", False),
        ("169.254.169.254", "0.0.0.0/0", False),
        ("64:ff9b::169.254.169.254", "::/0", False),
        ("fd00:ec2::254", "fd00::/8", False),
        ("fd00:ec2::254%eth0", "fd00::/8", False),
        ("169.254.169.254", "169.254.169.254/32", True),
    ],
)
def test_a_named_network_is_allowed_but_no_metadata_in_it(address: str, network: str, allowed: bool):
    assert is_allowed(ip_address(address), (ip_network(network),)) is allowed


SPELLINGS: dict[str, Callable[[IPv4Address], str]] = {
    "dotted": str,
    "decimal": lambda address: str(int(address)),
    "hex": lambda address: hex(int(address)),
    "dotted hex": lambda address: ".".join(map(hex, address.packed)),
    "octal": lambda address: f"0{int(address):o}",
    "dotted octal": lambda address: ".".join(f"0{part:o}" for part in address.packed),
    "short": lambda address: f"{address.packed[0]}.{int(address) % 2**24}",
    "fullwidth": lambda address: "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else "\u3002" for c in str(address)),
    "mapped": lambda address: f"[::ffff:{address}]",
    "compatible": lambda address: f"[::{address}]",
    "NAT64": lambda address: f"[64:ff9b::{address}]",
    "6to4": lambda address: f"[{IPv6Address(0x2002 << 112 | int(address) << 80 | 1)}]",
    "Teredo": lambda address: f"[{IPv6Address(0x20010000 << 96 | (int(address) ^ 0xFFFFFFFF))}]",
}
SPECIAL = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
]


def members_of(network: str) -> list[IPv4Address]:
    """Return the edges of a network and twenty addresses between them, the same in every run."""
    whole, chance = ip_network(network), random.Random(network)  # noqa: S311  no secrets
    numbers = [0, 1, whole.num_addresses - 1, *(chance.randrange(whole.num_addresses) for _ in range(20))]
    return [IPv4Address(int(whole.network_address) + number) for number in numbers]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_a_special_address_is_allowed(spelling: str):
    for address in (address for network in SPECIAL for address in members_of(network)):
        assert not is_allowed(address)
        with pytest.raises(UrlNotAllowed):
            check_url(f"http://{SPELLINGS[spelling](address)}/")


@settings(deadline=None)
@given(st.ip_addresses())
def test_what_is_allowed_is_global_by_the_standard_library_too(address):
    if is_allowed(address) and address not in ip_network("64:ff9b::/96"):
        assert address.is_global
        assert not address.is_multicast
