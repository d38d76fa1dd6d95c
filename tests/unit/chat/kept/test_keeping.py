"""Keeping one response: the fields that ask for it, the last event of a stream, and runs in the background."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat.kept.background import BackgroundResponses
from penstock.chat.kept.keeping import Keeping, LastEventHolder
from penstock.chat.kept.request import KeepRequest, continue_conversation, read_keep_request
from penstock.chat.kept.responses import KeptResponses
from penstock.chat.replies.sse import COMMENT
from penstock.clocks import Clocks
from penstock.domain.chat import Ask
from penstock.domain.kept.responses import KeepPolicy, ResponseStatus
from penstock.errors import InvalidRequest, PenstockError, ResponseNotFound, StoreUnavailable, VendorFailed
from penstock.store.connect import open_database
from penstock.store.database import Database

NOW = 1_800_000_000.0
MINE = "acct_mine"
WANTED = KeepRequest(store=True, is_explicit=False, previous_id=None, is_background=False)


def ask_of(*, stream: bool = False, **fields: Any) -> Ask:
    raw = {name: msgspec.Raw(json.dumps(value).encode()) for name, value in fields.items()}
    return Ask("m", raw, stream=stream)


@pytest.fixture
async def database(tmp_path, empty_store) -> AsyncGenerator[Database]:
    shutil.copy(empty_store, tmp_path / "store.db")
    database = open_database(f"sqlite:///{tmp_path / 'store.db'}")
    yield database
    await database.close()


@pytest.fixture
def kept(database: Database) -> KeptResponses:
    return KeptResponses(database, lambda: KeepPolicy(86_400.0, 1 << 20), "process_1", Clocks(lambda: NOW))


def answer(name: str = "a", **fields: Any) -> dict[str, Any]:
    output = [{"type": "message", "id": f"msg_{name}", "role": "assistant", "content": "done"}]
    return {"id": f"resp_{name}", "status": "completed", "model": "m", "output": output, **fields}


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


# -- the fields


def test_where_nothing_is_kept_a_plain_request_passes():
    for fields in ({}, {"store": False}, {"background": False, "store": False}):
        wanted = read_keep_request(ask_of(**fields), is_on=False)
        assert not wanted.store
        assert wanted.describe() == {"store": False, "previous_response_id": None, "background": False}


@pytest.mark.parametrize("fields", [{"store": True}, {"background": True}, {"previous_response_id": "resp_a"}])
def test_where_nothing_is_kept_each_field_is_refused_by_name(fields):
    (name,) = fields
    with pytest.raises(InvalidRequest) as error:
        read_keep_request(ask_of(**fields), is_on=False)
    assert (error.value.param, error.value.code) == (name, "unsupported_parameter")


def test_where_responses_are_kept_each_is_unless_the_request_says_no():
    assert read_keep_request(ask_of(), is_on=True).store
    assert read_keep_request(ask_of(store=True), is_on=True).store
    assert not read_keep_request(ask_of(store=False), is_on=True).store
    assert read_keep_request(ask_of(previous_response_id="resp_a"), is_on=True).previous_id == "resp_a"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"store": "yes"}, "store"),
        ({"background": 1}, "background"),
        ({"previous_response_id": 7}, "previous_response_id"),
        ({"background": True, "store": False}, "store"),
        ({"background": True, "stream": True}, "stream"),
    ],
)
def test_wrong_and_contradictory_fields_are_refused(fields, param):
    with pytest.raises(InvalidRequest) as error:
        read_keep_request(ask_of(**fields), is_on=True)
    assert error.value.param == param


async def test_the_conversation_comes_before_the_input_and_nothing_is_left_for_the_vendor(kept):
    await kept.keep(MINE, answer(), b'"Hi"')
    asked = ask_of(input="More", previous_response_id="resp_a", store=True, instructions="Be brief.")
    wanted = read_keep_request(asked, is_on=True)
    found = await continue_conversation(kept, MINE, asked, wanted)
    assert [item["content"] for item in found.ask.field("input")] == ["Hi", "done", "More"]
    assert set(found.ask.fields) == {"input", "store", "instructions"}
    assert found.ask.field("store") is False
    assert [item["content"] for item in json.loads(found.given)] == ["More"]
    assert found.ask.prompt > 0
    assert found.added_bytes > 0


async def test_an_answer_can_be_followed_by_items_that_refer_to_it(kept):
    await kept.keep(MINE, answer(), b'"Hi"')
    asked = ask_of(input=[{"role": "user", "content": "Hi"}, {"type": "item_reference", "id": "msg_a"}])
    found = await continue_conversation(kept, MINE, asked, WANTED)
    assert [item["content"] for item in found.ask.field("input")] == ["Hi", "done"]
    assert b"item_reference" not in found.given


async def test_the_output_comes_back_as_plain_input(kept):
    """A vendor would look for items by their ids, and for reasoning that it did not keep."""
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    output = [
        {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": None},
        sealed,
        *answer()["output"],
    ]
    await kept.keep(MINE, answer(output=output), b'"Hi"')
    _, reasoning, message = [json.loads(bytes(item)) for item in await kept.history(MINE, "resp_a")]
    assert reasoning == {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    assert message == {"type": "message", "role": "assistant", "content": "done"}


async def test_reasoning_is_asked_for_in_a_form_that_can_be_sent_again(kept):
    for fields, included in (
        ({}, None),
        ({"reasoning": {"effort": "low"}}, ["reasoning.encrypted_content"]),
        ({"reasoning": {}, "include": ["a"]}, ["a", "reasoning.encrypted_content"]),
        ({"reasoning": {}, "include": ["reasoning.encrypted_content"]}, ["reasoning.encrypted_content"]),
    ):
        found = await continue_conversation(kept, MINE, ask_of(input="Hi", **fields), WANTED)
        assert found.ask.field("include") == included


async def test_ids_of_kept_responses_are_not_the_callers_choice(kept):
    ids = {(await continue_conversation(kept, MINE, ask_of(input="Hi"), WANTED)).ask.reply_id for _ in range(3)}
    assert len(ids) == 3
    wanted = KeepRequest(store=True, is_explicit=False, previous_id="resp_a", is_background=False)
    body = await Keeping(kept, MINE, "resp_a", b'"Hi"', wanted).keep_whole(json.dumps(answer()).encode())
    assert json.loads(body)["store"] is False


# -- whole responses and streams


async def test_a_whole_response_is_kept_and_says_so(kept):
    body = await Keeping(kept, MINE, "resp_a", b'"Hi"', WANTED).keep_whole(json.dumps(answer(store=False)).encode())
    assert json.loads(body)["store"] is True
    assert (await kept.find(MINE, "resp_a")).body == body


async def test_a_response_that_is_not_to_be_kept_is_not(kept):
    wanted = KeepRequest(store=False, is_explicit=False, previous_id=None, is_background=False)
    body = await Keeping(kept, MINE, "resp_a", b'"Hi"', wanted).keep_whole(json.dumps(answer()).encode())
    assert json.loads(body)["store"] is False
    with pytest.raises(ResponseNotFound):
        await kept.find(MINE, "resp_a")


@pytest.mark.parametrize("odd", [{"status": "odd"}, {"status": None}, {"output": [{"text": "x" * (1 << 20)}]}])
async def test_a_response_that_cannot_be_kept_is_answered_and_says_so(kept, odd):
    body = await Keeping(kept, MINE, "resp_a", b'"Hi"', WANTED).keep_whole(json.dumps(answer(**odd)).encode())
    assert json.loads(body)["store"] is False


@pytest.mark.parametrize("error", [StoreUnavailable(), TimeoutError()])
async def test_without_the_store_a_response_is_answered_and_says_that_it_is_not_kept(kept, error, monkeypatch):
    async def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(kept, "keep", fail)
    body = await Keeping(kept, MINE, "resp_a", b'"Hi"', WANTED).keep_whole(json.dumps(answer()).encode())
    assert json.loads(body)["store"] is False


class Collected:
    """A caller that reads all."""

    is_full = False

    def __init__(self) -> None:
        self.data = b""

    def write(self, piece: bytes) -> bool:
        self.data += piece
        return True

    async def drain(self) -> None:
        pass


BEGINNING = event("response.created", sequence_number=0, response=answer(status="in_progress"))
MIDDLE = event("response.output_text.delta", delta='"response": the event "response.completed" ends it\n\n') + COMMENT


@pytest.mark.parametrize("kind", ["completed", "incomplete", "failed"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@given(cuts=some.lists(some.integers(0, 800), max_size=6))
def test_only_the_last_event_is_held_wherever_the_pieces_are_cut(kind, line_end, cuts):
    last = event(f"response.{kind}", response=answer(status=kind))
    beginning, middle, last = (part.replace(b"\n", line_end) for part in (BEGINNING, MIDDLE, last))
    stream, caller = beginning + middle + last, Collected()
    holder = LastEventHolder(caller, lambda response: {**response, "id": "resp_own"})
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, end in pairwise(places):
        holder.write(stream[start:end])
    assert caller.data.endswith(middle)
    name, data = caller.data.removesuffix(middle).strip().split(b"\n")
    assert name == b"event: response.created"
    shown = json.loads(data.removeprefix(b"data: "))
    assert shown == {
        "type": "response.created",
        "sequence_number": 0,
        "response": answer(status="in_progress", id="resp_own"),
    }
    assert holder.held == last
    holder.release()
    assert caller.data.endswith(middle + last)


async def test_the_last_event_says_that_the_response_is_kept(kept):
    last = event("response.completed", sequence_number=9, response=answer(store=False))
    sent = await Keeping(kept, MINE, "resp_a", b'"Hi"', WANTED).keep_last(last)
    name, data = sent.removesuffix(b"\n\n").split(b"\n")
    assert name == b"event: response.completed"
    message = json.loads(data.removeprefix(b"data: "))
    assert (message["sequence_number"], message["response"]["store"]) == (9, True)
    assert (await kept.find(MINE, "resp_a")).status is ResponseStatus.COMPLETED


# -- in the background


class Settled:
    """An answer of the relay, as far as a background run uses it."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.settlement = self
        self.calls: list[str] = []

    def settle(self) -> None:
        self.calls.append("settled")

    def close(self) -> None:
        self.calls.append("closed")


