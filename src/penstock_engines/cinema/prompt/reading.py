"""Reads a prompt: turns its words, and their meaning, into the script of a clip."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.prompt.atlas import FREE
from penstock_engines.cinema.prompt.guessing import Guess, guess, has_weights
from penstock_engines.cinema.prompt.lexicon import (
    CAMERAS,
    COLOURS,
    COUNTS,
    MASKED,
    PACES,
    PARTICLES,
    PARTICLES_TIMES,
    SMALL_WORDS,
    TIMES,
    VIEWPOINTS,
    WEATHERS,
)
from penstock_engines.cinema.prompt.phrases import Found, Index, Kind, is_negated, simplify
from penstock_engines.cinema.prompt.roles import SUBJECT_OF, choose_roles, choose_tint
from penstock_engines.cinema.prompt.setting import (
    PLACES_OF,
    choose_place,
    find_home,
    fit,
    is_scenery,
    move_nearby,
    refine_place,
    suggest_place,
    suits,
)
from penstock_engines.cinema.script import Camera, Particles, Role, Script, Time, Weather
from penstock_engines.cinema.subjects import SUBJECTS

Value = TypeVar("Value")

ROLES_AT_MOST = 3
MAX_UNKNOWN_WORDS = 24  # words whose meaning is looked up
PLACE_NEAR = 0.28  # closeness at which a place in no lexicon is chosen
PLACE_SURE = 0.42  # closeness at which it is chosen over the home of the cast
DEFAULT_CAMERAS = (Camera.PAN_RIGHT, Camera.PUSH_IN, Camera.PAN_LEFT)
FREELY = "Nothing in the prompt was recognised: the clip was drawn freely."
WORDS_ONLY = "The weights of the language model are missing: the prompt was read by its words only."


@dataclass(frozen=True, slots=True)
class Reading:
    """The script that a prompt was understood as, and warnings for its author."""

    script: Script
    warnings: tuple[str, ...]
    seed: int


def read_prompt(prompt: str, *, people: bool, weights: Path) -> Reading:
    """Read any text. With `people` false, no person is seen."""
    digest = hashlib.sha256(prompt.encode(errors="surrogatepass")).digest()
    seed = int.from_bytes(digest[:4]) >> 1
    words = simplify(prompt)
    found = _index().find(words)
    cast, place, warnings = _choose(prompt, words, found, weights)
    if not people:
        left_out = [role for role in cast if SUBJECTS[role.subject].is_person]
        cast = [role for role in cast if role not in left_out]
        warnings += [f"The {role.subject} was left out: personGeneration is dont_allow." for role in left_out]
    particles = _first(found, Kind.PARTICLES, PARTICLES) or Particles.NONE
    weather = _first(found, Kind.WEATHER, WEATHERS) or Weather.CLEAR
    place = refine_place(place, particles, weather)
    script = Script(
        place=place,
        time=_first(found, Kind.TIME, TIMES)
        or PARTICLES_TIMES.get(particles)
        or PLACES[place].default_time
        or Time.DAY,
        weather=weather,
        camera=_first(found, Kind.CAMERA, CAMERAS)
        or _first(found, Kind.VIEWPOINT, VIEWPOINTS)
        or DEFAULT_CAMERAS[seed % len(DEFAULT_CAMERAS)],
        particles=particles,
        cast=tuple(cast[:ROLES_AT_MOST]),
        tint=choose_tint(words, found),
        pace=_first(found, Kind.PACE, PACES) or 1.0,
        seed=seed,
    )
    return Reading(script, tuple(warnings), seed)


@lru_cache(maxsize=1)
def _index() -> Index:
    lexicons = {
        Kind.PLACE: PLACES_OF,
        Kind.SUBJECT: SUBJECT_OF,
        Kind.TIME: TIMES,
        Kind.WEATHER: WEATHERS,
        Kind.CAMERA: CAMERAS,
        Kind.VIEWPOINT: VIEWPOINTS,
        Kind.PARTICLES: PARTICLES,
        Kind.PACE: PACES,
        Kind.COUNT: COUNTS,
        Kind.COLOUR: COLOURS,
    }
    return Index(lexicons, MASKED)


def _choose(
    prompt: str, words: Sequence[str], found: Sequence[Found], weights: Path
) -> tuple[list[Role], str, list[str]]:
    """Return cast, place and warnings: by the words, else by the meaning of the whole, else by what fits."""
    cast = choose_roles(words, found)
    place = choose_place(words, found, cast)
    if place is not None:
        cast = [role for role in cast if not is_scenery(place, role)]
    warnings: list[str] = []
    unknown = _unknown_words(words, found)
    guessed: Guess | None = None
    if unknown and (place is None or not cast):
        if has_weights(weights):
            guessed = guess(prompt, unknown, weights)
        else:
            warnings.append(WORDS_ONLY)
    if guessed and guessed.subject and not cast:
        cast = [Role(guessed.subject)]
    if place is None:
        place = _infer_place(found, cast, guessed)
    if place is None:
        place = FREE
        if not any(not phrase.negated for phrase in found):
            warnings.append(FREELY)
    place = move_nearby(place, cast)
    return [role for role in cast if suits(place, role)], place, warnings


def _infer_place(found: Sequence[Found], cast: Sequence[Role], guessed: Guess | None) -> str | None:
    """Return a place that no word names: nearest in meaning, home of the cast, or fit for the weather."""
    home = find_home(cast)
    places = guessed.places.items() if guessed else ()
    nearness, best = max(((value, name) for name, value in places if fit(name, cast) == 1), default=(0.0, None))
    if nearness >= (PLACE_SURE if home else PLACE_NEAR):
        return best
    return home or suggest_place(_first(found, Kind.PARTICLES, PARTICLES), _first(found, Kind.WEATHER, WEATHERS))


def _unknown_words(words: Sequence[str], found: Sequence[Found]) -> list[str]:
    """Return the words that no lexicon has and that may mean something."""
    known = {index for phrase in found for index in range(phrase.start, phrase.end)}
    unknown = (
        word
        for index, word in enumerate(words)
        if index not in known and len(word) > 2 and word not in SMALL_WORDS and not is_negated(words, index)
    )
    return list(dict.fromkeys(unknown))[:MAX_UNKNOWN_WORDS]


def _first(found: Sequence[Found], kind: Kind, lexicon: Mapping[str, Value]) -> Value | None:
    """Return the meaning of the first phrase of a kind."""
    return next((lexicon[phrase.texts[kind]] for phrase in found if phrase.is_a(kind) and not phrase.negated), None)
