"""The voice: reads English texts aloud with the model that hibari has in its package, and never fetches another."""
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false, reportMissingImports=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# hibari ships no types

import re
from collections.abc import Iterator
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 24_000
MIN_MODEL_SPEED, MAX_MODEL_SPEED = 0.5, 2.0
"""Speeds that the network was trained for. Beyond them it is asked for the nearest."""
MAX_PIECE_CHARACTERS = 400
MAX_WORD_CHARACTERS = 40
MAX_DIGITS = 12
PAUSE = np.zeros(SAMPLE_RATE // 5, np.float32)
LINE_END = re.compile(r"[ \t\r\f\v]*\n\s*")
UNSPEAKABLE = re.compile(r"[^\w\s.,;:!?'\"\u2019\u2018\u201c\u201d()$\u20ac\u00a3%&@#+=/*\u00b0\u2013\u2014\u2026-]|_")
"""Characters with no sound, such as brackets and emoji. Some of them take the package very long."""
RUNS = re.compile(r"([^\w\s])\1{2,}")
LONG_NUMBER = re.compile(rf"([0-9][0-9.,]{{{MAX_DIGITS - 1}}})(?=[0-9])")
LONG_WORD = re.compile(rf"(\S{{{MAX_WORD_CHARACTERS}}})(?=\S)")
PIECE = re.compile(rf"(?s)\S.{{0,{MAX_PIECE_CHARACTERS - 1}}}(?=\s|$)")


class Voice:
    """The network and the rules of pronunciation in memory. It works for one caller at a time."""

    def __init__(self) -> None:
        from hibari import Hibari  # noqa: PLC0415  not installed everywhere, and slow to import

        with as_file(files("hibari") / "assets" / "hibari.onnx") as model:
            self._hibari = Hibari(model=str(model))

    def speak(self, text: str, speed: float) -> Iterator[NDArray[np.float32]]:
        """Yield the sound of the text, sentence by sentence. Nothing comes of a text without words."""
        pace = min(MAX_MODEL_SPEED, max(MIN_MODEL_SPEED, speed))
        random = np.random.default_rng(0)  # equal texts sound equal
        for piece in split_text(text):
            for sounds in self._pronounce(piece):
                heard = self._hibari.from_ids(self._hibari.ids(sounds), pace, random)
                yield np.concatenate([np.asarray(heard, np.float32), PAUSE])

    def _pronounce(self, piece: str) -> list[str]:
        """Return the sounds of each sentence. The package stumbles over odd numbers, which are then left out."""
        for attempt in (piece, re.sub(r"[0-9][0-9.,]*", " ", piece), re.sub(r"[^A-Za-z\s]+", " ", piece)):
            try:
                return self._hibari.phonemize(attempt)
            except (IndexError, ValueError, KeyError):
                continue
        return []


def split_text(text: str) -> list[str]:
    """Return the text in short pieces that can be spoken: without emoji, long runs of a sign, and endless words."""
    lines = (UNSPEAKABLE.sub(" ", line) for line in LINE_END.split(text))
    pieces = list[str]()
    for line in lines:
        short = LONG_WORD.sub(r"\1 ", LONG_NUMBER.sub(r"\1 ", RUNS.sub(r"\1", line)))
        pieces += [found.strip() for found in PIECE.findall(short)]
    return [piece for piece in pieces if any(letter.isalnum() for letter in piece)]
