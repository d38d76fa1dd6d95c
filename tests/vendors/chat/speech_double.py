"""A strict double of OpenAI's speech and transcriptions: the name of the model says how it behaves."""

import io
import wave
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

KEY = "sk-speech-0123456789abcdef"
SPEECH_FIELDS = {"model", "input", "voice", "instructions", "response_format", "speed"}
FORM_FIELDS = {"model", "file", "language", "prompt", "response_format", "temperature", "timestamp_granularities[]"}
WORDS = "A penstock feeds water to a turbine."


def make_wav(seconds: float = 1.0) -> bytes:
    """A silent sound of 8 kHz."""
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(round(seconds * 8000) * 2))
    return target.getvalue()


@dataclass
class SpeechDouble:
    """Listens on 127.0.0.1 while its block runs; `url` is the base address."""

    requests: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/audio/speech", self._speak)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _speak(self, request: web.Request) -> web.Response:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        body = await request.json()
        self.requests.append(("speech", body))
        if unknown := body.keys() - SPEECH_FIELDS:
            return _refuse(f"Unknown parameter: {sorted(unknown)}")
        return _odd(body["model"]) or web.Response(body=make_wav(), content_type="audio/wav")

    async def _transcribe(self, request: web.Request) -> web.Response:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        form = await request.post()
        fields: dict[str, Any] = {}
        for name in dict.fromkeys(form):
            values = form.getall(name)
            fields[name] = values if name.endswith("[]") else values[0]
        sent = fields["file"]
        assert isinstance(sent, web.FileField)
        fields["file"] = (sent.filename, sent.content_type, sent.file.read())
        self.requests.append(("transcriptions", fields))
        if unknown := fields.keys() - FORM_FIELDS:
            return _refuse(f"Unknown parameter: {sorted(unknown)}")
        if odd := _odd(fields["model"]):
            return odd
        if fields.get("response_format", "json") not in ("json", "verbose_json"):
            return web.Response(text=WORDS, content_type="text/plain")
        found: dict[str, Any] = {"text": WORDS, "usage": {"type": "duration", "seconds": 1}}
        if fields["model"] == "tokens":
            found["usage"] = {"type": "tokens", "input_tokens": 14, "output_tokens": 9, "total_tokens": 23}
        if fields["model"] == "nanoseconds":
            found["segments"] = [{"id": 0, "start": 0, "end": 1_500_000_000, "text": WORDS}]
        return web.json_response(found)


def _refuse(message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": error}, status=400)


def _odd(model: str) -> web.Response | None:
    match model:
        case "broken":
            return web.Response(text="<html>oops</html>", content_type="text/html")
        case "error-inside":
            return web.json_response({"error": {"message": "no such voice", "type": "invalid_request_error"}})
        case "away":
            return web.json_response({"error": {"message": "overloaded", "type": "server_error"}}, status=503)
        case _:
            return None
