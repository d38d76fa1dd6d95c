"""Chat callers of the simulation: they ask, stream, leave in the middle, and retry."""

import asyncio
import copy
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.chat.vendors import MARKER, ChatBook
from simulation.http_caller import CallFailed, HttpAnswer, HttpCaller
from simulation.world import World

PATH: Final = "/llm/chat/completions"
MODEL: Final = "sim-chat"
EXPECTED: Final = frozenset({200, 400, 402, 429, 502, 503, 504})
FINAL: Final = frozenset({200, 400, 402})
"""Statuses after which a caller does not ask again."""
ERROR_FIELDS: Final = frozenset({"message", "type", "code", "param", "retryable", "charged", "request_id"})
MAX_TRIES: Final = 4
RUSH_REQUESTS: Final = 40
RUSH_NUMBER: Final = 88000
"""In the markers of the last rush; others have the numbers after it."""
PROBE_SECONDS: Final = 200.0
"""The longest time after the last fault in which a caller with money and quota must be answered."""


@dataclass
class Heard:
    """One request, and what its caller heard."""

    marker: str
    account: str
    is_streamed: bool
    at: float
    wants_usage: bool = False
    most: int | None = None
    """The token limit."""
    guess: int = 0
    """The gateway's estimate of the prompt's tokens."""
    has_known_prompt: bool = True
    """False: nobody knows the estimate, as the gateway adds to the prompt."""
    status: int | None = None
    """None: no head came."""
    code: str | None = None
    """The error's code."""
    retry_after: float = 1.0
    text: str = ""
    progress: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    """The number of characters heard, by moment."""
    usage: dict[str, Any] | None = None
    is_whole: bool = False
    has_left: bool = False
    """The caller has left on purpose."""
    error: dict[str, Any] | None = None
    """An error, before or within a stream."""
    cost: str | None = None
    ended_at: float | None = None


