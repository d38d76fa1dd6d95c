"""Guesses the place and subject that a prompt does not name, by the meaning of its words."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.prompt.nearness.meaning import Meaning
from penstock_engines.cinema.subjects import SUBJECTS, Motion, Subject
from penstock_engines.minilm.model_facts import MODEL, VOCABULARY

BEST = 3  # words of a place that are compared
NOUNS = 4  # words of a subject that are compared
SYNONYM = 0.7  # closeness at which a word counts as a synonym of a subject


@dataclass(frozen=True, slots=True)
class Guess:
    """The closeness of every place to the prompt, and a subject if a word means one."""

    places: Mapping[str, float]
    subject: str | None


def has_weights(weights: Path) -> bool:
    """Return whether the model's weights are present."""
    return (weights / MODEL).is_file() and (weights / VOCABULARY).is_file()


def guess(prompt: str, unknown: Sequence[str], weights: Path) -> Guess:
    """Compare a prompt and its unknown words with the known ones."""
    phrases = [(place.name, word) for place in PLACES.values() for word in place.words]
    nouns = [(subject.name, word) for subject in SUBJECTS.values() for word in _choose_nouns(subject)]
    near = open_meaning(weights).closeness([prompt, *unknown], [word for _, word in (*phrases, *nouns)])
    places = _by_owner(near[0, : len(phrases)], [name for name, _ in phrases])
    meant = near[1:, len(phrases) :]
    if not meant.size or meant.max() < SYNONYM:
        return Guess(places, None)
    return Guess(places, nouns[int(meant.max(axis=0).argmax())][0])


@lru_cache(maxsize=1)
def open_meaning(weights: Path) -> Meaning:
    """Return the model of a folder of weights."""
    return Meaning(weights)


def _choose_nouns(subject: Subject) -> Iterator[str]:
    """Yield the single words for a subject in the singular. Plants have none: "leaf" and "garden" are no plants."""
    if subject.motion is not Motion.SWAY:
        singles = (word for word in subject.words if word.isalpha())
        nouns = (word for word in singles if not (word.endswith("s") and word[:-1] in subject.words))
        yield from itertools.islice(nouns, NOUNS)


def _by_owner(near: NDArray[np.float32], owners: Sequence[str]) -> dict[str, float]:
    """Return the closeness of each place: the mean over the best of its words."""
    grouped: dict[str, list[float]] = {}
    for owner, value in zip(owners, near, strict=True):
        grouped.setdefault(owner, []).append(float(value))
    return {owner: float(np.mean(sorted(values)[-BEST:])) for owner, values in grouped.items()}
