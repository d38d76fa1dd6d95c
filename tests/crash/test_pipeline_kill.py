"""Processes are killed while pipelines run: nothing is lost, run twice, charged wrongly or left held."""

from pathlib import Path

import pytest
from pipeline_ordeal import PipelineOrdeal


@pytest.mark.timeout(900)
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
async def test_killed_in_the_middle_every_pipeline_ends_as_planned(tmp_path: Path, store: str):
    await survive(tmp_path, store, pipelines=10, kills=2, seconds=3, seed=31)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_killed_many_times_every_pipeline_ends_as_planned(tmp_path: Path, store: str):
    await survive(tmp_path, store, pipelines=100, kills=10, seconds=40, seed=32)


async def survive(folder: Path, store: str, *, pipelines: int, kills: int, seconds: float, seed: int) -> None:
    report = await PipelineOrdeal(folder, store, pipelines, kills, seconds, seed).run()
    assert report.wrong == [], report.figures
