"""The doors of chat, such as `POST /llm/chat/completions`, in front of FastAPI: a request costs microseconds."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from penstock.accounts.keyring import Proof
from penstock.chat.answer import Answer
from penstock.chat.answer_stream import AnswerStream, Interrupted
from penstock.chat.doors import COUNT_PATHS, DOORS, PATHS
from penstock.chat.doors.door import Door
from penstock.chat.doors.messages.reader import read_uncounted
from penstock.chat.kept.keeping import Keeping
from penstock.domain.api_keys import ApiKey, Scope
from penstock.domain.chat import Ask, Dialect
from penstock.domain.guardrails.inquiry import write_notes
from penstock.domain.money import format_usd
from penstock.errors import (
    MethodNotAllowed,
    ModelNotAllowed,
    Overloaded,
    PenstockError,
    ScopeNotAllowed,
    UnsupportedMediaType,
)
from penstock.gateway import Gateway
from penstock.offers.offer import TEXT_KINDS, ChatOffer
from penstock.web.attribution.sources import attribute_chat
from penstock.web.auth import find_session_key
from penstock.web.credentials import find_credential
from penstock.web.permissions import require
from penstock.web.request_bodies import read_body, read_packed
from penstock.web.server.asgi import CYCLE, Application, Message, Receive, Send
from penstock.web.server.error_response import render_error
from penstock.web.server.request_cycle import Cycle

THREAD_DECODE_BYTES: Final = 1 << 18  # longer bodies are decoded in a thread, to keep the event loop free
STREAM_LINES: Final = (
    b"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n"
)
JSON: Final = b"application/json"
FORM: Final = b"multipart/form-data"
FORMS: Final = frozenset({Dialect.TRANSCRIPTIONS})
"""Dialects whose requests are forms."""
JSON_LINES: Final = b"content-type: application/json\r\n"
ERROR_READ_SECONDS: Final = 0.5
"""Seconds for the client to read the error event. Some drop unread data when the connection breaks."""
MAX_LEFT_OUT: Final = 1_000
"""Characters of the header that names fields which a vendor did not get."""
_UNPRINTABLE: Final = re.compile(r"[^ -~]")
_SLASHES = re.compile("//+")
_PAGES = re.compile("^(?:/llm)?(?:/v1)?/(models|images|videos)(?=/|$)")  # some clients omit a part of the base URL
_HOMES: Final = {"models": "/llm/models", "images": "/v1/images", "videos": "/v1/videos"}
"""Where the pages are that OpenAI's clients ask for below the same base URL as chat."""
_ALL_MODELS: Final = "/v1/models"


class _ChatRoute(NamedTuple):
    """The route of chat requests, for metrics and spans."""

    path: str


_ROUTES: Final = {door.dialect: _ChatRoute(path) for path, door in reversed(list(PATHS.items()))}
"""By dialect; the first of its paths stands for all."""
_COUNT_ROUTE: Final = _ChatRoute("/v1/messages/count_tokens")
_Read: TypeAlias = Callable[[bytes, Mapping[bytes, bytes]], Ask]
_Serve: TypeAlias = Callable[[Door, Message, Receive, Send], Awaitable[None]]


