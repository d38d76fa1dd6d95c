"""One suite over every media vendor: a whole gateway, the vendor's double across HTTP, and all that can happen."""

import asyncio
import hashlib
import importlib
import json
import logging
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from conftest import running
from doubles.media import MediaDouble, Plan, Verdict, listening, make_result
from vendors.double import Act, HttpDouble, drip, drop, drop_after, raw, reply, reset
from vendors.test_contract import FILES

from penstock.settings.tables import load
from penstock.simulator.samples import make_preview

DOUBLES = [double for name in FILES for double in importlib.import_module(f"doubles.{name}").DOUBLES]

pytestmark = pytest.mark.asyncio(loop_scope="module")


def of_each(make: Callable[[type[MediaDouble]], Any]) -> list[Any]:
    """Parametrise by double, and by what `make` finds in it."""
    found = []
    for kind in DOUBLES:
        title = f"{kind.vendor}-{kind.mode}" if kind.mode else kind.vendor
        for item in make(kind):
            label = str(item[0]) if item else ""
            found.append(pytest.param(kind, *item, id=f"{title}-{label}" if label else title))
    return found


def parametrize(names: Any, make: Callable[[type[MediaDouble]], Any]) -> Any:
    return pytest.mark.parametrize(names, of_each(make), scope="module")


each = parametrize("kind", lambda _: [()])
linked = parametrize("kind", lambda kind: [()] if kind.links else [])


NEAR = '[fetch]\nallow_networks = ["127.0.0.0/8", "::1/128"]\n'
"""Results may be redirected to other names of this machine."""
Open = Callable[[str], Any]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path) -> Open:
    """A gateway with these settings, for as long as a block runs."""

    def begin(toml: str) -> Any:
        folder = tmp_path_factory.mktemp("gateway")
        shutil.copy(empty_store, folder)
        config = folder / "penstock.toml"
        config.write_text(toml + NEAR)
        return running(load(config, {}, {"data": folder, "weights": weights}))

    return begin


