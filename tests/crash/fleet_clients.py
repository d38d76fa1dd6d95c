"""Careful clients of several accounts: each job is sent again, to any gateway, until it is answered; some watch it."""

import asyncio
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from vendors.storm import FIRST, PICTURE, STEP

ORDER: Final = "/model/v1/generation"
SIM: Final = "sim_image_to_model"
MEDIA: Final = "vendora_image_to_model"
PLAYS: Final[Sequence[tuple[str, str, dict[str, Any], int]]] = (
    ("succeeded", "", {}, 20),
    ("succeeded", "", {"submission": "reply_lost"}, 3),
    ("succeeded", "", {"submission": "never_arrived"}, 2),
    ("succeeded", "", {"submission": "busy"}, 2),
    ("succeeded", "", {"poll_errors": 2}, 2),
    ("succeeded", "", {"download_errors": 1}, 2),
    ("failed", "upstream_error", {"ending": "failed"}, 3),
    ("failed", "content_filtered", {"ending": "filtered"}, 1),
    ("failed", "bad_output", {"ending": "corrupt"}, 1),
    ("failed", "upstream_rejected", {"submission": "rejected", "submission_times": 1000}, 1),
    ("canceled", "", {"latency": 3600.0}, 3),
    ("failed", "upstream_outcome_unknown", {"submission": "reply_lost", "findable": False}, 1),
)
"""How jobs end, with which code, what they play for it, and how often."""
LOST: Final = (aiohttp.ClientError, ConnectionError, TimeoutError)
AGAIN: Final = (409, 429, 503)
PATIENCE: Final = aiohttp.ClientTimeout(total=20, sock_connect=3)
SILENCE: Final = aiohttp.ClientTimeout(total=None, sock_connect=3, sock_read=20)
"""Heartbeats come every 15 s."""


@dataclass(frozen=True)
class Customer:
    """An account, as its clients know it."""

    name: str
    account_id: str
    key: str
    hook: str = ""
    """Where jobs of its own webhook tell."""


@dataclass(slots=True)
class Ordered:
    """One job, as its client saw it."""

    number: int
    customer: Customer
    model: str
    state: str
    """How it has to end; empty: as the vendor's books say."""
    code: str
    id: str = ""
    refused: bool = False
    sent: int = 0
    seen: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """What the event stream told: sequence and type."""
    is_watched: bool = False
    reconnects: int = 0


@dataclass(slots=True)
class Seen:
    """What all clients saw."""

    orders: list[Ordered] = field(default_factory=list[Ordered])
    statuses: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    accepted: list[float] = field(default_factory=list[float])
    """How long each took from the first try to the answer."""
    feeds: dict[str, dict[str, list[int]]] = field(default_factory=dict[str, dict[str, list[int]]])


