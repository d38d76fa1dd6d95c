"""The reference of health, readiness and metrics. `HealthChecks` answers them, in front of FastAPI."""

from typing import Any

from fastapi import APIRouter

from penstock.errors import InvalidApiKey, MissingApiKey
from penstock.web import health
from penstock.web.auth import ALWAYS
from penstock.web.responses import problems, success

router = APIRouter(tags=["Operations"])

METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **problems(MissingApiKey, InvalidApiKey, *ALWAYS),
}
READY: dict[int | str, dict[str, Any]] = {200: success("Ready.", "Readiness"), 503: success("Not ready.", "Readiness")}
for path, answer in (("/healthz", health.health), ("/readyz", health.readiness)):
    router.head(path, include_in_schema=False)(answer)
router.get("/healthz", responses={200: success("Alive.", "Health")})(health.health)
router.get("/readyz", responses=READY)(health.readiness)
router.get("/metrics", responses=METRICS)(health.read_metrics)
