"""Finds the young of animals in a prompt: "a whale and her calf", "lion cubs"."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
        *("puppy", "puppies", "kitten", "kittens", "lamb", "lambs", "piglet", "piglets", "offspring", "hatchlings"),
    )
)
OWNERS = frozenset({"its", "her", "his", "their"})
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
        before = [phrase for phrase in subjects if phrase.end <= index]
        if word not in YOUNG or not before:
            continue
        parent = nouns[before[-1].texts[Kind.SUBJECT]]
        is_compound = before[-1].end == index and word not in nouns
        if is_compound or not OWNERS.isdisjoint(words[max(0, index - REACH) : index]):
            start = before[-1].start if is_compound else index
            yield tuple(words[start : index + 1]), _make_young(parent, nouns[CHILD], word)


def _make_young(parent: Subject, child: Subject, word: str) -> Subject:
    if parent.is_person:
        return child
    if parent.habitat in {Habitat.ROAD, Habitat.RAIL, Habitat.FIXED}:
        return parent
    singular = {"calves": "calf", "puppies": "puppy", "babies": "baby"}.get(word, word.removesuffix("s"))
    name = YOUNG_PREFIX + parent.name
    return replace(parent, name=name, words=(name, word, singular), size=parent.size * YOUNG_SCALE)
