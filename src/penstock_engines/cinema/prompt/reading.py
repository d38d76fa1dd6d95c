"""Reads a prompt: turns its words, and their meaning, into the script of a clip."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from penstock_engines.cast.wordbook import ENGLISH
from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.prompt.atlas import FREE
from penstock_engines.cinema.prompt.cast_search import Cast, open_cast, search, search_by_topic
from penstock_engines.cinema.prompt.grammar import ARTICLES, Vocabulary, find_nouns
from penstock_engines.cinema.prompt.kinship import find_young
from penstock_engines.cinema.prompt.languages import UNKNOWN, Text, read_text
from penstock_engines.cinema.prompt.lexicon import (
    CAMERAS,
    COLOURS,
    COUNTS,
    MASKED,
    NEGATIONS,
    PACES,
    PARTICLES,
    PARTICLES_TIMES,
    SMALL_WORDS,
    STOPS,
    TIMES,
    VIEWPOINTS,
    WEATHERS,
)
from penstock_engines.cinema.prompt.nearness.guessing import Guess, guess, has_weights
from penstock_engines.cinema.prompt.omissions import describe, find_omissions
from penstock_engines.cinema.prompt.phrases import Found, Index, Kind, is_negated
from penstock_engines.cinema.prompt.relations import find_relations, part_riders
from penstock_engines.cinema.prompt.roles import BY_HAND, SUBJECT_OF, Nouns, choose_roles, choose_tint
from penstock_engines.cinema.prompt.setting import (
    PLACES_OF,
    choose_place,
    find_home,
    fit,
    is_scenery,
    is_shown_at,
    move_nearby,
    places_near,
    refine_place,
    suggest_place,
    suits,
)
from penstock_engines.cinema.script import Camera, Particles, Role, Script, Time, Weather
from penstock_engines.cinema.subjects import Habitat, Motion

Value = TypeVar("Value")

NO_NOUNS = STOPS | NEGATIONS | ARTICLES | {"of", "slowly", "fast"}
ROLES_AT_MOST = 5
MAX_UNKNOWN_WORDS = 24  # words whose meaning is looked up
PLACE_NEAR = 0.28  # closeness at which a place in no lexicon is chosen
PLACE_LIKELY = 0.34  # closeness at which it is chosen for a member of the cast
PLACE_SURE = 0.42  # closeness at which it is chosen over the home of the cast
DEFAULT_CAMERAS = (Camera.PAN_RIGHT, Camera.PUSH_IN, Camera.PAN_LEFT)
CLOSE_UPS = frozenset({"close up", "closeup", "macro", "macro shot", "extreme close up", "portrait shot"})
CLOSE_UP_SCALE = 1.9
SMALL, SMALL_SCALE = 0.25, 0.65
"""Height of small things, and their scale beside others."""
FREELY = "Nothing in the prompt was recognised: the clip was drawn freely."
WORDS_ONLY = "The weights of the language model are missing: the prompt was read by its words only."


@dataclass(frozen=True, slots=True)
class Reading:
    """The script that a prompt was understood as, and warnings for its author."""

    script: Script
    warnings: tuple[str, ...]
    seed: int
    is_timed: bool = True
    """Whether the prompt, its weather or its place decides the time of day."""
    is_directed: bool = True
    """Whether the prompt names a movement of the camera."""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt, its phrases, and the subject of each word that means one."""

    text: Text
    found: Sequence[Found]
    nouns: Nouns
    unknown: Mapping[int, int]
    """Positions of nouns that nothing is known of, each with the start of its compound."""
    stand_ins: Nouns
    """Members of the cast for words that name a place."""


