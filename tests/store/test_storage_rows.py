"""What accounts keep, counted in a store of either kind."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from sqlalchemy import insert

from penstock.domain.files import StoredFile
from penstock.errors import StorageQuotaExceeded
from penstock.store.queries.files import asset_rows, file_rows, storage_rows
from penstock.store.tables import assets

NOW = 1_700_000_000.0


def make_file(number: int, size: int = 10, content: int | None = None, account: str = "acct_a") -> StoredFile:
    return StoredFile(
        token=f"file_{number}",
        account_id=account,
        sha256=f"{number if content is None else content:064x}",
        bytes=size,
        content_type="image/png",
        width=1,
        height=1,
        created_at=NOW,
        expires_at=None,
    )


async def test_uploads_that_race_do_not_pass_the_quota(database):
    async def add(number: int) -> bool:
        try:
            await database.write(file_rows.add, make_file(number), 55)
        except StorageQuotaExceeded:
            return False
        return True

    added = await asyncio.gather(*(add(number) for number in range(20)))
    assert sum(added) == 5
    assert (await database.read(storage_rows.get, "acct_a")).bytes == 50
    assert await database.read(storage_rows.find_drift) == []


async def test_an_own_quota_comes_before_that_of_the_settings(database):
    await database.write(storage_rows.set_quota, "acct_a", 15)
    await database.write(file_rows.add, make_file(1), 5)
    with pytest.raises(StorageQuotaExceeded) as refused:
        await database.write(file_rows.add, make_file(2), None)
    assert "15" in refused.value.message
    await database.write(file_rows.add, make_file(3, account="acct_b"), None)
    await database.write(storage_rows.set_quota, "acct_a", None)
    await database.write(file_rows.add, make_file(2), None)
    with pytest.raises(StorageQuotaExceeded):
        await database.read(storage_rows.refuse_full, "acct_a", 20)
    await database.read(storage_rows.refuse_full, "acct_a", 21)


async def test_what_is_not_counted_is_found(database):
    await database.write(file_rows.add, make_file(1), None)

    def add_uncounted(connection) -> None:
        row = {"id": "asset_1", "account_id": "acct_b", "job_id": "job_1", "filename": "x", "content_type": "x/y"}
        connection.execute(insert(assets), row | {"bytes": 7, "sha256": "00"})

    await database.write(add_uncounted)
    assert await database.read(storage_rows.find_drift) == ["acct_b"]
    await database.write(storage_rows.recount, "acct_b")
    assert (await database.read(storage_rows.get, "acct_b")).assets == 7
    assert await database.read(storage_rows.find_drift) == []
    for _ in range(2):  # the second time there is nothing to free
        await database.write(asset_rows.mark_swept, "job_1")
    assert (await database.read(storage_rows.get, "acct_b")).bytes == 0


STEPS = some.lists(some.tuples(some.booleans(), some.integers(0, 5), some.integers(0, 3)), max_size=25)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(STEPS)
def test_content_counts_once_however_many_rows_hold_it(connection, steps):
    account = f"acct_{abs(hash(tuple(steps)))}"
    kept: dict[int, int] = {}
    for number, (adds, place, content) in enumerate(steps):
        if adds:
            file = make_file(number, content + 1, content, account)
            file_rows.add(connection, file, None)
            kept[number] = content
        elif kept:
            chosen = sorted(kept)[place % len(kept)]
            file = make_file(chosen, kept[chosen] + 1, kept.pop(chosen), account)
            file_rows.remove(connection, file, lambda _: None)
        wanted = sum(content + 1 for content in set(kept.values()))
        assert storage_rows.get(connection, account).bytes == wanted
    for chosen, content in kept.items():
        file_rows.remove(connection, make_file(chosen, content + 1, content, account), lambda _: None)
    assert storage_rows.get(connection, account).bytes == 0
