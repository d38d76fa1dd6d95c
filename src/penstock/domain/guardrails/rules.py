"""Built-in rules: words and patterns. Time is linear in the length of the text, whatever the pattern."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from pydantic_core import SchemaError, SchemaValidator, core_schema

PIECE_CHARACTERS: Final = 1 << 14
"""Longer texts are searched in pieces, so that other threads get their turn."""
OVERLAP_CHARACTERS: Final = 1 << 10
"""The end of a piece that is searched again with the next: the longest match that is surely found."""
WORD: Final = re.compile(r"\w+(?:[ '-]\w+)*")
"""A word or phrase that a rule may have."""
_TOKEN: Final = re.compile(r"\w+")
_SPACE: Final = re.compile(r"\s")


class Rule(Protocol):
    """Finds what the operator has listed."""

    def finds(self, text: str) -> bool:
        """Return whether the text has it."""
        ...


class WordRule:
    """Whole words and phrases, whatever their case, width and invisible signs.

    Words in scripts without spaces and case, such as Chinese, are also found inside of others.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words: set[str] = set()
        self._phrases: list[str] = []
        for word in words:
            tokens = _TOKEN.findall(normalize(word))
            if any(_has_no_case(token) for token in tokens):
                self._phrases.append(" ".join(tokens))
            elif len(tokens) == 1:
                self._words.add(tokens[0])
            else:
                self._phrases.append(f" {' '.join(tokens)} ")

    def finds(self, text: str) -> bool:
        """Return whether a text has one of the words."""
        tokens = _TOKEN.findall(normalize(text))
        if not self._words.isdisjoint(tokens):
            return True
        if not self._phrases:
            return False
        joined = f" {' '.join(tokens)} "
        return any(phrase in joined for phrase in self._phrases)


class PatternRule:
    """Regular expressions in the syntax of Rust's `regex`, whose time is linear: docs/decisions/0062."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = [compile_pattern(pattern) for pattern in patterns]

    def finds(self, text: str) -> bool:
        """Return whether one of the patterns matches somewhere in a text."""
        return any(pattern.isinstance_python(text) for pattern in self._patterns)


def compile_pattern(pattern: str) -> SchemaValidator:
    """Return a matcher. Raise ValueError with the reason if the pattern cannot be used."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True))
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].strip().removeprefix("error: ")
        raise ValueError(reason) from None


def normalize(text: str) -> str:
    """Return a text without case, width and invisible signs, in which words are compared."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")


def search(rules: Sequence[Rule], texts: Iterable[str]) -> list[bool]:
    """Return for each rule whether it finds something in the texts."""
    found = [False] * len(rules)
    for piece in _cut(texts):
        for place, rule in enumerate(rules):
            found[place] = found[place] or rule.finds(piece)
    return found


def _cut(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text in pieces that overlap. Cuts are at spaces where there are some, to leave words whole."""
    for text in texts:
        start, end = 0, _find_space(text, PIECE_CHARACTERS)
        yield text[:end]
        while end < len(text):
            start, end = _find_space(text, end - OVERLAP_CHARACTERS), _find_space(text, end + PIECE_CHARACTERS)
            yield text[start:end]


def _find_space(text: str, place: int) -> int:
    """Return the place of the next space if it is near, otherwise the place itself."""
    found = _SPACE.search(text, place, place + OVERLAP_CHARACTERS // 2)
    return place if found is None else found.start()


def _has_no_case(token: str) -> bool:
    """Return whether a token has letters of a script without case, where spaces need not divide words."""
    return any(unicodedata.category(sign) == "Lo" for sign in token)
