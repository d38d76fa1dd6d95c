"""Prices through the interface: by vendor and by date, kept with a job, never above what was quoted, or not known."""

import asyncio
import time
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from chat_steps import HELLO
from conftest import MODEL, VIDEO, Server
from openai_double import KEY, OpenAIDouble
from openai_replies import GREETING, PROMPT_TOKENS, pieces_of
from test_files import picture
from test_live_settings import reload

from penstock.domain.chat import Usage
from penstock.domain.money import format_usd
from penstock.domain.prices import TokenPrice
from penstock.web.openapi.schemas import ModelRecord

WORDS = len(pieces_of(GREETING))
REFUSING = 'script = {submission = "unauthorized"}'
QUICK = "script = {latency = 0.02}\npoll_seconds = 0.02"
ROUTES = 'routes = [{vendor = "first"}, {vendor = "second", order = 2}]'


def settings_of(prices: str, first: str = QUICK, model: str = MODEL, own: str = "") -> str:
    """Two simulators for one model; `first` is more of the first one's table, `own` of the model's."""
    return (
        f'[vendors.first]\ntype = "sim"\n{first}\n[vendors.second]\ntype = "sim"\n{QUICK}\n'
        f'[[models]]\nid = "{model}"\n{ROUTES}\n{own}\n{prices}'
    )


def listed(price: str, vendor: str = "", since: datetime | None = None, model: str = MODEL) -> str:
    vendor_line = f'vendor = "{vendor}"\n' if vendor else ""
    from_line = f"from = {since.isoformat()}\n" if since else ""
    return f'[[prices]]\nmodel = "{model}"\n{vendor_line}{from_line}price = {{{price}}}\n'


async def show(server: Server, model: str = MODEL) -> dict[str, Any]:
    response = await server.client.get(f"/api/v1/models/{model}")
    assert response.status_code == 200, response.text
    ModelRecord.model_validate_json(response.content, strict=True)
    return response.json()


def money(job: dict[str, Any]) -> tuple[str | None, str | None, bool | None]:
    return job["cost"]["estimated"], job["cost"]["final"], job["charged"]


# -- by vendor


@pytest.mark.parametrize(
    ("first", "second", "quoted", "final"),
    [
        ("0.10", "0.30", "0.30", "0.30"),
        ("0.30", "0.10", "0.30", "0.10"),
        ("0.30", "0", "0.30", "0.00"),
    ],
)
async def test_the_vendor_that_did_it_is_paid_and_never_more_than_was_quoted(start, first, second, quoted, final):
    prices = listed(f'per_job = "{first}"', "first") + listed(f'per_job = "{second}"', "second")
    server = await start(settings_of(prices, REFUSING))
    told = await show(server)
    assert told["price"]["per_job"] == quoted
    assert [(each["vendor"], each["price"]["per_job"]) for each in told["prices"]] == [
        ("first", format_usd(round(float(first) * 10**9))),
        ("second", format_usd(round(float(second) * 10**9))),
    ]
    job = await server.submit(MODEL, face_limit=48)
    assert money(job) == (quoted, None, None)
    done = await server.finish(job["id"])
    assert (done["status"], done["vendor"]) == ("succeeded", "second")
    assert money(done) == (quoted, final, final != "0.00")
    assert done["warnings"] == ["Made by the simulator: a test card, not a generation."]


async def test_a_vendor_that_joins_while_a_job_waits_costs_at_most_what_was_quoted(start):
    alone = f'[vendors.first]\ntype = "sim"\n{{}}\n[[models]]\nid = "{MODEL}"\nvendor = "first"\n'
    busy = 'script = {submission = "busy", submission_times = 1000}\npoll_seconds = 0.05'
    server = await start(alone.format(busy) + listed('per_job = "0.20"'))
    job = await server.submit(MODEL, face_limit=48)
    await reload(server, settings_of(listed('per_job = "0.90"'), busy))
    done = await server.finish(job["id"])
    assert (done["status"], done["vendor"]) == ("succeeded", "second")
    assert money(done) == ("0.20", "0.20", True)


# -- by date


def write_moment(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def announce(server: Server, seconds: int) -> tuple[datetime, dict[str, Any], dict[str, Any]]:
    """Have the price change soon, and later again: when, what is told until then, and a job from before."""
    change = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds)
    prices = listed('per_job = "0.20"') + listed('per_job = "0.50"', since=change)
    await reload(server, settings_of(prices + listed('per_job = "0.40"', "second", change + timedelta(days=400))))
    told, job = await show(server), await server.submit(MODEL, face_limit=48, script={"latency": 0.02})
    return (change, told, job) if time.time() < change.timestamp() else await announce(server, 2 * seconds)


async def test_a_price_to_come_is_told_and_comes_without_a_restart(start):
    server = await start(settings_of(""))
    change, told, job = await announce(server, 2)
    assert told["price"]["per_job"] == "0.20"
    first, second = write_moment(change), write_moment(change + timedelta(days=400))
    assert [(each["vendor"], each["from"], each["until"], each["price"]["per_job"]) for each in told["prices"]] == [
        ("first", None, first, "0.20"),
        ("first", first, None, "0.50"),
        ("second", None, first, "0.20"),
        ("second", first, second, "0.50"),
        ("second", second, None, "0.40"),
    ]
    assert money(job) == ("0.20", None, None)
    await asyncio.sleep(change.timestamp() - time.time() + 0.001)
    told = await show(server)
    assert told["price"]["per_job"] == "0.50"
    assert [each["vendor"] for each in told["prices"]] == ["first", "second", "second"]
    assert money(await server.generate(MODEL, face_limit=48, script={})) == ("0.50", "0.50", True)
    assert money(await server.finish(job["id"])) == ("0.20", "0.20", True)


