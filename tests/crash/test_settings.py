"""Settings that change under load, on a small scale and at length."""

import pytest
from settings_ordeal import describe, run


def check(changes: int) -> None:
    found = describe(run(3, 2, changes, seed=1))
    assert found["problems"] == []
    assert found["failed"] == 0
    assert found["requests"] > 0
    assert found["changes"] == changes


@pytest.mark.long
def test_some_changes_under_load():
    check(6)


@pytest.mark.long
def test_many_changes_under_load():
    check(200)
