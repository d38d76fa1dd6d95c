"""Finds the young of animals in a prompt: "a whale and her calf", "lion cubs"."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from penstock_engines.cinema.prompt.phrases import Found, Kind
from penstock_engines.cinema.subjects import Habitat, Subject

YOUNG = frozenset(
    (
        *(
            "calf",
            "calves",
            "cub",
            "cubs",
            "pup",
            "pups",
            "foal",
            "foals",
            "baby",
            "babies",
            "chick",
            "chicks",
            "young",
        ),
        *("joey", "joeys", "fawn", "fawns", "kid", "kids", "kit", "kits", "duckling", "ducklings", "cygnet", "cygnets"),
        *("gosling", "goslings", "colt", "colts", "filly", "fillies", "owlet", "owlets", "eaglet", "eaglets"),
        *("puppy", "puppies", "kitten", "kittens", "lamb", "lambs", "piglet", "piglets", "offspring", "hatchlings"),
    )
)
PARENTS: Mapping[str, str] = MappingProxyType(
    {
        young: parent
        for parent, text in {
            "duck": "duckling",
            "swan": "cygnet",
            "goose": "gosling",
            "pig": "piglet",
            "horse": "foal, colt, filly",
            "deer": "fawn",
            "kangaroo": "joey",
            "sheep": "lamb",
            "cow": "calf",
            "owl": "owlet",
            "eagle": "eaglet",
            "bear": "cub",
        }.items()
        for young in text.split(", ")
    }
)
"""The animal that a word for its young means, if no other animal is named before."""
LOOSE = frozenset({"calf", "cub", "chick", "pup", "kit", "baby", "young", "offspring", "hatchling", "kid"})
"""Words for the young of any animal."""
OWNERS = frozenset({"its", "her", "his", "their"})
BREEDING = frozenset({Habitat.GROUND, Habitat.WATER, Habitat.AIR, Habitat.UNDERWATER})
REACH = 3  # words from the owner to the young, such as "her three little cubs"
YOUNG_SCALE = 0.55
YOUNG_PREFIX = "young "
CHILD = "child"


def find_young(
    words: Sequence[str], found: Sequence[Found], nouns: Mapping[str, Subject]
) -> Iterator[tuple[tuple[str, ...], Subject]]:
    """Yield the words for young animals, each with its parent's subject in small. After a person it is a child."""
    for phrase in found:
        if phrase.is_a(Kind.SUBJECT) and words[max(0, phrase.start - 1)] == "baby" and phrase.start:
            parent = nouns[phrase.texts[Kind.SUBJECT]]
            yield tuple(words[phrase.start - 1 : phrase.end]), _make_young(parent, nouns[CHILD], words[phrase.end - 1])
    subjects = [phrase for phrase in found if phrase.is_a(Kind.SUBJECT)]
    for index, word in enumerate(words):
        if word not in YOUNG:
            continue
        before = [phrase for phrase in subjects if phrase.end <= index]
        parent = nouns[before[-1].texts[Kind.SUBJECT]] if before else None
        is_compound = bool(before) and before[-1].end == index and word not in nouns
        owned = not OWNERS.isdisjoint(words[max(0, index - REACH) : index])
        if parent and (is_compound or owned):
            start = before[-1].start if is_compound else index
            yield tuple(words[start : index + 1]), _make_young(parent, nouns[CHILD], word)
        elif _singular(word) in PARENTS:
            beside = parent and _singular(word) in LOOSE and parent.habitat in BREEDING and not parent.is_person
            animal = parent if parent and beside else nouns[PARENTS[_singular(word)]]
            yield (word,), _make_young(animal, nouns[CHILD], word)


def _singular(word: str) -> str:
    return {"calves": "calf", "puppies": "puppy", "babies": "baby", "fillies": "filly"}.get(
        word, word.removesuffix("s")
    )


def _make_young(parent: Subject, child: Subject, word: str) -> Subject:
    if parent.is_person:
        return child
    if parent.habitat in {Habitat.ROAD, Habitat.RAIL, Habitat.FIXED}:
        return parent
    name = YOUNG_PREFIX + parent.name
    return replace(parent, name=name, words=(name, word, _singular(word)), size=parent.size * YOUNG_SCALE)
