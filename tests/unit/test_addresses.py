"""The guard between a user's URL and our network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tidings.wire.ssrf_guard import (
    REMEMBERED_FOR,
    ForbiddenUrl,
    SsrfGuard,
    SsrfRules,
    UnresolvedHost,
    check_address,
    check_resolved,
    check_url,
)

STRICT = SsrfRules()
HTTP = SsrfRules(allow_http=True)
DEVELOPMENT = SsrfRules(allow_private=True, allow_http=True)

PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e"]

FORBIDDEN = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456:789a::1",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700:4700::1111%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]

PRIVATE = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "::1", "fd00::1", "::ffff:127.0.0.1"]

LOOPBACK = [
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://%31%32%37.0.0.1/",
    "http://①②⑦.0.0.1/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://0/",
    "http://0.0.0.0/",
]


class Names:
    """A name service with prepared answers; an exception among them is raised."""

    def __init__(self, *answers: Sequence[str] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize("address", FORBIDDEN)
def test_an_address_that_is_not_plainly_public_is_refused(address: str) -> None:
    """S6: private, special, disguised and multicast addresses, on every version of Python."""
    with pytest.raises(ForbiddenUrl):
        check_address(address, STRICT)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    """S6: no false alarm."""
    assert check_address(address, STRICT) == address


def test_a_public_address_in_disguise_is_called_by_its_own_name() -> None:
    """S6: a mapped address is unwrapped before it is judged and used."""
    assert check_address("::ffff:8.8.8.8", STRICT) == "8.8.8.8"


@pytest.mark.parametrize("address", PRIVATE)
def test_development_may_call_private_addresses(address: str) -> None:
    """S6: only with allow_private."""
    assert check_address(address, DEVELOPMENT)


@pytest.mark.parametrize("address", sorted({*FORBIDDEN} - {*PRIVATE, "127.255.255.254", "fc00::1"}))
def test_development_may_still_not_call_anything_else(address: str) -> None:
    """S6: allow_private opens no link-local address, where a cloud keeps its credentials."""
    rest = {"10.0.0.1", "172.31.255.255", "::ffff:10.0.0.1", "fd12:3456:789a::1"}
    if address not in rest:
        with pytest.raises(ForbiddenUrl):
            check_address(address, DEVELOPMENT)


def test_what_is_no_address_is_refused() -> None:
    """S6: a name service may answer nonsense."""
    with pytest.raises(ForbiddenUrl):
        check_address("localhost", DEVELOPMENT)


@pytest.mark.parametrize("url", LOOPBACK)
def test_loopback_is_recognised_in_every_spelling(url: str) -> None:
    """S6: decimal, hex, octal, short, escaped, full-width, mapped: the client's own parser reads them."""
    with pytest.raises(ForbiddenUrl, match="not public"):
        check_url(url, HTTP)


async def test_localhost_is_refused_when_it_is_looked_up() -> None:
    """S6: a name is judged by its addresses."""
    guard = SsrfGuard(HTTP, Names(["127.0.0.1", "::1"]))

    with pytest.raises(ForbiddenUrl):
        await guard.admit("http://localhost/")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https:",
        "https://",
        "https:///x",
        "https:example.com",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://@example.com/",
        "https://127.0.0.1@example.com/",
        "https://example.com:22/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com\\@127.0.0.1/",
        "https://exa mple.com/",
        "https://example.com/\r\nX-Injected: 1",
        "https://exam\tple.com/",
        "https://example.com/\x00",
        "https://256.1.1.1/",
        "https://[fe80::1%25eth0]/",
        "https://[::1",
        "https://example.com/" + "a" * 2048,
    ],
)
def test_a_url_that_could_mean_something_else_is_refused(url: str) -> None:
    """S6, S12: https only, no user, no odd port, no control characters, no second reading."""
    with pytest.raises(ForbiddenUrl):
        check_url(url, STRICT)


def test_a_good_url_is_taken_apart() -> None:
    """The parts are those that the client will use; the host is in its ASCII form."""
    target = check_url("HTTPS://Bücher.Example/in?token=1", STRICT)

    assert target[1:] == ("https", "xn--bcher-kva.example", 443, "/in", None)


