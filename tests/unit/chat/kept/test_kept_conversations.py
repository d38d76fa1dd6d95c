"""Kept conversations: their items in order, their bounds, and the background responses of a process."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from penstock.chat.kept import responses as kept_responses
from penstock.chat.kept.responses import KeptResponses
from penstock.clocks import Clocks
from penstock.domain.kept.responses import KeepPolicy, KeptResponse, ResponseStatus
from penstock.errors import BodyTooLarge, InvalidRequest, ResponseNotFound
from penstock.store.connect import open_database
from penstock.store.database import Database

NOW = 1_800_000_000.0
MINE = "acct_mine"
POLICY = KeepPolicy(86_400.0, 1 << 20)


@pytest.fixture
async def database(store_url: str) -> AsyncGenerator[Database]:
    database = open_database(store_url)
    yield database
    await database.close()


def keeper(database: Database, process: str = "process_1", policy: KeepPolicy = POLICY) -> KeptResponses:
    return KeptResponses(database, lambda: policy, process, Clocks(lambda: NOW))


@pytest.fixture
def kept(database: Database) -> KeptResponses:
    return keeper(database)


def answer(name: str, *texts: str, status: str = "completed") -> dict[str, Any]:
    output = [{"type": "message", "id": f"msg_{name}_{place}", "text": text} for place, text in enumerate(texts)]
    return {"id": f"resp_{name}", "status": status, "model": "m", "output": output}


async def texts_of(kept: KeptResponses, previous_id: str, account_id: str = MINE) -> list[str]:
    items = [json.loads(bytes(item)) for item in await kept.history(account_id, previous_id)]
    return [item.get("text") or item["content"] for item in items]


async def test_a_conversation_is_its_inputs_and_outputs_in_order(kept):
    await kept.keep(MINE, answer("a", "one"), b'"Hi"')
    await kept.keep(MINE, answer("b", "two", "three"), b'[{"role":"user","content":"x"}]', "resp_a")
    await kept.keep(MINE, answer("c", "four"), b'"last"', "resp_b")
    assert await texts_of(kept, "resp_c") == ["Hi", "one", "x", "two", "three", "last", "four"]
    assert await texts_of(kept, "resp_a") == ["Hi", "one"]


async def test_items_keep_every_byte(kept):
    given = (
        b'[ {"role":"user", "content":"\\u00e9\\ud83d\\ude00", "odd": 1.0e400, "big": 123456789012345678901234567890} ]'
    )
    await kept.keep(MINE, answer("a"), given)
    (item,) = await kept.history(MINE, "resp_a")
    assert bytes(item) in given


@pytest.mark.parametrize("name", ["resp_none", "", "\0", "x" * 200])
async def test_an_unknown_previous_response_is_named(kept, name):
    with pytest.raises(InvalidRequest, match="not found") as error:
        await kept.history(MINE, name)
    assert (error.value.code, error.value.param) == ("previous_response_not_found", "previous_response_id")


async def test_a_conversation_with_a_gap_is_not_continued_in_part(kept):
    await kept.keep(MINE, answer("a"), b'"Hi"')
    await kept.keep(MINE, answer("b"), b'"Hi"', "resp_a")
    await kept.delete(MINE, "resp_a")
    with pytest.raises(InvalidRequest, match="resp_a") as error:
        await kept.history(MINE, "resp_b")
    assert error.value.code == "previous_response_not_found"


async def test_a_conversation_of_another_account_is_not_found(kept):
    await kept.keep(MINE, answer("a"), b'"Hi"')
    with pytest.raises(InvalidRequest, match="not found"):
        await kept.history("acct_other", "resp_a")


async def test_a_conversation_is_bounded_in_number_and_bytes(kept, monkeypatch):
    previous = None
    for number in range(4):
        await kept.keep(MINE, answer(str(number)), b'"' + b"x" * 1000 + b'"', previous)
        previous = f"resp_{number}"
    monkeypatch.setattr(kept_responses, "MAX_CHAIN_RESPONSES", 3)
    assert len(await kept.history(MINE, "resp_2")) == 3
    with pytest.raises(InvalidRequest, match="too long: at most 3 responses"):
        await kept.history(MINE, "resp_3")
    monkeypatch.setattr(kept_responses, "MAX_CHAIN_BYTES", 3000)
    assert len(await kept.history(MINE, "resp_1")) == 2
    with pytest.raises(InvalidRequest, match="too long"):
        await kept.history(MINE, "resp_2")


async def test_one_that_runs_is_not_continued(kept):
    await kept.begin_background(MINE, answer("a", status="queued"), b'"Hi"')
    with pytest.raises(InvalidRequest, match="is not finished: it is queued"):
        await kept.history(MINE, "resp_a")


async def test_a_response_larger_than_the_quota_is_not_kept(database):
    small = keeper(database, policy=KeepPolicy(86_400.0, 1000))
    with pytest.raises(BodyTooLarge):
        await small.keep(MINE, answer("a"), b'"' + b"x" * 1000 + b'"')
    with pytest.raises(ResponseNotFound):
        await small.find(MINE, "resp_a")


async def test_references_become_the_items_of_this_account(kept):
    await kept.keep(MINE, answer("a", "one", "two"), b'"Hi"')
    await kept.keep("acct_other", answer("b", "theirs"), b'"Hi"')
    given = [
        b'{"type":"item_reference","id":"msg_a_1"}',
        b'{"role":"user","content":"x"}',
        b'{"id":"msg_a_0","type":"item_reference"}',
    ]
    resolved = [json.loads(bytes(item)) for item in await kept.resolve(MINE, given)]
    assert [item.get("text") for item in resolved] == ["two", None, "one"]
    for unknown in ("msg_b_0", "msg_x", "\0"):
        reference = json.dumps({"type": "item_reference", "id": unknown}).encode()
        with pytest.raises(InvalidRequest, match="not found"):
            await kept.resolve(MINE, [reference])


async def test_a_message_that_speaks_of_references_is_none(kept):
    given = [b'{"role":"user","content":"what is an item_reference?","id":"msg_1","type":"message"}']
    assert await kept.resolve(MINE, given) == given


# -- in the background


async def run(kept: KeptResponses, name: str = "a") -> tuple[KeptResponse, asyncio.Task[None]]:
    """A background response that goes on until it is canceled."""

    async def work() -> None:
        await asyncio.Event().wait()

    queued = await kept.begin_background(MINE, answer(name, status="queued"), b'"Hi"')
    task = asyncio.create_task(work())
    kept.run(queued, task)
    return queued, task


async def is_canceled(task: asyncio.Task[None]) -> bool:
    await asyncio.wait([task], timeout=60)
    return task.cancelled()


async def test_canceling_and_deleting_end_the_task(kept):
    first, task = await run(kept)
    assert (await kept.cancel(MINE, first.id)).status is ResponseStatus.CANCELLED
    assert await is_canceled(task)
    second, task = await run(kept, "b")
    await kept.delete(MINE, second.id)
    assert await is_canceled(task)
    await kept.stop()


async def test_another_process_can_cancel_it(database, kept, monkeypatch):
    monkeypatch.setattr(kept_responses, "HEARTBEAT_SECONDS", 0.01)
    queued, task = await run(kept)
    await keeper(database, "process_2").cancel(MINE, queued.id)
    assert await is_canceled(task)
    await kept.stop()


async def test_stopping_fails_what_runs_here_and_nothing_else(database, kept):
    queued, task = await run(kept)
    other = keeper(database, "process_2")
    theirs, their_task = await run(other, "b")
    assert await kept.start(queued)
    await kept.stop()
    assert await is_canceled(task)
    found = await kept.find(MINE, queued.id)
    assert found.status is ResponseStatus.FAILED
    assert json.loads(found.body)["error"]["code"] == "server_error"
    assert (await kept.find(MINE, theirs.id)).status is ResponseStatus.QUEUED
    assert not their_task.done()
    await other.stop()


async def test_its_end_is_kept_under_its_own_id(kept):
    queued, task = await run(kept)
    assert await kept.finish(queued, {**answer("vendors_own", "done"), "id": "resp_vendors_own"})
    task.cancel()
    found = await kept.find(MINE, queued.id)
    assert (found.status, json.loads(found.body)["id"]) == (ResponseStatus.COMPLETED, queued.id)
    assert await texts_of(kept, queued.id) == ["Hi", "done"]
    await kept.stop()


async def test_a_failure_is_kept_with_its_error(kept):
    queued, task = await run(kept)
    assert await kept.fail(queued, {"code": "rate_limit_exceeded", "message": "Later."})
    task.cancel()
    found = await kept.find(MINE, queued.id)
    assert json.loads(found.body)["error"] == {"code": "rate_limit_exceeded", "message": "Later."}
    assert not await kept.fail(queued, {"code": "x", "message": "y"})
    await kept.stop()
