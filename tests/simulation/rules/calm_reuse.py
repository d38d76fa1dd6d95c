"""Exact reuse in a calm world: an equal request gets the kept result and pays nothing; nobody else gets it."""

from typing import Any, Final

from simulation.http_caller import HttpAnswer, HttpCaller
from simulation.rules.visitor import EXPECTED, Visitor

MODEL: Final = "sim_image_to_model"
SEED: Final = 7
RULE: Final = "only an equal request of the account gets a kept result"


async def _order(visitor: Visitor, by: HttpCaller | None = None, **params: Any) -> HttpAnswer:
    given = {"face_limit": 777, "model_seed": SEED, "script": {"latency": 0.3}, **params}
    body = {"model": MODEL, "input": [{"params": given}], "reuse": "exact"}
    answer = await visitor.ask("POST", "/model/v1/generation", body, by)
    if answer.status not in EXPECTED:
        visitor.violate("every answer is expected", f"{answer.status} {answer.body[:300]!r}")
    return answer


async def _spending(visitor: Visitor) -> Any:
    return (await visitor.ask("GET", "/api/v1/usage")).json["total"]


async def check_reuse(visitor: Visitor) -> None:
    """Order again what is there, and what is almost that."""
    ordered = await _order(visitor)
    if ordered.status not in (200, 202):
        return  # the budget is used up
    kept = (await visitor.follow(ordered.json["id"]))["id"]
    before = await _spending(visitor)
    again = await _order(visitor)
    if again.status != 200 or again.json["id"] != kept:
        visitor.violate("an equal request gets the kept result", f"{again.status} {again.body[:200]!r}")
    if await _spending(visitor) != before:
        visitor.violate("a reused result costs nothing", f"{before}, then {await _spending(visitor)}")
    others: tuple[tuple[HttpCaller | None, dict[str, Any]], ...] = (
        (None, {"model_seed": SEED + 1}),
        (None, {"face_limit": 778}),
        (visitor.other, {}),
    )
    for by, params in others:
        answer = await _order(visitor, by, **params)
        if answer.status == 200 and answer.json["id"] == kept:
            visitor.violate(RULE, f"{params or 'a stranger'}: {kept}")
    if (await visitor.ask("DELETE", f"/api/v1/jobs/{kept}")).status != 204:
        visitor.violate("a job that is done can be deleted", kept)
    answer = await _order(visitor)
    if answer.status == 200 and answer.json["id"] == kept:
        visitor.violate("deleted results are not reused", kept)
