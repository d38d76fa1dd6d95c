"""Servers that share one budget are killed and stopped while it is spent: never too much, and nothing twice."""

from pathlib import Path

import pytest
from money_ordeal import MoneyOrdeal, Plan


@pytest.mark.timeout(900)
@pytest.mark.long
@pytest.mark.parametrize("form", ["both", "tag"])
async def test_killed_and_stopped_while_a_crowd_spends_one_budget(tmp_path: Path, form: str):
    plan = Plan(form=form, servers=2, clients=10, jobs=6, kills=1, gap=0.3, stops=1, price="30", after=0.5, seed=7)
    report = await MoneyOrdeal(tmp_path, plan).run()
    assert report.wrong == [], report.figures
