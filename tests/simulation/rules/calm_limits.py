"""Keys, limits and lists in a calm world: what an operator takes away is gone, and a list is complete."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from simulation.acts.transfers import BOUNDARY
from simulation.http_caller import HttpCaller
from simulation.rules.visitor import Visitor
from sqlalchemy import Connection

from penstock.accounts.administration import change_account, issue_key, revoke_key
from penstock.domain.accounts import Account, Actor, KeyWish
from penstock.domain.api_keys import ApiKey, Limits
from penstock.store.queries.files import storage_rows

Administer = Callable[[Callable[[Connection], Any]], Any]
"""Runs a transaction of the operator, who works on the store itself."""
REVOKED_SECONDS: Final = 1.2
"""Seconds after which a revoked key is refused everywhere."""
OPEN_JOBS: Final = 2
PAGE: Final = 7
WHOLE: Final = 100
WAIT_SECONDS: Final = 2.0


def _issue(visitor: Visitor, administer: Administer, **wish: Any) -> tuple[HttpCaller, ApiKey]:
    """Make a key of the visitor's account."""
    now, name = visitor.world.wall(), visitor.caller.account_id

    def issue(connection: Connection) -> tuple[str, ApiKey]:
        return issue_key(connection, Actor.CLI, name, KeyWish(name="another", **wish), now)

    text, key = administer(issue)
    return HttpCaller(visitor.world, text), key


async def check_keys(visitor: Visitor, administer: Administer) -> None:
    """Check that a key is refused once it is revoked or has expired, also one in steady use."""
    expiring, _ = _issue(visitor, administer, expires_at=visitor.world.wall() + 1.0)
    revoked, key = _issue(visitor, administer)
    idle, idle_key = _issue(visitor, administer)
    for each in (expiring, revoked, idle):
        await _use(visitor, each, 200, "a key can be used")
    now = visitor.world.wall()
    for public_id in (key.public_id, idle_key.public_id):
        administer(partial(revoke_key, actor=Actor.CLI, public_id=public_id, now=now))
    until = visitor.world.now + REVOKED_SECONDS
    while visitor.world.now < until:
        for port in visitor.ports():
            await revoked.ask(port, "GET", "/api/v1/jobs?limit=1")
        await asyncio.sleep(0.1)
    await _use(visitor, revoked, 401, "a revoked key is refused")
    await _use(visitor, idle, 401, "a revoked key is refused")
    await _use(visitor, expiring, 401, "an expired key is refused")


async def _use(visitor: Visitor, caller: HttpCaller, status: int, rule: str) -> None:
    for port in visitor.ports():
        answer = await caller.ask(port, "GET", "/api/v1/jobs?limit=1")
        if answer.status != status:
            visitor.violate(rule, f"{answer.status} {answer.body[:200]!r}")


async def check_open_jobs(visitor: Visitor, administer: Administer) -> None:
    """Send more jobs at once than a key may have open."""
    caller, _ = _issue(visitor, administer, limits=Limits(concurrent_jobs=OPEN_JOBS))
    answers = await asyncio.gather(
        *(visitor.submit(f"narrow-{number}", by=caller, latency=1) for number in range(2 * OPEN_JOBS))
    )
    accepted = [answer.json["id"] for answer in answers if answer.status == 202]
    if len(accepted) > OPEN_JOBS:
        visitor.violate("no more jobs are open than allowed", f"{len(accepted)} of {OPEN_JOBS}")
    if len(accepted) < OPEN_JOBS:
        visitor.violate("every job that a limit allows is accepted", f"{[answer.status for answer in answers]}")
    for job_id in accepted:
        await visitor.follow(job_id)


async def check_quota(visitor: Visitor, administer: Administer) -> None:
    """Upload more than the account may keep."""
    account_id = visitor.caller.account_id
    stored = administer(lambda connection: storage_rows.get(connection, account_id))
    _set_quota(visitor, administer, stored.bytes + 9)
    picture = json.dumps({"picture": "new", "at": visitor.world.now}).encode()
    head = f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\n'.encode()
    body = head + picture + f"\r\n--{BOUNDARY}--\r\n".encode()
    content_type = f"multipart/form-data; boundary={BOUNDARY}"
    answer = await visitor.ask("POST", "/api/v1/files", body, **{"content-type": content_type})
    if answer.status != 403:
        visitor.violate("a storage quota is kept", f"{answer.status} {answer.body[:200]!r}")
    _set_quota(visitor, administer, None)
    await asyncio.sleep(REVOKED_SECONDS)  # until every process knows it


def _set_quota(visitor: Visitor, administer: Administer, quota: int | None) -> None:
    account_id, now = visitor.caller.account_id, visitor.world.wall()

    def change(account: Account) -> Account:
        return replace(account, storage_quota=quota)

    administer(lambda connection: change_account(connection, Actor.CLI, account_id, change, now))


async def check_lists(visitor: Visitor) -> None:
    """Compare a list of jobs in one page with the same list in small pages, and the feed of events likewise."""
    whole = (await visitor.ask("GET", f"/api/v1/jobs?limit={WHOLE}")).json["data"]
    pages: list[str] = []
    path = f"/api/v1/jobs?limit={PAGE}"
    while len(pages) < len(whole):
        page = (await visitor.ask("GET", path)).json
        pages += [job["id"] for job in page["data"]]
        if page.get("next_cursor") is None:
            break
        path = f"/api/v1/jobs?limit={PAGE}&cursor={page['next_cursor']}"
    if pages[: len(whole)] != [job["id"] for job in whole]:
        visitor.violate("a list has each job once", f"{len(whole)} jobs, {len(pages)} in pages")
    await _check_feed(visitor)


async def _check_feed(visitor: Visitor) -> None:
    """Read the feed page by page: no event is missing, and none comes twice."""
    seen: dict[str, int] = {}
    path = "/api/v1/events?limit=20"
    while True:
        page = (await visitor.ask("GET", path)).json
        for event in page["data"]:
            subject = event["data"].get("id", "")
            if subject.startswith("job_") and event["sequence"] != seen.get(subject, 0) + 1:
                visitor.violate("the feed has each event once", f"{subject}: {event['sequence']}")
            seen[subject] = event["sequence"]
        if not page["has_more"]:
            return
        path = f"/api/v1/events?limit=20&after={page['next_after']}"


async def check_wait(visitor: Visitor) -> None:
    """Check that a caller who waits for a job is answered when it ends, by any process."""
    begun = visitor.world.now
    job_id = (await visitor.submit("awaited", latency=WAIT_SECONDS)).json["id"]
    port = visitor.ports()[-1]
    answer = await visitor.own.ask(port, "GET", f"/api/v1/jobs/{job_id}?wait=30")
    seconds = visitor.world.now - begun
    if not answer.json["done"] or seconds > 3 * WAIT_SECONDS:
        visitor.violate("a wait ends with the job", f"{answer.json['status']} after {seconds:.1f} s")
