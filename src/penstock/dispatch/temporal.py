"""Dispatch by Temporal, which chooses the worker for each job and retries without end.

The row stays the source of truth. A worker claims jobs with their seats, and starts a workflow for each, named by the
job's id. The workflow's one activity takes the job over from the claimant, under the lease of the worker it runs on.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final, NoReturn

from temporalio import activity, workflow
from temporalio.client import Client, RPCError
from temporalio.common import Priority, RetryPolicy, WorkflowIDConflictPolicy
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RetryConfig
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from penstock.dispatch import Run
from penstock.dispatch.postgres import CLAIM_BATCH, LEASE_SECONDS, PostgresDispatch
from penstock.domain.jobs import Claim
from penstock.errors import StoreUnavailable
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.jobs import handover_rows, postgres_claim_rows
from penstock.store.queries.jobs.handover_rows import HeldElsewhere
from penstock.store.queries.jobs.postgres_claim_rows import Claimed
from penstock.store.queries.jobs.worker_rows import HANDING_OVER

WORKFLOW: Final = "job"
ACTIVITY: Final = "run_job"
HEARTBEAT_INTERVAL: Final = timedelta(seconds=1)
HEARTBEAT_TIMEOUT: Final = timedelta(seconds=4)
"""Time without a heartbeat after which Temporal gives the job to another worker."""
ACTIVITY_TIMEOUT: Final = timedelta(days=30)
"""Temporal requires a limit. A job's own deadlines come long before."""
NO_DELAY: Final = timedelta(milliseconds=1)
SHORT_DELAY: Final = timedelta(milliseconds=500)
TAKEOVER_TIMEOUT_SECONDS: Final = 3.0
"""Seconds after which a job that no worker took over is started again: its workflow may have just ended."""
RECONNECT_SECONDS: Final = 1.0
CALL_TIMEOUT_SECONDS: Final = 3.0
MAX_CONCURRENT_CALLS: Final = 20
STOP_TIMEOUT_SECONDS: Final = 12.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TemporalAddress:
    """The address of Temporal, with our namespace and task queue."""

    address: str
    namespace: str = "default"
    queue: str = "penstock"


@workflow.defn(name=WORKFLOW, sandboxed=False)
class JobWorkflow:
    """One activity and nothing else, so that the workflow never needs a new version."""

    @workflow.run
    async def run(self, job_id: str, account_id: str) -> None:
        """Run the job on some worker, and on another one if that fails."""
        await workflow.execute_activity(
            ACTIVITY,
            job_id,
            start_to_close_timeout=ACTIVITY_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=RetryPolicy(initial_interval=SHORT_DELAY, maximum_interval=timedelta(seconds=2)),
            priority=Priority(fairness_key=account_id),
        )


