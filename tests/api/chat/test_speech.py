"""Speech through a gateway: what reaches an OpenAI-compatible vendor, what comes back, money and refusals."""

import base64
import io
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import openai
import pytest
from conftest import Server, Start
from embedding_steps import sdk_of
from speech_double import KEY, WORDS, SpeechDouble, make_wav
from test_embeddings import records_of

SPEECH = "/llm/audio/speech"
TRANSCRIPTIONS = "/llm/audio/transcriptions"
MODELS = ("plain", "tokens", "nanoseconds", "broken", "error-inside", "away")


@dataclass
class Speech:
    """A gateway, the double behind it, and an SDK client that does not retry."""

    server: Server
    double: SpeechDouble
    client: openai.AsyncOpenAI

    async def speak(self, **fields: Any) -> httpx.Response:
        body = {"model": "say-plain", "input": "Hello", "voice": "alloy", **fields}
        return await self.server.client.post(SPEECH, json={name: value for name, value in body.items() if value != ""})

    async def transcribe(self, sound: bytes | None = None, **fields: Any) -> httpx.Response:
        file = {"file": ("talk.wav", make_wav() if sound is None else sound, "audio/wav")}
        return await self.server.client.post(TRANSCRIPTIONS, data={"model": "hear-plain", **fields}, files=file)


@pytest.fixture
async def speech(start: Start) -> AsyncGenerator[Speech]:
    async with AsyncExitStack() as stack:
        double = await stack.enter_async_context(SpeechDouble())
        tables = [f'[vendors.far]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n']
        prices = {"speech": 'per_million_characters = "15"', "transcription": 'per_minute = "0.6"'}
        for kind, verb in (("speech", "say"), ("transcription", "hear")):
            tables += [
                f'[[models]]\nid = "{verb}-{name}"\nkind = "{kind}"\nvendor = "far"\nmodel = "{name}"\n'
                f"price = {{{prices[kind]}}}\n"
                for name in MODELS
            ]
        server = await start("\n".join(tables))
        client = await stack.enter_async_context(sdk_of(server, await server.new_key()))
        yield Speech(server, double, client)


# -- speech


async def test_the_sdk_gets_a_sound_and_the_vendor_the_callers_fields(speech: Speech):
    found = await speech.client.audio.speech.create(
        model="say-plain", input="Hello", voice="alloy", instructions="calmly", response_format="wav", speed=1.5
    )
    assert found.content == make_wav()
    assert speech.double.requests == [
        (
            "speech",
            {
                "model": "plain",
                "input": "Hello",
                "voice": "alloy",
                "instructions": "calmly",
                "response_format": "wav",
                "speed": 1.5,
            },
        )
    ]


async def test_the_content_type_is_that_of_the_bytes(speech: Speech):
    response = await speech.speak(response_format="mp3")
    assert (response.status_code, response.headers["content-type"]) == (200, "audio/wav")


async def test_a_sound_comes_as_events_too(speech: Speech):
    response = await speech.speak(stream_format="sse")
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n") if line]
    assert [event["type"] for event in events] == ["speech.audio.delta", "speech.audio.done"]
    assert base64.b64decode(events[0]["audio"]) == make_wav()
    assert "stream_format" not in speech.double.requests[0][1]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": "  "}, "input"),
        ({"input": ["a"]}, "input"),
        ({"input": "x" * 4097}, "input"),
        ({"voice": ""}, "voice"),
        ({"voice": 5}, "voice"),
        ({"response_format": "midi"}, "response_format"),
        ({"speed": 0.1}, "speed"),
        ({"speed": True}, "speed"),
        ({"stream_format": "tape"}, "stream_format"),
        ({"model": "hear-plain"}, "model"),
    ],
)
async def test_wrong_speech_is_refused_before_the_vendor(speech: Speech, fields: dict[str, Any], param: str):
    response = await speech.speak(**fields)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)
    assert speech.double.requests == []


async def test_characters_are_charged(speech: Speech):
    response = await speech.speak(input="x" * 1000)
    assert response.headers["x-penstock-cost"] == "0.015"
    [record] = await records_of(speech.server, 1)
    assert (record.model, record.cost) == ("say-plain", 15_000_000)


