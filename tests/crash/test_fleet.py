"""Machines that share a PostgreSQL are struck while jobs run, and it too: nothing is lost, doubled or left untold."""

from pathlib import Path

import pytest
from fleet_ordeal import FleetOrdeal, Plan


@pytest.mark.timeout(300)
async def test_struck_anywhere_many_machines_lose_nothing(tmp_path: Path):
    plan = Plan(gateways=2, workers=2, jobs=60, strikes=3, bounces=1, seconds=8, watched=0.4, seed=11)
    report = await FleetOrdeal(tmp_path, plan).run()
    assert report.wrong == [], report.figures
