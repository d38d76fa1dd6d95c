"""Rules of webhooks: each event reaches the outbox, is signed, sent soon, and received at least once."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from simulation.receivers import Receiver
from simulation.store import SharedStore
from simulation.world import World

from penstock.domain.jobs import Job
from penstock.domain.webhooks import USUAL, sign

LAG_SECONDS: Final = 0.5
"""Seconds from an event to the first attempt of its delivery, in a world without faults."""
LEASE_SECONDS: Final = 40.0
"""A delivery that is overdue for longer than this belongs to nobody."""
FAR_SECONDS: Final = 86_400.0


class DeliveryRules:
    """Watches the outbox and what the receivers get."""

    def __init__(self, world: World, store: SharedStore, receivers: Mapping[str, Receiver]) -> None:
        self._world = world
        self._store = store
        for receiver in receivers.values():
            receiver.on_message = self.check_message

    def check_event(self, kind: str, sequence: int, job: Job) -> None:
        """Check that an event was written with its delivery."""
        if job.webhook is None or kind not in (job.webhook["events"] or USUAL):
            return
        found = self._store.ask("SELECT 1 FROM deliveries WHERE subject = %s AND sequence = %s", job.id, sequence)
        if not found:
            self._world.violate("every event reaches the outbox", f"{job.id}: {kind}")

    def check_message(
        self, job_id: str, message: Mapping[str, Any], body: bytes, headers: Mapping[str, str], *, is_first: bool
    ) -> None:
        """Check the signature of a message and, in a world without faults, its lag."""
        found = self._store.ask(
            "SELECT webhooks.secret FROM webhooks JOIN jobs ON jobs.account_id = webhooks.account_id "
            "WHERE jobs.id = %s AND webhooks.url IS NULL",
            job_id,
        )
        expected = [sign([row[0]], headers["webhook-id"], int(headers["webhook-timestamp"]), body) for row in found]
        if found and headers["webhook-signature"] not in expected:
            self._world.violate("webhooks are signed with the account's secret", job_id)
        created_at = datetime.fromisoformat(message["created_at"]).timestamp()
        lag = self._world.wall() - created_at
        # The claim of an earlier message may be in doubt until its lease ends: it delays those of its job.
        is_of_calm = self._world.is_calm and created_at >= self._world.prompt_since
        if is_of_calm and is_first and lag > LAG_SECONDS:
            self._world.violate("webhooks are prompt", f"{job_id}: {message['type']} after {lag:.2f} s")

    def check_end(self) -> None:
        """Check that no delivery was forgotten."""
        if self._world.has_skew:
            return  # a wrong clock may have set a retry far away
        now = self._world.wall()
        pending = "SELECT subject, sequence, due_at FROM deliveries WHERE status = 'pending'"
        for subject, sequence, due_at in self._store.ask(pending):
            if not -LEASE_SECONDS < due_at - now < FAR_SECONDS:
                self._world.violate("no webhook is forgotten", f"{subject}: {sequence} is due in {due_at - now:.0f} s")
