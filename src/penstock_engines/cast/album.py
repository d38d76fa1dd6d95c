"""Pictures of the cast, by symbol, and the kind of each symbol."""

import json
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

PICTURES, GROUPS = "cast-pictures.zip", "cast-groups.json"
TONES = ("", "-1f3fb", "-1f3fc", "-1f3fd", "-1f3fe", "-1f3ff")
"""Suffixes of the first code point for a skin tone. The first is for none."""


class Album:
    """The pictures of a folder of weights."""

    def __init__(self, archive: zipfile.ZipFile, kinds: Mapping[str, int]) -> None:
        self._archive = archive
        self._files = frozenset(archive.namelist())
        self._kinds = {symbol: kind for symbol, kind in kinds.items() if self._find(symbol)}
        self.symbols = frozenset(self._kinds)

    def kind(self, symbol: str) -> int:
        """Return the number of a symbol's subgroup in Unicode's order, from 0 for smiling faces."""
        return self._kinds[symbol]

    def picture(self, symbol: str, tone: int = 0) -> NDArray[np.uint8]:
        """Return a symbol's picture, cut to its outline: blue, green, red and alpha, premultiplied."""
        name = self._find(symbol, TONES[tone]) or self._find(symbol) or ""
        raw = cv2.imdecode(np.frombuffer(self._archive.read(name), np.uint8), cv2.IMREAD_UNCHANGED)
        if raw is None:
            raise ValueError(f"{PICTURES}: {name} is no picture.")
        picture = np.asarray(raw, np.uint8)
        left, top, width, height = cv2.boundingRect((picture[..., 3] > 8).astype(np.uint8))
        cut = picture[top : top + height, left : left + width].astype(np.float32)
        cut[..., :3] *= cut[..., 3:] / 255
        return np.round(cut).astype(np.uint8)

    def _find(self, symbol: str, tone: str = "") -> str | None:
        """Return the file of a symbol. The names differ in where they have the selector of emoji style."""
        points = [f"{ord(letter):04x}" for letter in symbol if letter != "\ufe0f"]
        first, rest = points[0], "".join(f"-{point}" for point in points[1:])
        styled = rest + "-fe0f" if points[-1] in {"2640", "2642", "2695", "2696", "2708"} else rest
        names = (f"{first}{tone}{tail}.webp" for tail in (rest, styled, f"-fe0f{rest}", f"-fe0f{styled}"))
        return next((name for name in names if name in self._files), None)


@cache
def open_album(weights: Path) -> Album | None:
    """Return the album of a folder of weights, or None if it is not there."""
    try:
        entries = json.loads((weights / GROUPS).read_bytes())
        kinds = {entry["emoji"].replace("\ufe0f", ""): entry["subgroup"] for entry in entries if "subgroup" in entry}
        return Album(zipfile.ZipFile(weights / PICTURES), kinds)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