def test_a_refusal_never_repeats_what_is_secret_in_a_url() -> None:
    """S9: neither password nor query."""
    for url in ("https://user:canary@example.com/", "https://example.com:1/?token=canary", "ftp://x/?canary"):
        with pytest.raises(ForbiddenUrl) as caught:
            check_url(url, STRICT)
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "port", "allowed"),
    [
        (SsrfRules(), 443, True),
        (SsrfRules(), 80, True),
        (SsrfRules(), 8443, False),
        (SsrfRules(ports=frozenset({8443})), 8443, True),
        (SsrfRules(ports=frozenset({8443})), 443, False),
        (DEVELOPMENT, 8099, True),
        (SsrfRules(allow_private=True, ports=frozenset({443})), 8099, False),
    ],
)
def test_ports_are_allowed_by_list(rules: SsrfRules, port: int, allowed: bool) -> None:
    """S6: 80 and 443, any in development, or exactly those that are configured."""
    assert rules.allows_port(port) is allowed


def test_one_forbidden_answer_spoils_them_all() -> None:
    """S6: mixed answers are an attack, or will be one at the next try."""
    with pytest.raises(ForbiddenUrl):
        check_resolved(["8.8.8.8", "127.0.0.1"], STRICT)


def test_a_name_without_addresses_is_refused() -> None:
    """S6: fail closed."""
    with pytest.raises(UnresolvedHost):
        check_resolved([], STRICT)


@pytest.mark.parametrize("error", [OSError("no such name"), TimeoutError(), UnicodeError("label too long")])
async def test_a_failed_look_up_refuses_and_is_not_remembered(error: Exception) -> None:
    """S6: the known miss of others was to go on without the pin when the look-up failed."""
    guard = SsrfGuard(STRICT, Names(error, ["8.8.8.8"]))

    with pytest.raises(UnresolvedHost):
        await guard.admit("https://example.com/")
    assert guard.known("https://example.com/") is None
    assert (await guard.admit("https://example.com/")).pin(1) == "8.8.8.8"


async def test_a_name_that_moves_inwards_is_refused_at_the_next_look_up() -> None:
    """S6: rebinding. A checked address stays pinned for a short while; then every answer is checked anew."""
    clock = [0.0]
    names = Names(["8.8.8.8"], ["127.0.0.1"])
    guard = SsrfGuard(STRICT, names, monotonic=lambda: clock[0])
    await guard.admit("https://example.com/")

    clock[0] = REMEMBERED_FOR
    known = guard.known("https://example.com/")
    assert known is not None
    assert known.pin(1) == "8.8.8.8"

    clock[0] = REMEMBERED_FOR + 1
    assert guard.known("https://example.com/") is None
    with pytest.raises(ForbiddenUrl):
        await guard.admit("https://example.com/")


async def test_an_address_needs_no_look_up() -> None:
    """A literal address is checked, admitted and remembered without asking anybody."""
    names = Names()
    guard = SsrfGuard(STRICT, names)

    assert (await guard.admit("https://8.8.8.8/")).pin(1) is None
    assert guard.known("https://8.8.8.8/") is not None
    assert names.asked == []


async def test_many_messages_to_one_name_ask_once() -> None:
    """A burst to one receiver must not fill the threads that look up names."""
    names = Names(["8.8.8.8"])
    guard = SsrfGuard(STRICT, names)

    await asyncio.gather(*(guard.admit(f"https://example.com/{n}") for n in range(100)))

    assert names.asked == ["example.com"]


async def test_each_attempt_takes_the_next_address() -> None:
    """One dead address of several costs one attempt and not the message."""
    guard = SsrfGuard(STRICT, Names(["8.8.8.8", "1.1.1.1", "8.8.8.8"]))
    admitted = await guard.admit("https://example.com/")

    assert [admitted.pin(attempt) for attempt in (1, 2, 3)] == ["8.8.8.8", "1.1.1.1", "8.8.8.8"]
