"""Callers that send pipelines, and the rules of their ends."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from simulation.store import SharedStore
from simulation.world import World

from penstock.store.queries.jobs import event_rows

if TYPE_CHECKING:
    from simulation.callers import Caller

RUN_SECONDS: Final = 60.0
SCRIPTS: Final[Sequence[tuple[dict[str, Any], float]]] = (
    ({}, 0.6),
    ({"latency": 5}, 0.1),
    ({"submission": "reply_lost"}, 0.06),
    ({"submission": "never_arrived", "submission_times": 2}, 0.06),
    ({"submission": "busy", "submission_times": 3}, 0.06),
    ({"submission": "rejected"}, 0.03),
    ({"ending": "failed"}, 0.06),
    ({"ending": "never"}, 0.03),
)


async def send_chains(caller: "Caller", chains: int, seconds: float) -> None:
    """Send so many pipelines, about evenly over the time, and cancel some."""
    sent = []
    for number in range(chains):
        acting = caller.acting(f"chain {caller.account}#{number}")
        await asyncio.sleep(acting.dice.random() * 2 * seconds / chains)
        sent.append(asyncio.create_task(_send(acting, f"chain-{caller.account}-{number}")))
    await asyncio.gather(*sent)


async def _send(caller: "Caller", key: str) -> None:
    body = {
        "steps": [
            _step(caller, "first", {}),
            _step(caller, "second", {"file": {"step": "first", "output": "preview"}}),
            _step(caller, "beside", {"file": {"step": "first", "output": "preview"}}),
            _step(caller, "last", {"file": {"step": "second", "output": "preview"}}),
        ],
        "on_error": caller.dice.choice(("stop", "continue")),
        "client_ref": key,
        "run_timeout": RUN_SECONDS,
    }
    for _ in range(60):
        answer = await caller.ask("POST", "/api/v1/pipelines", body, **{"idempotency-key": key})
        if answer is not None and answer.status in (200, 202):
            caller.world.counts["pipelines accepted"] += 1
            await _follow(caller, answer.json["id"])
            return
        if answer is not None and answer.status in (402, 429):
            return
        await asyncio.sleep(caller.dice.uniform(0.2, 3.0))


def _step(caller: "Caller", name: str, params: dict[str, Any]) -> dict[str, Any]:
    script = {"latency": round(caller.dice.uniform(0.2, 2.0), 2), **caller.draw(SCRIPTS)}
    return {"name": name, "model": "sim_image_to_model", "params": {**params, "script": script}}


async def _follow(caller: "Caller", pipeline_id: str) -> None:
    await asyncio.sleep(caller.dice.uniform(0.0, 8.0))
    if caller.dice.random() < 0.2:
        await caller.ask("POST", f"/api/v1/pipelines/{pipeline_id}/cancel")
    else:
        answer = await caller.ask("GET", f"/api/v1/pipelines/{pipeline_id}?wait=20")
        if answer is not None and answer.status == 404:
            caller.world.violate("an accepted pipeline is never lost", pipeline_id)


def check_chains(world: World, store: SharedStore) -> None:
    """Check that every pipeline has ended, once, and agrees with its jobs."""
    refs: set[str] = set()
    for pipeline_id, removed, document in store.ask("SELECT id, removed, document FROM pipelines"):
        pipeline = event_rows.decode_pipeline(bytes(document))
        if not pipeline.done:
            world.violate("every pipeline ends", f"{pipeline_id} is {pipeline.state}")
        found = ((job_id, store.ask("SELECT document FROM jobs WHERE id = %s", job_id)) for job_id in pipeline.job_ids)
        jobs = {job_id: event_rows.decode_job(bytes(rows[0][0])) for job_id, rows in found}
        if pipeline.states != {job_id: job.state for job_id, job in jobs.items()}:
            world.violate("a pipeline agrees with its jobs", f"{pipeline_id}: {pipeline.states}")
        if None not in [job.final for job in jobs.values()] and pipeline.final != sum(
            job.final or 0 for job in jobs.values()
        ):
            world.violate("a pipeline costs what its jobs do", f"{pipeline_id}: {pipeline.final}")
        if removed is None and pipeline.client_ref in refs:
            world.violate("one request makes one pipeline", f"{pipeline.client_ref}")
        refs.add(pipeline.client_ref or pipeline_id)
    for (child_id,) in store.ask("SELECT child_id FROM lineage WHERE is_open = 1"):
        world.violate("inputs are free once their job is done", child_id)
