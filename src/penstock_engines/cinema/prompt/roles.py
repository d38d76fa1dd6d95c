"""Chooses the cast of a clip: the subjects that a prompt names, with number and colour."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from penstock_engines.cinema.paint.brush import Colour
from penstock_engines.cinema.prompt.languages import list_synonyms
from penstock_engines.cinema.prompt.lexicon import COLOURS, COUNTS, NATURAL, PREPOSITIONS, STOPS, TINTED, by_phrase
from penstock_engines.cinema.prompt.phrases import SIMILES, Found, Kind, begin_noun
from penstock_engines.cinema.script import Role
from penstock_engines.cinema.subjects import SUBJECTS, Habitat, Motion, Subject

PLURAL = 3  # the number for a plural such as "horses"
ARTICLES = frozenset({"a", "an", "one", "this", "that", "single", "lone", "another"})
UNCHANGED = frozenset({"deer", "fish", "sheep", "reindeer", "salmon", "squid", "elk", "jellyfish", "moose", "aircraft"})
"""Nouns without a plural of their own. Without an article they mean several."""
IRREGULAR = frozenset(
    {"people", "men", "women", "children", "wolves", "geese", "mice", "calves", "oxen", "cattle", "crowd", "flock"}
)
CARRIED = frozenset({"umbrella", "umbrellas", "surfboard", "surfboards", "parachute", "figure", "figures"})
"""Words that stand for a person, unless the prompt names one who carries the thing."""
KIN = frozenset({"mother", "father", "mothers", "family", "friend", "friends", "son", "sons", "king", "queen"})
OWNERS = frozenset({"its", "their"})
"""Possessives before a family word that is then an animal's kin, not a person."""
NATURAL_COLOURS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "fox": frozenset({"red", "orange"}),
        "squirrel": frozenset({"red", "brown"}),
        "deer": frozenset({"red", "brown"}),
        "bear": frozenset({"brown"}),
        "lion": frozenset({"golden", "yellow"}),
        "tiger": frozenset({"orange"}),
        "panda": frozenset({"black", "white"}),
        "zebra": frozenset({"black", "white"}),
        "penguin": frozenset({"black", "white"}),
        "whale": frozenset({"blue"}),
        "flamingo": frozenset({"pink"}),
        "swan": frozenset({"white"}),
    }
)
"""Colours that a subject has anyway."""
MORE_WORDS: Mapping[str, str] = by_phrase(
    {
        "rowing boat": "rowing a boat, rows a boat, rowing his boat, rowing her boat, rowing",
        "horse rider": "riding a horse, rides a horse, on horseback, riding horses, horseback riding, rides his horse",
        "cyclist": "cycling, riding a bike, rides a bike, riding a bicycle, rides a bicycle, riding her bike",
        "surfer": "surfing",
        "skier": "skiing, snowboarding",
        "skateboarder": "skateboarding",
        "diver": "scuba diving, snorkelling, snorkeling",
        "sailboat": "sailing",
        "horse": "mule, mules, steed, steeds",
        "cow": "buffalo, buffaloes, yak, yaks",
        "leopard": "cougar, puma, bobcat",
        "ship": "vessel, vessels",
        "coffee cup": "cup, cups, tea, cup of tea, "
        "hot chocolate, cocoa, coffee, espresso, cappuccino, cup of coffee, cups of coffee",
        "musician": "violinist, pianist, drummer, guitarist, saxophonist, trumpeter, cellist, busker, band, "
        "bands, jazz band, rock band, orchestra",
        "dog": "doggy, doggo, pooch, bulldog, poodle, shepherd dog, beagle, dachshund, golden retriever, corgi, "
        "corgis, chihuahua, husky, huskies, terrier, labrador, spaniel, retriever, pug, dalmatian, collie, greyhound",
        "child": "baby, babies, infant, grandson, granddaughter, grandchild, grandchildren",
        "man": "someone, somebody, crowd, crowds, he",
        "woman": "she, actress, mum, mom",
        "knight": "legionary, legionaries, legionnaire, centurion, gladiator, crusader, viking, vikings",
    }
)
"""Further words. A word for an activity maps to the subject that does it."""
VERBS = frozenset(
    {"watch", "watches", "cook", "cooks", "swallow", "swallows", "ram", "rams", "bears", "ships", "coaches"}
)
"""Nouns that are also verbs. Right after another word, without an article, they are verbs."""
ANYONE = frozenset({"man", "woman", "child", "girl", "old man", "couple", "sailboat", "horse"})
"""Subjects that are not shown again beside themselves riding, rowing or cycling."""
RIDERS = frozenset(
    {"rowing boat", "horse rider", "cyclist", "surfer", "skier", "skateboarder", "diver", "motorbike", "canoe", "sled"}
)
STAND_INS = frozenset(
    (
        *("coyote", "chipmunk", "ape", "chimpanzee", "baboon", "antelope", "gazelle", "moose", "elk", "ibex", "llama"),
        *("pegasus", "mammoth", "cheetah", "jaguar", "panther", "lynx", "cougar", "puma", "bobcat", "wallaby", "slug"),
        *("porcupine", "toad", "worm", "gecko", "iguana", "lizard", "komodo dragon", "raptor", "velociraptor"),
        *("godzilla", "hawk", "falcon", "condor", "vulture", "albatross", "raven", "magpie", "toucan", "heron"),
        *("crane", "pelican", "kingfisher", "turkey", "mosquito", "beetle", "ant", "wasp", "hornet", "orca"),
        *("narwhal", "kraken", "lobster", "crayfish", "gondola", "van", "pickup", "combine harvester", "subway"),
        *("metro", "cable car", "missile", "asteroid", "soldier", "warrior", "ninja", "scarecrow", "cowboy"),
        *("gardener", "baker", "waiter", "priest", "queen", "bride", "fairy", "superhero", "hero", "family"),
        *("friend", "beast", "yeti", "troll", "ogre", "temple", "shrine", "yurt", "monument", "sculpture", "mule"),
        *("buffalo", "yak", "violinist", "pianist", "drummer", "saxophonist", "trumpeter", "cellist", "orchestra"),
        *("band", "jazz band", "rock band", "legionary", "legionnaire", "centurion", "gladiator", "crusader", "viking"),
        *("mercenary", "lamp", "cello", "actress", "swimmer", "crowd", "pilgrim", "emperor", "prince", "legionaries"),
    )
)
"""Words whose drawing by hand is only near. They are drawn, and listed."""
PLAYERS = frozenset({"player", "players"})
BURNING = frozenset({"burning", "ablaze"})
"""Words for a fire at the thing beside them."""
FALLS = frozenset({"falling", "falls", "fall", "dropping", "drops", "plummets"})
FLIES = frozenset({"flying", "flies", "soaring", "soars", "floating", "hovering"})
GROUNDED = frozenset({Habitat.GROUND, Habitat.FIXED, Habitat.ROAD, Habitat.UNDERWATER, Habitat.WATER})
AT_A_PLANT = frozenset({"under", "underneath", "beneath", "below", "beside", "behind", "near", "by", "to", "in"})
"""Words before a single plant that something is at. "in" is of "in front of", "to" of "next to"."""
APART = frozenset({"and", "with", "watching", "watches", "while", ",", "."})
SUBJECT_OF = {
    **{word: name for word, name in MORE_WORDS.items() if name in SUBJECTS},
    **{word: name for name, subject in SUBJECTS.items() for word in subject.words},
}