def read_prompt(prompt: str, *, people: bool, weights: Path, alone: bool = False, unwanted: str = "") -> Reading:
    """Read any text. With `people` false, no person is seen. With `alone`, the subjects are drawn without a place.

    The subjects that `unwanted` names are left out.
    """
    digest = hashlib.sha256(prompt.encode(errors="surrogatepass")).digest()
    seed = int.from_bytes(digest[:4]) >> 1
    members = open_cast(weights)
    read = _read_words(prompt, members, seed, weights)
    words, found = read.text.words, read.found
    cast, place, warnings = _choose(read, weights, alone=alone)
    if unwanted:
        named, _, _ = _choose(_read_words(unwanted, members, seed, weights), weights, alone=True)
        names = {role.subject for role in named}
        cast = [role for role in cast if role.subject not in names]
    left_out = [] if people else [role for role in cast if role.player.is_person]
    cast = [role for role in cast if role not in left_out]
    warnings += [f"The {role.subject} was left out: personGeneration is dont_allow." for role in left_out]
    particles = _first(found, Kind.PARTICLES, PARTICLES) or Particles.NONE
    weather = _first(found, Kind.WEATHER, WEATHERS) or Weather.CLEAR
    place = refine_place(place, particles, weather)
    shown = tuple(_come_close(found, cast[:ROLES_AT_MOST]))
    time = _first(found, Kind.TIME, TIMES) or PARTICLES_TIMES.get(particles) or PLACES[place].default_time
    camera = _first(found, Kind.CAMERA, CAMERAS) or _first(found, Kind.VIEWPOINT, VIEWPOINTS)
    script = Script(
        place=place,
        time=time or Time.DAY,
        weather=weather,
        camera=camera or DEFAULT_CAMERAS[seed % len(DEFAULT_CAMERAS)],
        particles=particles,
        cast=shown,
        relations=find_relations(words, found, read.nouns, shown),
        tint=choose_tint(words, found),
        pace=_first(found, Kind.PACE, PACES) or 1.0,
        seed=seed,
    )
    omissions = find_omissions(
        read.text, found, read.unknown, replace(script, cast=(*script.cast, *left_out)), read.nouns, members
    )
    if omissions:
        warnings.append(describe(omissions, read.text, members, weights))
    is_timed = time is not None or weather is not Weather.CLEAR
    return Reading(script, tuple(warnings), seed, is_timed, camera is not None)


def _read_words(prompt: str, members: Cast | None, seed: int, weights: Path) -> _Prompt:
    """Find all phrases of a prompt, with those that name one of the cast."""
    text = read_text(prompt, members.book if members else None, _index().knows)
    index, nouns = _index(), dict(BY_HAND)
    found = index.find(text.words)
    if members:
        phrases = search(text, found, members)
        found = index.add_subjects(phrases).find(text.words)
        phrases |= dict(search_by_topic(text.words, found, _unknown_nouns(text, found, members), members, weights))
        found = index.add_subjects(phrases).find(text.words)
        nouns |= {" ".join(words): members.make(symbol, " ".join(words), seed) for words, symbol in phrases.items()}
        index = index.add_subjects(phrases)
    found = list(part_riders(text.words, found, nouns))
    young = dict(find_young(text.words, found, nouns))
    if young:
        nouns |= {" ".join(words): subject for words, subject in young.items()}
        found = list(part_riders(text.words, index.add_subjects(young).find(text.words), nouns))
    places = {phrase.texts[Kind.PLACE] for phrase in found if phrase.is_a(Kind.PLACE)}
    symbols = {word: members.find_exactly(word) for word in places} if members else {}
    stand_ins = {word: members.make(symbol, word, seed) for word, symbol in symbols.items() if members and symbol}
    return _Prompt(text, found, nouns, _unknown_nouns(text, found, members), stand_ins)


def _unknown_nouns(text: Text, found: Sequence[Found], members: Cast | None) -> Mapping[int, int]:
    if text.language.code != ENGLISH:
        known = {index for phrase in found for index in range(phrase.start, phrase.end)}
        tables = (index for index, word in enumerate(text.words) if word.isalpha() and word not in NO_NOUNS)
        return {index: index for index in sorted({*text.nouns, *tables} - known)}
    return find_nouns(text.words, found, members.vocabulary if members else Vocabulary(), text.names)


def _keep_proportion(cast: Sequence[Role]) -> list[Role]:
    """Return the cast with small things smaller beside beings and vehicles. Alone they are seen from near."""
    beside = any(role.player.habitat is not Habitat.FIXED and not role.player.is_bust for role in cast)
    people = any(role.player.is_person and not role.player.is_bust for role in cast)
    if not (beside or people):
        return list(cast)
    return [replace(role, scale=role.scale * SMALL_SCALE) if _is_small(role) else role for role in cast]


def _is_small(role: Role) -> bool:
    player = role.player
    return player.habitat is Habitat.FIXED and player.size <= SMALL and not player.is_person