class Crowd:
    """All clients, in one process."""

    def __init__(self, urls: Sequence[str], customers: Sequence[Customer], chance: random.Random) -> None:
        self._urls = urls
        self._customers = customers
        self._chance = chance
        self.seen = Seen()
        self.over = asyncio.Event()
        self._session: aiohttp.ClientSession | None = None
        self._pictures: dict[str, str] = {}

    async def run(self, jobs: int, seconds: float, watched: float, media: float) -> None:
        """Order so many jobs in this time; every job that is watched is watched to its end."""
        chance = self._chance
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as self._session:
            feeds = [asyncio.create_task(self._follow_feed(each)) for each in self._customers]
            async with asyncio.TaskGroup() as clients:
                for number in range(jobs):
                    ordered = self._plan(number, is_media=chance.random() < media)
                    ordered.is_watched = chance.random() < watched
                    clients.create_task(self._live(ordered, chance.uniform(0, seconds)))
            await self.over.wait()
            await asyncio.gather(*feeds)

    def waiting(self) -> str:
        """What is still waited for: streams of jobs with what they told last, else the feeds."""
        left = [each for each in self.seen.orders if each.is_watched and each.id]
        told = {each.id: each.seen[-1:] for each in left if not each.seen or each.seen[-1][1] not in ENDINGS}
        return f"streams {told}, {sum(not each.id and not each.refused for each in self.seen.orders)} orders"

    def _plan(self, number: int, *, is_media: bool) -> Ordered:
        customer = self._chance.choice(self._customers)
        ordered = Ordered(number, customer, MEDIA if is_media else SIM, "", "")
        self.seen.orders.append(ordered)
        return ordered

    async def _live(self, ordered: Ordered, wait: float) -> None:
        """One client, from its order to the end of what it watches."""
        await asyncio.sleep(wait)
        begun = time.monotonic()
        body = await self._body(ordered)
        found = await self._insist(ordered, ORDER, body, f"ordeal-{ordered.number}")
        if found is None:
            ordered.refused = True
            return
        self.seen.accepted.append(time.monotonic() - begun)
        ordered.id = found["id"]
        async with asyncio.TaskGroup() as errands:
            if ordered.is_watched:
                errands.create_task(self._watch(ordered))
            if ordered.state == "canceled":
                await asyncio.sleep(self._chance.uniform(0.0, 1.5))
                await self._insist(ordered, f"/api/v1/jobs/{ordered.id}/cancel", {})

    # -- ordering

    async def _body(self, ordered: Ordered) -> dict[str, Any]:
        if ordered.model == SIM:
            ordered.state, ordered.code, script, _ = self._chance.choices(PLAYS, [play[3] for play in PLAYS])[0]
            played = {"latency": self._chance.uniform(0.0, 3.0), **script}
            params: dict[str, Any] = {"script": played, "texture": False, "face_limit": 200}
        else:
            token = await self._picture(ordered.customer)
            params = {"file": {"file_token": token}, "texture": True, "face_limit": (FIRST + ordered.number) * STEP}
        body = {"model": ordered.model, "input": [{"params": params}], "client_ref": f"ordeal-{ordered.number}"}
        return body | ({"webhook": {"url": ordered.customer.hook}} if ordered.customer.hook else {})

    async def _picture(self, customer: Customer) -> str:
        """Uploaded once for each account."""
        while customer.name not in self._pictures:
            form = aiohttp.FormData()
            form.add_field("file", PICTURE, filename="cat.png", content_type="image/png")
            status, said = await self._post(customer, "/api/v1/files", form)
            if status in (200, 201):
                self._pictures[customer.name] = json.loads(said)["file_token"]
        return self._pictures[customer.name]

    async def _insist(
        self, ordered: Ordered, path: str, body: dict[str, Any], key: str | None = None
    ) -> dict[str, Any] | None:
        """Send it until it is taken; None where it is refused for good."""
        while True:
            ordered.sent += 1
            status, said = await self._post(ordered.customer, path, body, key)
            if status in (200, 202):
                return json.loads(said)
            if status == 402:
                return None
            if status and status not in AGAIN:
                self.seen.wrong.append(f"{path}: {status} {said[:300]!r}")
                return None
            await asyncio.sleep(self._chance.uniform(0.05, 0.5))

    async def _post(self, customer: Customer, path: str, body: Any, key: str | None = None) -> tuple[int, bytes]:
        """One try at one gateway; status 0 if there was no answer."""
        assert self._session is not None
        headers = {"authorization": f"Bearer {customer.key}"} | ({"idempotency-key": key} if key else {})
        given = {"data": body} if isinstance(body, aiohttp.FormData) else {"json": body}
        try:
            async with self._session.post(
                self._chance.choice(self._urls) + path, headers=headers, timeout=PATIENCE, **given
            ) as response:
                said = await response.read()
        except LOST as error:
            self.seen.statuses[type(error).__name__] += 1
            return 0, b""
        replayed = " again" if "Idempotency-Replayed" in response.headers else ""
        self.seen.statuses[f"{response.status}{replayed}"] += 1
        return response.status, said

    # -- watching

    async def _watch(self, ordered: Ordered) -> None:
        """Every event of the job, through every reconnect to any gateway."""
        last = ""
        while True:
            try:
                last, is_over = await self._listen(ordered, last)
            except LOST:
                is_over = False
            if is_over:
                return
            ordered.reconnects += 1
            await asyncio.sleep(self._chance.uniform(0.05, 0.5))

    async def _listen(self, ordered: Ordered, last: str) -> tuple[str, bool]:
        """One connection; the last event's id, and whether the job is over."""
        assert self._session is not None
        headers = {"authorization": f"Bearer {ordered.customer.key}"} | ({"last-event-id": last} if last else {})
        url = f"{self._chance.choice(self._urls)}/api/v1/jobs/{ordered.id}/events"
        try:
            async with self._session.get(url, headers=headers, timeout=SILENCE) as response:
                if response.status == 204:
                    return last, True
                if response.status != 200:
                    if response.status not in AGAIN:
                        self.seen.wrong.append(f"{ordered.id}: its events: {response.status}")
                        return last, True
                    return last, False
                async for line in response.content:
                    if line.startswith(b"data:"):
                        event = json.loads(line[5:])
                        ordered.seen.append((event["sequence"], event["type"]))
                        last = event["id"]
        except LOST:
            pass
        return last, bool(ordered.seen) and ordered.seen[-1][1] in ENDINGS

    async def _follow_feed(self, customer: Customer) -> None:
        """The account's feed by pages, until the ordeal is over."""
        seen: defaultdict[str, list[int]] = defaultdict(list)
        self.seen.feeds[customer.name] = seen
        after = ""
        while True:
            ending = self.over.is_set()
            page = await self._page(customer, after)
            for event in page["data"] if page else ():
                seen[event["data"].get("id", "notice")].append(event["sequence"])
            after = (page["next_after"] or after) if page else after
            if ending and page and not page["has_more"]:
                return
            if not page or not page["data"]:
                await asyncio.sleep(0.2)

    async def _page(self, customer: Customer, after: str) -> dict[str, Any] | None:
        assert self._session is not None
        headers = {"authorization": f"Bearer {customer.key}"}
        url = f"{self._chance.choice(self._urls)}/api/v1/events"
        query = {"limit": "100"} | ({"after": after} if after else {})
        try:
            async with self._session.get(url, headers=headers, params=query, timeout=PATIENCE) as response:
                return await response.json() if response.status == 200 else None
        except LOST:
            return None


ENDINGS: Final = frozenset(("job.succeeded", "job.failed", "job.canceled", "job.expired"))