Nouns: TypeAlias = Mapping[str, Subject]
"""The subject of every word that means one."""
BY_HAND: Nouns = {word: SUBJECTS[name] for word, name in SUBJECT_OF.items()}


def choose_roles(words: Sequence[str], found: Sequence[Found], nouns: Nouns = BY_HAND) -> list[Role]:
    """Return the roles in the prompt's order. A repeated subject is one role unless its colour differs."""
    cast: dict[tuple[str, Colour | None], Role] = {}
    for before, phrase in _subjects(words, found, nouns):
        text = phrase.texts[Kind.SUBJECT]
        subject = nouns[text]
        name = subject.name
        if text in CARRIED and any(role.player.is_person for role in cast.values()):
            continue
        modifiers = list(_modifiers(found, phrase, before))
        colour = _find_colour(name, modifiers)
        count = next((COUNTS[text] for kind, text in modifiers if kind is Kind.COUNT), None)
        known = next((key for key in cast if key[0] == name and (colour is None or key[1] in {None, colour})), None)
        if known is None:
            moved = _move(words, phrase, subject)
            sprite = None if SUBJECTS.get(name) is moved else moved
            cast[name, colour] = Role(name, count or _plain_count(words, phrase, before, subject), colour, 1.0, sprite)
        elif colour is not None:
            cast[known] = replace(cast[known], colour=colour)
    return list(cast.values())


def _move(words: Sequence[str], phrase: Found, subject: Subject) -> Subject:
    """Return a subject that moves as the words beside it say: "a falling apple", "pigs fly"."""
    beside = {*words[max(0, phrase.start - 1) : phrase.start], *words[phrase.end : phrase.end + 1]}
    if not FALLS.isdisjoint(beside) and subject.habitat is not Habitat.UNDERWATER:
        return replace(subject, habitat=Habitat.FIXED, motion=Motion.FALL)
    if not FLIES.isdisjoint(beside) and subject.habitat in GROUNDED and not subject.is_person:
        return replace(subject, habitat=Habitat.AIR, motion=Motion.FLY)
    return subject


def choose_tint(words: Sequence[str], found: Sequence[Found]) -> Colour | None:
    """Return the colour that the prompt gives the whole scene, by its sky, its light or the place itself."""
    places = {phrase.start for phrase in found if phrase.is_a(Kind.PLACE) and not phrase.is_a(Kind.SUBJECT)}
    for phrase in found:
        text = phrase.texts.get(Kind.COLOUR)
        if text is None or phrase.negated:
            continue
        for position, word in enumerate(words[phrase.end : phrase.end + 3], phrase.end):
            if word in TINTED or (position in places and text not in NATURAL):
                return COLOURS[text]
            if word in STOPS:
                break
    return None


