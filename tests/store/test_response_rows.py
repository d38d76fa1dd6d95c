"""Kept responses in the store: bounded per account, continued, ended with their process, and swept."""

from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, func, select, update
from store.sample_jobs import NOW
from store.trials import set_store_clock

from penstock.domain.kept import responses as bounds
from penstock.domain.kept.responses import LEASE_SECONDS, KeptResponse, ResponseStatus
from penstock.errors import ConcurrencyLimited, ResponseNotFound
from penstock.store.database import RUNG
from penstock.store.queries.chat import response_rows
from penstock.store.queries.chat.response_rows import RunLease
from penstock.store.signals import background
from penstock.store.tables import response_items, responses

DAY = 86_400.0
QUOTA = 1 << 20
MINE = "acct_mine"


def make(name: str, *, at: float = NOW, size: int = 0, previous: str | None = None, **fields: Any) -> KeptResponse:
    status = fields.setdefault("status", ResponseStatus.COMPLETED)
    output = [{"type": "message", "id": f"msg_{name}", "content": []}]
    body = {"id": name, "status": status.value, "error": None, "output": output}
    given = {"account_id": MINE, "created_at": at, "expires_at": at + 30 * DAY, "model": "m", "is_background": False}
    record = {**given, "id": name, "previous_id": previous, "body": msgspec.json.encode(body), **fields}
    return KeptResponse(**{"input": b'"' + b"x" * size + b'"', **record})


def keep(connection: Connection, name: str, quota: int = QUOTA, **fields: Any) -> KeptResponse:
    made = make(name, **fields)
    response_rows.add(connection, made, [f"msg_{name}"], quota)
    return made


def begin(connection: Connection, name: str, owner: str = "process_1", **fields: Any) -> KeptResponse:
    made = make(name, status=ResponseStatus.QUEUED, is_background=True, **fields)
    set_store_clock(connection, NOW)
    response_rows.add(connection, made, [], QUOTA, RunLease(owner, NOW))
    return made


def kept(connection: Connection, account_id: str = MINE) -> list[str]:
    rows = connection.execute(select(responses.c.id).where(responses.c.account_id == account_id))
    return sorted(row.id for row in rows)


def find(connection: Connection, name: str, now: float = NOW, account_id: str = MINE) -> KeptResponse | None:
    return response_rows.find(connection, account_id, name, now)


def chain_of(connection: Connection, name: str, now: float = NOW) -> list[str]:
    return [link.id for link in response_rows.chain(connection, MINE, name, now)]


def test_a_response_is_found_by_its_account_only(connection):
    made = keep(connection, "resp_a")
    assert find(connection, "resp_a") == made
    assert find(connection, "resp_a", account_id="acct_other") is None
    keep(connection, "resp_a", account_id="acct_other", model="other")
    assert find(connection, "resp_a") == made


def test_an_id_that_comes_again_replaces_the_response(connection):
    keep(connection, "resp_a", model="first")
    again = keep(connection, "resp_a", model="second")
    assert find(connection, "resp_a") == again
    assert connection.execute(select(func.count()).select_from(response_items)).scalar_one() == 1


def test_a_response_is_gone_after_its_retention_even_before_the_sweep(connection):
    keep(connection, "resp_a")
    assert find(connection, "resp_a", NOW + 30 * DAY - 1) is not None
    assert find(connection, "resp_a", NOW + 30 * DAY) is None
    assert chain_of(connection, "resp_a", NOW + 30 * DAY) == []


def test_the_sweep_removes_what_has_expired_with_its_items_in_batches(connection):
    for number in range(3):
        keep(connection, f"resp_{number}", at=NOW + number)
    keep(connection, "resp_later", at=NOW + DAY)
    keep(connection, "resp_other", account_id="acct_other", at=NOW + 1)
    late = NOW + 30 * DAY + 10
    assert response_rows.remove_expired(connection, late, 2) == 2
    assert response_rows.remove_expired(connection, late, 10) == 2
    assert response_rows.remove_expired(connection, late, 10) == 0
    assert kept(connection) == ["resp_later"]
    assert connection.execute(select(response_items.c.id)).scalars().all() == ["msg_resp_later"]


# -- bounds


def test_the_oldest_of_the_account_make_room_by_bytes(connection):
    for number in range(4):
        keep(connection, f"resp_{number}", at=NOW + number, size=1000, quota=4500)
    assert kept(connection) == ["resp_0", "resp_1", "resp_2", "resp_3"]
    keep(connection, "resp_4", at=NOW + 4, size=2000, quota=4500)
    assert kept(connection) == ["resp_2", "resp_3", "resp_4"]
    keep(connection, "resp_x", account_id="acct_other", size=4000, quota=4500)
    assert kept(connection) == ["resp_2", "resp_3", "resp_4"]


