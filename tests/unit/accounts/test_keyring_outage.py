"""Keys while the store does not answer: known ones pass for a bounded time, and nobody else does."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import insert

from penstock.accounts.administration import ensure_account, issue_key, revoke_key
from penstock.accounts.keyring import FRESH_SECONDS, KNOWN_SECONDS, OVERLAP, Keyring
from penstock.domain.accounts import Action, Actor, KeyWish
from penstock.domain.api_keys import ApiKey
from penstock.errors import InvalidApiKey, PenstockError, RevokedApiKey, StoreUnavailable
from penstock.observability import metrics
from penstock.store.contact import StoreContact
from penstock.store.database import Database
from penstock.store.queries.accounts import key_rows
from penstock.store.tables import audit

BOUND = 60.0


class Desk:
    """A keyring on a store that fails or hangs on demand, with clocks that the test moves."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = 1_000.0
        self.bound = BOUND
        self.fails = False
        self.answers = asyncio.Event()
        self.answers.set()
        self._look = database.look
        database.look = self.look  # type: ignore[method-assign]
        self.contact = StoreContact(database, lambda: self.bound, lambda: self.now)
        self.secret = b""
        self.keyring: Keyring

    async def open(self) -> None:
        self.secret = await self.database.write(key_rows.signing_secret)
        self.keyring = Keyring(self.database, self.secret, lambda: self.now, lambda: self.now, self.contact)
        await self.keyring.learn_changes()

    async def look(self, function: Any, *args: Any, **options: Any) -> Any:
        await self.answers.wait()
        if self.fails:
            raise StoreUnavailable(retry_after=1)
        return await self._look(function, *args, **options)

    async def issue(self, account: str = "mill", **wish: Any) -> tuple[str, ApiKey]:
        def make(connection: Any) -> tuple[str, ApiKey]:
            found = ensure_account(connection, Actor.CLI, account, self.now)
            return issue_key(connection, Actor.CLI, found.id, KeyWish(**wish), self.now)

        return await self.database.write(make)

    async def revoke(self, key: ApiKey) -> None:
        """As another process does."""
        await self.database.write(revoke_key, Actor.CLI, key.public_id, self.now)

    async def check(self, text: str, *, without_store: bool = True, scheme: str = "Bearer") -> ApiKey:
        return await self.keyring.check(f"{scheme} {text}", without_store=without_store)

    async def is_refused(self, text: str, why: type[PenstockError] = StoreUnavailable, **how: Any) -> bool:
        with pytest.raises(why):
            await self.check(text, **how)
        return True

    def pass_time(self, seconds: float = KNOWN_SECONDS) -> None:
        self.now += seconds


@pytest.fixture
async def desk(database: Database) -> AsyncGenerator[Desk]:
    desk = Desk(database)
    await desk.open()
    yield desk
    desk.answers.set()
    await desk.keyring.stop()


def served() -> int:
    [family] = metrics.SERVED_WITHOUT_STORE.collect()
    return int(sum(sample.value for sample in family.samples))


async def test_a_known_key_passes_and_no_other(desk: Desk):
    (known, key), (stranger, _) = await desk.issue(), await desk.issue()
    assert await desk.check(known) == key
    desk.fails = True
    desk.pass_time()
    before = served()
    for _ in range(3):
        assert await desk.check(known) == key
    assert served() == before + 3
    assert await desk.is_refused(stranger)
    assert await desk.is_refused(known[:-1] + ("0" if known[-1] != "0" else "1"))
    assert await desk.is_refused("psk_made_up", InvalidApiKey)
    assert desk.contact.is_away


