"""The built-in voice and Whisper through a gateway, with real weights: what is said is what is written down."""

import re
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import openai
import pytest
import pytest_asyncio
from conftest import Server, running
from embedding_steps import sdk_of

from penstock.settings.tables import load

pytestmark = pytest.mark.asyncio(loop_scope="module")  # all share one gateway, and so one load of the weights

TEXT = "The water runs down the hill and turns the wheel."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path) -> AsyncGenerator[Server]:
    folder = tmp_path_factory.mktemp("speech")
    shutil.copy(empty_store, folder)
    async with running(load(None, {}, {"data": folder, "weights": weights})) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sdk(server: Server) -> AsyncGenerator[openai.AsyncOpenAI]:
    async with sdk_of(server, await server.new_key()) as client:
        yield client


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


async def test_what_is_said_is_written_down(sdk: openai.AsyncOpenAI):
    sound = await sdk.audio.speech.create(model="hibari", voice="alloy", input=TEXT)
    assert sound.content[:3] == b"ID3"
    found = await sdk.audio.transcriptions.create(
        model="whisper-base", file=("a.mp3", sound.content), response_format="verbose_json"
    )
    heard, said = set(words(found.text)), set(words(TEXT))
    assert len(heard & said) > 0.7 * len(said), found.text
    assert found.language in ("english", "en")
    assert 1 < found.duration < 10


@pytest.mark.parametrize(
    ("wanted", "head"), [("wav", b"RIFF"), ("flac", b"fLaC"), ("opus", b"OggS"), ("aac", b"\xff"), ("pcm", b"")]
)
async def test_every_format_is_written(sdk: openai.AsyncOpenAI, wanted: str, head: bytes):
    sound = await sdk.audio.speech.create(model="hibari", voice="heart", input="Yes.", response_format=wanted)  # type: ignore[arg-type]
    assert sound.content.startswith(head)
    assert len(sound.content) > 1000


async def test_equal_texts_sound_equal(sdk: openai.AsyncOpenAI):
    one, other = [
        await sdk.audio.speech.create(model="hibari", voice="heart", input="Yes.", response_format="pcm")
        for _ in range(2)
    ]
    assert one.content == other.content


@pytest.mark.parametrize(("field", "value"), [("voice", "darth"), ("input", "🦊🦊")])
async def test_what_the_voice_cannot_say_is_refused(sdk: openai.AsyncOpenAI, field: str, value: str):
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.audio.speech.create(**{"model": "hibari", "voice": "heart", "input": "Yes.", field: value})  # type: ignore[arg-type]
    assert refused.value.param == field


async def test_what_whisper_cannot_do_is_refused(server: Server, sdk: openai.AsyncOpenAI):
    sound = await sdk.audio.speech.create(model="hibari", voice="heart", input="Yes.", response_format="wav")
    for name, value in (
        ("language", "xx"),
        ("response_format", "diarized_json"),
        ("timestamp_granularities[]", "word"),
    ):
        response = await server.client.post(
            "/v1/audio/transcriptions",
            data={"model": "whisper-base", name: value},
            files={"file": ("a.wav", sound.content, "audio/wav")},
        )
        assert (response.status_code, response.json()["error"]["param"]) == (400, name.removesuffix("[]"))