def test_the_oldest_of_the_account_make_room_by_number(connection, monkeypatch):
    monkeypatch.setattr(response_rows, "MAX_RESPONSES", 3)
    for number in range(5):
        keep(connection, f"resp_{number}", at=NOW + number)
    assert kept(connection) == ["resp_2", "resp_3", "resp_4"]


def test_one_that_runs_does_not_make_room(connection):
    begin(connection, "resp_run", at=NOW - 10)
    keep(connection, "resp_0", size=1000, quota=2000)
    keep(connection, "resp_1", size=1000, quota=2000)
    assert kept(connection) == ["resp_1", "resp_run"]


def test_an_account_runs_a_bounded_number_in_the_background(connection):
    for number in range(bounds.MAX_RUNNING):
        begin(connection, f"resp_{number}")
    with pytest.raises(ConcurrencyLimited, match="background"):
        begin(connection, "resp_more")
    begin(connection, "resp_more", account_id="acct_other")
    response_rows.cancel(connection, MINE, "resp_0", NOW)
    begin(connection, "resp_more")


# -- conversations


def test_a_chain_goes_from_the_newest_to_the_first(connection):
    keep(connection, "resp_a")
    keep(connection, "resp_b", previous="resp_a")
    keep(connection, "resp_c", previous="resp_b")
    keep(connection, "resp_branch", previous="resp_a")
    assert chain_of(connection, "resp_c") == ["resp_c", "resp_b", "resp_a"]
    assert chain_of(connection, "resp_branch") == ["resp_branch", "resp_a"]
    turns = response_rows.turns(connection, MINE, ["resp_a", "resp_c"])
    assert [msgspec.json.decode(turn.body)["id"] for turn in turns] == ["resp_a", "resp_c"]


def test_a_chain_does_not_lead_into_another_account(connection):
    keep(connection, "resp_a", account_id="acct_other")
    keep(connection, "resp_b", previous="resp_a")
    assert chain_of(connection, "resp_b") == ["resp_b"]


def test_a_chain_that_leads_back_to_itself_ends(connection, monkeypatch):
    monkeypatch.setattr(response_rows, "MAX_CHAIN_RESPONSES", 5)
    keep(connection, "resp_a", previous="resp_b")
    keep(connection, "resp_b", previous="resp_a")
    assert len(chain_of(connection, "resp_b")) == 6


def test_continued_responses_are_kept_as_long_as_those_that_continue_them(connection):
    keep(connection, "resp_a")
    keep(connection, "resp_b", previous="resp_a", at=NOW + 20 * DAY)
    keep(connection, "resp_c", previous="resp_b", at=NOW + 40 * DAY)
    assert chain_of(connection, "resp_c", NOW + 70 * DAY - 1) == ["resp_c", "resp_b", "resp_a"]
    assert find(connection, "resp_a", NOW + 74 * DAY) is None


def test_a_conversation_rewrites_its_turns_only_now_and_then(connection):
    keep(connection, "resp_0")
    ends = set()
    for turn in range(1, 30):
        keep(connection, f"resp_{turn}", previous=f"resp_{turn - 1}", at=NOW + turn * 3600)
        found = find(connection, "resp_0")
        assert found is not None
        ends.add(found.expires_at)
    assert len(ends) == 1


def test_responses_are_found_by_their_output_items(connection):
    made = keep(connection, "resp_a")
    keep(connection, "resp_b")
    assert response_rows.bodies_with(connection, MINE, ["msg_resp_a", "msg_x"], NOW) == [made.body]
    assert response_rows.bodies_with(connection, "acct_other", ["msg_resp_a"], NOW) == []
    response_rows.remove(connection, MINE, "resp_a", NOW)
    assert response_rows.bodies_with(connection, MINE, ["msg_resp_a"], NOW) == []


# -- in the background


def test_a_background_response_runs_and_ends_in_its_process(connection):
    begin(connection, "resp_a")
    assert response_rows.start(connection, MINE, "resp_a", "process_1")
    found = find(connection, "resp_a")
    assert found is not None
    assert found.status is ResponseStatus.IN_PROGRESS
    assert msgspec.json.decode(found.body)["status"] == "in_progress"
    ended = make("resp_a", model="m", is_background=True)
    assert not response_rows.finish(connection, ended, ["msg_resp_a"], "process_2")
    assert response_rows.finish(connection, ended, ["msg_resp_a"], "process_1")
    found = find(connection, "resp_a")
    assert found is not None
    assert (found.status, found.body) == (ResponseStatus.COMPLETED, ended.body)
    assert response_rows.bodies_with(connection, MINE, ["msg_resp_a"], NOW) == [ended.body]
    assert not response_rows.finish(connection, ended, [], "process_1")


