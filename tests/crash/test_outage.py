"""PostgreSQL is frozen under two gateways, one of which is killed meanwhile: chat goes on, and the books are right."""

from pathlib import Path

import pytest
from outage_ordeal import OutageOrdeal, Plan


@pytest.mark.timeout(900)
@pytest.mark.long
async def test_a_steady_load_is_served_through_an_outage_and_a_kill(tmp_path: Path):
    plan = Plan(seconds=8, rate=5, warm=4, after=3, kills=1)
    report = await OutageOrdeal(tmp_path, plan).run()
    assert report.wrong == [], report.figures
    assert report.figures["answered while it was away"] > 0.5 * report.figures["due"], report.figures


@pytest.mark.timeout(900)
@pytest.mark.long
async def test_a_small_budget_is_never_passed_by_an_outage_longer_than_the_bound(tmp_path: Path):
    plan = Plan(seconds=10, rate=10, warm=3, after=3, cap="0.45", outage_seconds=5)
    report = await OutageOrdeal(tmp_path, plan).run()
    assert report.wrong == [], report.figures