@pytest.mark.parametrize("kind", ["say", "hear"])
@pytest.mark.parametrize(("model", "status"), [("broken", 502), ("error-inside", 400), ("away", 503)])
async def test_a_reply_that_is_none_is_never_passed_on(speech: Speech, kind: str, model: str, status: int):
    send = speech.speak if kind == "say" else speech.transcribe
    response = await send(model=f"{kind}-{model}")
    assert (response.status_code, "error" in response.json()) == (status, True), response.text


async def test_a_vendor_that_refuses_costs_nothing(speech: Speech):
    await speech.speak(model="say-away")
    [record] = await records_of(speech.server, 1)
    assert not record.cost


# -- transcriptions


async def test_the_sdk_gets_a_transcript_and_the_vendor_the_callers_form(speech: Speech):
    found = await speech.client.audio.transcriptions.create(
        model="hear-plain",
        file=("talk.wav", io.BytesIO(make_wav()), "audio/wav"),
        language="en",
        prompt="penstock",
        temperature=0,
        response_format="verbose_json",
        timestamp_granularities=["segment"],
    )
    assert found.text == WORDS
    [(_, form)] = speech.double.requests
    assert form == {
        "model": "plain",
        "file": ("talk.wav", "audio/wav", make_wav()),
        "language": "en",
        "prompt": "penstock",
        "temperature": "0",
        "response_format": "verbose_json",
        "timestamp_granularities[]": ["segment"],
    }


@pytest.mark.parametrize("wanted", ["text", "srt", "vtt"])
async def test_plain_formats_are_text(speech: Speech, wanted: str):
    response = await speech.transcribe(response_format=wanted)
    assert (response.text, response.headers["content-type"]) == (WORDS, "text/plain; charset=utf-8")


async def test_a_transcript_comes_as_events_too(speech: Speech):
    response = await speech.transcribe(stream="true")
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n") if line]
    assert [event["type"] for event in events] == ["transcript.text.delta", "transcript.text.done"]
    assert events[1]["text"] == WORDS


async def test_times_are_seconds(speech: Speech):
    response = await speech.transcribe(model="hear-nanoseconds", response_format="verbose_json")
    assert [segment["end"] for segment in response.json()["segments"]] == [1.5]


async def test_minutes_are_charged_by_our_measure(speech: Speech):
    response = await speech.transcribe(make_wav(30))
    assert response.headers["x-penstock-cost"] == "0.30"
    await speech.transcribe(model="hear-tokens")
    first, second = await records_of(speech.server, 2)
    assert first.cost == 300_000_000
    assert (second.usage.prompt, second.usage.completion) == (14, 9)


@pytest.mark.parametrize(
    ("sound", "fields", "param"),
    [
        (b"", {}, "file"),
        (b"<html></html>", {}, "file"),
        (make_wav()[:30], {}, "file"),
        (None, {"response_format": "docx"}, "response_format"),
        (None, {"stream": "perhaps"}, "stream"),
        (None, {"model": "say-plain"}, "model"),
    ],
)
async def test_a_wrong_form_is_refused_before_the_vendor(speech: Speech, sound: Any, fields: Any, param: str):
    response = await speech.transcribe(sound, **fields)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param), response.text
    assert speech.double.requests == []


async def test_a_file_is_needed_and_a_body_must_be_a_form(speech: Speech):
    client = speech.server.client
    without = await client.post(TRANSCRIPTIONS, data={"model": "hear-plain"}, files={"other": b"x"})
    assert without.status_code == 400
    torn = await client.post(
        TRANSCRIPTIONS, content=b"--x\r\n", headers={"content-type": "multipart/form-data; boundary=x"}
    )
    assert (torn.status_code, torn.json()["error"]["message"]) == (400, "The form is cut off.")
    unmarked = await client.post(TRANSCRIPTIONS, content=b"--x\r\n", headers={"content-type": "multipart/form-data"})
    assert "boundary" in unmarked.json()["error"]["message"]


async def test_a_budget_is_held_before_the_vendor_is_asked(speech: Speech):
    client = await speech.server.sign_in(budgets={"total": "0.001"})
    response = await client.post(SPEECH, json={"model": "say-plain", "input": "x" * 1000, "voice": "alloy"})
    assert (response.status_code, response.json()["error"]["code"]) == (402, "insufficient_budget")
    assert speech.double.requests == []
