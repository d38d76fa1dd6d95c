"""Vendors' webhooks: an address only they know, and a notice that can do no more than have a job polled at once."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as some
from plain import NO_TLS
from vendors.double import Double, double_of
from vendors.test_far import follow

from penstock.observability import metrics
from penstock.upstream.callback_urls import CallbackUrls
from penstock.vendor_api.generation import Flow, Notice, Order, Unclear, VendorFolders, WebhookOptions
from penstock.vendors.sim import Sim, SimOptions

BASE = "https://penstock.example"
GENUINE = b'{"about": "an order"}'


class NotifiedSimOptions(SimOptions, WebhookOptions):
    """A simulator that may call back."""


def vendor(*, webhooks: bool = True) -> Sim:
    options = NotifiedSimOptions(type="sim", base_url="http://127.0.0.1:1", webhooks=webhooks)
    return Sim(options, VendorFolders(Path("nowhere"), Path("nowhere")))


def make_hooks(secret: bytes = b"s" * 32, base: str | None = BASE) -> CallbackUrls:
    return CallbackUrls(secret, lambda: base)


def parts(address: str | None) -> list[str]:
    """The vendor, the reference and the tag."""
    assert address is not None
    assert address.startswith(f"{BASE}/vendor/v1/")
    return urlsplit(address).path.split("/")[3:]


# -- addresses


def test_an_address_is_known_again_and_is_always_the_same():
    hooks = make_hooks()
    name, reference, tag = parts(hooks.address("far", vendor(), "job_1-1"))
    assert (name, reference) == ("far", "job_1-1")
    assert len(tag) == 32
    assert hooks.is_ours(name, reference, tag)
    assert hooks.address("far", vendor(), "job_1-1") == hooks.address("far", vendor(), "job_1-1")
    assert make_hooks().is_ours(name, reference, tag), "also after a restart"


def test_each_order_at_each_vendor_has_its_own_and_so_has_each_gateway():
    made = [
        make_hooks(secret).address(name, vendor(), reference)
        for secret in (b"a" * 32, b"b" * 32)
        for name in ("far", "further")
        for reference in ("job_1-1", "job_1-2", "job_11-1")
    ]
    assert len({parts(address)[2] for address in made}) == len(made)


@given(some.integers(0, 31), some.sampled_from("0123456789abcdef"))
def test_a_changed_tag_is_not_ours(place, digit):
    hooks = make_hooks()
    name, reference, tag = parts(hooks.address("far", vendor(), "job_1-1"))
    changed = tag[:place] + digit + tag[place + 1 :]
    assert hooks.is_ours(name, reference, changed) == (changed == tag)


@given(some.text(max_size=40), some.text(max_size=40), some.text(max_size=40))
def test_nothing_made_up_is_ours_and_nothing_breaks(name, reference, tag):
    hooks = make_hooks()
    assert not hooks.is_ours(name, reference, tag)
    assert not hooks.is_ours("far", "job_1-1", tag)
    _, _, known = parts(hooks.address("far", vendor(), "job_1-1"))
    assert not hooks.is_ours(name, reference, known)


@pytest.mark.parametrize("tag", ["", "ü" * 32, "\udcff", "A" * 32, "0" * 31, "0" * 64])
def test_odd_tags_are_not_ours(tag):
    assert not make_hooks().is_ours("far", "job_1-1", tag)


def test_there_is_none_where_nobody_can_call_or_is_to():
    assert make_hooks(base=None).address("far", vendor(), "job_1-1") is None
    assert make_hooks().address("far", vendor(webhooks=False), "job_1-1") is None
    plain = Sim(SimOptions(type="sim", base_url="http://127.0.0.1:1"), VendorFolders(Path("nowhere"), Path("nowhere")))
    assert make_hooks().address("far", plain, "job_1-1") is None


# -- a whole gateway


@pytest.fixture
async def double(tmp_path: Path) -> AsyncGenerator[Double]:
    async with double_of(tmp_path / "double") as double:
        yield double


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Notice]:
    """What the simulator heard, as it can call back here: whatever is `GENUINE` is, and `trouble` cannot be proved."""
    heard: list[Notice] = []

    def verify_notice(_: Sim, notice: Notice) -> Flow[bool]:
        heard.append(notice)
        yield from ()
        if notice.body == b"trouble":
            raise Unclear("the keys cannot be had")
        return notice.body == GENUINE

    monkeypatch.setattr(Sim, "options_type", NotifiedSimOptions)
    monkeypatch.setattr(Sim, "verify_notice", verify_notice)
    return heard


@pytest.fixture
def webhooks(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What orders said of where to call back."""
    seen: list[str | None] = []
    submit = Sim.submit

    def note(vendor: Sim, order: Order) -> Any:
        seen.append(order.webhook)
        return submit(vendor, order)

    monkeypatch.setattr(Sim, "submit", note)
    return seen


@pytest.fixture
async def server(start, double: Double, told: list[Notice]) -> Any:
    """A gateway whose vendor is polled once a minute."""
    vendors = (
        f'[vendors.far]\ntype = "sim"\nbase_url = "{double.url}"\npoll_seconds = 60\n[vendors.sim]\nwebhooks = false\n'
    )
    return await start(f'[server]\npublic_url = "{BASE}"\nmax_body_mb = 1\n{vendors}')


