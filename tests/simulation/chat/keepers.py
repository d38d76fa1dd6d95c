"""Callers of kept responses: they let them run in the background, poll, cancel, delete and continue them."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.chat.callers import MODEL, ChatCaller, Heard
from simulation.http_caller import CallFailed, HttpAnswer, HttpCaller
from simulation.world import World

from penstock.store.queries.chat.response_rows import LOST

PATH: Final = "/v1/responses"
RETENTION: Final = "30m"
RUNNING: Final = ("queued", "in_progress")
"""Statuses of a response that is not finished, in order."""
ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "error")
"""Types of the event that ends a stream."""
BUSY: Final = frozenset({429, 500, 503})
"""Statuses after which a caller asks again: 500 only if the store answers with an unknown outcome."""
HASTY_PART: Final = 0.15
"""The part of the responses that are canceled as soon as they are accepted."""
POLL_SECONDS: Final = (0.2, 3.0)
MAX_TRIES: Final = 3
PATIENCE_SECONDS: Final = 200.0
"""The longest time for which a caller polls, from the last fault on."""
FIRST_NUMBER: Final = 50_000
"""In the markers of these callers."""
CALM_NUMBER: Final = 60_000
CALM_REQUESTS: Final = 8
CALM_SECONDS: Final = 40.0
"""The time over which responses run while nothing goes wrong: longer than from one sweep to the next."""


@dataclass
class Kept:
    """A response that its caller knows by its id."""

    id: str
    heard: Heard
    is_background: bool
    status: str
    output: str = ""
    """Text of the finished response."""
    is_lost: bool = False
    """True if it failed because its process counts as dead."""
    is_deleted: bool = False
    may_be_gone: bool = False
    """True once a deletion was asked for, whatever came back."""
    has_gone: bool = False
    """True once it could not be found."""
    previous: "Kept | None" = field(default=None, repr=False)
    """The response that it continues."""

    @property
    def number(self) -> int:
        """Return the number of its request."""
        return int(self.heard.marker.split("-")[2])

    @property
    def can_be_continued(self) -> bool:
        """Return whether neither this response nor one before it may be gone."""
        return not self.may_be_gone and (self.previous is None or self.previous.can_be_continued)

    @property
    def is_running(self) -> bool:
        """Return whether it is unfinished, as far as its caller knows."""
        return self.status in RUNNING


@dataclass
class Keeper:
    """One account's application of kept responses."""

    world: World
    caller: ChatCaller
    strangers: Sequence["Keeper"] = ()
    kept: list[Kept] = field(default_factory=list[Kept])

    def __post_init__(self) -> None:
        self._dice = self.world.chance(f"keeper {self.caller.account}")
        self._http = HttpCaller(self.world, self.caller.key)

    async def live(self, requests: int, seconds: float) -> None:
        """Ask so many times over the time."""
        tasks: list[asyncio.Task[None]] = []
        for number in range(FIRST_NUMBER, FIRST_NUMBER + requests):
            await asyncio.sleep(self._dice.random() * 2 * seconds / requests)
            name = f"chat caller {self.caller.account}#{number}"
            if self.world.only is None or name in self.world.only:
                self.world.note(f"{self.caller.account} asks for a response that is kept", name)
                tasks.append(asyncio.create_task(self._insist(number)))
        await asyncio.gather(*tasks)

    async def linger(self) -> None:
        """Let responses run in the background while nothing goes wrong: none is lost."""
        tasks: list[asyncio.Task[None]] = []
        for number in range(CALM_NUMBER, CALM_NUMBER + CALM_REQUESTS):
            tasks.append(asyncio.create_task(self._insist(number)))
            await asyncio.sleep(CALM_SECONDS / CALM_REQUESTS)
        await asyncio.gather(*tasks)
        for kept in self.kept:
            if kept.is_lost and kept.number >= CALM_NUMBER:
                self.world.violate("a response of a living process goes on", repr(kept))

    # -- requests

    async def _insist(self, number: int) -> None:
        dice = self.world.chance(f"keeper {self.caller.account}#{number}")
        is_background = dice.random() < 0.6
        is_streamed = not is_background and dice.random() < 0.5
        for attempt in range(MAX_TRIES):
            marker = f"ask-{self.caller.account}-{number}-{attempt}"
            heard = self.caller.begin(marker, is_streamed=is_streamed, most=None)
            heard.has_known_prompt = False
            thrown = dice.random()
            previous = self._choose_previous(thrown)
            try:
                found = await self._ask(heard, thrown, previous, is_background=is_background)
            except CallFailed:
                self.world.counts["chat calls that failed"] += 1
                found = None
            if found is not None:
                found.previous = previous
                self.kept.append(found)
                self.world.counts["responses kept"] += 1
                await self._watch(found, dice.random())
            heard.ended_at = self.world.now
            self.world.recorder.add(f"{heard.marker} {found!r}")
            if found is not None:
                return
            await asyncio.sleep(dice.uniform(0.2, 4.0))

    async def _ask(self, heard: Heard, thrown: float, previous: Kept | None, *, is_background: bool) -> Kept | None:
        """Ask for a response. Return it if it is kept."""
        body: dict[str, Any] = {"model": MODEL, "input": heard.marker + " word" * int(20 * thrown), "store": True}
        if previous is not None:
            body["previous_response_id"] = previous.id
        if is_background:
            body["background"] = True
        port = await self._find_port()
        headers = {"x-request-id": heard.marker}
        if heard.is_streamed:
            return await self._read_stream(heard, port, {**body, "stream": True}, headers)
        answer = await self._http.ask(port, "POST", PATH, body, headers, seconds=120.0)
        self._take_head(heard, answer, previous)
        if answer.status != 200:
            return None
        if is_background:
            heard.status = None  # it has not been served yet
        return self._take_response(heard, answer.json, is_background=is_background)

    def _choose_previous(self, thrown: float) -> Kept | None:
        done = [each for each in self.kept if each.status == "completed" and each.can_be_continued]
        return done[int(thrown * 1000) % len(done)] if done and thrown < 0.5 else None

    async def _find_port(self) -> int:
        ports = self.caller.ports()
        if not ports:
            await asyncio.sleep(1)
            raise CallFailed("No server listens.")
        return self._dice.choice(ports)

    def _take_head(self, heard: Heard, answer: HttpAnswer, previous: Kept | None = None) -> None:
        self.caller.take_head(heard, answer)
        self.caller.check_privacy(answer.body)
        if answer.status not in (200, 400):
            self.caller.take_error(heard, answer.body)
        if answer.status == 400 and b"previous_response" in answer.body:
            if previous is not None and previous.can_be_continued and not self.world.had_jump:
                self.world.violate("a kept response can be continued", f"{previous}: {answer.body[:300]!r}")
        elif answer.status == 400:
            self.caller.take_error(heard, answer.body)

    def _take_response(self, heard: Heard, response: Mapping[str, Any], *, is_background: bool) -> Kept | None:
        """Take a response object. Return it if it says that it is kept."""
        status, text = response["status"], "".join(_texts(response))
        if not is_background or status == "completed":
            self._complete(heard, status, text)
        if not response["store"]:
            return None
        return Kept(response["id"], heard, is_background, status, "" if is_background else text)

    def _complete(self, heard: Heard, status: str, text: str) -> None:
        heard.status, heard.text, heard.is_whole = 200, text, status == "completed"
        self.caller.check_text(heard)

    async def _read_stream(self, heard: Heard, port: int, body: Any, headers: dict[str, str]) -> Kept | None:
        data = b""
        async with aclosing(self._http.stream(port, PATH, body, headers=headers)) as pieces:
            async for piece in pieces:
                if isinstance(piece, HttpAnswer):
                    self.caller.take_head(heard, piece)
                else:
                    data += piece
        if heard.status != 200:
            self._take_head(heard, HttpAnswer(heard.status or 0, {"x-request-id": heard.marker}, data))
            return None
        self.caller.check_privacy(data)
        last = self._take_events(heard, data)
        if last is None or "response" not in last or last["type"] == "response.failed":
            return None
        return self._take_response(heard, last["response"], is_background=False)

    def _take_events(self, heard: Heard, data: bytes) -> dict[str, Any] | None:
        """Take the events of a stream that was not cut. Return the last one."""
        last = None
        for event in _events(data):
            if last is not None:
                self.world.violate("nothing follows the end of a stream", f"{heard.marker}: {event}")
            if event["type"] == "response.output_text.delta":
                heard.text += event["delta"]
            elif event["type"] in ENDS:
                last = event
        if last is None:
            self.world.violate("a stream ends with its end mark, an error or a cut", heard.marker)
        return last

    # -- what becomes of it

    async def _watch(self, kept: Kept, thrown: float) -> None:
        """Poll a response until it is finished, then once more. Some are canceled or deleted, or pried into."""
        changes = iter([self._cancel, self._delete] if thrown < 0.1 else [self._cancel] if thrown < 0.25 else [])
        if thrown > 0.9:
            changes = iter([self._delete])
        if thrown < HASTY_PART:  # before its run begins, or in the midst of it
            await self._cancel(kept)
        while not self._has_lost_patience():
            await asyncio.sleep(self._dice.uniform(*POLL_SECONDS))
            is_last = not kept.is_running
            await self._look(kept)
            if (change := next(changes, None)) is not None:
                await change(kept)
            elif is_last or kept.has_gone:
                break
        await self._pry()
        await self._look(kept)

    def _has_lost_patience(self) -> bool:
        return self.world.is_healed and self.world.wall() > self.world.calm_since + PATIENCE_SECONDS

    async def _try(self, method: str, path: str) -> HttpAnswer | None:
        """Return the answer to a request; None if nobody knows whether it was served."""
        try:
            answer = await self._http.ask(await self._find_port(), method, f"{PATH}/{path}", seconds=30.0)
        except CallFailed:
            return None
        self.caller.check_privacy(answer.body)
        return None if answer.status in BUSY else answer

    async def _look(self, kept: Kept) -> None:
        was_deleted = kept.is_deleted
        answer = await self._try("GET", kept.id)
        if answer is None:
            return
        if answer.status == 404:
            kept.has_gone = True
            if not kept.may_be_gone and not self.world.had_jump:
                self.world.violate("a kept response can be found", f"{kept}: {answer.body[:300]!r}")
        elif answer.status != 200:
            self.world.violate("every answer is expected", f"{kept}: {answer.status} {answer.body[:300]!r}")
        elif was_deleted:
            self.world.violate("deleted responses are gone", repr(kept))
        else:
            self._take_state(kept, answer.json)

    def _take_state(self, kept: Kept, response: Mapping[str, Any]) -> None:
        status, text = response["status"], "".join(_texts(response))
        if not kept.is_running and (status, text) != (kept.status, kept.output):
            self.world.violate("a finished response stays as it is", f"{kept} {status} {text!r}")
        elif status in RUNNING and RUNNING.index(status) < RUNNING.index(kept.status):
            self.world.violate("a finished response stays as it is", f"{kept} {status}")
        elif kept.is_running and status == "completed":
            self._complete(kept.heard, status, text)
        elif status == "failed":
            message = (response["error"] or {}).get("message")
            if not message:
                self.world.violate("errors have one shape", f"{kept}: {response['error']}")
            kept.is_lost = message == LOST["message"]
        if kept.status != status:
            self.world.counts[f"responses {status}"] += 1
        kept.status, kept.output = status, text if status not in RUNNING else ""

    async def _cancel(self, kept: Kept) -> None:
        if not kept.is_background:
            return
        answer = await self._try("POST", f"{kept.id}/cancel")
        if answer is not None and answer.status == 200:
            if answer.json["status"] in RUNNING:
                self.world.violate("a canceled response is finished", f"{kept}: {answer.json['status']}")
            self._take_state(kept, answer.json)

    async def _delete(self, kept: Kept) -> None:
        kept.may_be_gone = True
        answer = await self._try("DELETE", kept.id)
        if answer is not None and answer.status == 200:
            kept.is_deleted = True

    async def _pry(self) -> None:
        """Ask for a response of another account."""
        theirs = [each for stranger in self.strangers for each in stranger.kept]
        if not theirs:
            return
        found = self._dice.choice(theirs)
        answer = await self._try(self._dice.choice(("GET", "DELETE")), found.id)
        if answer is not None and answer.status != 404:
            self.world.violate("nothing of an account is visible to another", f"{found}: {answer.status}")


def _texts(response: Mapping[str, Any]) -> Iterator[str]:
    for item in response["output"]:
        if item["type"] == "message":
            yield from (part["text"] for part in item["content"] if part["type"] == "output_text")


def _events(data: bytes) -> Iterator[dict[str, Any]]:
    for event in data.split(b"\n\n"):
        for line in event.splitlines():
            if line.startswith(b"data:"):
                yield json.loads(line.removeprefix(b"data:"))
