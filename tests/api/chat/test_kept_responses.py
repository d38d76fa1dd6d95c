"""Kept responses over HTTP: found, listed, deleted and canceled by their account only, through OpenAI's client."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import openai
import pytest
from conftest import Server, client_of
from plain import NO_TLS
from steps import refused

from penstock.clocks import Clocks
from penstock.domain.ids import new_id
from penstock.domain.kept.responses import LEASE_SECONDS, KeptResponse
from penstock.store.contact import StoreContact

KEEP = '[chat]\nresponse_retention = "30d"\n[vendors.sim]\ntype = "sim"\n'
DAY = 86_400
TALK: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is the weather?"}]},
    {"role": "assistant", "content": "I will look."},
    {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
]


@dataclass
class Shifted:
    """A clock that a test moves."""

    ahead: float = 0.0

    def now(self) -> float:
        return time.time() + self.ahead


@dataclass
class Stage:
    """A gateway that keeps responses, and strict clients of it."""

    server: Server
    clock: Shifted
    clients: AsyncExitStack
    sdk: openai.AsyncOpenAI
    account_id: str

    async def sign_in(self, key: str, base: str = "/v1") -> openai.AsyncOpenAI:
        client = openai.AsyncOpenAI(
            base_url=self.server.url + base,
            api_key=key,
            max_retries=0,
            _strict_response_validation=True,
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
        )
        return await self.clients.enter_async_context(client)

    async def keep(self, given: bytes = b'"Hello"', account_id: str | None = None, **fields: Any) -> str:
        previous_id = fields.get("previous_response_id")
        response = response_of(**fields)
        await self.server.gateway.kept.keep(account_id or self.account_id, response, given, previous_id)
        return response["id"]

    async def begin(self) -> KeptResponse:
        queued = response_of(status="queued", background=True, output=[])
        return await self.server.gateway.kept.begin_background(self.account_id, queued, b'"Hello"')


def response_of(**fields: Any) -> dict[str, Any]:
    response_id = new_id("resp")
    message = {"type": "output_text", "text": "Hello.", "annotations": [], "logprobs": []}
    item = {"id": new_id("msg"), "type": "message", "role": "assistant", "status": "completed", "content": [message]}
    usual = {"id": response_id, "object": "response", "created_at": 1.0, "status": "completed", "model": "m"}
    rest = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "error": None, "output": [item]}
    return {**usual, **rest, **fields}


@pytest.fixture
def clock() -> Shifted:
    return Shifted()


@pytest.fixture
async def stage(start, clock) -> AsyncGenerator[Stage]:
    server = await start(KEEP, clocks=Clocks(clock.now))
    async with AsyncExitStack() as clients:
        key = await server.new_key()
        account_id = (await server.gateway.keyring.check(f"Bearer {key}")).account_id
        stage = Stage(server, clock, clients, None, account_id)  # type: ignore[arg-type]
        stage.sdk = await stage.sign_in(key)
        yield stage


async def test_a_response_is_retrieved_as_it_was_kept(stage):
    response_id = await stage.keep(metadata={"a": "b"})
    found = await stage.sdk.responses.retrieve(response_id)
    assert (found.id, found.status, found.output_text) == (response_id, "completed", "Hello.")
    assert found.metadata == {"a": "b"}


@pytest.mark.parametrize("base", ["/v1", "/llm/v1", "/llm"])
async def test_it_is_found_at_every_base_url(stage, base):
    response_id = await stage.keep()
    sdk = await stage.sign_in(await stage.server.new_key(), base)
    assert (await sdk.responses.retrieve(response_id)).id == response_id
    assert [item.type async for item in sdk.responses.input_items.list(response_id)] == ["message"]
    await sdk.responses.delete(response_id)
    with pytest.raises(openai.NotFoundError):
        await sdk.responses.retrieve(response_id)


async def test_other_accounts_find_neither_it_nor_its_items(stage):
    response_id = await stage.keep()
    other = await stage.sign_in(await stage.server.new_key("other"))
    for call in (other.responses.retrieve, other.responses.delete, other.responses.cancel):
        with pytest.raises(openai.NotFoundError) as error:
            await call(response_id)
        assert error.value.code == "response_not_found"
    with pytest.raises(openai.NotFoundError):
        await other.responses.input_items.list(response_id)
    with pytest.raises(Exception, match="not found"):
        await stage.server.gateway.kept.history("acct_other", response_id)
    assert (await stage.sdk.responses.retrieve(response_id)).id == response_id


@pytest.mark.parametrize("name", ["resp_unknown", "%00", "a%0Ab", "x" * 300, "%F0%9F%98%80", "'%20OR%201=1"])
async def test_ids_that_nobody_has_are_not_found(stage, name):
    refused(await stage.server.client.get(f"/v1/responses/{name}"), 404, "response_not_found")
    refused(await stage.server.client.delete(f"/v1/responses/{name}"), 404, "response_not_found")
    refused(await stage.server.client.post(f"/v1/responses/{name}/cancel"), 404, "response_not_found")


async def test_a_key_without_the_scope_is_refused(stage):
    response_id = await stage.keep()
    client = await stage.server.sign_in(scopes=frozenset({"read"}))
    refused(await client.get(f"/v1/responses/{response_id}"), 403, "scope_not_allowed")
    async with client_of(stage.server.url, None) as nobody:
        refused(await nobody.get(f"/v1/responses/{response_id}"), 401, "missing_api_key")


async def test_a_kept_response_is_not_streamed_again(stage):
    response_id = await stage.keep()
    error = refused(await stage.server.client.get(f"/v1/responses/{response_id}?stream=true"), 400, "unsupported_value")
    assert error["param"] == "stream"
    assert (await stage.server.client.get(f"/v1/responses/{response_id}?stream=false")).status_code == 200


async def test_a_deleted_response_is_gone_and_says_so(stage):
    response_id = await stage.keep()
    answer = await stage.server.client.delete(f"/v1/responses/{response_id}")
    assert answer.json() == {"id": response_id, "object": "response", "deleted": True}
    refused(await stage.server.client.delete(f"/v1/responses/{response_id}"), 404, "response_not_found")


async def test_it_is_gone_after_its_retention_and_swept(stage):
    response_id = await stage.keep()
    stage.clock.ahead = 30 * DAY - 60
    assert (await stage.sdk.responses.retrieve(response_id)).id == response_id
    stage.clock.ahead = 30 * DAY + 60
    with pytest.raises(openai.NotFoundError):
        await stage.sdk.responses.retrieve(response_id)
    assert await stage.server.gateway.upkeep.sweep() >= 1
    assert await stage.server.gateway.upkeep.sweep() == 0


async def test_where_nothing_is_kept_the_error_says_so(start):
    server = await start()
    error = refused(await server.client.get("/v1/responses/resp_x"), 404, "response_not_found")
    assert "chat.response_retention" in error["message"]


# -- items


async def test_input_items_have_ids_and_the_forms_of_the_api(stage):
    response_id = await stage.keep(as_json(TALK))
    found = [item async for item in stage.sdk.responses.input_items.list(response_id, order="asc")]
    assert [item.type for item in found] == ["message"] * 3 + ["function_call", "function_call_output"]
    assert len({item.id for item in found}) == 5
    assert [item.role for item in found[:3]] == ["developer", "user", "assistant"]
    assert [item.content[0].text for item in found[:3]] == ["Be brief.", "What is the weather?", "I will look."]
    assert (found[3].call_id, found[4].output) == ("call_1", "sunny")
    newest = await stage.sdk.responses.input_items.list(response_id, limit=2)
    assert [item.id for item in newest.data] == [item.id for item in found[:2:-1]]


async def test_a_text_is_one_message(stage):
    response_id = await stage.keep(b'"Hi \\u00e9"')
    (item,) = (await stage.sdk.responses.input_items.list(response_id)).data
    assert (item.type, item.role, item.content[0].text) == ("message", "user", "Hi é")


async def test_items_come_in_pages(stage):
    talk = [{"role": "user", "content": str(number)} for number in range(45)]
    response_id = await stage.keep(as_json(talk))
    pages = stage.sdk.responses.input_items.list(response_id, limit=20, order="asc")
    assert [item.content[0].text async for item in pages] == [str(number) for number in range(45)]
    path = f"/v1/responses/{response_id}/input_items"
    page = (await stage.server.client.get(path, params={"limit": 20, "order": "asc"})).json()
    assert (page["has_more"], page["first_id"], page["last_id"]) == (
        True,
        page["data"][0]["id"],
        page["data"][19]["id"],
    )
    refused(await stage.server.client.get(path, params={"after": "msg_x"}), 400, "invalid_params")
    refused(await stage.server.client.get(path, params={"limit": 101}), 400, "invalid_params")
    refused(await stage.server.client.get(path, params={"order": "up"}), 400, "invalid_params")


# -- in the background


async def test_canceling_one_in_the_background_ends_it(stage):
    queued = await stage.begin()
    assert (await stage.sdk.responses.retrieve(queued.id)).status == "queued"
    assert (await stage.sdk.responses.cancel(queued.id)).status == "cancelled"
    assert (await stage.sdk.responses.cancel(queued.id)).status == "cancelled"
    assert not await stage.server.gateway.kept.finish(queued, response_of())
    assert (await stage.sdk.responses.retrieve(queued.id)).status == "cancelled"


async def test_one_that_was_not_in_the_background_cannot_be_canceled(stage):
    response_id = await stage.keep()
    with pytest.raises(openai.BadRequestError, match="synchronous"):
        await stage.sdk.responses.cancel(response_id)


async def test_one_whose_process_died_fails(stage, monkeypatch):
    monkeypatch.setattr(StoreContact, "is_steady", True)
    queued = await stage.begin()
    stage.clock.ahead = LEASE_SECONDS - 5
    await stage.server.gateway.upkeep.sweep()
    assert (await stage.sdk.responses.retrieve(queued.id)).status == "queued"
    stage.clock.ahead = LEASE_SECONDS + 5
    await stage.server.gateway.upkeep.sweep()
    if stage.server.gateway.settings.database_url.startswith("postgresql"):
        return  # its own clock decides, so that a machine with a fast clock ends no other's lease
    found = await stage.sdk.responses.retrieve(queued.id)
    assert (found.status, found.error.code) == ("failed", "server_error")
    assert not await stage.server.gateway.kept.finish(queued, response_of())


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()