async def test_a_change_of_the_book_does_not_touch_accepted_jobs(start):
    server = await start(settings_of(listed('per_job = "0.20", per_thousand_faces = "1"')))
    job = await server.submit(MODEL, face_limit=1000, script={"latency": 0.5})
    await reload(server, settings_of(listed('per_job = "9"')))
    new = await server.generate(MODEL, face_limit=1000, script={})
    done = await server.finish(job["id"])
    assert money(new) == ("9.00", "9.00", True)
    assert done["cost"]["estimated"] == "1.20"
    assert done["cost"]["final"] == format_usd(200_000_000 + done["outputs"][0]["faces"] * 1_000_000)


# -- by what was delivered


async def test_faces_are_paid_as_delivered_and_held_as_limited(start):
    server = await start(settings_of("", own='price = {per_job = "0.10", per_thousand_faces = "0.05"}'))
    job = await server.generate(MODEL, face_limit=5000, script={})
    (output,) = [output for output in job["outputs"] if output["role"] == "primary"]
    assert 0 < output["faces"] <= 5000
    assert money(job) == ("0.35", format_usd(100_000_000 + output["faces"] * 50_000), True)
    free = await server.client.post(
        "/model/v1/generation", json={"model": MODEL, "input": [{"params": {}}], "dry_run": True}
    )
    assert free.json()["cost"]["estimated"] == "100.10", "as many as its params allow"
    assert (await show(server))["price"]["faces"] == 2_000_000


async def test_seconds_are_paid_as_delivered(start):
    server = await start(settings_of("", model=VIDEO, own='price = {per_second = "0.40"}'))
    job = await server.generate(VIDEO, durationSeconds=2, script={})
    assert money(job) == ("0.80", "0.80", True)
    assert (await show(server, VIDEO))["price"]["seconds"] == 8


# -- not known


async def test_a_price_that_is_not_known_is_null_and_says_so(start):
    # Of a vendor without a price of its own, which is behind an address where nobody listens.
    meshy = '[vendors.far]\ntype = "meshy"\napi_key = "x"\nbase_url = "http://127.0.0.1:9"\n'
    served = '[[models]]\nid = "vendora_image_to_model"\n'
    file = {"url": f"data:image/png;base64,{b64encode(picture()).decode()}"}
    body = {"model": "vendora_image_to_model", "input": [{"params": {"file": file}}]}
    server = await start(meshy + served + 'vendor = "far"\n')
    assert (await show(server, "vendora_image_to_model"))["price"] is None
    assert [each["price"] for each in (await show(server, "vendora_image_to_model"))["prices"]] == [None]
    job = (await server.client.post("/model/v1/generation", json=body)).json()
    assert job["cost"] == {"estimated": None, "final": None, "currency": "USD"}
    assert job["warnings"] == ["The price of `vendora_image_to_model` is not known: its cost is not counted."]
    await reload(
        server, meshy + '[vendors.sim]\ntype = "sim"\n' + served + 'routes = [{vendor="sim"}, {vendor="far"}]\n'
    )
    job = (await server.client.post("/model/v1/generation", json=body)).json()
    assert job["warnings"] == [
        "The price of `vendora_image_to_model` is not known beforehand: its cost may not be counted."
    ]
    await reload(server, meshy + served + 'vendor = "far"\nprice = {per_job = "0.40"}\n')
    job = (await server.client.post("/model/v1/generation", json=body)).json()
    assert (job["cost"]["estimated"], job["warnings"]) == ("0.40", [])


# -- chat

DEAR = TokenPrice.model_validate({"input_per_million": "10", "output_per_million": "20", "per_request": "0.01"})
CHEAP = TokenPrice.model_validate(
    {"input_per_million": "1", "cached_input_per_million": "0.5", "output_per_million": "2"}
)


def write(price: TokenPrice) -> str:
    return ", ".join(f'{name} = "{amount}"' for name, amount in price.describe().items() if name != "currency")


async def ask(server: Server, **fields: Any) -> str | None:
    body = {"model": "talk", "messages": HELLO, **fields}
    response = await server.client.post("/llm/chat/completions", json=body)
    assert response.status_code == 200, response.text
    return response.headers.get("x-penstock-cost")


def chat_settings(double: OpenAIDouble, first: str, prices: str) -> str:
    tables = "".join(
        f'[vendors.{name}]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n'
        for name in ("first", "second")
    )
    routes = f'[{{vendor = "first", model = "{first}"}}, {{vendor = "second", model = "plain", order = 2}}]'
    model = f'[[models]]\nid = "talk"\nkind = "chat"\nroutes = {routes}\n'
    return f"[chat]\ncache_mb = 1\n{tables}{model}{prices}"


async def test_an_answer_costs_what_the_vendor_that_gave_it_asks(start):
    used = Usage(PROMPT_TOKENS, WORDS, 3)
    prices = listed(write(DEAR), "second", model="talk") + listed(write(CHEAP), model="talk")
    async with OpenAIDouble() as double:
        server = await start(chat_settings(double, "plain", prices))
        assert await ask(server) == format_usd(CHEAP.of(used))
        assert await ask(server) == "0.00", "it was kept from before"
        told = await show(server, "talk")
        assert told["price"] == DEAR.describe()
        assert [each["price"] for each in told["prices"]] == [CHEAP.describe(), DEAR.describe()]
        await reload(server, chat_settings(double, "status:500", prices))
        assert await ask(server, seed=1) == format_usd(DEAR.of(used))
        await reload(server, chat_settings(double, "status:500", listed(write(CHEAP), "first", model="talk")))
        assert await ask(server, seed=2) is None
        assert (await show(server, "talk"))["price"] is None
