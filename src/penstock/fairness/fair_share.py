"""A bounded resource of one process, divided among accounts so that none can take all of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """The size of a resource and the part of it that one owner may hold."""

    total: int
    each: int
    """The most that one owner may hold."""
    reserve: int = 0
    """The last part of the total, which only owners that hold little may use."""
    little: int = 1
    """The most that an owner may hold to count as one that holds little."""


class FairShare:
    """The amounts that owners hold. An owner that holds nothing takes no memory."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}
        self.total = 0

    def held_by(self, owner: str) -> int:
        """Return the amount that an owner holds."""
        return self._held.get(owner, 0)

    def has_room_for(self, owner: str, amount: int, bounds: Bounds) -> bool:
        """Return whether an owner stays within its own limit with this much more."""
        return self.held_by(owner) + amount <= bounds.each

    def try_take(self, owner: str, amount: int, bounds: Bounds) -> bool:
        """Take an amount for an owner if the bounds allow it. Return whether they do."""
        wanted = self._held.get(owner, 0) + amount
        room = bounds.total if wanted <= bounds.little else bounds.total - bounds.reserve
        if wanted > bounds.each or self.total + amount > room:
            return False
        self._held[owner] = wanted
        self.total += amount
        return True

    def give_back(self, owner: str, amount: int) -> None:
        """Return an amount that an owner has taken before."""
        left = self._held[owner] - amount
        if left:
            self._held[owner] = left
        else:
            del self._held[owner]
        self.total -= amount