def _come_close(found: Sequence[Found], cast: Sequence[Role]) -> list[Role]:
    """Return the cast in proportion, or all of it large if the prompt asks for a close-up."""
    texts = {text for phrase in found for text in phrase.texts.values() if not phrase.negated}
    if texts.isdisjoint(CLOSE_UPS):
        return _keep_proportion(cast)
    return [replace(role, scale=CLOSE_UP_SCALE) for role in cast]


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


def _choose(read: _Prompt, weights: Path, *, alone: bool) -> tuple[list[Role], str, list[str]]:
    """Return cast, place and warnings: by the words, else by the meaning of the whole, else by what fits."""
    words, found = read.text.words, read.found
    cast = choose_roles(words, found, read.nouns)
    place = choose_place(words, found, cast)
    cast = list(_leave_scenery(read, None if alone else place, cast))
    warnings: list[str] = []
    unknown = _unknown_words(words, found)
    guessed: Guess | None = None
    if unknown and (place is None or not cast):
        if has_weights(weights):
            guessed = guess(" ".join(word for word in words if not word.startswith(UNKNOWN)), unknown, weights)
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
    return list(_find_alone(read, cast) if alone else _fill_place(read, place, cast)), place, warnings


def _find_alone(read: _Prompt, cast: Sequence[Role]) -> Iterable[Role]:
    """Return the cast, or if it is empty the things that stand for the prompt's places, such as a castle."""
    return cast or _stand_in(read, None, cast)


def _fill_place(read: _Prompt, place: str, cast: Sequence[Role]) -> Iterator[Role]:
    """Yield the cast that can be at a place, and what stands for other places."""
    kept = [role for role in cast if role.sprite or suits(place, role)]
    yield from kept
    yield from _stand_in(read, place, kept)


def _leave_scenery(read: _Prompt, place: str | None, cast: Sequence[Role]) -> Iterator[Role]:
    """Yield the cast without what the place shows anyway. A tree that something is at stays."""
    related = find_relations(read.text.words, read.found, read.nouns, cast)
    anchors = {cast[relation.anchor] for relation in related}
    for role in cast:
        if place is None or not is_scenery(place, role) or (role in anchors and role.player.motion is Motion.SWAY):
            yield role


def _stand_in(read: _Prompt, place: str | None, cast: Sequence[Role]) -> Iterator[Role]:
    """Yield members of the cast for places and things that the chosen place, if any, does not show, such as a bed."""
    names = {role.subject for role in cast}
    for phrase in read.found:
        text = phrase.texts.get(Kind.PLACE)
        if text is None or phrase.negated or phrase.is_a(Kind.SUBJECT) or place in places_near(text):
            continue
        subject = read.stand_ins.get(text)
        hidden = place is None or not is_shown_at(place, text)
        if subject is not None and subject.name not in names and hidden:
            names.add(subject.name)
            yield Role(subject.name, sprite=subject)


def _infer_place(found: Sequence[Found], cast: Sequence[Role], guessed: Guess | None) -> str | None:
    """Return a place that no word names: nearest in meaning, home of the cast, or fit for the weather."""
    weather = _first(found, Kind.WEATHER, WEATHERS)
    home = find_home(cast, weather)
    places = guessed.places.items() if guessed else ()
    nearness, best = max(((value, name) for name, value in places if fit(name, cast) == 1), default=(0.0, None))
    anywhere = bool(home) and cast[0].sprite is not None  # most of the cast is at home anywhere
    if nearness >= (PLACE_LIKELY if anywhere else PLACE_SURE if home else PLACE_NEAR):
        return best
    return home or suggest_place(_first(found, Kind.PARTICLES, PARTICLES), weather)


def _unknown_words(words: Sequence[str], found: Sequence[Found]) -> list[str]:
    """Return the words that no lexicon has and that may mean something."""
    known = {index for phrase in found for index in range(phrase.start, phrase.end)}
    unknown = (
        word
        for index, word in enumerate(words)
        if index not in known
        and len(word) > 2
        and word[0] != UNKNOWN
        and word not in SMALL_WORDS
        and not is_negated(words, index)
    )
    return list(dict.fromkeys(unknown))[:MAX_UNKNOWN_WORDS]


def _first(found: Sequence[Found], kind: Kind, lexicon: Mapping[str, Value]) -> Value | None:
    """Return the meaning of the first phrase of a kind."""
    return next((lexicon[phrase.texts[kind]] for phrase in found if phrase.is_a(kind) and not phrase.negated), None)
