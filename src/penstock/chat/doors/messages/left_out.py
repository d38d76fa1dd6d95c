"""The names of fields and blocks that a translation cannot express."""

from collections.abc import Collection, Mapping
from typing import Any


class LeftOut:
    """Collects names, each once, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names so far."""
        return tuple(self._names)

    def add(self, name: str) -> None:
        """Add a name."""
        self._names[name] = None

    def add_unknown(self, fields: Mapping[str, Any], known: Collection[str]) -> None:
        """Add the names of all fields that are neither known nor null."""
        for name, value in fields.items():
            if value is not None and name not in known:
                self._names[name] = None
