"""Machines that share a PostgreSQL are struck while jobs run, and it too: nothing is lost, doubled or left untold."""

from pathlib import Path

import pytest
from fleet_ordeal import FleetOrdeal, Plan


@pytest.mark.timeout(900)
async def test_struck_anywhere_many_machines_lose_nothing(tmp_path: Path):
    """A worker is killed, one is frozen for longer than its lease, and the store restarts."""
    await survive(tmp_path, Plan(gateways=1, workers=2, jobs=24, strikes=2, bounces=1, seconds=4, watched=0.4, seed=11))


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_struck_in_every_way_many_machines_lose_nothing(tmp_path: Path):
    plan = Plan(gateways=2, workers=2, jobs=120, strikes=8, bounces=3, seconds=24, watched=0.4, seed=12)
    await survive(tmp_path, plan)


async def survive(folder: Path, plan: Plan) -> None:
    report = await FleetOrdeal(folder, plan).run()
    assert report.wrong == [], report.figures