def address(server: Any, reference: str, name: str = "far") -> str:
    """The path of an address of this gateway."""
    made = server.gateway.hooks.address(name, server.gateway.offers.vendors["far"], reference)
    return urlsplit(made).path


async def call(server: Any, path: str, body: bytes = GENUINE, **headers: str) -> httpx.Response:
    """A notice from someone who has no key."""
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, verify=NO_TLS) as stranger:
        return await stranger.post(path, content=body, headers=headers)


async def test_a_notice_has_the_job_polled_at_once(server, double, told, webhooks):
    job = await server.submit(script={"latency": 0})
    await follow(server, job["id"], lambda job: job["phase"] == "generating")
    assert webhooks == [server.gateway.hooks.address("far", server.gateway.offers.vendors["far"], f"{job['id']}-1")]
    before = metrics.VENDOR_NOTICES.labels("far", "genuine")._value.get()
    response = await call(server, urlsplit(webhooks[0]).path, **{"X-Signature": "abc"})
    assert (response.status_code, response.json()) == (200, {"received": True})
    assert (await server.finish(job["id"]))["status"] == "succeeded"
    assert (told[0].body, told[0].headers["x-signature"]) == (GENUINE, "abc")
    assert metrics.VENDOR_NOTICES.labels("far", "genuine")._value.get() == before + 1


async def test_a_forged_one_changes_nothing(server, double, told):
    job = await server.submit(script={"latency": 0})
    job = await follow(server, job["id"], lambda job: job["phase"] == "generating")
    polls = double.count("GET")
    before = metrics.VENDOR_NOTICES.labels("far", "forged")._value.get()
    response = await call(server, address(server, f"{job['id']}-1"), b'{"status": "succeeded"}')
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
    assert metrics.VENDOR_NOTICES.labels("far", "forged")._value.get() == before + 1
    record = (await server.client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert (record["phase"], double.count("GET")) == ("generating", polls)


async def test_a_wrong_address_is_not_found_and_no_vendor_is_asked(server, told):
    good = address(server, "job_1-1")
    base, _, tag = good.rpartition("/")
    for path in (
        f"{base}/{'0' * 32}",
        f"{base}/{tag[:-1]}",
        f"{base}/{tag}0",
        f"{base}/{quote('ü' * 32)}",
        f"{base}/%ff%fe",
        f"{base}/%00",
        good.replace("job_1-1", "job_1-2"),
        good.replace("/far/", "/sim/"),
        good.replace("/far/", "/further/"),
        good.replace("job_1-1", "job_1%0A-1"),
    ):
        response = await call(server, path)
        assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found"), path
    assert told == []


@pytest.mark.parametrize("name", ["nobody", "local"])
async def test_a_vendor_that_is_none_is_not_found(server, told, name):
    assert (await call(server, address(server, "job_1-1", name))).status_code == 404
    assert told == []


async def test_too_large_a_notice_is_refused(server, told):
    response = await call(server, address(server, "job_1-1"), b"x" * (1 << 20) + b"x")
    assert (response.status_code, response.json()["error"]["code"]) == (413, "body_too_large")
    assert told == []


async def test_a_job_that_is_over_or_unknown_is_no_matter(server, double, told):
    job = await server.submit(script={"latency": 0})
    await follow(server, job["id"], lambda job: job["phase"] == "generating")
    await call(server, address(server, f"{job['id']}-1"))
    before = await server.finish(job["id"])
    for reference in (f"{job['id']}-1", "job_00000000000000000000000000-1", "odd", "-", "job_1"):
        assert (await call(server, address(server, reference))).status_code == 200
    after = (await server.client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert (after["status"], after["attempts"]) == (before["status"], before["attempts"])


async def test_what_cannot_be_proved_now_is_asked_for_again(server, told):
    response = await call(server, address(server, "job_1-1"), b"trouble")
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1


async def test_a_flood_of_notices_polls_no_more_than_it_may(server, double, told):
    job = await server.submit(script={"latency": 60})
    await follow(server, job["id"], lambda job: job["phase"] == "generating")
    path = address(server, f"{job['id']}-1")
    responses = await asyncio.gather(*(call(server, path) for _ in range(30)))
    assert {response.status_code for response in responses} == {200}
    assert double.count("GET", "/orders/") <= 31
    assert double.counts()["orders"] == 1


async def test_it_is_not_told_to_callers(server):
    document = (await server.client.get("/openapi.json")).text
    assert "/vendor/" not in document
    assert (await server.client.get(address(server, "job_1-1"))).status_code == 405


@pytest.mark.parametrize("lines", ["", f'[server]\npublic_url = "{BASE}"\n[vendors.far]\nwebhooks = false\n'])
async def test_no_address_is_given_where_none_is_wanted(start, double, told, webhooks, lines):
    table = f'type = "sim"\nbase_url = "{double.url}"\npoll_seconds = 0.02\n'
    server = await start(lines + table if lines else f"[vendors.far]\n{table}")
    assert (await server.generate(script={}))["status"] == "succeeded"
    assert webhooks == [None]
