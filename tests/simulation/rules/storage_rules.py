"""Rules of stored bytes and held money: what is shown exists, and what is gone is gone."""

import hashlib

from simulation.machine import ObjectStore
from simulation.store import SharedStore
from simulation.world import World

from penstock.storage.assets import asset_key
from penstock.store.queries.files import storage_rows


class StorageRules:
    """Compares the rows of assets and holds with the objects and the jobs."""

    def __init__(self, world: World, store: SharedStore, objects: ObjectStore, retention_seconds: float) -> None:
        self._world = world
        self._store = store
        self._objects = objects
        self._retention_seconds = retention_seconds

    def audit(self) -> None:
        """Check the sums of stored bytes, the holds, and that nothing was removed early."""
        drift, _ = self._store.transact(storage_rows.find_drift, commit=False)
        for account_id in drift:
            self._world.violate("the sums of stored bytes are right", account_id)
        self._check_holds()
        self._check_retention()

    def _check_holds(self) -> None:
        """Check that money is held only for open jobs, and for those of unknown outcome."""
        ended = self._store.ask(
            "SELECT holds.subject FROM holds JOIN jobs ON jobs.id = holds.subject WHERE jobs.done = 1 "
            "AND holds.amount > 0 AND EXISTS (SELECT 1 FROM ledger WHERE ledger.subject = holds.subject "
            "AND ledger.kind IN ('settle', 'release'))"
        )
        for (subject,) in ended:
            self._world.violate("money is held for open work only", subject)

    def _check_retention(self) -> None:
        if self._world.has_skew:
            return  # a wrong clock may remove a job early
        now = self._world.wall()
        removed = self._store.ask("SELECT id, finished_at FROM jobs WHERE removed = 'expired'")
        for job_id, finished_at in removed:
            if now < finished_at + self._retention_seconds - 1:
                self._world.violate("jobs are kept for their retention", f"{job_id}: {now - finished_at:.0f} s")

    def check_end(self) -> None:
        """Check that each visible asset has its bytes, and each swept one has none."""
        rows = self._store.ask("SELECT job_id, filename, sha256, removed, swept FROM assets")
        for job_id, filename, sha256, removed, swept in rows:
            data = self._objects.objects.get(asset_key(job_id, filename, sha256))
            if swept and data is not None:
                self._world.violate("deleted outputs are gone", f"{job_id}: {filename}")
            elif removed is None and data is None:
                self._world.violate("every asset exists", f"{job_id}: {filename}")
            elif data is not None and hashlib.sha256(data).hexdigest() != sha256:
                self._world.violate("every asset has its digest", f"{job_id}: {filename}")