class TemporalDispatch(PostgresDispatch):
    """The dispatch of one worker: it claims jobs, starts their workflows, and runs the jobs that Temporal assigns."""

    def __init__(
        self,
        database: PostgresDatabase,
        seats: Callable[[], Mapping[str, int]],
        max_held: int,
        clock: Callable[[], float],
        place: TemporalAddress,
        lease_seconds: float = LEASE_SECONDS,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(database, seats, max_held, clock, lease_seconds, steady)
        self._place = place
        self._client: Client | None = None
        self._is_away = True
        self._handed: dict[str, float] = {}
        """Jobs that wait to be taken over, with the time of the last start of their workflows."""
        self._has_strays = False
        """True after a failed takeover, which may have been committed nevertheless."""
        self._calls: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(MAX_CONCURRENT_CALLS)
        self._loops: list[asyncio.Task[None]] = []

    async def start(self, run: Run) -> None:
        """Begin to claim jobs, and to run jobs for Temporal as soon as it answers."""
        await super().start(run)
        self._loops = [
            asyncio.create_task(self._work(run), name="temporal"),
            asyncio.create_task(self._start_again(), name="handover"),
        ]

    async def stop(self) -> None:
        """Release the jobs that Temporal runs here, so that it assigns them to other workers. Then stop claiming."""
        for task in (*self._loops, *self._calls):
            task.cancel()
        if self._loops:
            await asyncio.wait(self._loops, timeout=STOP_TIMEOUT_SECONDS)
        await super().stop()

    # -- claiming for others

    @property
    def _claimant(self) -> str:
        return self._lease.owner + HANDING_OVER

    @property
    def _room(self) -> int:
        return self._max_held - len(self._held) - len(self._handed)

    @property
    def _known(self) -> set[str]:
        return self._held.keys() | self._handed.keys()

    async def _ask(self, owner: str, most: int) -> list[Claimed]:
        """Claim jobs. While Temporal is unavailable, claim only those that have to be ended."""
        if await self._is_there():
            return await super()._ask(owner, most)
        return await self._database.write(postgres_claim_rows.claim_ending, owner, CLAIM_BATCH, self._clock())

    def _run_claimed(self, run: Run, claimed: Claimed) -> None:
        if claimed.is_seated:
            self._hand_over(claimed.claim, claimed.job.account_id)
        else:
            self._hold(run, claimed)

    def _hand_over(self, claim: Claim, account_id: str) -> None:
        self._handed[claim.job_id] = self._steady()
        task = asyncio.create_task(self._start_workflow(claim, account_id))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _start_workflow(self, claim: Claim, account_id: str) -> None:
        """Start the workflow of a job. If it exists already, its activity takes the job over."""
        async with self._turn:
            try:
                await self._get_client().start_workflow(
                    WORKFLOW,
                    args=[claim.job_id, account_id],
                    id=claim.job_id,
                    task_queue=self._place.queue,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    request_eager_start=True,
                    priority=Priority(fairness_key=account_id),
                    rpc_timeout=timedelta(seconds=CALL_TIMEOUT_SECONDS),
                )
            except (RPCError, RuntimeError) as error:
                self._is_away = True
                log.warning("Temporal does not answer; jobs wait for it", extra={"fields": {"why": str(error)}})
                await self._give_back(claim)
                self._handed.pop(claim.job_id, None)

    async def _start_again(self) -> None:
        """Start the workflows of claimed jobs again that no worker has taken over for a while."""
        while True:
            await asyncio.sleep(TAKEOVER_TIMEOUT_SECONDS / 3)
            try:
                if self._has_strays:
                    self._has_strays = False
                    await self._database.write(
                        postgres_claim_rows.give_back_all_but, self._lease.owner, set(self._held)
                    )
                left = await self._database.read(handover_rows.list_handed_over, self._claimant)
            except StoreUnavailable:
                continue
            early = self._steady() - TAKEOVER_TIMEOUT_SECONDS
            ids = {claim.job_id for claim, _ in left}
            for job_id in [each for each, at in self._handed.items() if each not in ids and at < early]:
                del self._handed[job_id]
            for claim, account_id in left:
                if self._handed.get(claim.job_id, 0.0) < early and claim.job_id not in self._held:
                    self._hand_over(claim, account_id)

    async def _give_back(self, claim: Claim) -> None:
        with suppress(StoreUnavailable):  # then `_start_again` finds it
            await self._database.write(handover_rows.give_back, claim)

    # -- working for Temporal

    async def _work(self, run: Run) -> None:
        """Connect to Temporal and run jobs for it, with reconnects, until `stop`."""

        @activity.defn(name=ACTIVITY)
        async def run_job(job_id: str) -> None:
            await self._run(run, job_id)

        while True:
            try:
                client = await _connect(self._place)
                worker = self._make_worker(client, run_job)
                self._client, self._is_away = client, False
                await worker.run()
            except Exception as error:  # noqa: BLE001  any failure is retried
                log.warning("the connection to Temporal failed; it is retried", extra={"fields": {"why": str(error)}})
            self._is_away = True
            await asyncio.sleep(RECONNECT_SECONDS)

    def _make_worker(self, client: Client, run_job: Callable[..., Any]) -> Worker:
        return Worker(
            client,
            task_queue=self._place.queue,
            workflows=[JobWorkflow],
            workflow_runner=UnsandboxedWorkflowRunner(),
            activities=[run_job],
            max_concurrent_activities=self._max_held,
            max_cached_workflows=0,  # they are tiny, and a dead worker's cache would delay them
            max_heartbeat_throttle_interval=HEARTBEAT_INTERVAL,
            default_heartbeat_throttle_interval=HEARTBEAT_INTERVAL,
        )

    async def _run(self, run: Run, job_id: str) -> None:
        """Take the job over, and run it while its claim is valid."""
        owner = self._lease.owner
        if not self._lease.is_sure():
            _try_again(SHORT_DELAY)
        claimed = await self._take_over_whole(owner, job_id)
        self._handed.pop(job_id, None)
        if claimed is None:
            return
        if owner != self._lease.owner:
            _try_again(NO_DELAY)
        task = self._hold(run, claimed)
        try:
            while not task.done():
                activity.heartbeat()
                await asyncio.wait((task,), timeout=HEARTBEAT_INTERVAL.total_seconds())
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            await self._give_back(claimed.claim)
            _try_again(NO_DELAY)
        if task.cancelled():
            _try_again(NO_DELAY)

    async def _take_over_whole(self, owner: str, job_id: str) -> Claimed | None:
        """Take the job over. If canceled meanwhile, release it, as nothing else knows of the claim."""
        taking = asyncio.ensure_future(self._take_over(owner, job_id))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            claimed = await taking
            if claimed is not None:
                await self._give_back(claimed.claim)
            _try_again(NO_DELAY)

    async def _take_over(self, owner: str, job_id: str) -> Claimed | None:
        try:
            return await self._database.write(handover_rows.take, owner, job_id, self._seats().keys())
        except HeldElsewhere:
            _try_again(SHORT_DELAY)
        except StoreUnavailable:
            self._has_strays = True
            _try_again(SHORT_DELAY)

    # -- Temporal itself

    def _get_client(self) -> Client:
        if self._client is None:
            raise RuntimeError("not connected yet")
        return self._client

    async def _is_there(self) -> bool:
        if self._client is not None and self._is_away:
            with suppress(RPCError, RuntimeError):
                self._is_away = not await self._client.service_client.check_health(
                    timeout=timedelta(seconds=RECONNECT_SECONDS)
                )
        return not self._is_away


@cache
def _runtime() -> Runtime:
    """Return the runtime of this process, which writes to our log."""
    logging_config = LoggingConfig(TelemetryFilter("WARN", "ERROR"), LogForwardingConfig(log))
    return Runtime(telemetry=TelemetryConfig(logging=logging_config))


async def _connect(place: TemporalAddress) -> Client:
    """Connect. Encryption and keys come from the environment variables of Temporal's own tools."""
    options: dict[str, Any] = dict(ClientConfig.load_client_connect_config(disable_file=True))
    options |= {"target_host": place.address, "namespace": place.namespace}
    return await Client.connect(
        **options,
        runtime=_runtime(),
        retry_config=RetryConfig(max_elapsed_time_millis=int(CALL_TIMEOUT_SECONDS * 1000)),
        connect_timeout=timedelta(seconds=CALL_TIMEOUT_SECONDS),
    )


def _try_again(after: timedelta) -> NoReturn:
    """Ask Temporal to run the activity again after a delay, without reporting a failure."""
    raise ApplicationError("given back", next_retry_delay=after, category=ApplicationErrorCategory.BENIGN) from None
