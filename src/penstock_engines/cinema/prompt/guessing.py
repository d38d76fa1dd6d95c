"""Guesses by meaning what a prompt does not name: its place as a whole, its subject from the words nobody knew."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.prompt.meaning import MODEL, VOCABULARY, Meaning
from penstock_engines.cinema.subjects import SUBJECTS, Motion, Subject

BEST = 3  # how many of a place's words are asked
NOUNS = 4  # that stand for a subject
SYNONYM = 0.7  # how near a single word must be to one of a subject's


@dataclass(frozen=True, slots=True)
class Guess:
    """What was guessed: every place with how near it is to the prompt, and a subject if a word means one."""

    places: Mapping[str, float]
    subject: str | None


def has_weights(weights: Path) -> bool:
    """Whether the model is there to guess with."""
    return (weights / MODEL).is_file() and (weights / VOCABULARY).is_file()


def guess(prompt: str, unknown: Sequence[str], weights: Path) -> Guess:
    """Ask the model about a prompt and its unknown words."""
    phrases = [(place.name, word) for place in PLACES.values() for word in place.words]
    nouns = [(subject.name, word) for subject in SUBJECTS.values() for word in _choose_nouns(subject)]
    near = _open(weights).closeness([prompt, *unknown], [word for _, word in (*phrases, *nouns)])
    places = _by_owner(near[0, : len(phrases)], [name for name, _ in phrases])
    meant = near[1:, len(phrases) :]
    if not meant.size or meant.max() < SYNONYM:
        return Guess(places, None)
    return Guess(places, nouns[int(meant.max(axis=0).argmax())][0])


@lru_cache(maxsize=1)
def _open(weights: Path) -> Meaning:
    return Meaning(weights)


def _choose_nouns(subject: Subject) -> Iterator[str]:
    """The single words for a subject in the singular; none for plants, for a leaf or a garden is none."""
    if subject.motion is not Motion.SWAY:
        singles = (word for word in subject.words if word.isalpha())
        nouns = (word for word in singles if not (word.endswith("s") and word[:-1] in subject.words))
        yield from itertools.islice(nouns, NOUNS)


def _by_owner(near: NDArray[np.float32], owners: Sequence[str]) -> dict[str, float]:
    """How near each place is: the mean over the best of its words."""
    grouped: dict[str, list[float]] = {}
    for owner, value in zip(owners, near, strict=True):
        grouped.setdefault(owner, []).append(float(value))
    return {owner: float(np.mean(sorted(values)[-BEST:])) for owner, values in grouped.items()}