House = tuple[MediaDouble, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def houses(gateway: Open) -> AsyncGenerator[Callable[[type[MediaDouble]], Awaitable[House]]]:
    """Find a double, and a gateway whose first vendor it is: one of each for all tests of the vendor."""
    async with AsyncExitStack() as opened:
        known: dict[type[MediaDouble], House] = {}

        async def find(kind: type[MediaDouble]) -> House:
            if kind not in known:
                double = await opened.enter_async_context(listening(kind()))
                known[kind] = double, await opened.enter_async_context(gateway(double.settings()))
            return known[kind]

        yield find


@pytest_asyncio.fixture(loop_scope="module")
async def house(kind: type[MediaDouble], houses: Callable[[type[MediaDouble]], Awaitable[House]]) -> House:
    return await houses(kind)


@pytest_asyncio.fixture(loop_scope="module")
async def double(house: House) -> MediaDouble:
    await house[0].forget()
    return house[0]


@pytest.fixture
def server(house: House) -> Any:
    return house[1]


async def submit(server: Any, double: MediaDouble, case: int = 0, **outer: Any) -> dict[str, Any]:
    """The record of a new job."""
    wanted = double.cases[case]
    params = dict(wanted.params)
    if wanted.takes_file:
        upload = await server.client.post("/api/v1/files", files={"file": ("cat.png", make_preview(7), "image/png")})
        params["file"] = {"file_token": upload.json()["file_token"]}
    body = {"model": wanted.model, "input": [{"params": params}], **outer}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 202, response.text
    return response.json()


async def generate(server: Any, double: MediaDouble, case: int = 0, **outer: Any) -> dict[str, Any]:
    """The record of a job once it is done."""
    return await server.finish((await submit(server, double, case, **outer))["id"])


def check(job: dict[str, Any], verdict: Verdict) -> None:
    if verdict.code is None:
        assert job["status"] == "succeeded", job["error"]
        return
    assert job["status"] == "failed", job["status"]
    error = job["error"]
    assert (error["code"], error["retryable"]) == (verdict.code, verdict.retryable), error
    known = verdict.code != "upstream_outcome_unknown"
    assert job["charged"] is error["charged"] is (False if known else None)
    assert job["cost"]["final"] == ("0.00" if known else None)


def check_secrets(server: Any, double: MediaDouble, told: str) -> None:
    """No caller sees the vendor's credential or address, no vendor the caller's key, no file host any of them."""
    key = server.client.headers["authorization"].removeprefix("Bearer ")
    for secret in (double.credential, double.url, double.host.url, key):
        assert secret not in told
    for seen in double.seen:
        assert key not in str(seen)
    for seen in double.host.seen:
        assert double.credential not in str(seen)
        assert "Authorization" not in seen.headers


# -- when all is well


@parametrize(("kind", "case"), lambda kind: [(number,) for number in range(len(kind.cases))])
async def test_happy(server, double, case, caplog):
    caplog.set_level(logging.DEBUG)
    job = await generate(server, double, case)
    check(job, Verdict(None))
    assert job["vendor"] == double.vendor
    losses = [warning for warning in job["warnings"] if not warning.startswith("The price of")]
    assert len(losses) == double.cases[case].warnings, losses
    (order,) = double.orders.values()
    primary = next(output for output in job["outputs"] if output["role"] == "primary")
    data = (await server.client.get(primary["url"])).content
    assert hashlib.sha256(data).hexdigest() == primary["sha256"]
    assert data == make_result(order.wish)
    assert double.count(*double.order_call) == 1
    check_secrets(server, double, json.dumps(job) + caplog.text)


# -- how jobs end


@parametrize(("kind", "ending"), lambda kind: [(ending,) for ending in kind.endings])
async def test_ending(server, double, ending, caplog):
    double.plans.append(Plan(ending))
    job = await generate(server, double)
    check(job, double.endings[ending])
    assert double.count(*double.order_call) == 1
    check_secrets(server, double, json.dumps(job) + caplog.text)


@parametrize(("kind", "name"), lambda kind: [(name,) for name in kind.refusals])
async def test_refusal(server, double, name, caplog):
    refusal = double.refusals[name]
    body = json.dumps(refusal.body).replace('"no"', f'"{double.credential} may not use {double.url}/x"')
    double.fault(reply(refusal.status, body.encode(), **_headers(refusal.headers)), *double.order_call)
    job = await generate(server, double)
    check(job, refusal.verdict)
    assert double.orders == {}
    assert double.count(*double.order_call) == 1
    check_secrets(server, double, json.dumps(job) + caplog.text)


def _headers(headers: Any) -> dict[str, str]:
    return {name.replace("-", "_"): value for name, value in headers.items()}


@each
async def test_wrong_credential(gateway, double):
    async with gateway(double.settings(**double.wrong_credential)) as server:
        check(await generate(server, double), Verdict("upstream_auth"))
    assert double.orders == {}


# -- the order


@each
async def test_busy(server, double):
    refusal = double.busy
    act = reply(refusal.status, json.dumps(refusal.body).encode(), **_headers(refusal.headers))
    double.fault(act, *double.order_call, times=3)
    job = await submit(server, double)
    feed: list[str] = []
    async with server.client.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
        feed += [line async for line in stream.aiter_lines() if '"phase"' in line]
    check(await server.finish(job["id"]), Verdict(None))
    assert any('"phase":"throttled"' in line.replace(" ", "") for line in feed)
    assert len(double.orders) == 1


AFTER = {
    "lost reply": drop_after,
    "html 502": reply(502, b"<html>Bad Gateway</html>"),
    "malformed json": reply(200, b'{"id": "ab'),
    "cut reply": raw(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"),
    "500": reply(500, b"{}"),
}
"""What comes instead of the answer to an order that was taken."""


def taken_first(act: Act) -> Act:
    """The order is taken, whatever is answered then."""

    async def take(double: HttpDouble, request: Any) -> Any:
        await double.play(request)
        return await act(double, request)

    return act if act is drop_after else take


@parametrize(("kind", "way"), lambda _: [(way,) for way in AFTER])
async def test_answer_lost(server, double, way):
    double.fault(taken_first(AFTER[way]), *double.order_call)
    job = await generate(server, double)
    check(job, Verdict(None) if double.finds else Verdict("upstream_outcome_unknown"))
    assert len(double.orders) == 1
    assert double.count(*double.order_call) == 1


@each
async def test_unreachable(server, double):
    await double.hide()
    check(await generate(server, double), Verdict("upstream_unavailable", retryable=True))
    assert double.orders == {}


# -- polls


POLLS = {
    "html 502": reply(502, b"<html>Bad Gateway</html>"),
    "malformed json": reply(200, b'{"status": '),
    "another shape": reply(200, b"[1, 2]"),
    "503": reply(503, b"{}", retry_after="0"),
    "429": reply(429, b"{}", retry_after="0"),
    "401": reply(401, b"{}"),
    "closed": drop,
    "reset": reset,
}


@parametrize(("kind", "way"), lambda _: [(way,) for way in POLLS])
async def test_poll_trouble(server, double, way):
    double.fault(POLLS[way], *double.poll_call)
    check(await generate(server, double), Verdict(None))
    assert double.count(*double.poll_call) > 1
    assert double.count(*double.order_call) == 1


async def until_polled(double: MediaDouble, times: int) -> None:
    """Wait until orders were asked for so often."""
    async with asyncio.timeout(300):
        while double.count(*double.poll_call) < times:  # noqa: ASYNC110  nobody rings for it
            await asyncio.sleep(0.01)


@each
async def test_an_order_that_is_gone_ends_the_job(server, double):
    double.plans.append(Plan(polls=100_000))
    job = await submit(server, double)
    await until_polled(double, 1)
    double.orders.clear()
    job = await server.finish(job["id"])
    assert (job["status"], job["error"]["code"], job["charged"]) == ("failed", "upstream_error", False)
    assert "know" in job["error"]["message"]
    assert double.count(*double.order_call) == 1


@parametrize("kind", lambda kind: [()] if kind.vendor != "comfyui" else [])  # its queue is the truth, and its own
async def test_an_order_that_is_not_known_for_a_while_is_waited_for(server, double):
    double.plans.append(Plan(polls=3))
    job = await submit(server, double)
    await until_polled(double, 1)
    hidden = dict(double.orders)
    double.orders.clear()
    seen = double.count(*double.poll_call)
    await until_polled(double, seen + 2)
    double.orders |= hidden
    check(await server.finish(job["id"]), Verdict(None))
    assert double.count(*double.order_call) == 1


# -- downloads


@linked
async def test_expired_link(server, double):
    double.host.stale = 2
    check(await generate(server, double), Verdict(None))
    assert double.count(*double.order_call) == 1


@linked
async def test_redirect(server, double):
    async def elsewhere(host: HttpDouble, request: Any) -> Any:
        place = f"http://localhost:{host.port}{request.path_qs}"
        return await reply(302, b"", location=place)(host, request)

    double.host.fault(elsewhere, "GET", "/")
    job = await generate(server, double)
    check(job, Verdict(None))
    assert any(seen.headers["Host"].startswith("localhost") for seen in double.host.seen)
    check_secrets(server, double, json.dumps(job))


@linked
async def test_broken_bytes_once(server, double):
    double.host.spoiled = 1
    check(await generate(server, double), Verdict(None))


@each
async def test_broken_bytes(server, double):
    double.plans.append(Plan("corrupt"))
    check(await generate(server, double), Verdict("bad_output", retryable=True))
    assert double.count(*double.order_call) == 1


@linked
async def test_slow_drip(server, double):
    double.host.fault(drip(0.05), "GET", "/", times=100)
    job = await generate(server, double, run_timeout=1)
    assert (job["status"], job["error"]["code"]) == ("expired", "run_timeout")


# -- canceling


@each
async def test_cancel(server, double):
    double.plans.append(Plan(polls=20))
    job = await submit(server, double)
    async with server.client.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
        async for line in stream.aiter_lines():
            if '"generating"' in line:
                break
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    job = await server.finish(job["id"])
    (order,) = double.orders.values()
    if double.cancels:
        assert job["status"] == "canceled"
        assert order.canceled
    else:
        check(job, Verdict(None))
        assert any("cannot stop" in warning for warning in job["warnings"])
