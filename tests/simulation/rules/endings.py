"""Rules of the end: no process leaks anything, every message arrives, and every object is accounted for."""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from simulation.machine import ObjectStore
from simulation.process import Process
from simulation.receivers import Receiver
from simulation.store import SharedStore
from simulation.world import World

from penstock.storage.assets import asset_key, file_key
from penstock.store.queries.jobs import event_rows

KEPT_ASSETS: Final = "SELECT job_id, filename, sha256, removed FROM assets WHERE swept = 0"
USED_FILES: Final = """
SELECT f.token, f.account_id, f.sha256, j.document
FROM files f LEFT JOIN jobs j ON j.id = f.job_id AND j.removed IS NULL
WHERE f.expires_at IS NULL OR f.expires_at > %s
"""
"""Files that did not expire, and the jobs that they belong to."""
KEPT_FILES: Final = "SELECT account_id, sha256 FROM files"
DELIVERIES: Final = "SELECT subject, sequence, status, url FROM deliveries WHERE subject LIKE 'job%%'"
LEASES: Final = """
SELECT 'lease', subject FROM holds WHERE is_lease = 1 UNION ALL SELECT 'slot', process FROM slots
"""


class EndRules:
    """Checks what is left when a world ends."""

    def __init__(self, world: World, store: SharedStore, objects: ObjectStore) -> None:
        self._world = world
        self._store = store
        self._objects = objects
        self._stopped: set[str] = set()
        """Ids of processes that stopped while the store could be used."""

    # -- a process that stops

    def check_stopped(self, process: Process) -> None:
        """Check that a process which stopped gracefully has left nothing."""
        gateway: Any = process.gateway
        if self._world.is_healed:
            self._stopped.add(gateway.admission.process)
        for what in find_leaks(process):
            self._world.violate("a process that stops leaks nothing", f"{process.loop.name}: {what}")

    def check_all_stopped(self) -> None:
        """Check that nothing is leased to a process that stopped. Leases of killed ones expire by themselves."""
        for kind, process in self._store.ask(LEASES):
            if process in self._stopped:
                self._world.violate("nothing is leased to a process that stopped", f"{kind} of {process}")

    # -- messages

    def check_webhooks(self, receivers: Mapping[str, Receiver], *, is_patient: bool) -> None:
        """Check that every message arrived, or is still tried."""
        for subject, sequence, status, url in self._store.ask(DELIVERIES):
            receiver = receivers.get(url or "")
            if receiver is None:
                continue
            has_arrived = (subject, sequence) in receiver.acknowledged
            if (status == "pending" and is_patient) or (status != "pending" and not has_arrived):
                self._world.violate("webhooks arrive at least once", f"{subject} {sequence} is {status}")

    # -- objects

    def check_objects(self, tokens: Iterable[str]) -> None:
        """Check that every referenced object exists with the bytes that its hash says.

        A file whose upload was never answered may have a row without bytes: nobody has its token. So may a copy that
        its job does not name, as its process died, or lost the store's answer, before the bytes were stored.
        """
        known = set(tokens)
        for job_id, filename, sha256, removed in self._store.ask(KEPT_ASSETS):
            if removed is None:
                self._check_object(asset_key(job_id, filename, sha256), sha256)
        for token, account_id, sha256, document in self._store.ask(USED_FILES, self._world.wall()):
            if token in known or (document is not None and _names(bytes(document), token)):
                self._check_object(file_key(account_id, sha256), sha256)

    def _check_object(self, key: str, sha256: str) -> None:
        data = self._objects.objects.get(key)
        if data is None:
            self._world.violate("every referenced object exists", key)
        elif hashlib.sha256(data).hexdigest() != sha256:
            self._world.violate("every object has its hash", key)

    def check_collected(self) -> None:
        """Check that after the retention no object is left that nothing refers to."""
        known = {asset_key(job_id, filename, sha256) for job_id, filename, sha256, _ in self._store.ask(KEPT_ASSETS)}
        known |= {file_key(account_id, sha256) for account_id, sha256 in self._store.ask(KEPT_FILES)}
        for key in self._objects.objects:
            if key not in known:
                self._world.violate("every object is referenced or collected", key)


def _names(document: bytes, token: str) -> bool:
    """Return whether a job uses this copy of a file."""
    file = event_rows.decode_job(document).file
    return file is not None and file.token == token


def find_leaks(process: Process) -> Iterator[str]:
    """Yield what a process has left after its graceful end."""
    counts = {
        "downloads": process.assets.downloads_under_way,
        "vendor calls": process.client.under_way,
        "children": sum(pool.under_way for pool in process.pools),
        "open files": process.journals.open_files,
    }
    yield from (f"{name}: {count}" for name, count in counts.items() if count)
    yield from (f"lock {name}" for name in process.around.disk.owned_by(process.loop))
    gateway: Any = process.gateway
    if gateway is None:
        return
    yield from _find_taken(gateway)
    yield from (f"task {task.get_name()}: {task.get_coro()}" for task in _left_tasks(process))


def _find_taken(gateway: Any) -> Iterable[str]:
    """Yield seats, streams and slots that are still taken."""
    if gateway.streams.total:
        yield f"event streams: {gateway.streams.total}"
    if gateway.delivery._in_flight:
        yield "webhooks in flight"
    seats = getattr(gateway.dispatch, "_seats", None)
    taken = {vendor: count for vendor, count in getattr(seats, "_taken", {}).items() if count}
    if taken:
        yield f"seats: {taken}"
    if held := getattr(gateway.dispatch, "_held", None):
        yield f"jobs held: {held}"


def _left_tasks(process: Process) -> list[Any]:
    known = (process.main, process.stopping)
    return [task for task in asyncio.all_tasks(process.loop) if task not in known and not task.done()]
