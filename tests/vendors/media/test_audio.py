"""Speech and transcripts at vendors in OpenAI's shape: a strict double, the official SDK, and refusals at the door."""

import io
import json
import wave
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import openai
import pytest
from aiohttp import web
from conftest import Server, Start
from doubles.media import answer, read_form
from plain import NO_TLS
from small_media import sound
from vendors.double import HttpDouble, drop, reply

KEY = "sk-audio-0123456789"
SPEECH = {"model", "input", "voice", "instructions", "response_format", "speed", "stream_format"}
VOICES = {"alloy", "coral", "sage"}
TRANSCRIPT = {
    *("model", "language", "prompt", "response_format", "temperature", "timestamp_granularities[]", "stream", "file"),
}
SOUNDS = {"mp3": "audio/mpeg", "wav": "audio/wav", "flac": "audio/flac"}
WORDS = "The fox is red."


def trouble(message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


class AudioDouble(HttpDouble):
    """OpenAI's `/audio/speech` and `/audio/transcriptions`, as its documents say."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Mapping[str, Any]] = []
        self.heard: list[bytes] = []

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return answer(401, trouble("Incorrect API key provided.", code="invalid_api_key"))
        match request.method, request.path:
            case "POST", "/v1/audio/speech":
                return self._speak(json.loads(await request.read()))
            case "POST", "/v1/audio/transcriptions":
                return self._write(await read_form(request))
        return answer(404, trouble("Not found"))

    def _speak(self, body: dict[str, Any]) -> web.Response:
        wrong = sorted(body.keys() - SPEECH) or [name for name in ("model", "input", "voice") if name not in body]
        if wrong or body["voice"] not in VOICES or body["model"] != "voice-1":
            return answer(400, trouble(f"Invalid {wrong or 'voice or model'}", param=(wrong or ["voice"])[0]))
        self.asked.append(body)
        kind = body.get("response_format", "mp3")
        data = sound() if kind == "wav" else b"ID3" + bytes(2000)
        return web.Response(body=data, content_type=SOUNDS[kind])

    def _write(self, form: Mapping[str, tuple[str | None, bytes]]) -> web.Response:
        wrong = sorted(form.keys() - TRANSCRIPT) or [name for name in ("model", "file") if name not in form]
        if wrong or form["model"][1] != b"ears-1" or not form["file"][0]:
            return answer(400, trouble(f"Invalid {wrong or 'model or file'}"))
        texts = {name: value.decode() for name, (_, value) in form.items() if name != "file"}
        self.asked.append(texts)
        self.heard.append(form["file"][1])
        try:
            with wave.open(io.BytesIO(form["file"][1])) as file:
                seconds = file.getnframes() / file.getframerate()
        except (wave.Error, EOFError):
            return answer(400, trouble("Invalid file format.", "file", "invalid_value"))
        match texts.get("response_format", "json"):
            case "text":
                return web.Response(text=f"{WORDS}\n")
            case "verbose_json":
                segment = {"id": 0, "start": 0.0, "end": seconds, "text": WORDS}
                told = {"task": "transcribe", "language": "english", "duration": seconds, "segments": [segment]}
                return answer(200, told | {"text": WORDS})
            case _:
                return answer(200, {"text": WORDS, "usage": {"type": "duration", "seconds": 1}})


SETTINGS = (
    '[vendors.upstream]\ntype = "openai_compatible"\napi_key = "{key}"\nbase_url = "{url}/v1"\n'
    '[[models]]\nid = "voice"\nkind = "speech"\nvendor = "upstream"\nmodel = "voice-1"\n'
    '[[models]]\nid = "ears"\nkind = "transcription"\nvendor = "upstream"\nmodel = "ears-1"\n'
)


@pytest.fixture
async def audio() -> AsyncGenerator[AudioDouble]:
    double = AudioDouble()
    await double.listen()
    try:
        yield double
    finally:
        await double.hide()


@pytest.fixture
async def server(start: Start, audio: AudioDouble) -> Server:
    return await start(SETTINGS.format(key=KEY, url=audio.url))


@pytest.fixture
async def client(server: Server) -> AsyncGenerator[openai.AsyncOpenAI]:
    http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
    key = await server.new_key()
    async with openai.AsyncOpenAI(api_key=key, base_url=f"{server.url}/v1", max_retries=0, http_client=http) as client:
        yield client


async def test_a_text_is_read_aloud(client: openai.AsyncOpenAI, audio: AudioDouble):
    made = await client.audio.speech.create(
        model="voice", input=WORDS, voice="coral", response_format="wav", speed=1.5, instructions="calmly"
    )
    assert made.content == sound()
    asked = {"input": WORDS, "voice": "coral", "response_format": "wav", "speed": 1.5, "instructions": "calmly"}
    assert audio.asked == [{"model": "voice-1", **asked}]


async def test_a_sound_is_written_down(client: openai.AsyncOpenAI, audio: AudioDouble):
    given = ("fox.wav", sound(1.0), "audio/wav")
    made = await client.audio.transcriptions.create(model="ears", file=given, language="en", prompt="animals")
    assert made.text == WORDS
    assert audio.heard == [sound(1.0)]
    assert audio.asked == [{"model": "ears-1", "response_format": "json", "language": "en", "prompt": "animals"}]


async def test_a_transcript_has_times(client: openai.AsyncOpenAI):
    given = ("fox.wav", sound(1.0), "audio/wav")
    made = await client.audio.transcriptions.create(
        model="ears", file=given, response_format="verbose_json", timestamp_granularities=["segment"]
    )
    assert (made.text, made.duration, [one.text for one in made.segments or []]) == (WORDS, 1.0, [WORDS])


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": "x" * 4097}, "input"),
        ({"voice": None}, "voice"),
        ({"speed": 9}, "speed"),
        ({"response_format": "midi"}, "response_format"),
        ({"model": "nobody"}, "model"),
    ],
    ids=["empty", "too long", "no voice", "too fast", "format", "model"],
)
async def test_speech_that_nobody_makes_is_refused_at_once(
    server: Server, audio: AudioDouble, fields: Mapping[str, Any], param: str
):
    body = {"model": "voice", "input": WORDS, "voice": "coral", **fields}
    response = await server.client.post("/v1/audio/speech", json=body)
    assert response.status_code in (400, 404), response.text
    error = response.json()["error"]
    assert (error["param"], bool(error["message"])) == (param, True)
    assert audio.seen == []


@pytest.mark.parametrize(
    ("file", "fields", "status"),
    [
        (None, {}, 400),
        (b"", {}, 400),
        (bytes((25 << 20) + 1), {}, 413),
        (b"no sound", {}, 400),
        (sound(), {"response_format": "html"}, 400),
    ],
    ids=["none", "empty", "too large", "no sound", "format"],
)
async def test_a_sound_that_nobody_takes_is_refused_at_once(
    server: Server, audio: AudioDouble, file: bytes | None, fields: Mapping[str, str], status: int
):
    files: dict[str, Any] = {} if file is None else {"file": ("fox.wav", file)}
    files |= {name: (None, value) for name, value in {"model": "ears", **fields}.items()}
    response = await server.client.post("/v1/audio/transcriptions", files=files)
    assert response.status_code == status, response.text
    assert response.json()["error"]["message"]
    assert audio.seen == []


async def test_what_the_vendor_cannot_read_is_the_callers_to_mend(client: openai.AsyncOpenAI, audio: AudioDouble):
    said = json.dumps(trouble("The audio is too long.", "file", "invalid_value")).encode()
    audio.fault(reply(400, said), "POST", "/v1/audio/transcriptions")
    with pytest.raises(openai.BadRequestError) as caught:
        await client.audio.transcriptions.create(model="ears", file=("fox.wav", sound(), "audio/wav"))
    assert "The audio is too long" in caught.value.message


async def test_a_wrong_key_of_ours_and_a_lost_reply(client: openai.AsyncOpenAI, audio: AudioDouble):
    call = {"model": "voice", "input": WORDS, "voice": "coral"}
    audio.fault(reply(401, b'{"error": {"message": "no", "code": "invalid_api_key"}}'), "POST", "/v1/audio/speech")
    with pytest.raises(openai.InternalServerError) as caught:
        await client.audio.speech.create(**call)
    assert caught.value.status_code == 502
    audio.fault(drop, "POST", "/v1/audio/speech")
    with pytest.raises(openai.InternalServerError):
        await client.audio.speech.create(**call)
    assert audio.asked == [], "a request whose reply is lost may have been billed: it is not sent again"
