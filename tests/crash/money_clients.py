"""A crowd of clients that spend one budget: chat, streams, jobs, and what each of them saw of it."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import aiohttp

CHAT: Final = "/llm/chat/completions"
ORDER: Final = "/model/v1/generation"
MODEL: Final = "sim_image_to_model"
SHAPE: Final = frozenset({"message", "type", "code", "param", "details", "retryable", "charged", "request_id"})
FACTS: Final = frozenset({"spent", "held", "cap", "resets_at", "of", "period", "needed"})
PLAYS: Final[Sequence[tuple[str, dict[str, Any], int]]] = (
    ("succeeded", {}, 8),
    ("succeeded", {"submission": "reply_lost"}, 1),
    ("succeeded", {"submission": "never_arrived"}, 1),
    ("failed", {"ending": "failed"}, 4),
    ("failed", {"submission": "rejected", "submission_times": 1000}, 1),
    ("canceled", {"latency": 600.0}, 4),
    ("unknown", {"submission": "reply_lost", "findable": False}, 1),
)
"""How jobs end, what they play for it, and how often."""
LOST: Final = (aiohttp.ClientError, ConnectionError)


@dataclass(slots=True)
class Chat:
    """One chat request, as its client saw it."""

    id: str
    key: int
    streamed: bool
    max_tokens: int | None
    sent_at: float
    status: int = 0
    """0: there was no answer."""
    begun: bool = False
    """Something of the answer was received."""
    whole: bool = False
    left: bool = False
    """The client did not wait for the end."""


@dataclass(slots=True)
class Ordered:
    """One job, as its client saw it."""

    number: int
    ending: str
    key: int
    id: str = ""
    sent: int = 0


@dataclass(slots=True)
class Refusal:
    """One 402."""

    at: float
    seconds: float
    facts: dict[str, Any]
    of_job: bool


@dataclass(slots=True)
class Seen:
    """What the whole crowd saw."""

    chats: dict[str, Chat] = field(default_factory=dict[str, Chat])
    orders: list[Ordered] = field(default_factory=list[Ordered])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    statuses: Counter[str] = field(default_factory=Counter[str])
    codes: Counter[str] = field(default_factory=Counter[str])
    breaks: int = 0
    """Connections that broke or were refused."""
    wrong: list[str] = field(default_factory=list[str])
    """What no client should ever see."""


class Crowd:
    """So many clients for each server, each sends one request after the other."""

    def __init__(
        self, urls: Sequence[str], keys: Sequence[str], jobs: int, seed: int, *, long: float = 0.0, patience: float = 60
    ) -> None:
        self.urls = urls
        self.keys = keys
        self._long = long
        self._patience = patience
        self.seen = Seen()
        self.over = asyncio.Event()
        self._jobs_left = jobs
        self._jobs_kept = jobs // 4
        """For when requests are refused."""
        self._random = random.Random(seed)  # noqa: S311  moments, no secrets
        self._numbers = count(1)
        self._session: aiohttp.ClientSession | None = None

    async def run(self, clients: int, ramp: float) -> None:
        """Live until it is over; every request that was begun is answered or broken by then."""
        async with self.open():
            await asyncio.gather(*(self._live(number, ramp) for number in range(clients * len(self.urls))))

    def open(self) -> aiohttp.ClientSession:
        """The connections of all."""
        timeout = aiohttp.ClientTimeout(total=self._patience)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
        return self._session

    async def _live(self, number: int, ramp: float) -> None:
        chance = self._random
        await asyncio.sleep(chance.uniform(0, ramp))
        while not self.over.is_set():
            if self._jobs_left > (0 if self.seen.refusals else self._jobs_kept) and chance.random() < 0.08:
                self._jobs_left -= 1
                pause = await self._order()
            else:
                pause = await self._chat(number % len(self.urls))
            await asyncio.sleep(pause)

    # -- chat

    async def _chat(self, place: int) -> float:
        """One request; how long to wait before the next."""
        chance = self._random
        tokens = chance.randint(5, 60)
        max_tokens = None if chance.random() < 0.25 else chance.randint(5, 90)
        if max_tokens is None and chance.random() < self._long:
            tokens = chance.randint(200, 600)  # more than was held for it
        streamed = chance.random() < 0.6
        pace = chance.choice((0.0, 0.002, 0.01))
        leaves = streamed and chance.random() < 0.12
        return await self.ask(place, tokens, max_tokens, streamed=streamed, pace=pace, leaves=leaves)

    async def ask(
        self, place: int, tokens: int, max_tokens: int | None, *, key: int | None = None, pace: float = 0.0,
        streamed: bool = False, leaves: bool = False,
    ) -> float:  # fmt: skip
        """One chat request of known size."""
        chosen = self._random.randrange(len(self.keys)) if key is None else key
        chat = Chat(f"ordeal-{next(self._numbers):07d}", chosen, streamed, max_tokens, time.monotonic())
        self.seen.chats[chat.id] = chat
        content = f"{chat.id} {tokens} {pace}"
        body: dict[str, Any] = {"model": "metered", "messages": [{"role": "user", "content": content}]}
        body |= {} if max_tokens is None else {"max_tokens": max_tokens}
        body |= {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
        headers = {"authorization": f"Bearer {self.keys[chosen]}", "x-request-id": chat.id}
        assert self._session is not None
        try:
            async with self._session.post(self.urls[place] + CHAT, json=body, headers=headers) as response:
                chat.status = response.status
                if response.status != 200:
                    return self._refused("chat", response.status, await response.read(), chat.sent_at)
                await (self._read_stream(chat, response, leaves=leaves) if streamed else _read_whole(chat, response))
        except TimeoutError:
            self.seen.wrong.append(f"{chat.id}: no end after {self._patience:g} s")
        except LOST:
            self.seen.breaks += 1
            self.seen.statuses[f"chat {chat.status or 'no answer'}, broken"] += 1
            return self._random.uniform(0.05, 0.3)
        self.seen.statuses[f"chat {chat.status}{', left' if chat.left else ''}"] += 1
        return 0.0

    async def _read_stream(self, chat: Chat, response: aiohttp.ClientResponse, *, leaves: bool) -> None:
        patience = self._random.randint(1, 6) if leaves else 1 << 30
        async for line in response.content:
            if line.startswith(b"data: [DONE]"):
                chat.whole = True
            elif line.startswith(b'data: {"error"'):
                self.seen.codes[f"in a stream: {json.loads(line[6:])['error']['code']}"] += 1
            elif line.startswith(b"data:"):
                chat.begun = True
                patience -= 1
                if patience == 0:
                    chat.left = True
                    response.close()
                    return

    def _refused(self, of: str, status: int, body: bytes, sent_at: float) -> float:
        """Note a refusal; how long to wait after it."""
        self.seen.statuses[f"{of} {status}"] += 1
        try:
            error = json.loads(body)["error"]
        except (ValueError, LookupError):
            error = {}
        self.seen.codes[f"{status} {error.get('code')}"] += 1
        if not error.keys() >= SHAPE or status in (400, 401, 403, 404, 500):
            self.seen.wrong.append(f"{of}: {status} {body[:300]!r}")
        if status == 402:
            if not error.keys() >= FACTS:
                self.seen.wrong.append(f"{of}: 402 without its facts: {body[:300]!r}")
            now = time.monotonic()
            self.seen.refusals.append(Refusal(now, now - sent_at, error, of == "job"))
        return self._random.uniform(0.05, 0.3)

    # -- jobs

    async def _order(self) -> float:
        """One job, sent again under its idempotency key until it is answered, to whichever server answers."""
        chance = self._random
        ending, script, _ = chance.choices(PLAYS, [weight for *_, weight in PLAYS])[0]
        ordered = Ordered(next(self._numbers), ending, chance.randrange(len(self.keys)))
        self.seen.orders.append(ordered)
        params = {"script": {"latency": chance.uniform(0.0, 1.0), **script}, "texture": False, "face_limit": 1000}
        body = {"model": MODEL, "input": [{"params": params}], "client_ref": f"ordeal-{ordered.number}"}
        found = await self._insist(ordered, ORDER, body)
        if found is None:
            return 0.2
        ordered.id = found["id"]
        if ending == "canceled":
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            await self._insist(ordered, f"/api/v1/jobs/{ordered.id}/cancel", {})
        return 0.0

    async def _insist(self, ordered: Ordered, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Send it until it is taken; None where it is refused for good."""
        headers = {"authorization": f"Bearer {self.keys[ordered.key]}"}
        if path == ORDER:
            headers["idempotency-key"] = f"ordeal-{ordered.number}"
        assert self._session is not None
        while True:
            sent_at = time.monotonic()
            ordered.sent += 1
            url = self._random.choice(self.urls) + path
            try:
                async with self._session.post(url, json=body, headers=headers) as response:
                    said = await response.read()
            except TimeoutError:
                self.seen.wrong.append(f"job {ordered.number}: no answer after {self._patience:g} s")
                return None
            except LOST:
                self.seen.breaks += 1
                self.seen.statuses["job no answer, broken"] += 1
                await asyncio.sleep(self._random.uniform(0.05, 0.3))
                continue
            if response.status in (200, 202):
                self.seen.statuses[f"job {response.status}"] += 1
                return json.loads(said)
            pause = self._refused("job", response.status, said, sent_at)
            if response.status == 402:
                return None
            await asyncio.sleep(pause)


async def _read_whole(chat: Chat, response: aiohttp.ClientResponse) -> None:
    said = json.loads(await response.read())
    assert said["id"] == f"chatcmpl-{chat.id}", said
    chat.begun = chat.whole = True
