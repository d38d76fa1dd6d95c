"""Chooses the place of a clip: one that the prompt names, or else one that suits the cast."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from penstock_engines.cast.wordbook import singular_forms
from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.prompt.atlas import (
    HABITAT_HOMES,
    HOMES,
    KIND_HOMES,
    MORE_WORDS,
    NEARBY,
    REFINED,
    SHOWS,
    SUGGESTED,
    WEAK,
)
from penstock_engines.cinema.prompt.kinship import YOUNG_PREFIX
from penstock_engines.cinema.prompt.lexicon import DIRECTIONS, PREPOSITIONS
from penstock_engines.cinema.prompt.phrases import SIMILES, Found, Kind, begin_noun
from penstock_engines.cinema.scene import Surface
from penstock_engines.cinema.script import Particles, Role, Weather
from penstock_engines.cinema.subjects import Habitat

SURFACES: Mapping[Habitat, frozenset[Surface]] = MappingProxyType(
    {
        Habitat.GROUND: frozenset({Surface.GROUND, Surface.ROAD, Surface.INDOOR, Surface.WATER}),
        Habitat.FIXED: frozenset({Surface.GROUND, Surface.ROAD, Surface.INDOOR, Surface.WATER}),
        Habitat.ROAD: frozenset({Surface.GROUND, Surface.ROAD}),
        Habitat.RAIL: frozenset({Surface.ROAD}),
        Habitat.WATER: frozenset({Surface.WATER}),
        Habitat.UNDERWATER: frozenset({Surface.UNDERWATER}),
        Habitat.AIR: frozenset({Surface.GROUND, Surface.ROAD, Surface.INDOOR, Surface.WATER, Surface.SKY}),
        Habitat.SPACE: frozenset({Surface.SPACE, Surface.SKY, Surface.GROUND, Surface.ROAD, Surface.WATER}),
    }
)
"""The surfaces where a habitat's subjects can be. Walkers go on the shore of a water."""
OPEN_AIR = frozenset({Weather.RAIN, Weather.STORM, Weather.SNOW, Weather.FOG, Weather.WIND})
DRY_LAND = frozenset({Surface.GROUND, Surface.ROAD})
LEAPING = frozenset({"dolphin", "whale", "shark"})
"""Underwater subjects that can also be seen from above."""


def _name_places() -> dict[str, tuple[str, ...]]:
    """Return the places that a word may mean, in singular and plural."""
    named: dict[str, tuple[str, ...]] = {word: (place.name,) for place in PLACES.values() for word in place.words}
    for word, places in MORE_WORDS.items():
        named[word] = tuple(dict.fromkeys((*named.get(word, ()), *places)))
    for word, places in list(named.items()):
        named.setdefault(word + "s", places)
        named.setdefault(word.removesuffix("s"), places)
    return named


PLACES_OF = _name_places()


def choose_place(words: Sequence[str], found: Sequence[Found], cast: Sequence[Role]) -> str | None:
    """Return the named place that suits the cast best. "Over the city" counts more than "city" alone."""
    scores: dict[str, float] = {}
    for phrase in found:
        if phrase.negated or not phrase.is_a(Kind.PLACE):
            continue
        before = begin_noun(words, found, phrase)
        link = words[before - 1] if before else ""
        if link in SIMILES:
            continue
        text = phrase.texts[Kind.PLACE]
        weight = (link in PREPOSITIONS - DIRECTIONS) - (
            text in WEAK or phrase.is_a(Kind.TIME, Kind.WEATHER, Kind.SUBJECT)
        )
        for rank, place in enumerate(PLACES_OF[text]):
            score = weight - rank / 10 + 2 * fit(place, cast)
            scores[place] = max(score, scores.get(place, score))
    return max(scores, key=scores.__getitem__, default=None)


def is_scenery(place: str, role: Role) -> bool:
    """Return whether a subject belongs to the place anyway, as trees to a forest."""
    subject = role.player
    return subject.habitat is Habitat.FIXED and not set(subject.words).isdisjoint(PLACES[place].words)


def is_shown_at(place: str, word: str) -> bool:
    """Return whether a place shows a thing anyway, such as the rug of a room."""
    return not SHOWS.get(place, frozenset()).isdisjoint({word, *singular_forms(word)})


def places_near(word: str) -> set[str]:
    """Return the places that a word means, and those beside them or in another season."""
    named = PLACES_OF[word]
    beside = {other for place in named for other in NEARBY.get(place, ()) if word not in WEAK}
    return {*named, *beside, *(variant for (place, _), variant in REFINED.items() if place in named)}


def refine_place(place: str, *hints: Particles | Weather) -> str:
    """Return the variant of the place in this season or weather."""
    return next((REFINED[place, hint] for hint in hints if (place, hint) in REFINED), place)


def suits(place: str, role: Role) -> bool:
    """Return whether a subject can be seen at a place."""
    habitat, surface = role.player.habitat, PLACES[place].surface
    if (habitat is Habitat.RAIL and place == HABITAT_HOMES[habitat]) or (habitat is Habitat.ROAD and place == "hall"):
        return True
    return surface in SURFACES[habitat] or (role.subject in LEAPING and surface is Surface.WATER)


def fit(place: str, cast: Sequence[Role]) -> float:
    """Return the share of the cast that suits a place, from 0 to 1, weighted towards the first. No cast gives 1."""
    weights = {role: 1 / (1 + index) ** 2 for index, role in enumerate(cast)}
    return sum(weights[role] for role in cast if suits(place, role)) / (sum(weights.values()) or 1) if cast else 1


def move_nearby(place: str, cast: Sequence[Role]) -> str:
    """Return the place, a nearby one that suits more of the cast, or the home of its first subject."""
    best = max((place, *NEARBY.get(place, ())), key=lambda other: fit(other, cast))
    return best if fit(best, cast) else find_home(cast) or place


def suggest_place(*hints: Particles | Weather | None) -> str | None:
    """Return the place that shows these particles or this weather best."""
    return next((SUGGESTED[hint] for hint in hints if hint and hint in SUGGESTED), None)


def find_home(cast: Sequence[Role], weather: Weather | None = None) -> str | None:
    """Return the home of the first subject of a cast: outdoors if the prompt states the weather."""
    if not cast:
        return None
    subject = cast[0].player
    outdoors = HABITAT_HOMES[subject.habitat]
    named = HOMES.get(subject.name.removeprefix(YOUNG_PREFIX))
    by_kind = (place for kinds, place in KIND_HOMES.items() if subject.kind in kinds)
    home = named or next(by_kind, outdoors)
    if weather is not None and weather in OPEN_AIR and PLACES[home].surface is Surface.INDOOR:
        suggested = SUGGESTED[weather]
        return suggested if PLACES[suggested].surface in DRY_LAND else outdoors
    return home
