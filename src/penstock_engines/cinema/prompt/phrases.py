"""Finds lexicon phrases in a prompt, with the article, number, colour and preposition around each."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import StrEnum

from penstock_engines.cinema.prompt.lexicon import NEGATIONS, STOPS
from penstock_engines.minilm.word_pieces import split_words

EMOJI_FROM = 0x2600
PLAIN = re.compile("[a-z ]+")  # needs no simplification, which is true of nearly all of the lexicon
SIMILES = frozenset({"like", "resembling"})


class Kind(StrEnum):
    """The topic of a phrase."""

    PLACE = "place"
    SUBJECT = "subject"
    TIME = "time"
    WEATHER = "weather"
    CAMERA = "camera"
    VIEWPOINT = "viewpoint"
    PARTICLES = "particles"
    PACE = "pace"
    COUNT = "count"
    COLOUR = "colour"


SAID_INSIDE = frozenset({Kind.TIME, Kind.PARTICLES, Kind.WEATHER})


@dataclass(frozen=True, slots=True)
class Found:
    """A phrase at the words `start` to `end` of a prompt. `texts` is the spelling in each topic's lexicon."""

    start: int
    end: int
    texts: Mapping[Kind, str]
    negated: bool = False

    def is_a(self, *kinds: Kind) -> bool:
        """Return whether it may have any of these topics."""
        return any(kind in self.texts for kind in kinds)


class Index:
    """Every phrase of several lexicons. The longest phrase at a position wins."""

    def __init__(self, lexicons: Mapping[Kind, Iterable[str]], masked: Iterable[str]) -> None:
        self._texts: dict[tuple[str, ...], dict[Kind, str]] = {tuple(simplify(text)): {} for text in masked}
        for kind, phrases in lexicons.items():
            for phrase in phrases:
                key = phrase.split() if PLAIN.fullmatch(phrase) else simplify(phrase)
                self._texts.setdefault(tuple(key), {}).setdefault(kind, phrase)
        self._longest = max(map(len, self._texts))

    def knows(self, words: Sequence[str]) -> bool:
        """Return whether these words are a phrase of a lexicon."""
        return tuple(words) in self._texts

    def add_subjects(self, phrases: Iterable[tuple[str, ...]]) -> "Index":
        """Return an index that knows these phrases as subjects only, whatever else they meant before."""
        index = copy(self)
        index._texts = self._texts | {phrase: {Kind.SUBJECT: " ".join(phrase)} for phrase in phrases}  # noqa: SLF001
        return index

    def find(self, words: Sequence[str]) -> list[Found]:
        """Return all phrases of a text in order, also the weather inside "misty pine forest"."""
        found: list[Found] = []
        start = 0
        while start < len(words):
            end = self._end(words, start)
            if end is None:
                start += 1
                continue
            found += self._inside(words, start, end)
            start = end
        return found

    def _end(self, words: Sequence[str], start: int) -> int | None:
        """Return the end of the longest phrase that begins here."""
        ends = range(min(len(words), start + self._longest), start, -1)
        return next((end for end in ends if tuple(words[start:end]) in self._texts), None)

    def _inside(self, words: Sequence[str], start: int, end: int) -> Iterator[Found]:
        whole = Found(start, end, self._texts[tuple(words[start:end])], is_negated(words, start))
        if whole.is_a(Kind.PLACE) and end - start > 1:
            for index in range(start, end):
                texts = self._texts.get((words[index],), {})
                about = {kind: text for kind, text in texts.items() if kind in SAID_INSIDE and kind not in whole.texts}
                if about:
                    yield Found(start, start, about, whole.negated)
        yield whole


def simplify(prompt: str) -> list[str]:
    """Return the words of a text without accents, genitives or hyphens. An emoji becomes its name."""
    text = prompt.replace("\u2019", "'").replace("'s ", " ").replace("'", "")
    letters = (_name_of(letter) if ord(letter) >= EMOJI_FROM else letter for letter in text)
    return split_words("".join(" " if letter in "-_/\u2010\u2013\u2014" else letter for letter in letters))


def _name_of(letter: str) -> str:
    if unicodedata.category(letter) != "So":
        return letter
    return f", {unicodedata.name(letter, '').lower()}, "


def is_negated(words: Sequence[str], start: int) -> bool:
    """Return whether "no" or "without" comes before, with only words of this noun phrase (and "or") between."""
    for word in reversed(words[:start]):
        if word in NEGATIONS:
            return True
        if word in STOPS and word != "or":
            return False
    return False


def begin_noun(words: Sequence[str], found: Sequence[Found], phrase: Found) -> int:
    """Return the start of a noun phrase: its article, number, colour and other adjectives."""
    nouns = (other.end for other in found if other.is_a(Kind.SUBJECT, Kind.PLACE) and other.end <= phrase.start)
    earliest, first = max(nouns, default=0), phrase.start
    while first > earliest and words[first - 1] not in STOPS | SIMILES:
        first -= 1
    return first