def test_a_response_whose_process_died_fails_and_stays_failed(connection):
    begin(connection, "resp_dead", "process_dead")
    begin(connection, "resp_alive", "process_alive")
    later = NOW + LEASE_SECONDS + 1
    set_store_clock(connection, later)
    response_rows.renew(connection, RunLease("process_alive", later), ["resp_alive"])
    assert response_rows.end_lost(connection, NOW + LEASE_SECONDS - 1, 100) == 0
    assert response_rows.end_lost(connection, later, 100) == 1
    dead, alive = find(connection, "resp_dead"), find(connection, "resp_alive")
    assert dead is not None
    assert alive is not None
    assert (dead.status, alive.status) == (ResponseStatus.FAILED, ResponseStatus.QUEUED)
    assert msgspec.json.decode(dead.body)["error"]["code"] == "server_error"
    assert not response_rows.finish(connection, make("resp_dead"), [], "process_dead")
    assert response_rows.end_lost(connection, later, 100) == 0


def test_a_process_whose_clock_is_slow_keeps_its_responses(connection):
    begin(connection, "resp_a")
    slow, later = NOW - 10 * LEASE_SECONDS, NOW + LEASE_SECONDS + 1
    if connection.dialect.name == "sqlite":
        slow = later  # one machine, one clock
    set_store_clock(connection, later)
    response_rows.renew(connection, RunLease("process_1", slow), ["resp_a"])
    assert response_rows.end_lost(connection, later + 1, 100) == 0


def test_a_process_keeps_alive_only_what_it_still_runs(connection):
    begin(connection, "resp_run")
    begin(connection, "resp_left")
    later = NOW + LEASE_SECONDS + 1
    set_store_clock(connection, later)
    renewed = response_rows.renew(connection, RunLease("process_1", later), ["resp_run"])
    assert renewed == {(MINE, "resp_run")}
    assert response_rows.end_lost(connection, later, 100) == 1
    found = find(connection, "resp_left")
    assert found is not None
    assert found.status is ResponseStatus.FAILED


def test_a_process_that_stops_ends_its_own(connection):
    begin(connection, "resp_a")
    begin(connection, "resp_b", "process_2")
    assert response_rows.end_owned(connection, "process_1") == 1
    statuses = [found.status.value for name in ("resp_a", "resp_b") if (found := find(connection, name))]
    assert statuses == ["failed", "queued"]


def test_cancelling_wakes_the_process_that_runs_it_and_can_be_repeated(connection):
    begin(connection, "resp_a")
    connection.info[RUNG].clear()
    assert response_rows.cancel(connection, MINE, "resp_a", NOW).status is ResponseStatus.CANCELLED
    assert connection.info[RUNG] == {background("process_1")}
    assert response_rows.cancel(connection, MINE, "resp_a", NOW).status is ResponseStatus.CANCELLED
    assert not response_rows.start(connection, MINE, "resp_a", "process_1")
    assert response_rows.renew(connection, RunLease("process_1", NOW + 40), ["resp_a"]) == set()
    with pytest.raises(ResponseNotFound):
        response_rows.cancel(connection, "acct_other", "resp_a", NOW)


def test_deleting_one_that_runs_wakes_its_process(connection):
    begin(connection, "resp_a")
    connection.info[RUNG].clear()
    with pytest.raises(ResponseNotFound):
        response_rows.remove(connection, "acct_other", "resp_a", NOW)
    response_rows.remove(connection, MINE, "resp_a", NOW)
    assert connection.info[RUNG] == {background("process_1")}
    assert response_rows.renew(connection, RunLease("process_1", NOW + 40), ["resp_a"]) == set()
    with pytest.raises(ResponseNotFound):
        response_rows.remove(connection, MINE, "resp_a", NOW)


def test_a_lease_by_a_clock_that_was_days_ahead_is_over(connection):
    begin(connection, "resp_a")
    connection.execute(update(responses).values(lease_until=NOW + 3 * DAY))
    assert response_rows.end_lost(connection, NOW, 100) == 1
    found = find(connection, "resp_a")
    assert found is not None
    assert found.status is ResponseStatus.FAILED
