"""Count the boxes of an ISO media file. Time of C2PA's parser grows with the square of their number."""

import os
from typing import IO, Final

from penstock.domain.job_errors import FileUnreadable

MAX_BOXES: Final = 10_000
"""An hour of film in fragments of four seconds has fewer."""
MAX_DEPTH: Final = 16
CONTAINERS: Final = frozenset(
    (
        *(b"moov", b"trak", b"mdia", b"minf", b"stbl", b"dinf", b"edts", b"udta", b"mvex", b"moof", b"traf", b"mfra"),
        *(b"tref", b"schi", b"sinf", b"iprp", b"ipco", b"strk", b"strd", b"paen", b"fiin", b"meco", b"hinf", b"hnti"),
    )
)
META: Final = b"meta"
"""A container whose boxes follow four bytes of version and flags."""


def refuse_flood(source: IO[bytes]) -> None:
    """Raise FileUnreadable if a film has more boxes than any real one. Other files, and broken ones, pass."""
    source.seek(4)
    if source.read(4) == b"ftyp":
        _count(source, 0, source.seek(0, os.SEEK_END), 0, 0)


def _count(source: IO[bytes], place: int, end: int, seen: int, depth: int) -> int:
    while place + 8 <= end:
        seen += 1
        if seen > MAX_BOXES:
            raise FileUnreadable(f"The film has more than {MAX_BOXES} boxes.")
        source.seek(place)
        head = source.read(16)
        size, kind, inner = int.from_bytes(head[:4]), head[4:8], place + 8
        if size == 1:
            size, inner = int.from_bytes(head[8:]), place + 16
        if not inner - place <= size <= end - place:  # broken, or 0: it is the last one
            break
        if (kind in CONTAINERS or kind == META) and depth < MAX_DEPTH:
            seen = _count(source, inner + 4 * (kind == META), place + size, seen, depth + 1)
        place += size
    return seen
