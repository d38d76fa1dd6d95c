"""What must be true of kept responses in the store."""

from collections.abc import Collection, Iterable
from typing import Final

from simulation.chat.keepers import Keeper
from simulation.store import SharedStore
from simulation.world import World

RUNNING: Final = """
SELECT account_id, id, status FROM responses WHERE owner IS NOT NULL OR status IN ('queued', 'in_progress')
"""
HARMLESS: Final = frozenset({"skew", "reload", "vendor down", "objects away", "objects full", "memory pressure"})
"""Planned faults in which every process lives and reaches the store."""
LOOSE: Final = """
SELECT i.account_id, i.id FROM response_items i
LEFT JOIN responses r ON r.account_id = i.account_id AND r.id = i.response_id WHERE r.id IS NULL
"""


class KeptRules:
    """Checks the rows of kept responses of one world."""

    def __init__(self, world: World, store: SharedStore) -> None:
        self._world = world
        self._store = store

    def is_settled(self) -> bool:
        """Return whether no response runs any more."""
        return not self._store.ask(RUNNING)

    def check_end(self, keepers: Iterable[Keeper], kinds: Collection[str]) -> None:
        """Check that every response is finished, and that nothing is left of those that are gone.

        `kinds` are the planned faults of the world.
        """
        if HARMLESS.issuperset(kinds) and not self._world.counts["deaths"]:
            for kept in (kept for keeper in keepers for kept in keeper.kept if kept.is_lost):
                self._world.violate("a response of a living process goes on", repr(kept))
        for row in self._store.ask(RUNNING):
            self._world.violate("every kept response ends", repr(row))
        for row in self._store.ask(LOOSE):
            self._world.violate("deleted responses are gone", f"an item is left: {row}")
