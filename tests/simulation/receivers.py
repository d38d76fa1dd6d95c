"""Webhook receivers and files behind callers' URLs, and the fetcher by which gateways reach them."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from simulation.virtual_loop import VirtualLoop
from simulation.world import World

from penstock.domain.job_errors import FileFetchFailed
from penstock.safe_fetch.fetcher import Posted
from penstock.safe_fetch.policy import check_url

POST_FAULTS: Final = (
    ("receiver: unreachable", 0.02),
    ("receiver: answer lost", 0.02),
    ("receiver: error", 0.03),
    ("receiver: busy", 0.01),
    ("receiver: slow", 0.02),
    ("receiver: never answers", 0.005),
)
PAUSE_SECONDS: Final = 4.0
"""The shortest time after which a process sends a message again."""
FETCH_FAULTS: Final = (("url: unreachable", 0.02), ("url: cut", 0.01), ("url: slow", 0.02))


@dataclass
class Receiver:
    """One endpoint: what was sent there, and what it has acknowledged."""

    url: str
    world: World
    attempted: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Sequences of first attempts, by job."""
    acknowledged: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    sent: dict[tuple[str, int], tuple[str, str, float]] = field(
        default_factory=dict[tuple[str, int], tuple[str, str, float]]
    )
    """The id of each message, the process that sent it last, and when."""
    on_message: Callable[..., None] | None = None

    def expect(self, body: bytes, headers: Mapping[str, str], sender: str = "") -> None:
        """Check that the first attempts for a job's events are made in order, and are signed."""
        job_id, sequence = _read(body)
        self.world.recorder.add(f"{self.url} {body!r}")
        self._compare(job_id, sequence, headers["webhook-id"], sender)
        seen = self.attempted.setdefault(job_id, [])
        if not headers.get("webhook-signature"):
            self.world.violate("webhooks are signed", job_id)
        if self.on_message is not None:
            self.on_message(job_id, json.loads(body), body, headers, is_first=sequence not in seen)
        if sequence in seen:
            return
        if seen and sequence < seen[-1]:
            self.world.violate("webhooks are sent in order", f"{job_id}: {sequence} after {seen}")
        seen.append(sequence)

    def _compare(self, job_id: str, sequence: int, message_id: str, sender: str) -> None:
        """Check that a message keeps its id, and that a process pauses before it sends one again."""
        now = self.world.now
        known, process, at = self.sent.get((job_id, sequence), (message_id, "", 0.0))
        if known != message_id:
            self.world.violate("a webhook keeps its id", f"{job_id} {sequence}: {known} and {message_id}")
        if process == sender and now - at < PAUSE_SECONDS and not self.world.has_skew:
            self.world.violate("a failed webhook is sent again after a pause", f"{job_id} {sequence}: {now - at:.1f} s")
        self.sent[job_id, sequence] = message_id, sender, now


def _read(body: bytes) -> tuple[str, int]:
    message = json.loads(body)
    return message["data"].get("id") or message["data"].get("webhook_id", ""), message["sequence"]


class VirtualFetcher:
    """The way of one process to callers' URLs. Its methods are those of `SafeFetcher`."""

    def __init__(self, world: World, loop: VirtualLoop, receivers: Mapping[str, Receiver]) -> None:
        self._world = world
        self._loop = loop
        self._receivers = receivers

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def check(self, url: str) -> str:
        """Return the normalised URL."""
        return check_url(url, ())

    async def fetch(self, url: str, *, max_bytes: int) -> AsyncGenerator[bytes]:
        """Yield the bytes behind a URL."""
        del max_bytes
        chance = self._world.chance(f"{self._loop.name} fetches")
        fault = chance.draw(FETCH_FAULTS)
        await asyncio.sleep(5.0 if fault == "url: slow" else 0.05 * chance.random())
        if fault == "url: unreachable":
            raise FileFetchFailed("no connection could be made")
        yield b'{"picture":'
        if fault == "url: cut":
            raise FileFetchFailed("the connection broke")
        yield json.dumps(url).encode() + b"}"

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float, max_bytes: int
    ) -> Posted:
        """Send a message; its fate is the seed's."""
        del max_bytes
        chance = self._world.chance(f"{self._loop.name} posts")
        fault = chance.draw(POST_FAULTS)
        self._receivers[url].expect(body, headers, self._loop.name)
        await asyncio.sleep(0.05 * chance.random())
        if fault == "receiver: unreachable":
            raise FileFetchFailed("no connection could be made")
        answer: asyncio.Future[Posted] = self._loop.create_future()
        self._world.later(0.01, self._arrive, self._receivers[url], body, answer, fault)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError as error:
            raise FileFetchFailed("The URL did not answer in time.") from error

    def _arrive(self, receiver: Receiver, body: bytes, answer: Any, fault: str | None) -> None:
        if fault in ("receiver: answer lost", "receiver: never answers"):
            if fault == "receiver: answer lost":
                self._loop.call_later(0.1, _settle, answer, FileFetchFailed("reset"))
            return
        status = {"receiver: error": 500, "receiver: busy": 503}.get(fault or "", 200)
        if status == 200:
            receiver.acknowledged.add(_read(body))
        self._loop.call_later(10.0 if fault == "receiver: slow" else 0.01, _settle, answer, Posted(status, b"ok", None))


def _settle(answer: Any, value: Any) -> None:
    if not answer.done():
        if isinstance(value, Exception):
            answer.set_exception(value)
        else:
            answer.set_result(value)
