"""Word pieces of BERT (uncased), the tokens of MiniLM."""

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

MAX_LETTERS = 100  # of a word; a longer one is unknown
IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2CEAF), (0x2F800, 0x2FA1F))


class Tokenizer:
    """Splits a text into the word pieces of BERT (uncased)."""

    def __init__(self, path: Path) -> None:
        self._numbers: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]

    def pieces(self, text: str) -> list[str]:
        """Return the pieces of a text, such as "snow", "##flake"."""
        return [piece for word in split_words(text) for piece in self._cut(word)]

    def numbers(self, text: str, most: int) -> list[int]:
        """Return at most so many of the model's token ids of a text, with start and end markers."""
        pieces = self.pieces(text)[: most - 2]
        return [self._numbers[piece] for piece in ("[CLS]", *pieces, "[SEP]")]

    def _cut(self, word: str) -> list[str]:
        """Return the longest known piece, then the longest that continues it, and so on."""
        pieces: list[str] = []
        start = 0
        while start < len(word) <= MAX_LETTERS:
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._numbers), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces or ["[UNK]"]


def split_words(text: str) -> list[str]:
    """Return lower-case words without accents. Every punctuation mark and ideograph is its own word."""
    return "".join(_spaced(text)).lower().split()


def _spaced(text: str) -> Iterator[str]:
    for letter in unicodedata.normalize("NFD", text):
        category = unicodedata.category(letter)
        if letter.isspace():
            yield " "
        elif category in {"Mn", "Cc", "Cf", "Cn", "Co", "Cs"} or letter == "\ufffd":
            continue
        elif _stands_alone(letter, category):
            yield f" {letter} "
        else:
            yield letter


def _stands_alone(letter: str, category: str) -> bool:
    if letter.isascii():
        return not letter.isalnum()
    return category.startswith("P") or any(low <= ord(letter) <= high for low, high in IDEOGRAPHS)