class Completions:
    """Serves chat, and passes all other requests on."""

    def __init__(self, app: Application, gateway: Gateway, max_body_bytes: int) -> None:
        self._app = app
        self._gateway = gateway
        self._max_body_bytes = max_body_bytes

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        path = scope.get("path", "")
        if "//" in path:  # base URLs often end with an extra slash
            path = _SLASHES.sub("/", path)
        door = PATHS.get(path)
        if door is not None:
            return self._answer(door, self._serve, scope, receive, send)
        if path in COUNT_PATHS:
            return self._answer(DOORS[Dialect.MESSAGES], self._count, scope, receive, send)
        if found := _PAGES.match(path):
            home = _ALL_MODELS if found[0] == _ALL_MODELS else _HOMES[found[1]]
            scope["path"] = home + path[found.end() :]
        return self._app(scope, receive, send)

    async def _answer(self, door: Door, serve: _Serve, scope: Message, receive: Receive, send: Send) -> None:
        scope["route"] = _ROUTES[door.dialect]
        cycle: Cycle = scope["extensions"][CYCLE]
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a request is always served by one
        cycle.on_gone = task.cancel
        try:
            await serve(door, scope, receive, send)
        except PenstockError as error:
            await render_error(error, scope["state"]["request_id"], shape=door).send(send)
        except asyncio.CancelledError:
            if not cycle.gone:  # the drain deadline
                await _refuse_late(door, cycle, send)
                raise
        finally:
            cycle.on_gone = None

    async def _serve(self, door: Door, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a chat request."""
        begun = self._gateway.steady()
        cycle: Cycle = scope["extensions"][CYCLE]
        key = await self._admit(cycle, scope)
        ask = await self._read(door.read, cycle, receive, key.account_id, FORM if door.dialect in FORMS else JSON)
        ask = attribute_chat(ask, cycle.head, key)
        if ask.upload is not None:
            self._find(ask, key)  # before the sound is opened
            ask = await self._gateway.sound_meter.measure(ask, key.account_id)
        if ask.dialect is Dialect.RESPONSES:
            await self._serve_response(ask, key, cycle, send, begun)
        else:
            await self._send(await self._open(ask, key, cycle.request_id), cycle, send, begun)

    async def _send(
        self, answer: Answer, cycle: Cycle, send: Send, begun: float, keeping: Keeping | None = None
    ) -> None:
        """Send an answer, and close it however that ends."""
        try:
            if cycle.hold is not None:
                answer.forget_messages()
                cycle.release()
            if answer.stream is not None:
                await _send_stream(answer, answer.stream, send, self._gateway.steady() - begun, cycle, keeping)
            else:
                await _send_whole(answer, answer.body or b"", cycle, self._gateway.steady() - begun, keeping)
        finally:
            answer.close()

    async def _serve_response(self, ask: Ask, key: ApiKey, cycle: Cycle, send: Send, begun: float) -> None:
        """Answer a request of the Responses dialect, which may continue another and be kept: docs/decisions/0046."""
        keeper, request_id = self._gateway.keeper, cycle.request_id
        kept_ask = await keeper.take(key.account_id, ask)
        if kept_ask.background is None:
            try:
                answer = await self._open(kept_ask.ask, key, request_id)
                await self._send(answer, cycle, send, begun, kept_ask.keeping)
            finally:
                kept_ask.release()
            return
        try:
            offer, relay = self._find(kept_ask.ask, key), self._gateway.relay
            findings = await relay.inspect(kept_ask.ask, key, request_id) if self._gateway.guardrails.of_chat else None
            opened = partial(relay.open, kept_ask.ask, offer, key, request_id, findings)
        except BaseException:
            kept_ask.release()
            raise
        cycle.respond(JSON_LINES, await keeper.run_in_background(key.account_id, kept_ask, opened))

    async def _count(self, door: Door, scope: Message, receive: Receive, send: Send) -> None:
        """Count the tokens of a request, which costs nothing."""
        del send
        scope["route"] = _COUNT_ROUTE
        cycle: Cycle = scope["extensions"][CYCLE]
        key = await self._admit(cycle, scope)
        ask = await self._read(read_uncounted, cycle, receive, key.account_id)
        body = await self._gateway.relay.count(ask, self._find(ask, key), key, cycle.request_id)
        lines = b"".join(b"%b: %b\r\n" % line for line in door.headers(cycle.request_id))
        cycle.respond(JSON_LINES + lines, body)

    async def _admit(self, cycle: Cycle, scope: Message) -> ApiKey:
        if scope["method"] != "POST":
            raise MethodNotAllowed(f"{scope['path']} takes POST, not {scope['method']}.", headers={"allow": "POST"})
        if self._gateway.draining:
            raise Overloaded("The gateway is shutting down.", retry_after=2)
        proof: Proof | None = cycle.head.proof
        if proof is None or not self._gateway.keyring.holds(proof):
            credential = find_credential(cycle.head.fields)
            if credential is None and (key := await find_session_key(self._gateway, scope)) is not None:
                return self._check(key, scope)  # a session is checked at every request
            proof = await self._gateway.keyring.prove(credential, without_store=True)
            cycle.head.proof = proof
        return self._check(proof.key, scope)

    def _check(self, key: ApiKey, scope: Message) -> ApiKey:
        """Return the key if it may chat."""
        scope["state"]["account"] = key.account_id
        if key.role is not None:
            require(key.role, "POST", scope["route"])
        if not key.allows(Scope.CHAT):
            allowed = ", ".join(sorted(key.scopes))
            raise ScopeNotAllowed(f"This needs the endpoint scope `chat`, the API key has: {allowed}.")
        return key

    def _open(self, ask: Ask, key: ApiKey, request_id: str) -> Awaitable[Answer]:
        return self._gateway.relay.open(ask, self._find(ask, key), key, request_id)

    def _find(self, ask: Ask, key: ApiKey) -> ChatOffer:
        offer = self._gateway.offers.get_chat(ask.model, TEXT_KINDS.get(ask.dialect, "chat"))
        if not key.allows_model(ask.model):
            raise ModelNotAllowed(f"This API key may not use `{ask.model}`.", param="model")
        return offer

    async def _read(
        self, read: _Read, cycle: Cycle, receive: Receive, account_id: str, media_type: bytes = JSON
    ) -> Ask:
        headers = cycle.head.fields
        content_type = headers.get(b"content-type", JSON)
        if content_type != media_type and content_type.partition(b";")[0].strip().lower() != media_type:
            sent = content_type.partition(b";")[0][:80].decode("latin-1")
            raise UnsupportedMediaType(f"Send `content-type: {media_type.decode()}`, not `{sent}`.")
        if b"content-encoding" in headers:
            encoding = headers[b"content-encoding"].strip().lower()
            memory, max_bytes = self._gateway.body_memory, self._max_body_bytes
            body = await read_packed(cycle, receive, memory, account_id, encoding, max_bytes)
        else:
            body = cycle.take_small_body()
            if not body:
                body = await read_body(cycle, receive, self._gateway.body_memory, account_id, self._max_body_bytes)
        if len(body) > THREAD_DECODE_BYTES:
            return await asyncio.to_thread(read, body, headers)
        return read(body, headers)


# -- responses


def _write_headers(answer: Answer, seconds: float) -> bytes:
    """Return the `x-penstock-*` and rate limit headers of an answer, which has taken so many seconds, as lines."""
    settlement = answer.settlement
    overhead = max(0.0, seconds - settlement.waited) * 1000
    lines = b"x-penstock-vendor: %b\r\nx-penstock-overhead-ms: %.3f\r\n" % (settlement.vendor_name.encode(), overhead)
    if answer.is_cached or answer.cache_recorder is not None:
        lines += b"x-penstock-cache: hit\r\n" if answer.is_cached else b"x-penstock-cache: miss\r\n"
    if left_out := answer.left_out:
        lines += b"x-penstock-left-out: %b\r\n" % _join_names(left_out)
    if settlement.findings and (notes := write_notes(settlement.findings)):
        lines += b"x-penstock-guardrails: %b\r\n" % notes
    for name, value in answer.door.headers(settlement.request_id):
        lines += b"%b: %b\r\n" % (name, value)
    return lines if settlement.ticket is None else lines + settlement.ticket.write()


def _join_names(names: tuple[str, ...]) -> bytes:
    """Return the names of fields in one header, of bounded length."""
    joined = ", ".join(dict.fromkeys(names))[:MAX_LEFT_OUT]
    return _UNPRINTABLE.sub("?", joined).encode()


async def _send_whole(
    answer: Answer, body: bytes, cycle: Cycle, seconds: float, keeping: Keeping | None = None
) -> None:
    cost = answer.settlement.settle()  # before the headers, which show what is left of the limits
    if keeping is not None:
        body = await (keeping.keep_stream(body) if answer.ask.stream else keeping.keep_whole(body))
    lines = _write_headers(answer, seconds)
    if cost is not None:
        lines += b"x-penstock-cost: %b\r\n" % format_usd(cost).encode()
    if cycle.is_full:
        await cycle.drain()
    # A cached stream is sent whole.
    cycle.respond((STREAM_LINES if answer.ask.stream else _write_type(answer)) + lines, body)


def _write_type(answer: Answer) -> bytes:
    content_type = answer.content_type
    return JSON_LINES if content_type == JSON else b"content-type: %b\r\n" % content_type


async def _send_stream(
    answer: Answer, stream: AnswerStream, send: Send, seconds: float, cycle: Cycle, keeping: Keeping | None = None
) -> None:
    if not cycle.disconnected:
        cycle.begin(200, STREAM_LINES + _write_headers(answer, seconds))
    try:
        await (stream.pour(cycle) if keeping is None else keeping.pour(stream, cycle))
    except asyncio.CancelledError:
        if not cycle.gone:  # the drain deadline
            event = stream.fail(Overloaded("The gateway is shutting down."))
            await send({"type": "http.response.body", "body": event, "more_body": True})
        raise
    except Interrupted as interrupted:
        more_body = not interrupted.is_reported
        event = interrupted.event if keeping is None else await keeping.keep_stream(interrupted.event)
        await send({"type": "http.response.body", "body": event, "more_body": more_body})
        if not interrupted.is_reported:
            answer.close()
            await asyncio.sleep(ERROR_READ_SECONDS)
            cycle.cut()  # no terminator, so that nobody takes this for a complete answer
        return
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    await stream.linger()


async def _refuse_late(door: Door, cycle: Cycle, send: Send) -> None:
    """Answer a request that the drain deadline ends, unless its answer has begun. Its vendor may have worked."""
    if not cycle.response_started:
        error = Overloaded("The gateway is shutting down.", retry_after=2)
        error.charged = None
        await render_error(error, cycle.request_id, closes=True, shape=door).send(send)