def _subjects(words: Sequence[str], found: Sequence[Found], nouns: Nouns) -> Iterator[tuple[int, Found]]:
    """Yield each phrase that names a subject, with the start of its noun phrase."""
    named = [phrase for phrase in found if phrase.is_a(Kind.SUBJECT) and is_noun(words, phrase)]
    alone = all(_is_plant(phrase, nouns) for phrase in named)
    for phrase, following in itertools.zip_longest(named, named[1:]):
        burns = phrase.texts[Kind.SUBJECT] in BURNING
        if following and not burns and _is_same(words, phrase, following, nouns):
            continue
        before = begin_noun(words, found, phrase)
        link = words[before - 1] if before else ""
        behind = link in {*PREPOSITIONS, "with"} or "of" in words[before : phrase.start]
        scenery = behind and not alone and _is_plant(phrase, nouns) and not _is_anchor(words, phrase, before)
        owned = phrase.texts[Kind.SUBJECT] in KIN and not OWNERS.isdisjoint(words[before : phrase.start])
        if not (owned or scenery or link in SIMILES):
            yield before, phrase


def is_noun(words: Sequence[str], phrase: Found) -> bool:
    """Return whether a phrase names an actor, not particles, something absent or an activity."""
    before = words[phrase.start - 1] if phrase.start else "."
    done = words[phrase.start] in VERBS and before not in STOPS | ARTICLES | {"the"}
    return not (done or phrase.negated or phrase.is_a(Kind.PARTICLES))


def _is_anchor(words: Sequence[str], phrase: Found, before: int) -> bool:
    """Return whether a plant is one that something is at, as in "a fox under a tree", not a whole wood."""
    link = words[before - 1] if before else ""
    return link in AT_A_PLANT and words[before] in ARTICLES and not words[phrase.end - 1].endswith("s")


def _is_plant(phrase: Found, nouns: Nouns) -> bool:
    """Return whether it grows: any that sways and is drawn by hand."""
    subject = nouns[phrase.texts[Kind.SUBJECT]]
    return subject.motion is Motion.SWAY and subject.name in SUBJECTS


@cache
def _deeds() -> frozenset[str]:
    return frozenset(word for word, _ in list_synonyms("does"))


def _is_same(words: Sequence[str], phrase: Found, following: Found, nouns: Nouns) -> bool:
    """Return whether a noun only describes the next one (a horse cart), or is part of it (a man riding a horse)."""
    between = words[phrase.end : following.start]
    if words[following.start] in PLAYERS or not _deeds().isdisjoint({words[phrase.start], words[following.start]}):
        return False  # a tennis player is somebody and tennis, and "knits" says what somebody does
    first, second = (nouns[part.texts[Kind.SUBJECT]].name for part in (phrase, following))
    rides = second in RIDERS and first in ANYONE
    return not between or (rides and len(between) <= 4 and APART.isdisjoint(between))


def _modifiers(found: Sequence[Found], phrase: Found, before: int) -> Iterator[tuple[Kind, str]]:
    """Yield the numbers and colours before a noun, the nearest first."""
    for other in reversed(found):
        if before <= other.start and other.end <= phrase.start:
            yield from other.texts.items()


def find_role_colour(words: Sequence[str], found: Sequence[Found], phrase: Found, name: str) -> Colour | None:
    """Return the colour that the prompt gives a subject, if it does not have it anyway."""
    return _find_colour(name, list(_modifiers(found, phrase, begin_noun(words, found, phrase))))


def _find_colour(name: str, modifiers: Sequence[tuple[Kind, str]]) -> Colour | None:
    natural = NATURAL_COLOURS.get(name, frozenset())
    return next((COLOURS[text] for kind, text in modifiers if kind is Kind.COLOUR and text not in natural), None)


def _plain_count(words: Sequence[str], phrase: Found, before: int, subject: Subject) -> int:
    """Return the number that a noun without a numeral means."""
    noun = words[phrase.end - 1]
    text = phrase.texts[Kind.SUBJECT]
    if " of " in text and subject.name in SUBJECTS:
        return 1 if text.startswith("cup ") else COUNTS.get(text.partition(" of ")[0] + " of", PLURAL)
    same = (*subject.words, *(word for word, name in MORE_WORDS.items() if name == subject.name))
    singulars = {text.removesuffix("s"), text.removesuffix("es"), text.removesuffix("ies") + "y"} - {text}
    if noun in IRREGULAR or (noun.endswith("s") and not singulars.isdisjoint(same)):
        return PLURAL
    return PLURAL if noun in UNCHANGED and ARTICLES.isdisjoint(words[before : phrase.start]) else 1
