"""A vendor on 127.0.0.1 that plays a script of turns in four dialects: chat completions, Responses, Messages, Gemini.

The path of a request names its dialect. Requests are held to the rules of the real APIs that matter in a loop of tools.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Self

from aiohttp import web
from doubles.scripted import chat, gemini, messages, responses
from doubles.scripted.turns import INPUT_TOKENS, Json, Refused, Reply, Request, Script

KEY = "sk-scripted-0123456789abcdef"
DIALECTS: dict[str, ModuleType] = {"chat": chat, "responses": responses, "anthropic": messages, "gemini": gemini}
PATHS = {"/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "anthropic"}
GEMINI_PATH = re.compile(r"/v1beta/models/(.+):(generateContent|streamGenerateContent)")
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
PIECE_BYTES = 97
"""Small enough to cut events and letters of several bytes."""


@dataclass(slots=True)
class Seen:
    """One request as it arrived."""

    dialect: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Json
    request: Request | None = None
    """Absent if the dialect's rules were broken."""
    refusal: str | None = None
    """Why there was no answer."""


class ScriptedVendor:
    """Listens while its block runs, and answers as the script says."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.seen: list[Seen] = []
        self.strange: list[str] = []
        """Requests for anything but an answer, as method and path."""
        self.port = 0
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self, dialect: str, name: str = "scripted") -> str:
        """The TOML of this vendor in one of its dialects."""
        kind, path, more = {
            "chat": ("openai_compatible", "/v1", ""),
            "responses": ("openai_compatible", "/v1", "responses = true\n"),
            "anthropic": ("anthropic", "", ""),
            "gemini": ("gemini", "", ""),
        }[dialect]
        return f'[vendors.{name}]\ntype = "{kind}"\napi_key = "{KEY}"\nbase_url = "{self.url}{path}"\n{more}'

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()
        found = _place(request)
        if found is None or request.method != "POST":
            return self._answer_strange(request)
        dialect, added = found
        speaker = DIALECTS[dialect]
        if not any(request.headers.get(name, "").removeprefix("Bearer ") == KEY for name in KEY_HEADERS):
            return _refuse(speaker, "Wrong key.", 401)
        seen = Seen(dialect, request.path_qs, dict(request.headers), raw, json.loads(raw) | added)
        self.seen.append(seen)
        try:
            return await self._play(request, seen, speaker)
        except Refused as refused:
            seen.refusal = str(refused)
            return _refuse(speaker, seen.refusal, refused.status)

    async def _play(self, request: web.BaseRequest, seen: Seen, speaker: ModuleType) -> web.StreamResponse:
        known = seen.request = speaker.read(seen.body)
        turn = self.script(known)
        reply = Reply(known, turn, len(self.seen))
        if known.stream:
            return await _stream(request, b"".join(speaker.stream(reply)), is_cut=turn.is_cut)
        return web.json_response(speaker.whole(reply))

    def _answer_strange(self, request: web.BaseRequest) -> web.Response:
        self.strange.append(f"{request.method} {request.path_qs}")
        if request.path == "/v1/messages/count_tokens":
            return web.json_response({"input_tokens": INPUT_TOKENS})
        return _refuse(chat, "Not found.", 404)


def _place(request: web.BaseRequest) -> tuple[str, Json] | None:
    """The dialect of a path, and what the path adds to the body."""
    if found := GEMINI_PATH.fullmatch(request.path):
        added: Json = {"model": found[1], "stream": found[2] == "streamGenerateContent"}
        return "gemini", added
    dialect = PATHS.get(request.path)
    return None if dialect is None else (dialect, {})


def _refuse(speaker: ModuleType, message: str, status: int) -> web.Response:
    status, body = speaker.error(message, status)
    return web.json_response(body, status=status)


async def _stream(request: web.BaseRequest, whole: bytes, *, is_cut: bool) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    for start in range(0, len(whole) // 2 if is_cut else len(whole), PIECE_BYTES):
        await response.write(whole[start : start + PIECE_BYTES])
        await asyncio.sleep(0)
    if is_cut:
        assert request.transport is not None
        request.transport.close()
    return response


def sent_to(vendor: ScriptedVendor) -> str:
    """Everything that the vendor received, headers and bodies, as one text."""
    return "\n".join(f"{seen.path} {seen.headers} {seen.raw.decode()}" for seen in vendor.seen)
