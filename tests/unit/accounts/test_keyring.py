"""Who is calling: only real keys pass, guessing costs the store nothing, and a revoked key ends within a second."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from sqlalchemy import event

from penstock.accounts.keyring import KNOWN_SECONDS, Keyring
from penstock.domain import api_keys
from penstock.domain.api_keys import ApiKey, Scope
from penstock.errors import ExpiredApiKey, InvalidApiKey, MissingApiKey, RevokedApiKey, StoreUnavailable
from penstock.store.database import Database
from penstock.store.queries.accounts import key_rows
from penstock.store.sqlite.database import SqliteDatabase
from penstock.store.tables import metadata

SECRET = b"installation"


@dataclass
class Desk:
    """A keyring on a real store, with clocks that the test moves and a count of what the store was asked."""

    database: Database
    now: float = 1_000.0
    questions: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keyring = Keyring(self.database, SECRET, lambda: self.now, lambda: self.now)
        event.listen(self.database.engine, "checkout", lambda driver, *_: driver.set_trace_callback(self._note))

    def _note(self, statement: str) -> None:
        if "FROM keys" in statement:
            self.questions.append(statement)

    async def issue(self, **fields: Any) -> tuple[str, ApiKey]:
        public_id, secret = api_keys.make(SECRET)
        account_id = await self.database.write(key_rows.account_id, "mill", self.now)
        defaults = {
            "public_id": public_id,
            "account_id": account_id,
            "account": "mill",
            "name": "test",
            "lineage": public_id,
        }
        key = ApiKey(**(defaults | {"secret_hash": api_keys.hash_secret(secret)} | fields))
        await self.database.write(key_rows.add, key)
        self.questions.clear()
        return f"{api_keys.PREFIX}{public_id}_{secret}", key

    async def check(self, text: str) -> ApiKey:
        return await self.keyring.check(f"Bearer {text}")


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    database = SqliteDatabase(tmp_path / "keys.db")
    metadata.create_all(database.engine)
    yield Desk(database)
    await database.close()


async def test_a_real_key_passes(desk):
    text, key = await desk.issue(models=frozenset({"m"}), scopes=frozenset({Scope.GENERATE}), expires_at=2_000.0)
    assert await desk.check(text) == key
    assert await desk.keyring.check(f"bearer   {text} ") == key


@pytest.mark.parametrize("header", [None, "", "psk_abc", "Basic dXNlcjpwYXNz", "Token x"])
async def test_no_bearer_key_is_told_as_missing(desk, header):
    with pytest.raises(MissingApiKey) as refusal:
        await desk.keyring.check(header)
    assert refusal.value.code == "missing_api_key"
    assert refusal.value.headers == {"WWW-Authenticate": "Bearer"}


def spoil(text: str) -> dict[str, str]:
    public_id, _, secret = text.removeprefix("psk_").partition("_")
    other = "0" if secret[-1] != "0" else "1"
    return {
        "other secret": text[:-1] + other,
        "cut": text[:-1],
        "longer": text + "0",
        "no secret": f"psk_{public_id}_",
        "only the public id": f"psk_{public_id}",
        "other prefix": f"sk_{public_id}_{secret}",
        "other case": text.upper(),
        "huge": text + "0" * 10_000,
        "not ascii": text[:-1] + "ß",
        "empty": "",
    }


@pytest.mark.parametrize("fault", spoil("psk_a_b"))
async def test_a_wrong_key_is_refused_the_same_way_whatever_is_wrong(desk, fault):
    text, _ = await desk.issue()
    with pytest.raises(InvalidApiKey) as refusal:
        await desk.check(spoil(text)[fault])
    assert refusal.value.code == "invalid_api_key"
    assert refusal.value.headers == {"WWW-Authenticate": "Bearer"}
    assert text not in str(refusal.value.body())


async def test_invented_keys_never_reach_the_store(desk):
    for number in range(200):
        with pytest.raises(InvalidApiKey):
            await desk.check(f"psk_{number:018}_{'0' * 38}")
    assert desk.questions == []


async def test_a_guessed_secret_of_a_known_key_costs_one_question(desk):
    text, _ = await desk.issue()
    for number in range(100):
        with pytest.raises(InvalidApiKey):
            await desk.check(f"{text[:-4]}{number:04}")
    assert len(desk.questions) == 1


async def test_a_key_that_is_gone_costs_one_question(desk):
    public_id, secret = api_keys.make(SECRET)
    for _ in range(50):
        with pytest.raises(InvalidApiKey):
            await desk.check(f"psk_{public_id}_{secret}")
    assert len(desk.questions) == 1


async def test_many_requests_at_once_ask_once(desk):
    text, key = await desk.issue()
    assert await asyncio.gather(*(desk.check(text) for _ in range(50))) == [key] * 50
    assert len(desk.questions) == 1


async def test_one_caller_that_goes_away_does_not_spoil_it_for_the_others(desk):
    text, key = await desk.issue()
    checks = [asyncio.create_task(desk.check(text)) for _ in range(3)]
    await asyncio.sleep(0)
    checks[0].cancel()
    assert (await asyncio.gather(*checks, return_exceptions=True))[1:] == [key, key]


async def test_a_revoked_key_ends_within_a_second(desk):
    text, key = await desk.issue()
    await desk.check(text)
    assert await desk.database.write(key_rows.revoke, key.public_id, desk.now)
    desk.now += KNOWN_SECONDS
    with pytest.raises(RevokedApiKey) as refusal:
        await desk.check(text)
    assert refusal.value.code == "revoked_api_key"
    assert KNOWN_SECONDS < 1


class Late(SqliteDatabase):
    """Has read, but does not answer yet."""

    has_read: asyncio.Event
    answers: asyncio.Event

    async def read(self, function: Any, *args: Any, **options: Any) -> Any:
        result = await super().read(function, *args, **options)
        self.has_read.set()
        await self.answers.wait()
        return result


@pytest.fixture
async def late(tmp_path: Path) -> AsyncGenerator[Desk]:
    database = Late(tmp_path / "late.db")
    metadata.create_all(database.engine)
    database.has_read, database.answers = asyncio.Event(), asyncio.Event()
    yield Desk(database)
    await database.close()


async def test_what_was_asked_before_a_change_is_not_believed_after_it(late):
    text, key = await late.issue()
    before = asyncio.create_task(late.check(text))
    await late.database.has_read.wait()
    await late.database.write(key_rows.revoke, key.public_id, late.now)
    late.keyring.forget()
    after = asyncio.create_task(late.check(text))
    await asyncio.sleep(0)
    late.database.answers.set()
    assert await before == key, "it came before the change"
    with pytest.raises(RevokedApiKey):
        await after
    with pytest.raises(RevokedApiKey):
        await late.check(text)


@pytest.mark.parametrize("ticks", range(6))
async def test_a_change_in_the_very_moment_of_an_answer_spoils_nothing(late, ticks):
    """At each step between the store's answer and the caller's."""
    text, key = await late.issue()
    asking = asyncio.create_task(late.check(text))
    await late.database.has_read.wait()
    late.database.answers.set()
    for _ in range(ticks):
        await asyncio.sleep(0)
    late.keyring.forget()
    assert await asking == key
    assert await late.check(text) == key


async def test_a_key_expires_to_the_second_though_it_is_remembered(desk):
    text, _ = await desk.issue(expires_at=1_000.5)
    await desk.check(text)
    desk.now = 1_000.5
    with pytest.raises(ExpiredApiKey):
        await desk.check(text)


async def test_a_wrong_secret_learns_nothing_of_a_revoked_key(desk):
    text, key = await desk.issue()
    await desk.database.write(key_rows.revoke, key.public_id, desk.now)
    with pytest.raises(InvalidApiKey) as refusal:
        await desk.check(text[:-1] + ("0" if text[-1] != "0" else "1"))
    assert refusal.value.code == "invalid_api_key"


async def test_an_outage_of_the_store_is_no_wrong_key_and_no_free_pass(desk):
    text, key = await desk.issue()
    await desk.database.write(lambda connection: connection.exec_driver_sql("ALTER TABLE keys RENAME TO lost"))
    with pytest.raises(StoreUnavailable):
        await desk.check(text)
    await desk.database.write(lambda connection: connection.exec_driver_sql("ALTER TABLE lost RENAME TO keys"))
    assert await desk.check(text) == key  # the outage is not remembered


async def test_a_key_of_another_installation_is_unknown_here(desk):
    public_id, secret = api_keys.make(b"another installation")
    with pytest.raises(InvalidApiKey):
        await desk.check(f"psk_{public_id}_{secret}")
    assert desk.questions == []


# -- keys themselves


@given(some.binary(min_size=1, max_size=32))
def test_a_made_key_is_read_back_only_by_who_made_it(signing_secret):
    public_id, secret = api_keys.make(signing_secret)
    text = f"psk_{public_id}_{secret}"
    assert api_keys.parse(text, signing_secret) == (public_id, secret)
    assert api_keys.parse(text, signing_secret + b"x") is None


@given(some.text())
def test_reading_a_key_never_fails(text):
    assert api_keys.parse(text, SECRET) is None
    assert api_keys.parse(f"psk_{text}_{text}", SECRET) is None


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ((), {"generate", "chat", "read"}),
        (("generate",), {"generate", "read"}),
        (("read",), {"read"}),
        (("chat",), {"chat"}),
        (("chat", "generate"), {"generate", "chat", "read"}),
    ],
)
def test_scopes_allow_what_they_say(scopes, allowed):
    granted = frozenset(Scope(name) for name in scopes)
    key = ApiKey(public_id="p", account_id="a", account="a", name="n", secret_hash=b"", lineage="p", scopes=granted)
    assert {scope.value for scope in Scope if key.allows(scope)} == allowed
