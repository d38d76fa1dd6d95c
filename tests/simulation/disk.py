"""The local disk of a simulated machine: journals and locks, in memory. What was written survives a process."""

import errno
from typing import Final, Protocol

from simulation.virtual_loop import VirtualLoop
from simulation.world import Chance, World

WRITE_FAULTS: Final = (
    ("disk: full", 0.004),
    ("disk: short write", 0.004),
    ("death in a line of the journal", 0.002),
)
OPEN_FAULTS: Final = (("disk: full", 0.005),)


class Kill(Protocol):
    """Ends a process."""

    def __call__(self, reason: str) -> None:
        """End the process like kill -9."""
        ...


class Disk:
    """The files of one machine, and the processes that hold their locks."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.files: dict[str, bytearray] = {}
        self.locks: dict[str, VirtualLoop] = {}
        self.full_until = 0.0

    def is_locked(self, name: str) -> bool:
        """Return whether a living process holds a lock: the system releases those of the dead."""
        holder = self.locks.get(name)
        return holder is not None and not holder.is_dead

    def owned_by(self, loop: VirtualLoop) -> list[str]:
        """Return the names of the locks that a process holds."""
        return [name for name, holder in self.locks.items() if holder is loop]


class VirtualLock:
    """A lock that one process holds. Its method is that of `JournalLock`."""

    def __init__(self, disk: Disk, name: str, loop: VirtualLoop) -> None:
        self._disk, self._name, self._loop = disk, name, loop
        disk.locks[name] = loop

    def release(self) -> None:
        """Release the lock, unless another process has it by now."""
        if not self._loop.is_dead and self._disk.locks.get(self._name) is self._loop:
            del self._disk.locks[self._name]


class VirtualFile:
    """A file that one process appends to. Its methods are those of `JournalFile`."""

    def __init__(self, disk: Disk, data: bytearray, loop: VirtualLoop, kill: Kill, chance: Chance) -> None:
        self._disk, self._data, self._loop, self._kill, self._chance = disk, data, loop, kill, chance
        self.is_open = True

    def write(self, data: bytes) -> int:
        """Append bytes, or only the first of them. Nothing of a dead process arrives."""
        if self._loop.is_dead:
            return len(data)
        if not self.is_open:
            raise OSError(errno.EBADF, "closed")
        fault = "disk: full" if self._disk.full_until > self._disk.world.now else self._chance.draw(WRITE_FAULTS)
        if fault == "disk: full":
            raise OSError(errno.ENOSPC, "full")
        written = len(data) if fault is None else int(len(data) * self._chance.random())
        self._data += data[:written]
        if fault == "death in a line of the journal":
            self._kill(fault)  # what follows in this callback meets ports that refuse it
            return len(data)
        return written

    def cut(self, count: int) -> None:
        """Remove the last bytes."""
        if not self._loop.is_dead and count:
            del self._data[-count:]

    def close(self) -> None:
        """Close the file."""
        if not self.is_open and not self._loop.is_dead:
            raise OSError(errno.EBADF, "closed twice")
        self.is_open = False


class VirtualJournals:
    """The folder of journals as one process sees it. Its methods are those of `JournalFiles`."""

    def __init__(self, disk: Disk, loop: VirtualLoop, kill: Kill) -> None:
        self._disk, self._loop, self._kill = disk, loop, kill
        self._chance = disk.world.chance(f"disk of {loop.name}")
        self._opened: list[VirtualFile] = []

    @property
    def open_files(self) -> int:
        """The number of files that are open, which must be 0 after a graceful end."""
        return sum(file.is_open for file in self._opened)

    def names(self) -> list[str]:
        """Return the names of all files."""
        return sorted(self._disk.files)

    def open(self, name: str) -> VirtualFile:
        """Open a file for appending."""
        if self._chance.draw(OPEN_FAULTS) is not None or self._disk.full_until > self._disk.world.now:
            raise OSError(errno.ENOSPC, "full")
        data = bytearray() if self._loop.is_dead else self._disk.files.setdefault(name, bytearray())
        self._opened.append(VirtualFile(self._disk, data, self._loop, self._kill, self._chance))
        return self._opened[-1]

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        try:
            return bytes(self._disk.files[name])
        except KeyError:
            raise FileNotFoundError(name) from None

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        if not self._loop.is_dead:
            self._disk.files.pop(name, None)

    def own(self, name: str) -> VirtualLock:
        """Create a file and lock it. No other process knows its name yet."""
        self._disk.files.setdefault(name, bytearray())
        return VirtualLock(self._disk, name, self._loop)

    def take(self, name: str) -> VirtualLock | None:
        """Lock a file, unless a living process has it."""
        if self._loop.is_dead or name not in self._disk.files or self._disk.is_locked(name):
            return None
        return VirtualLock(self._disk, name, self._loop)


class VirtualLeadership:
    """The lock of the data folder as one process sees it. Its methods are those of `Leadership`."""

    NAME: Final = "penstock.lock"

    def __init__(self, disk: Disk, loop: VirtualLoop) -> None:
        self._disk, self._loop = disk, loop

    @property
    def is_held(self) -> bool:
        """Return whether this process runs the jobs."""
        return self._disk.locks.get(self.NAME) is self._loop

    def take(self) -> bool:
        """Take the lock if it is free."""
        if not self._loop.is_dead and not self._disk.is_locked(self.NAME):
            self._disk.locks[self.NAME] = self._loop
        return self.is_held

    def tell_holder(self) -> str:
        """Return the name of the holder."""
        holder = self._disk.locks.get(self.NAME)
        return "unknown" if holder is None else holder.name

    def release(self) -> None:
        """Release the lock for another process."""
        if self.is_held and not self._loop.is_dead:
            del self._disk.locks[self.NAME]
