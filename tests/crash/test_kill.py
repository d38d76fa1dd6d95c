"""kill -9 at random moments: nothing is lost, doubled or left out."""

from pathlib import Path

import pytest
from ordeal import SCRIPTS, Ordeal


@pytest.mark.timeout(900)
async def test_killed_again_and_again_every_job_ends_as_scripted(tmp_path: Path):
    await survive(tmp_path, rounds=1, kills=2, seed=2024)


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_killed_many_times_every_job_ends_as_scripted(tmp_path: Path):
    await survive(tmp_path, rounds=2, kills=20, seed=2025)


async def survive(data: Path, rounds: int, kills: int, seed: int) -> None:
    """Let every script be played so many times, while the server is killed so often."""
    ordeal = Ordeal(data, jobs=rounds * len(SCRIPTS), kills=kills, seed=seed)
    report = await ordeal.run()
    assert report.wrong_endings == []
    assert (report.lost, report.duplicates, report.stream_gaps, report.feed_gaps) == (0, 0, 0, 0)
    rejected = sum(script.get("submission") == "rejected" for script, _, _ in SCRIPTS)
    assert report.orders == report.jobs - rounds * rejected


@pytest.mark.timeout(900)
async def test_when_the_server_that_runs_the_jobs_is_killed_another_goes_on(tmp_path: Path):
    await survive_by_another(tmp_path, jobs=len(SCRIPTS) // 2, kills=1, seed=2026)


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_however_often_it_is_killed_another_goes_on(tmp_path: Path):
    await survive_by_another(tmp_path, jobs=2 * len(SCRIPTS), kills=8, seed=2027)


async def survive_by_another(data: Path, jobs: int, kills: int, seed: int) -> None:
    """Let two servers share the jobs, of which the one that runs them is killed so often."""
    report = await Ordeal(data, jobs=jobs, kills=kills, seed=seed, servers=2).run()
    assert report.wrong_endings == []
    assert (report.lost, report.duplicates, report.stream_gaps, report.feed_gaps) == (0, 0, 0, 0)
    assert report.takeovers == report.kills, "the one that was there already, not the one that comes back"