async def test_nobody_makes_the_keys_of_others_forgotten(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    """One caller writes its key in more ways than headers are remembered."""
    monkeypatch.setattr("penstock.accounts.keyring.MAX_REMEMBERED", 8)
    (quiet, key), (loud, _) = await desk.issue(), await desk.issue()
    await desk.check(quiet)
    for spaces in range(30):
        await desk.check(" " * spaces + loud)
    desk.fails = True
    desk.pass_time()
    assert await desk.check(quiet) == key
    assert await desk.check("  " + quiet) == key
    assert await desk.is_refused("  " + quiet[:-1] + ("0" if quiet[-1] != "0" else "1"))


async def test_what_needs_the_store_waits_for_it(desk: Desk):
    text, _ = await desk.issue()
    await desk.check(text)
    desk.fails = True
    desk.pass_time()
    assert await desk.is_refused(text, without_store=False)


async def test_a_store_that_hangs_is_not_waited_for_twice(desk: Desk):
    text, key = await desk.issue()
    await desk.check(text)
    desk.answers.clear()
    desk.pass_time()
    async with asyncio.timeout(300):
        answers = await asyncio.gather(*(desk.check(text) for _ in range(20)))
    assert answers == [key] * 20
    assert desk.contact.is_away
    checking = asyncio.create_task(desk.check(text))
    await asyncio.sleep(0)
    assert checking.done(), "nobody waits once it is known"


@pytest.mark.parametrize("bound", [0.0, 5.0, BOUND])
async def test_the_time_is_bounded(desk: Desk, bound: float):
    desk.bound = bound
    text, key = await desk.issue()
    await desk.check(text)
    begun = desk.now
    desk.fails = True
    if bound:
        desk.now = begun + bound - 0.01
        assert await desk.check(text) == key
        assert desk.contact.seconds_left == pytest.approx(0.01)
    desk.now = begun + max(bound, KNOWN_SECONDS)
    assert await desk.is_refused(text)
    assert desk.contact.seconds_left == 0


async def test_the_time_counts_from_the_last_word_of_the_store(desk: Desk):
    """A key that was used a while ago is known as well, as nothing has changed since."""
    text, key = await desk.issue()
    await desk.check(text)
    desk.pass_time(30)
    await desk.keyring.learn_changes()
    desk.fails = True
    desk.pass_time(50)
    assert await desk.check(text) == key
    desk.pass_time(10)
    assert await desk.is_refused(text)


async def test_a_key_made_or_changed_a_moment_ago_is_known(desk: Desk):
    """The look at the log that finds the change comes after the key was used, and asks for it again."""
    text, key = await desk.issue(name="new")
    assert await desk.check(text) == key
    await desk.issue("mill")
    await desk.keyring.learn_changes()
    desk.fails = True
    desk.pass_time()
    assert await desk.check(text) == key


async def test_who_was_revoked_before_the_outage_is_refused_in_it(desk: Desk):
    """By another process, while its key was not used here; keys of other accounts stay known."""
    (gone, key), (other, _) = await desk.issue("mill"), await desk.issue("weir")
    await desk.check(gone)
    await desk.check(other)
    await desk.revoke(key)
    await desk.keyring.learn_changes()
    desk.fails = True
    desk.pass_time()
    assert await desk.is_refused(gone)
    assert await desk.check(other)


async def test_a_change_that_commits_late_is_noticed(desk: Desk):
    """Its place in the log is before others that were seen already."""
    text, key = await desk.issue()

    def put(connection: Any, position: int, account_id: str) -> None:
        fields = {"created_at": desk.now, "actor": "cli", "action": Action.KEY_REVOKED.value, "subject": "x"}
        connection.execute(insert(audit), {**fields, "position": position, "account_id": account_id, "detail": b"{}"})

    await desk.database.write(put, OVERLAP * 3, "acct_other")
    await desk.keyring.learn_changes()
    await desk.check(text)
    await desk.keyring.learn_changes()
    await desk.database.write(key_rows.revoke, key.public_id, desk.now)
    await desk.database.write(put, OVERLAP * 3 - 7, key.account_id)
    await desk.keyring.learn_changes()
    desk.fails = True
    desk.pass_time()
    assert await desk.is_refused(text)
    assert await desk.is_refused(text, without_store=False)


async def test_who_is_known_as_revoked_is_refused_however_the_key_is_written(desk: Desk):
    text, key = await desk.issue()
    for scheme in ("Bearer", "bearer"):
        await desk.check(text, scheme=scheme)
    await desk.revoke(key)
    desk.pass_time()
    assert await desk.is_refused(text, RevokedApiKey)
    desk.fails = True
    for scheme in ("Bearer", "bearer"):
        assert await desk.is_refused(text, PenstockError, scheme=scheme)
    desk.pass_time()
    for scheme in ("Bearer", "bearer"):
        assert await desk.is_refused(text, scheme=scheme)


async def test_who_expires_in_the_outage_is_refused(desk: Desk):
    text, _ = await desk.issue(expires_at=desk.now + 10)
    await desk.check(text)
    desk.fails = True
    desk.pass_time(9)
    assert await desk.check(text)
    desk.pass_time(1)
    assert await desk.is_refused(text)


async def test_what_happened_meanwhile_counts_when_it_is_back(desk: Desk):
    (text, key), (other, _) = await desk.issue(), await desk.issue()
    await desk.check(text)
    await desk.check(other)
    desk.fails = True
    desk.pass_time()
    assert await desk.check(text)
    await desk.revoke(key)
    desk.pass_time()
    assert await desk.check(text), "nobody here can know"
    desk.fails = False
    await desk.keyring.learn_changes()
    assert not desk.contact.is_away
    assert await desk.is_refused(text, RevokedApiKey)
    assert await desk.check(other)


async def test_an_answer_from_before_a_change_is_not_kept_for_an_outage(desk: Desk):
    text, key = await desk.issue()
    await desk.check(text)
    desk.pass_time()
    asked = asyncio.Event()
    look, release = desk._look, asyncio.Event()

    async def be_late(function: Any, *args: Any, **options: Any) -> Any:
        found = await look(function, *args, **options)
        if function is key_rows.get:
            asked.set()
            await release.wait()
        return found

    desk._look = be_late
    checking = asyncio.create_task(desk.check(text))
    await asked.wait()
    await desk.revoke(key)
    await desk.keyring.learn_changes()
    release.set()
    with suppress(RevokedApiKey):  # it was asked before the change, and may still be answered by it
        assert await checking == key
    desk.fails = True
    desk.pass_time()
    assert await desk.is_refused(text)


async def test_a_store_that_refuses_this_version_is_no_outage(desk: Desk):
    text, _ = await desk.issue()
    await desk.check(text)
    desk.pass_time()
    desk.fails = True
    desk.database.is_refused = True
    assert await desk.is_refused(text)
    assert not desk.contact.is_away
    desk.database.is_refused = False


async def test_a_keyring_that_stops_leaves_no_lookup_under_way(desk: Desk):
    """One key is renewed in the background, and the callers of another one have left."""
    (used, _), (other, _) = await desk.issue(), await desk.issue()
    await desk.check(used)
    before = asyncio.all_tasks()
    desk.answers.clear()
    desk.pass_time(FRESH_SECONDS)
    await desk.check(used)
    leaving = asyncio.create_task(desk.check(other))
    await asyncio.sleep(0)
    leaving.cancel()
    desk.keyring.forget()
    await asyncio.wait((leaving,))
    assert len(asyncio.all_tasks() - before) == 2
    await desk.keyring.stop()
    assert asyncio.all_tasks() == before
