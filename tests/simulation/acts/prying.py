"""Callers that pry: whatever belongs to another account must look as if it did not exist."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from simulation.callers import Caller

HIDDEN: Final = frozenset({401, 404, 429, 503})


async def pry(caller: "Caller") -> None:
    """Ask for a job, its events, its outputs or a file of another account, or try to change them."""
    strangers = [other for other in caller.others if other.account != caller.account and other.promises]
    if not strangers:
        return
    stranger = caller.dice.choice(strangers)
    found = stranger.some_job(caller.dice)
    if found is None:
        return
    job = f"/api/v1/jobs/{found[1]}"
    tries = [("GET", job), ("GET", f"{job}/events"), ("POST", f"{job}/cancel"), ("DELETE", job)]
    tries += [(method, f"/api/v1/files/{token}") for token in stranger.files[-1:] for method in ("GET", "DELETE")]
    method, path = caller.dice.choice(tries)
    answer = await caller.ask(method, path)
    if answer is not None and answer.status not in HIDDEN:
        what = f"{method} {path}: {answer.status} {answer.body[:200]!r}"
        caller.world.violate("nothing of an account is visible to another", what)


async def use_stolen_file(caller: "Caller") -> None:
    """Use another account's file in a request."""
    tokens = [token for other in caller.others if other.account != caller.account for token in other.files[-1:]]
    if not tokens:
        return
    params = {"file": {"file_token": caller.dice.choice(tokens)}}
    body = {"model": "sim_image_to_model", "input": [{"params": params}]}
    answer = await caller.ask("POST", "/model/v1/generation", body)
    if answer is not None and answer.status not in HIDDEN | {402}:
        caller.world.violate("nothing of an account is visible to another", f"its file: {answer.status}")


async def list_all(caller: "Caller") -> None:
    """Read the list of jobs: it has only the caller's own."""
    answer = await caller.ask("GET", "/api/v1/jobs?limit=20")
    if answer is None or answer.status != 200:
        return
    theirs = {
        job_id
        for other in caller.others
        if other.account != caller.account
        for promise in other.promises.values()
        for job_id in promise.job_ids
    }
    for job in answer.json["data"]:
        if job["id"] in theirs:
            caller.world.violate("nothing of an account is visible to another", f"{job['id']} is listed")
