"""Works on one claimed job until it is done, whatever goes wrong on our own side: each try resumes from the row."""

import asyncio
import logging
from dataclasses import dataclass

from penstock.domain.jobs import Claim, Job
from penstock.errors import StoreUnavailable
from penstock.jobs.context import HandedOver, RunnerServices
from penstock.jobs.shift import JobRun
from penstock.observability import logs, traces
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.jobs.job_rows import FenceLost
from penstock.store.signals import nudge

MAX_CRASHES = 5

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Runner:
    """`run` is what a dispatch is handed."""

    tools: RunnerServices

    async def run(self, claim: Claim, job: Job, seat: asyncio.Event) -> None:
        """Work until the job is done or someone else has it. Our own trouble is met by starting over from the row."""
        crashes = 0
        known: Job | None = job
        risk = self.tools.quarantine.enter(claim.deaths)
        with (
            logs.bind(job_id=claim.job_id),
            self.tools.database.signals.listen(nudge(claim.job_id)) as subscription,
            traces.job(job, claim.epoch) as span,
        ):
            while True:
                try:
                    current = known or await self.tools.database.read(job_rows.get_claimed, claim)
                    shift = JobRun(
                        self.tools, claim, current, subscription, risk, lost_at=self.tools.steady(), seat=seat
                    )
                    await (shift.give_up() if crashes >= MAX_CRASHES else shift.work())
                except (FenceLost, HandedOver):
                    return
                except StoreUnavailable:
                    log.warning("the store does not answer; the job waits")
                except Exception:
                    crashes += 1
                    log.exception("working on the job failed", extra={"fields": {"times": crashes}})
                else:
                    traces.tell_end(span, shift.job)
                    return
                finally:
                    risk.end_turn()
                known = None
                await asyncio.sleep(1)
