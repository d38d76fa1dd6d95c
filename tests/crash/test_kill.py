"""kill -9 at random moments: nothing is lost, doubled or left out."""

from pathlib import Path

import pytest
from ordeal import SCRIPTS, Ordeal


@pytest.mark.timeout(300)
async def test_killed_again_and_again_every_job_ends_as_scripted(tmp_path: Path):
    await survive(tmp_path, kills=3, seed=2024)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_killed_many_times_every_job_ends_as_scripted(tmp_path: Path):
    await survive(tmp_path, kills=20, seed=2025)


async def survive(data: Path, kills: int, seed: int) -> None:
    ordeal = Ordeal(data, jobs=2 * len(SCRIPTS), kills=kills, seed=seed)
    report = await ordeal.run()
    assert report.wrong_endings == []
    assert (report.lost, report.duplicates, report.stream_gaps, report.feed_gaps) == (0, 0, 0, 0)
    rejected = sum(script.get("submission") == "rejected" for script, _, _ in SCRIPTS)
    assert report.orders == report.jobs - 2 * rejected


@pytest.mark.timeout(300)
async def test_when_the_server_that_runs_the_jobs_is_killed_another_goes_on(tmp_path: Path):
    ordeal = Ordeal(tmp_path, jobs=len(SCRIPTS), kills=2, seed=2026, servers=2)
    report = await ordeal.run()
    assert report.wrong_endings == []
    assert (report.lost, report.duplicates, report.stream_gaps, report.feed_gaps) == (0, 0, 0, 0)
    assert report.takeovers == report.kills, "the one that was there already, not the one that comes back"
    assert max(report.leaderless_seconds) < 40