async def begin(kept: KeptResponses, open_answer: Any) -> str:
    asked = ask_of(input="Hi", background=True, metadata={"a": "b"})
    wanted = read_keep_request(asked, is_on=True)
    continued = await continue_conversation(kept, MINE, asked, wanted)
    queued = json.loads(await BackgroundResponses(kept, lambda: NOW).begin(MINE, continued, wanted, open_answer))
    assert (queued["status"], queued["background"], queued["metadata"]) == ("queued", True, {"a": "b"})
    return queued["id"]


async def until_it_ends(kept: KeptResponses, response_id: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            found = await kept.find(MINE, response_id)
            if not found.status.is_running:
                return json.loads(found.body)
            await asyncio.sleep(0)


async def test_a_run_is_settled_closed_and_kept_under_its_own_id(kept):
    settled = Settled(json.dumps(answer("vendors")).encode())

    async def open_answer() -> Settled:
        return settled

    response_id = await begin(kept, open_answer)
    found = await until_it_ends(kept, response_id)
    assert (found["id"], found["status"], found["background"]) == (response_id, "completed", True)
    assert settled.calls == ["settled", "closed"]
    assert [json.loads(bytes(item))["content"] for item in await kept.history(MINE, response_id)] == ["Hi", "done"]
    await kept.stop()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (VendorFailed("It failed."), "server_error"),
        (InvalidRequest("It is too long."), "invalid_prompt"),
        (RuntimeError("a bug"), "server_error"),
    ],
)
async def test_a_run_that_fails_is_kept_as_failed(kept, error, code):
    async def open_answer() -> Settled:
        raise error

    found = await until_it_ends(kept, await begin(kept, open_answer))
    assert (found["status"], found["error"]["code"]) == ("failed", code)
    assert "bug" not in str(found)
    assert not isinstance(error, PenstockError) or found["error"]["message"] == error.message
    await kept.stop()


async def test_a_run_that_is_canceled_leaves_its_vendor(kept):
    began, left = asyncio.Event(), asyncio.Event()

    async def open_answer() -> Settled:
        began.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            left.set()

    response_id = await begin(kept, open_answer)
    await began.wait()
    assert (await kept.find(MINE, response_id)).status is ResponseStatus.IN_PROGRESS
    await kept.cancel(MINE, response_id)
    await left.wait()
    assert (await kept.find(MINE, response_id)).status is ResponseStatus.CANCELLED
    await kept.stop()
