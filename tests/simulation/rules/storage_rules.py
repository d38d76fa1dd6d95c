"""Rules of stored bytes: their sums are right, nothing is removed early, and what is deleted is gone."""

from simulation.machine import ObjectStore
from simulation.store import SharedStore
from simulation.world import World

from penstock.storage.assets import asset_key
from penstock.store.queries.files import storage_rows


class StorageRules:
    """Compares the rows of assets with the objects and with the sums of each account."""

    def __init__(self, world: World, store: SharedStore, objects: ObjectStore, retention_seconds: float) -> None:
        self._world = world
        self._store = store
        self._objects = objects
        self._retention_seconds = retention_seconds

    def audit(self) -> None:
        """Check the sums of stored bytes, and that nothing was removed early."""
        drift, _ = self._store.transact(storage_rows.find_drift, commit=False)
        for account_id in drift:
            self._world.violate("the sums of stored bytes are right", account_id)
        if self._world.has_skew:
            return  # a wrong clock may remove a job early
        now = self._world.wall()
        removed = self._store.ask("SELECT id, finished_at FROM jobs WHERE removed = 'expired'")
        for job_id, finished_at in removed:
            if now < finished_at + self._retention_seconds - 1:
                self._world.violate("jobs are kept for their retention", f"{job_id}: {now - finished_at:.0f} s")

    def check_end(self) -> None:
        """Check that each swept asset has no bytes."""
        for job_id, filename, sha256 in self._store.ask("SELECT job_id, filename, sha256 FROM assets WHERE swept = 1"):
            if asset_key(job_id, filename, sha256) in self._objects.objects:
                self._world.violate("deleted outputs are gone", f"{job_id}: {filename}")
