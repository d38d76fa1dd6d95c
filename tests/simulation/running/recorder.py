"""The record of a world: everything that happens goes into one digest, so that two runs can be compared."""

import hashlib

FLUSH_LINES = 4_096


class Recorder:
    """Hashes lines. It keeps them only if asked, as a world has a million."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._lines: list[str] = []
        self.kept: list[str] | None = None
        """All lines, if this is a list: for comparing two runs of a seed."""

    def add(self, line: str) -> None:
        """Record something that happened."""
        lines = self._lines
        lines.append(line)
        if len(lines) >= FLUSH_LINES:
            self._flush()

    def digest(self) -> str:
        """Return the digest of everything recorded so far."""
        self._flush()
        return self._sha256.hexdigest()

    def _flush(self) -> None:
        if self._lines:
            self._sha256.update(("\n".join(self._lines) + "\n").encode())
            if self.kept is not None:
                self.kept += self._lines
            self._lines.clear()