@dataclass
class ChatCaller:
    """One account's chat application."""

    world: World
    account: str
    key: str
    ports: Callable[[], Sequence[int]]
    book: ChatBook
    heard: list[Heard] = field(default_factory=list[Heard])

    def __post_init__(self) -> None:
        self._http = HttpCaller(self.world, self.key)
        self._dice = self.world.chance(f"chat caller {self.account}")

    async def live(self, requests: int, seconds: float) -> None:
        """Ask so many times over the time, now and then several times at once."""
        tasks: list[asyncio.Task[None]] = []
        for number in range(requests):
            if self._dice.random() < 0.6:
                await asyncio.sleep(self._dice.random() * 3 * seconds / requests)
            name = f"chat caller {self.account}#{number}"
            if self.world.only is None or name in self.world.only:
                self.world.note(f"{self.account} asks", name)
                tasks.append(asyncio.create_task(self._with_dice(name)._insist(number)))
        await asyncio.gather(*tasks)

    def _with_dice(self, name: str) -> "ChatCaller":
        """Return this caller with dice for one request: they do not change if another one is left out."""
        acting = copy.copy(self)
        acting._dice = self.world.chance(name)
        return acting

    async def probe(self, can_pay: Callable[[int], bool]) -> None:
        """Ask until the answer comes: without faults, it must. `can_pay` is asked after a refusal."""
        until = self.world.now + PROBE_SECONDS
        last: Heard | None = None
        for attempt in range(10_000):
            if self.world.now > until:
                self.world.violate("without faults, every caller is answered", repr(last))
                return
            heard = self.begin(f"ask-{self.account}-99999-{attempt}", is_streamed=False, most=5)
            last = heard
            await self._ask(heard)
            if heard.status == 200 or (heard.status == 402 and not can_pay(5)):
                return
            await asyncio.sleep(max(1.0, heard.retry_after))

    async def rush(self, number: int) -> None:
        """Ask many times at once, of all processes, half of it as streams: limits hold for all of them together."""
        requests = [
            self.begin(f"ask-{self.account}-{number}-{attempt}", is_streamed=attempt % 2 == 0, most=8)
            for attempt in range(RUSH_REQUESTS)
        ]
        await asyncio.gather(*(self._with_dice(heard.marker)._ask(heard) for heard in requests))

    # -- requests

    async def _insist(self, number: int) -> None:
        for attempt in range(MAX_TRIES):
            is_streamed = self._dice.random() < 0.65
            most = None if self._dice.random() < 0.5 else 1 + self._dice.randrange(40)
            heard = self.begin(f"ask-{self.account}-{number}-{attempt}", is_streamed=is_streamed, most=most)
            await self._ask(heard)
            if heard.has_left or (heard.status in FINAL and (heard.is_whole or heard.status != 200)):
                return
            await asyncio.sleep(self._dice.uniform(0.1, 3.0))

    def begin(self, marker: str, *, is_streamed: bool, most: int | None) -> Heard:
        heard = Heard(marker, self.account, is_streamed, self.world.now, most=most)
        heard.wants_usage = is_streamed and self._dice.random() < 0.4
        self.heard.append(heard)
        self.world.counts["chat requests"] += 1
        return heard

    async def _ask(self, heard: Heard) -> None:
        ports = self.ports()
        if not ports:
            await asyncio.sleep(1)
            return
        content = heard.marker + " word" * self._dice.randrange(30)
        body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": content}]}
        heard.guess = len(json.dumps(body["messages"])) // 4 + 1
        if heard.most is not None:
            body["max_tokens"] = heard.most
        if heard.is_streamed:
            body["stream"] = True
        if heard.wants_usage:
            body["stream_options"] = {"include_usage": True}
        port, headers = self._dice.choice(ports), {"x-request-id": heard.marker}
        try:
            if heard.is_streamed:
                await self._read_stream(heard, port, body, headers)
            else:
                self._read_whole(heard, await self._http.ask(port, "POST", PATH, body, headers, seconds=120.0))
        except CallFailed:
            self.world.counts["chat calls that failed"] += 1
        heard.ended_at = self.world.now
        self.world.recorder.add(f"{heard.marker} {heard.status} {heard.text!r} {heard.error!r} {heard.usage!r}")

    def _read_whole(self, heard: Heard, answer: HttpAnswer) -> None:
        self.take_head(heard, answer)
        self.check_privacy(answer.body)
        if answer.status != 200:
            self.take_error(heard, answer.body)
            return
        reply = answer.json
        heard.text, heard.usage = reply["choices"][0]["message"]["content"], reply.get("usage")
        heard.is_whole = True
        self.check_text(heard)

    async def _read_stream(self, heard: Heard, port: int, body: Any, headers: dict[str, str]) -> None:
        leaves_at = self._dice.randrange(12) if self._dice.random() < 0.15 else None
        rest, events, is_error = b"", 0, False
        async with aclosing(self._http.stream(port, PATH, body, headers=headers)) as pieces:
            async for piece in pieces:
                if isinstance(piece, HttpAnswer):
                    self.take_head(heard, piece)
                    is_error = piece.status != 200
                    continue
                *found, rest = (rest + piece).split(b"\n\n") if not is_error else (rest + piece,)
                for event in found:
                    self._take_event(heard, event)
                events += len(found)
                if leaves_at is not None and events > leaves_at and not heard.is_whole:
                    heard.has_left = True
                    self.world.counts["chat callers that left"] += 1
                    break
        if is_error:
            self.take_error(heard, rest)
        elif not heard.has_left and heard.error is None and not heard.is_whole:
            self.world.violate("a stream ends with its end mark, an error or a cut", heard.marker)

    # -- what comes back

    def take_head(self, heard: Heard, answer: HttpAnswer) -> None:
        heard.status = answer.status
        self.world.counts[f"chat answers {answer.status}"] += 1
        heard.retry_after = float(answer.headers.get("retry-after", "1"))
        heard.cost = answer.headers.get("x-penstock-cost")
        if answer.headers.get("x-request-id") != heard.marker:
            self.world.violate("an answer bears its request's id", f"{heard.marker}: {answer.headers}")
        if answer.status not in EXPECTED:
            self.world.violate("every answer is expected", f"{heard.marker}: {answer.status} {answer.body[:400]!r}")

    def take_error(self, heard: Heard, body: bytes) -> None:
        self.check_privacy(body)
        self._check_error(heard, json.loads(body))

    def _check_error(self, heard: Heard, body: Any) -> None:
        error = body.get("error")
        if not isinstance(error, dict) or not error.keys() >= ERROR_FIELDS or not error["message"]:
            self.world.violate("errors have one shape", f"{heard.marker}: {body}")
            return
        heard.code, heard.error = error["code"], error

    def _take_event(self, heard: Heard, event: bytes) -> None:
        self.check_privacy(event)
        if event.startswith(b":"):
            return
        if heard.is_whole or heard.error is not None:
            self.world.violate("nothing follows the end of a stream", f"{heard.marker}: {event[:200]!r}")
        payload = event.removeprefix(b"data: ")
        if payload == b"[DONE]":
            heard.is_whole = True
            self.check_text(heard)
            return
        chunk = json.loads(payload)
        if "error" in chunk:
            self._check_error(heard, chunk)
            return
        heard.usage = chunk.get("usage") or heard.usage
        for choice in chunk["choices"]:
            heard.text += choice["delta"].get("content") or ""
        heard.progress.append((self.world.now, len(heard.text)))
        self.check_text(heard)

    def check_privacy(self, data: bytes) -> None:
        for marker in MARKER.findall(data.decode("utf-8", "replace")):
            if marker.split("-")[1] != self.account:
                self.world.violate("nothing of an account is visible to another", f"{self.account} saw {marker}")

    def check_text(self, heard: Heard) -> None:
        """Check that the caller heard the vendor's words, in order, each once."""
        calls = [call for call in self.book.calls.get(heard.marker, ()) if call.has_worked]
        text = calls[-1].text if calls else ""
        is_right = heard.text == text if heard.is_whole else text.startswith(heard.text)
        if not is_right or (heard.is_whole and not calls[-1].is_whole):
            said = f"{heard.marker}: heard {heard.text!r}, said {text!r} ({calls[-1:]})"
            self.world.violate("an answer is what the vendor said", said)
