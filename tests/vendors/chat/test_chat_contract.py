"""One suite for every chat vendor there is: plain data in, the contract's types out."""

import json
import math
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from chat_samples import (
    CHAT,
    HOST,
    KEY,
    REMOTE,
    SAMPLES,
    anything,
    bodies,
    check_fault,
    every_remote_vendor,
    every_vendor,
    likely,
    make_ask,
    make_vendor,
    texts,
)
from hypothesis import assume, given, note
from hypothesis import strategies as some
from pydantic import ValidationError

from penstock.chat import request
from penstock.domain.chat import Ask, Blame
from penstock.errors import InvalidRequest
from penstock.vendor_api.chat import ChatVendor
from penstock.vendor_api.generation import Call, Reply
from penstock.vendors import load_vendor


def test_every_chat_vendor_has_its_sample():
    assert {name.partition("/")[0] for name in SAMPLES} == set(CHAT), "add a Sample for the new vendor"


# -- options


@every_vendor
@pytest.mark.parametrize(
    "wrong",
    [
        {"colour": "red"},
        {"max_concurrent": 0},
        *({f"{limit}_seconds": seconds} for limit in ("connect", "first_byte", "idle", "total") for seconds in (0, -1)),
        {"api_key": 7},
        {"base_url": None},
    ],
    ids=str,
)
def test_options_are_checked(name, wrong):
    make_vendor(name)
    with pytest.raises(ValidationError) as caught:
        make_vendor(name, **wrong)
    assert caught.value.errors()[0]["loc"][0] in wrong


@every_remote_vendor
def test_what_a_vendor_needs_none_of_can_be_left_out(name):
    options = load_vendor(name).options_type.model_validate({"type": name})
    assert options.api_key is None
    assert urlsplit(options.base_url).scheme == "https"


# -- requests


@every_vendor
@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_one_call_with_the_key_in_a_header_only(name, stream, monkeypatch):
    def forbid(*_: Any, **__: Any) -> Any:
        pytest.fail("a vendor does no I/O")

    monkeypatch.setattr(socket, "socket", forbid)
    monkeypatch.setattr(socket, "getaddrinfo", forbid)
    vendor: Any = make_vendor(name)
    key = KEY if name in REMOTE else vendor.server.key
    call = vendor.complete(make_ask(stream=stream), "their-model")
    assert isinstance(call, Call)
    assert (call.method, call.json) == ("POST", None)
    assert call.url.startswith(("/", HOST))
    assert isinstance(json.loads(call.body or b""), dict)
    assert "their-model" in f"{call.url} {call.body}"
    assert '"ours"' not in f"{call.url} {call.body}"
    assert call.headers["content-type"] == "application/json"
    assert [key in value for value in call.headers.values()].count(True) == 1
    assert key not in call.url
    assert key.encode() not in (call.body or b"")
    assert not Path("nowhere").exists()


@every_remote_vendor
@pytest.mark.parametrize("stream", [False, True])
def test_without_a_key_no_header_for_one_is_sent(name, stream):
    call = make_vendor(name).complete(make_ask(stream=stream), "their-model")
    without = make_vendor(name, api_key=None).complete(make_ask(stream=stream), "their-model")
    assert without.headers.keys() < call.headers.keys()


@every_vendor
def test_a_vendor_keeps_no_state_of_a_request(name):
    vendor = make_vendor(name)
    first = vendor.complete(make_ask(), "m")
    vendor.complete(make_ask(stream=True, temperature=0.5, max_tokens=7, user="someone"), "n")
    assert vendor.complete(make_ask(), "m") == first


@given(model=some.text(some.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_models_name_cannot_lead_elsewhere(model):
    for name in CHAT:
        note(name)
        check_place(name, model)


def check_place(name: str, model: str) -> None:
    call = make_vendor(name).complete(make_ask(), model)
    plain = make_vendor(name).complete(make_ask(), "m")
    whole, usual = (urlsplit(HOST + url if url.startswith("/") else url) for url in (call.url, plain.url))
    assert (whole.scheme, whole.netloc, whole.query, whole.fragment) == (usual.scheme, usual.netloc, usual.query, "")
    assert whole.path.count("/") == usual.path.count("/")


turns = some.lists(
    some.fixed_dictionaries(
        {"role": some.sampled_from(request.ROLES)},
        optional=dict.fromkeys(("content", "tool_calls", "tool_call_id", "name", "refusal", "function_call"), likely),
    ),
    min_size=1,
    max_size=4,
)
asked = some.dictionaries(
    some.sampled_from(
        [
            *("tools", "tool_choice", "response_format", "stop", "n", "seed", "reasoning_effort", "user", "google"),
            *("extra_body", "functions", "function_call", "logit_bias", "modalities", "thinking", "output_config"),
            *("parallel_tool_calls", "prediction", "temperature", "top_p", "top_k", "safetySettings", "cachedContent"),
            *("metadata", "audio"),
        ]
    ),
    likely | anything,
    max_size=4,
)


@given(messages=turns, fields=asked, stream=some.booleans())
def test_any_request_becomes_a_call_or_is_refused_with_a_reason(messages, fields, stream):
    try:
        ask = make_ask(stream=stream, **{**fields, "messages": messages})
    except InvalidRequest:
        assume(False)
    for name in (*CHAT, "openai_compatible/responses"):
        note(name)
        check_call(make_vendor(name), ask)


def check_call(vendor: ChatVendor, ask: Ask) -> None:
    try:
        call = vendor.complete(ask, "m")
    except InvalidRequest as error:
        told = error
    else:
        assert isinstance(json.loads(call.body or b""), dict)
        vendor.translator(ask)
        return
    assert told.message
    assert told.param
    assert told.code


# -- faults


waits = some.sampled_from(["7", "0", "-3", "inf", "nan", "1e400", "Wed, 21 Oct 2026 07:28:00 GMT", ""]) | texts


@given(status=some.integers(100, 999), body=bodies, wait=waits)
def test_any_reply_without_success_is_a_fault_that_can_be_told(status, body, wait):
    for name in CHAT:
        note(name)
        fault = make_vendor(name).fault(Reply(status, {"retry-after": wait}, body))
        check_fault(fault)
        assert fault.retry_after is None or not math.isnan(fault.retry_after)


@given(status=some.sampled_from([401, 403]), body=bodies)
def test_a_refused_credential_is_never_the_callers_fault(status, body):
    for name in CHAT:
        note(name)
        assert make_vendor(name).fault(Reply(status, {}, body)).blame is Blame.CREDENTIAL


@every_remote_vendor
def test_a_vendors_own_words_for_a_refused_credential(name):
    for status, body in SAMPLES[name].refusals:
        fault = make_vendor(name).fault(Reply(status, {}, json.dumps(body).encode()))
        assert fault.blame is Blame.CREDENTIAL, (status, body)
        check_fault(fault)


@every_vendor
@pytest.mark.parametrize(
    ("status", "blame"),
    [(429, Blame.LIMIT), (500, Blame.VENDOR), (502, Blame.VENDOR), (503, Blame.BUSY), (404, Blame.VENDOR)],
)
def test_a_status_alone_says_whose_fault_it_is(name, status, blame):
    for body in (b"", b"<html>", b"{}", b"[]"):
        fault = make_vendor(name).fault(Reply(status, {"retry-after": "7"}, body))
        assert (fault.blame, fault.retry_after, fault.status) == (blame, 7, status)
