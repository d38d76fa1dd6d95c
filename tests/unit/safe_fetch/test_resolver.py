"""Names that callers gave are looked up without holding up each other, or anyone else."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from penstock.safe_fetch.resolver import Resolver

ADDRESS = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("203.0.113.7", 80))]


@pytest.fixture
def slow(monkeypatch):
    """Names that begin with `slow` are not answered until this is set; those that end so are none."""
    answered = threading.Event()

    def look_up(host: str, *_: Any) -> Any:
        if host.startswith("slow"):
            assert answered.wait(60)
        if host.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        if host.endswith("é"):
            raise UnicodeError("label too long")
        return ADDRESS

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield answered
    answered.set()


async def test_a_domain_that_never_answers_holds_up_only_itself(slow):
    resolver = Resolver()
    stuck = [asyncio.create_task(resolver.resolve(f"slow{number}.example.org", 80)) for number in range(20)]
    for number in range(50):
        (found,) = await resolver.resolve(f"www.quick{number}.org", 8080)
        assert (found["host"], found["port"], found["hostname"]) == ("203.0.113.7", 8080, f"www.quick{number}.org")
    same = asyncio.create_task(resolver.resolve("WWW.example.org.", 80))
    assert not (await asyncio.wait((same,), timeout=0.1))[0]
    slow.set()
    assert [len(each) for each in await asyncio.gather(*stuck, same)] == [1] * 21


async def test_a_place_is_free_when_the_lookup_ends_and_not_when_its_asker_goes(slow, monkeypatch):
    monkeypatch.setattr("penstock.safe_fetch.resolver.AT_ONCE", 2)
    resolver = Resolver()
    for number in range(2):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(resolver.resolve(f"slow.example{number}.org"), 0.05)
    waiting = asyncio.create_task(resolver.resolve("quick.org"))
    assert not (await asyncio.wait((waiting,), timeout=0.1))[0]
    given_up = asyncio.create_task(resolver.resolve("other.org"))
    await asyncio.sleep(0)
    given_up.cancel()
    slow.set()
    assert len(await waiting) == 1
    assert len(await resolver.resolve("other.org")) == 1


async def test_what_is_no_name_is_told_as_an_error_of_the_network(slow):
    resolver = Resolver()
    for wrong in ("nobody.invalid", "é"):
        with pytest.raises(OSError, match=r"no such name|label too long"):
            await resolver.resolve(wrong)
