"""Whisper's tokens: pieces of text, markers of language and task, and moments in steps of 20 milliseconds."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

SECONDS_PER_STEP = 0.02
PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
"""A text falls into these before it is encoded, as in GPT-2."""


class Vocabulary:
    """The tokens of one model, from its `tokenizer.json` and `generation_config.json`."""

    def __init__(self, tokenizer: bytes, generation: bytes) -> None:
        found: dict[str, Any] = json.loads(tokenizer)
        rules: dict[str, Any] = json.loads(generation)
        self._numbers: Mapping[str, int] = found["model"]["vocab"]
        self._ranks = {_pair(merge): rank for rank, merge in enumerate(found["model"]["merges"])}
        self._pieces = {number: piece for piece, number in self._numbers.items()}
        marks = {token["content"]: token["id"] for token in found["added_tokens"]}
        self.languages: Mapping[str, int] = {name.strip("<|>"): number for name, number in rules["lang_to_id"].items()}
        self.end: int = marks["<|endoftext|>"]
        self.begin: int = marks["<|startoftranscript|>"]
        self.transcribe: int = marks["<|transcribe|>"]
        self.after: int = marks["<|startofprev|>"]
        self.no_times: int = rules["no_timestamps_token_id"]
        self.silence: int = marks.get("<|nocaptions|>", marks.get("<|nospeech|>", self.no_times - 1))
        self.first_moment: int = self.no_times + 1
        self.unwanted: Sequence[int] = rules["suppress_tokens"]
        self.unwanted_first: Sequence[int] = rules["begin_suppress_tokens"]

    def decode(self, tokens: Iterable[int]) -> str:
        """Return the text of the tokens; markers and moments have none."""
        letters = "".join(self._pieces[token] for token in tokens if token < self.end and token in self._pieces)
        return bytes(BYTES[letter] for letter in letters).decode("utf-8", "replace")

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return [number for piece in PIECES.findall(text) for number in self._encode_piece(piece)]

    def _encode_piece(self, piece: str) -> list[int]:
        parts = [LETTERS[byte] for byte in piece.encode()]
        while len(parts) > 1:
            ranks = [self._ranks.get(pair, len(self._ranks)) for pair in pairwise(parts)]
            place = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[place] == len(self._ranks):
                break
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return [self._numbers[part] for part in parts if part in self._numbers]

    def moment(self, token: int) -> float | None:
        """Return the seconds that a token stands for; None if it is no moment."""
        return (token - self.first_moment) * SECONDS_PER_STEP if token >= self.first_moment else None


def _pair(merge: str | list[str]) -> tuple[str, str]:
    one, two = merge.split(" ") if isinstance(merge, str) else merge
    return one, two


def _list_letters() -> list[str]:
    """Return a visible letter for each byte: itself where it has one, and others from U+0100 on."""
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in visible else next(others)) for byte in range(256)]


LETTERS = _list_letters()
BYTES = {letter: byte for byte, letter in enumerate(LETTERS)}
