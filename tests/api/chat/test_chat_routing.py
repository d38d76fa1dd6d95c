"""Chat over several routes: who is asked next, who never, who is left alone, and who is told what."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chat_canned
import httpx
import openai
import pytest
from chat_steps import HELLO
from conftest import Server, Start
from openai_double import KEY, OpenAIDouble
from openai_replies import GREETING
from plain import NO_TLS

from penstock.settings.tables import load

VENDOR = '[vendors.{name}]\ntype = "openai_compatible"\napi_key = "{key}"\nbase_url = "{url}"\n{more}\n'


@dataclass
class Routed:
    """A gateway with routes to two doubles."""

    server: Server
    one: OpenAIDouble
    two: OpenAIDouble
    moment: float = 0.0

    async def ask(self, model: str = "model", *, stream: bool = False) -> httpx.Response:
        body = {"model": model, "messages": HELLO, "stream": stream}
        return await self.server.client.post("/llm/chat/completions", json=body)

    async def vendor(self, **options: Any) -> str:
        """Who answered."""
        response = await self.ask(**options)
        assert response.status_code == 200, response.text
        return response.headers["x-penstock-vendor"]

    def stop_time(self) -> None:
        """For the health of routes it stands still from now on, until `move_time`."""
        routes = self.server.gateway.relay.routes
        self.moment = routes.now()
        routes.now = lambda: self.moment

    def move_time(self, seconds: float) -> None:
        self.moment += seconds

    @property
    def calls(self) -> tuple[int, int]:
        return len(self.one.requests), len(self.two.requests)


@asynccontextmanager
async def routed(start: Start, routes: str, key: str = KEY, more: str = "") -> AsyncGenerator[Routed]:
    """`routes` stands in the settings as it is; the vendors are called one and two."""
    async with OpenAIDouble() as one, OpenAIDouble() as two:
        vendors = VENDOR.format(name="one", url=one.url, key=key, more=more)
        vendors += VENDOR.format(name="two", url=two.url, key=KEY, more="")
        yield Routed(await start(f'{vendors}[[models]]\nid = "model"\nkind = "chat"\nroutes = [{routes}]\n'), one, two)


def in_order(first: str = "plain", second: str = "plain") -> str:
    return f'{{vendor = "one", model = "{first}", order = 1}}, {{vendor = "two", model = "{second}", order = 2}}'


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


# -- another route


REFUSALS = [
    *("status:500", "status:503", "status:429", "status:404", "status:403", "retry-after:30", "401", "quota"),
    *("html-502", "llamacpp-loading", "error-first"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("scenario", REFUSALS)
async def test_a_route_that_refuses_is_followed_by_the_next(start, scenario, stream):
    async with routed(start, in_order(scenario)) as chat:
        response = await chat.ask(stream=stream)
        assert (response.status_code, response.headers["x-penstock-vendor"]) == (200, "two")
        assert GREETING.split()[-1] in response.text
        assert chat.calls == (1, 1)
        assert [call.body["model"] for call in chat.one.requests + chat.two.requests] == [scenario, "plain"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_route_that_cannot_be_reached_is_followed_by_the_next(start, stream):
    async with routed(start, in_order()) as chat:
        await chat.one.close()
        assert [await chat.vendor(stream=stream) for _ in range(5)] == ["two"] * 5


async def test_a_refusal_whose_reason_is_cut_off_is_a_refusal(start):
    async with chat_canned.canned() as upstream, OpenAIDouble() as double:
        upstream.reply = b'HTTP/1.1 500 Oh\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"error"'
        routes = '{vendor = "canned"}, {vendor = "two", model = "plain", order = 2}'
        vendors = chat_canned.settings_of(upstream) + VENDOR.format(name="two", url=double.url, key=KEY, more="")
        server = await start(f'{vendors}[[models]]\nid = "model"\nkind = "chat"\nroutes = [{routes}]\n')
        body = {"model": "model", "messages": HELLO}
        response = await server.client.post("/llm/chat/completions", json=body)
        assert response.headers["x-penstock-vendor"] == "two"
        assert len(upstream.requests) == 1
        assert error_of(await server.client.post("/llm/chat/completions", json=body | {"model": "canned"})) == (
            502,
            "upstream_error",
        )


async def test_when_all_fail_the_last_failure_is_told(start):
    async with routed(start, in_order("status:500", "retry-after:7")) as chat:
        response = await chat.ask()
        assert error_of(response) == (429, "rate_limit_exceeded")
        assert response.headers["retry-after"] == "7"
        assert chat.calls == (1, 1)


async def test_a_vendor_that_is_full_is_followed_by_the_next(start):
    async with routed(start, in_order("hang"), more="max_concurrent = 1") as chat:
        waiting = asyncio.create_task(chat.ask())
        await chat.one.until(lambda double: double.open)
        assert [await chat.vendor() for _ in range(3)] == ["two"] * 3
        waiting.cancel()
        await chat.one.until(lambda double: not double.open)
        assert chat.calls == (1, 3)


# -- no other route


@pytest.mark.parametrize(
    ("scenario", "stream", "told"),
    [
        ("drop", False, (502, "upstream_error")),
        ("drop", True, (502, "upstream_error")),
        ("cut", False, (502, "upstream_error")),
        ("not-json", False, (502, "upstream_error")),
        ("empty", False, (502, "upstream_error")),
        ("empty", True, (502, "upstream_error")),
        ("hang", False, (504, "upstream_timeout")),
        ("hang", True, (504, "upstream_timeout")),
        ("silent:30", True, (504, "upstream_timeout")),
        ("status:400", False, (400, "invalid_value")),
        ("status:400", True, (400, "invalid_value")),
        ("context", True, (400, "context_length_exceeded")),
        ("status:422", False, (400, "invalid_value")),
    ],
)
async def test_work_that_may_have_been_done_is_not_done_again(start, scenario, stream, told):
    limits = "first_byte_seconds = 0.3\ntotal_seconds = 0.6"
    async with routed(start, in_order(scenario), more=limits if told[0] == 504 else "") as chat:
        assert error_of(await chat.ask(stream=stream)) == told
        assert chat.calls == (1, 0)


@pytest.mark.parametrize("scenario", ["cut", "clean-cut", "error-mid"])
async def test_nobody_else_is_asked_after_the_first_byte(start, scenario):
    async with routed(start, in_order(scenario)) as chat:
        request = {"json": {"model": "model", "messages": HELLO, "stream": True}}
        text = ""
        try:
            async with chat.server.client.stream("POST", "/llm/chat/completions", **request) as response:
                assert response.status_code == 200
                async for piece in response.aiter_text():
                    text += piece
        except httpx.RemoteProtocolError:
            pass  # cut, as the upstream's own was
        assert '"upstream_error"' in text
        assert "[DONE]" not in text
        assert chat.calls == (1, 0)


async def test_silence_in_mid_stream_asks_nobody_else(start):
    async with routed(start, in_order("think:30"), more="idle_seconds = 0.3") as chat:
        request = {"json": {"model": "model", "messages": HELLO, "stream": True}}
        with pytest.raises(httpx.RemoteProtocolError):
            async with chat.server.client.stream("POST", "/llm/chat/completions", **request) as response:
                await response.aread()
        assert chat.calls == (1, 0)


# -- weights


async def test_weights(start):
    routes = '{vendor = "one", model = "plain", weight = 3}, {vendor = "two", model = "plain", weight = 1}'
    async with routed(start, routes) as chat:
        vendors = Counter(await asyncio.gather(*(chat.vendor() for _ in range(240))))
        assert 145 < vendors["one"] < 215  # five standard deviations
        assert chat.calls == (vendors["one"], vendors["two"])


# -- routes that fail


async def test_a_failing_route_is_left_alone_and_tried_again_when_it_heals(start):
    async with routed(start, in_order()) as chat:
        chat.stop_time()
        chat.one.queue = ["status:500"] * 3
        assert [await chat.vendor() for _ in range(3)] == ["two"] * 3
        chat.move_time(0.9)
        assert await asyncio.gather(*(chat.vendor() for _ in range(10))) == ["two"] * 10
        assert chat.calls[0] == 3
        chat.move_time(0.2)
        assert await chat.vendor() == "one"
        assert chat.calls[0] == 4
        assert [await chat.vendor() for _ in range(5)] == ["one"] * 5


async def test_a_route_that_has_not_healed_is_tried_by_one_request_only(start):
    async with routed(start, in_order(), more="total_seconds = 2.0") as chat:
        chat.stop_time()
        chat.one.queue = ["status:500"] * 3 + ["hang"]
        for _ in range(3):
            await chat.vendor()
        chat.move_time(1.1)  # the rest is over
        responses = await asyncio.gather(*(chat.ask() for _ in range(20)))
        codes = Counter(response.status_code for response in responses)
        assert codes == {200: 19, 504: 1}  # who probed may have been heard: it is not asked twice
        assert chat.calls == (4, 3 + 19)


async def test_a_wish_to_be_left_alone_is_obeyed(start):
    async with routed(start, in_order()) as chat:
        chat.stop_time()
        chat.one.queue = ["retry-after:2"]
        assert await chat.vendor() == "two"
        chat.move_time(1.9)
        assert await asyncio.gather(*(chat.vendor() for _ in range(20))) == ["two"] * 20
        chat.move_time(0.2)
        assert await chat.vendor() == "one"
        assert chat.calls[0] == 2


@pytest.mark.parametrize("wish", ["inf", "1e400", "nan", "-5", "soon", "Wed, 21 Oct 2026 07:28:00 GMT"])
async def test_a_wish_of_any_kind_breaks_nothing(start, wish):
    async with routed(start, f'{{vendor = "one", model = "retry-after:{wish}"}}') as chat:
        for stream in (False, True):
            assert error_of(await chat.ask(stream=stream)) == (429, "rate_limit_exceeded")


async def test_a_sole_route_that_fails_is_asked_one_request_at_a_time(start):
    async with routed(start, '{vendor = "one", model = "hang"}', more="total_seconds = 1.5") as chat:
        for response in await asyncio.gather(*(chat.ask() for _ in range(3))):
            assert error_of(response) == (504, "upstream_timeout")
        responses = await asyncio.gather(*(chat.ask() for _ in range(20)))
        assert {error_of(response) for response in responses} == {(504, "upstream_timeout")}
        assert sum("retry-after" in response.headers for response in responses) == 19
        assert chat.calls[0] == 4
        chat.one.queue = ["plain"]
        assert (await chat.ask()).status_code == 200
        chat.one.queue = ["plain"] * 10
        assert await asyncio.gather(*(chat.vendor() for _ in range(10))) == ["one"] * 10


async def test_who_probes_and_leaves_makes_room_for_the_next(start):
    async with routed(start, '{vendor = "one", model = "plain"}') as chat:
        chat.one.queue = ["status:500"] * 3 + ["hang"]
        for _ in range(3):
            await chat.ask()
        waiting = asyncio.create_task(chat.ask())
        await chat.one.until(lambda double: double.open)
        assert error_of(await chat.ask()) == (502, "upstream_error")
        waiting.cancel()
        await chat.one.until(lambda double: not double.open)
        assert await chat.vendor() == "one"


async def test_new_settings_forget_what_failed(start):
    async with routed(start, in_order()) as chat:
        chat.one.queue = ["retry-after:60"]
        assert [await chat.vendor() for _ in range(2)] == ["two", "two"]
        gateway = chat.server.gateway
        config = Path(gateway.settings.data).parent / "penstock.toml"
        await gateway.reload(load(config, {}, {"data": gateway.settings.data}))
        assert await chat.vendor() == "one"


# -- errors with a status of success


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "overloaded", "code": 503}},
        [{"error": {"message": "overloaded", "code": 503}}],
        {"error": "overloaded"},
        {"object": "error", "message": "overloaded", "code": 500},
        {"detail": "overloaded"},
        {"message": "overloaded", "code": "server_busy"},
    ],
    ids=str,
)
@pytest.mark.parametrize("indent", [None, 2])
async def test_an_error_with_a_status_of_success_is_followed_by_the_next_route(start, body, stream, indent):
    async with canned_first(start) as (server, upstream, double):
        upstream.reply = chat_canned.WHOLE + b"\n" + json.dumps(body, indent=indent).encode()
        question = {"model": "model", "messages": HELLO, "stream": stream}
        response = await server.client.post("/llm/chat/completions", json=question)
        assert (response.status_code, response.headers["x-penstock-vendor"]) == (200, "two")
        assert (len(upstream.requests), len(double.requests)) == (1, 1)


# -- one account and the others


FLAGGED = {
    "error": {
        "code": 403,
        "message": "Your chosen model requires moderation and your input was flagged.",
        "metadata": {"reasons": ["violence"], "flagged_input": "Hello", "provider_name": "OpenAI", "model_slug": "m"},
    }
}


def reply_of(status: int, body: Any) -> bytes:
    head = f"HTTP/1.1 {status} Oh\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
    return head.encode() + json.dumps(body).encode()


@asynccontextmanager
async def canned_first(start: Start) -> AsyncGenerator[tuple[Server, chat_canned.Canned, OpenAIDouble]]:
    """The model `model` by a canned upstream, then by a double; `canned` only by the former."""
    async with chat_canned.canned() as upstream, OpenAIDouble() as double:
        routes = '{vendor = "canned", order = 1}, {vendor = "two", model = "plain", order = 2}'
        vendors = chat_canned.settings_of(upstream) + VENDOR.format(name="two", url=double.url, key=KEY, more="")
        yield await start(f'{vendors}[[models]]\nid = "model"\nkind = "chat"\nroutes = [{routes}]\n'), upstream, double


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [403, 200])
async def test_input_that_a_vendor_flags_is_its_callers_business(start, status, stream):
    async with canned_first(start) as (server, upstream, double):
        upstream.reply = reply_of(status, FLAGGED)
        body = {"model": "model", "messages": HELLO, "stream": stream}
        for _ in range(5):
            response = await server.client.post("/llm/chat/completions", json=body)
            assert error_of(response) == (400, "content_policy_violation")
            told = response.json()["error"]
            assert (told["type"], told["param"]) == ("invalid_request_error", "messages")
            assert "flagged" in told["message"]
            assert "violence" in told["message"]
            assert response.headers["x-should-retry"] == "false"
        assert (len(upstream.requests), len(double.requests)) == (5, 0)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, FLAGGED),
        (403, {"error": {"message": "This input is not for you", "code": 403}}),
        (402, {"error": {"message": "You requested up to 65536 tokens, but can only afford 100", "code": 402}}),
        (400, {"error": {"message": "Invalid value: 'Incorrect API key provided'", "code": "invalid_value"}}),
        (500, {"error": {"message": "poison"}}),
        (504, {"error": {"message": "slow"}}),
        (200, {"error": {"message": "poison"}}),
        (200, {"neither": "this nor that"}),
        (429, {"error": {"message": "Request too large", "code": "rate_limit_exceeded"}}),
    ],
    ids=str,
)
async def test_what_one_account_provokes_sheds_nobody_else(start, status, body):
    async with canned_first(start) as (server, upstream, _):
        others = [await server.sign_in(f"other-{number}") for number in range(3)]
        question = {"model": "canned", "messages": HELLO}
        upstream.reply = reply_of(status, body)
        for _ in range(10):
            assert (await server.client.post("/llm/chat/completions", json=question)).status_code >= 400
        message = {"role": "assistant", "content": "Hi", "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        head = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m"}
        upstream.reply = reply_of(200, head | {"choices": [choice]})
        answers = await asyncio.gather(
            *(other.post("/llm/chat/completions", json=question) for other in others for _ in range(5))
        )
        assert [answer.status_code for answer in answers] == [200] * 15


async def test_what_two_accounts_see_closes_a_route_to_a_third(start):
    async with routed(start, in_order()) as chat:
        chat.stop_time()
        one, two = [await chat.server.sign_in(name) for name in ("first", "second")]
        chat.one.queue = ["status:500"] * 3
        for client in (one, two, one):
            assert (await client.post("/llm/chat/completions", json={"model": "model", "messages": HELLO})).is_success
        assert [await chat.vendor() for _ in range(3)] == ["two"] * 3
        assert chat.calls[0] == 3


# -- our own credential


async def test_a_dead_credential_is_the_operators_business(start, caplog):
    dead = "sk-dead-credential-42"
    async with routed(start, '{vendor = "one", model = "plain"}', key=dead) as chat:
        for stream in (False, True):
            response = await chat.ask(stream=stream)
            assert error_of(response) == (502, "upstream_auth")
            assert response.headers["x-should-retry"] == "false"
            told = json.dumps([response.text, dict(response.headers)])
            for secret in (dead, dead[:9], "127.0.0.1", str(chat.one.port), "Incorrect API key", "org-upstream"):
                assert secret not in told
        logged = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert [vars(record)["fields"]["vendor"] for record in logged] == ["one", "one"]
        assert all(vars(record)["fields"]["blame"] == "credential" for record in logged)
        assert dead not in str([vars(record) for record in caplog.records])


async def test_a_dead_credential_rests_at_once(start):
    async with routed(start, in_order(), key="sk-dead-credential-42") as chat:
        assert [await chat.vendor() for _ in range(5)] == ["two"] * 5
        assert chat.calls == (1, 5)


async def test_upstreams_see_their_own_key_and_nothing_of_the_caller(start):
    async with routed(start, in_order("status:500")) as chat:
        headers = {"openai-organization": "org-caller", "x-stainless-lang": "python", "cookie": "session=1"}
        body = {"model": "model", "messages": HELLO}
        await chat.server.client.post("/llm/chat/completions", json=body, headers=headers)
        for call in chat.one.requests + chat.two.requests:
            assert call.headers["authorization"] == f"Bearer {KEY}"
            sent = str(dict(call.headers)) + call.raw.decode()
            assert not [word for word in ("psk_", "org-caller", "stainless", "cookie", "python-httpx") if word in sent]


# -- storms


@pytest.mark.parametrize(("scenario", "status"), [("hang", 504), ("retry-after:1", 429)])
@pytest.mark.long
async def test_a_storm_of_retrying_clients_is_not_multiplied(start, scenario, status):
    async with routed(start, f'{{vendor = "one", model = "{scenario}"}}', more="total_seconds = 0.4") as chat:
        key = await chat.server.new_key()

        async def call() -> int:
            async with openai.AsyncOpenAI(
                base_url=f"{chat.server.url}/llm",
                api_key=key,
                max_retries=2,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
            ) as client:
                with pytest.raises(openai.APIStatusError) as caught:
                    await client.chat.completions.create(model="model", messages=HELLO)
                return caught.value.status_code

        assert await asyncio.gather(*(call() for _ in range(50))) == [status] * 50
        # Those who came before anything had failed, and then one at a time; 150 requests came in.
        assert chat.calls[0] < 65
