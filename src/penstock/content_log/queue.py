"""Requests that wait to be written: bounded in bytes, and served account by account in turn."""

from collections import OrderedDict, deque
from typing import Final

from penstock.domain.content.records import ContentEntry
from penstock.fairness.fair_share import Bounds, FairShare

HELD: Final = Bounds(total=96 << 20, each=40 << 20, reserve=16 << 20, little=1 << 20)
"""Bytes of requests and answers that wait or are under way, in one process and of one account."""
BATCH_RECORDS: Final = 200
BATCH_BYTES: Final = 4 << 20


class ContentQueue:
    """Entries by account. Memory is held from the beginning of a request until its record is written."""

    def __init__(self) -> None:
        self._share = FairShare()
        self._lines: OrderedDict[str, deque[ContentEntry]] = OrderedDict()
        self.length = 0

    @property
    def held(self) -> int:
        """Return the bytes that are held now."""
        return self._share.total

    def try_hold(self, account_id: str, size: int) -> bool:
        """Take memory for an account if there is room."""
        return self._share.try_take(account_id, size, HELD)

    def give_back(self, account_id: str, size: int) -> None:
        """Return memory."""
        if size:
            self._share.give_back(account_id, size)

    def add(self, entry: ContentEntry) -> None:
        """Add an entry, whose memory is held already."""
        self._lines.setdefault(entry.facts.account_id, deque()).append(entry)
        self.length += 1

    def take_batch(self) -> list[ContentEntry]:
        """Return the next entries, one of each account in turn."""
        batch: list[ContentEntry] = []
        size = 0
        while self._lines and len(batch) < BATCH_RECORDS and size < BATCH_BYTES:
            account_id, line = self._lines.popitem(last=False)
            entry = line.popleft()
            if line:
                self._lines[account_id] = line
            batch.append(entry)
            size += entry.held
        self.length -= len(batch)
        return batch
