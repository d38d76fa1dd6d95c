"""Share links in the store: found by the hash of their token, bounded, revoked and swept."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from sqlalchemy import Connection, func, insert, select, update
from store.sample_jobs import NOW, make_asset, make_job
from store.trials import undone

from penstock.domain.ids import new_id
from penstock.domain.jobs import Job, State
from penstock.domain.sharing.links import MAX_LIVE_LINKS, REVOKED_RETENTION_SECONDS, ShareLink
from penstock.errors import Gone, JobDeleted, JobNotFound, JobNotShareable, ShareNotFound, TooManyShares
from penstock.store.database import RUNG
from penstock.store.queries.files import share_rows
from penstock.store.queries.jobs import job_rows
from penstock.store.tables import accounts, jobs, shares

HOUR = 3600.0


def keep(connection: Connection, **fields: Any) -> Job:
    """A job that has succeeded, in an account that is open."""
    connection.info[RUNG] = set()
    job = make_job(**{"state": State.SUCCEEDED, "outputs": (make_asset(),), **fields})
    known = select(func.count()).where(accounts.c.id == job.account_id)
    if not connection.execute(known).scalar_one():
        connection.execute(insert(accounts), {"id": job.account_id, "name": job.account_id, "created_at": NOW})
    job_rows.write_all(connection, [job], NOW)
    return job


def link_to(job: Job, life: float = HOUR, **fields: Any) -> ShareLink:
    given = {"account_id": job.account_id, "include_input": False, "created_at": NOW, "expires_at": NOW + life}
    return ShareLink(**{"id": new_id("share"), "job_id": job.id, **given, **fields})


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(shares)).scalar_one()


def is_open(connection: Connection, token_hash: str, now: float = NOW) -> bool:
    try:
        share_rows.open_link(connection, token_hash, now)
    except ShareNotFound:
        return False
    return True


def test_a_link_is_found_by_the_hash_of_its_token_only(connection):
    job = keep(connection)
    link = share_rows.add(connection, link_to(job, include_input=True), "hash")
    found, its_job = share_rows.open_link(connection, "hash", NOW)
    assert (found, its_job.id) == (link, job.id)
    assert found.include_input is True
    assert not is_open(connection, "other")
    assert not is_open(connection, link.id)


def test_a_link_ends_at_its_time_and_no_later_than_its_job(connection):
    job = keep(connection, expires_at=NOW + 100)
    long = share_rows.add(connection, link_to(job), "long")
    short = share_rows.add(connection, link_to(job, life=60), "short")
    assert (long.expires_at, short.expires_at) == (NOW + 100, NOW + 60)
    assert is_open(connection, "short", NOW + 59.9)
    assert not is_open(connection, "short", NOW + 60)
    assert is_open(connection, "long", NOW + 99.9)
    assert not is_open(connection, "long", NOW + 100)
    with pytest.raises(Gone):
        share_rows.add(connection, link_to(job, created_at=NOW + 100), "late")


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.FAILED, State.CANCELED])
def test_only_a_job_with_outputs_can_be_shared(connection, state):
    job = keep(connection, state=state, outputs=())
    with pytest.raises(JobNotShareable):
        share_rows.add(connection, link_to(job), "hash")
    assert count(connection) == 0


def test_another_account_can_neither_share_see_nor_revoke(connection):
    job = keep(connection)
    other = keep(connection, account_id="acct_two")
    with pytest.raises(JobNotFound):
        share_rows.add(connection, link_to(job, account_id="acct_two"), "theft")
    link = share_rows.add(connection, link_to(job), "mine")
    share_rows.add(connection, link_to(other), "theirs")
    assert share_rows.page(connection, "acct_one", None, NOW, None, 10) == [link]
    assert share_rows.page(connection, "acct_two", job.id, NOW, None, 10) == []
    with pytest.raises(ShareNotFound):
        share_rows.revoke(connection, "acct_two", link.id, NOW)
    assert is_open(connection, "mine")


def test_revoking_ends_a_link_at_once_and_can_be_repeated(connection):
    job = keep(connection)
    link = share_rows.add(connection, link_to(job, life=10 * REVOKED_RETENTION_SECONDS), "hash")
    other = share_rows.add(connection, link_to(job), "other")
    share_rows.revoke(connection, "acct_one", link.id, NOW + 1)
    share_rows.revoke(connection, "acct_one", link.id, NOW + 2)
    assert not is_open(connection, "hash", NOW + 1)
    assert is_open(connection, "other", NOW + 1)
    assert share_rows.page(connection, "acct_one", None, NOW + 1, None, 10) == [other]
    with pytest.raises(ShareNotFound):
        share_rows.revoke(connection, "acct_one", "share_unknown", NOW)
    later = NOW + 1 + REVOKED_RETENTION_SECONDS
    assert share_rows.remove_expired(connection, later, 10) == 2
    with pytest.raises(ShareNotFound):
        share_rows.revoke(connection, "acct_one", link.id, later)


def test_links_of_a_deleted_job_end_even_if_older_code_deletes_it(connection):
    job = keep(connection)
    share_rows.add(connection, link_to(job), "hash")
    connection.execute(update(jobs).where(jobs.c.id == job.id).values(removed="deleted"))  # as older code does
    assert not is_open(connection, "hash")
    assert share_rows.page(connection, "acct_one", None, NOW, None, 10) == []
    with pytest.raises(JobDeleted):
        share_rows.add(connection, link_to(job), "late")
    share_rows.remove_of_job(connection, job.id)
    assert count(connection) == 0


def test_links_of_a_closed_account_do_not_work(connection):
    job = keep(connection)
    share_rows.add(connection, link_to(job), "hash")
    connection.execute(update(accounts).values(closed_at=NOW))
    assert not is_open(connection, "hash")
    connection.execute(update(accounts).values(closed_at=None))
    assert is_open(connection, "hash")


def test_an_account_has_a_bounded_number_of_live_links(connection):
    job = keep(connection)
    fields = {"account_id": job.account_id, "job_id": job.id, "include_input": 0, "created_at": NOW}
    rows = [
        {"id": f"share_{n:04}", "token_hash": f"hash {n}", "expires_at": NOW + 60, **fields}
        for n in range(MAX_LIVE_LINKS)
    ]
    connection.execute(insert(shares), rows)
    with pytest.raises(TooManyShares):
        share_rows.add(connection, link_to(job), "one more")
    other = keep(connection, account_id="acct_two")
    share_rows.add(connection, link_to(other), "of another account")
    share_rows.revoke(connection, job.account_id, "share_0000", NOW)
    share_rows.add(connection, link_to(job), "in its place")
    with pytest.raises(TooManyShares):
        share_rows.add(connection, link_to(job), "again one more")
    share_rows.add(connection, link_to(job, created_at=NOW + 60), "after they have expired")


def test_pages_go_through_all_links_newest_first(connection):
    first, second = keep(connection), keep(connection)
    made = [share_rows.add(connection, link_to(job), f"hash {n}") for n, job in enumerate([first, second] * 3)]
    found: list[ShareLink] = []
    before = None
    while page := share_rows.page(connection, "acct_one", None, NOW, before, 4):
        found += page
        before = page[-1].id
    assert found == made[::-1]
    assert share_rows.page(connection, "acct_one", second.id, NOW, None, 10) == made[1::2][::-1]


STEPS = some.lists(
    some.tuples(some.sampled_from(["add", "revoke", "wait", "sweep", "delete"]), some.integers(1, 5)), max_size=25
)


@given(steps=STEPS)
def test_whatever_happens_only_live_links_open(trial, steps):
    """Compare the store with a plain list of what should work."""
    with undone(trial) as connection:
        now, job = NOW, keep(connection)
        links: list[ShareLink] = []
        live: dict[str, float] = {}
        for step, number in steps:
            if step == "add" and job is not None:
                link = share_rows.add(
                    connection, link_to(job, created_at=now, expires_at=now + 60 * number), new_id("h")
                )
                links.append(link)
                live[link.id] = link.expires_at
            elif step == "revoke" and links and links[number % len(links)].id in live:
                share_rows.revoke(connection, "acct_one", links[number % len(links)].id, now)
                del live[links[number % len(links)].id]
            elif step == "wait":
                now += 40 * number
                live = {name: end for name, end in live.items() if end > now}
            elif step == "sweep":
                share_rows.remove_expired(connection, now, 100)
            elif step == "delete" and number == 1 and job is not None:
                share_rows.remove_of_job(connection, job.id)
                job, live = None, {}
            shown = share_rows.page(connection, "acct_one", None, now, None, 100)
            assert {link.id for link in shown} == set(live)
