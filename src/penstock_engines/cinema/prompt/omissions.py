"""Lists what of a prompt is not drawn, with the nearest that can be, in the language of the prompt."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock_engines.cast.wordbook import ENGLISH
from penstock_engines.cinema.prompt.cast_search import Cast
from penstock_engines.cinema.prompt.guessing import has_weights, open_meaning
from penstock_engines.cinema.prompt.languages import Text
from penstock_engines.cinema.prompt.lexicon import PARTICLES, STOPS
from penstock_engines.cinema.prompt.phrases import Found, Kind, is_negated
from penstock_engines.cinema.prompt.roles import KIN, Nouns
from penstock_engines.cinema.prompt.setting import is_scenery, places_near
from penstock_engines.cinema.script import Role, Script
from penstock_engines.cinema.subjects import SUBJECTS

NEAR = 0.55
"""Closeness in meaning at which something is offered as the nearest."""
MAX_LISTED = 12
EVERYWHERE = frozenset({"sky", "skies", "air", "horizon", "ground", "light", "sun", "cloud", "clouds", "shadow"})
COLOURED_THINGS = frozenset(
    (
        *("lavender", "lilac", "honey", "chocolate", "amber", "emerald", "ruby", "sapphire", "jade", "ivory", "gold"),
        *(
            "silver",
            "copper",
            "ginger",
            "salmon",
            "lemon",
            "tangerine",
            "apricot",
            "lime",
            "peach",
            "chestnut",
            "cream",
        ),
    )
)
"""Words for colours that are also things."""
OFFERED = (
    *("ladder", "chair", "door", "window", "bed", "bucket", "rope", "mirror", "basket", "wheel", "broom", "anchor"),
    *("bread", "cheese", "pot of food", "fork and knife", "bottle with popping cork", "wine glass", "carrot", "potato"),
    *("shopping bags", "convenience store", "school", "hospital", "factory", "church", "bank", "classical building"),
    *("microscope", "hammer", "axe", "crossed swords", "shield", "bow and arrow", "military helmet", "coin", "scroll"),
    *("soccer ball", "boxing glove", "trophy", "sports medal", "backpack", "dress", "t-shirt", "hat", "running shoe"),
    *("laptop", "mobile phone", "television", "camera", "light bulb", "flashlight", "toolbox", "magnet", "syringe"),
    *("artist palette", "performing arts", "teddy bear", "puzzle piece", "drum", "trumpet", "violin", "saxophone"),
    *("police officer", "cook", "mechanic", "guard", "office worker", "health worker", "person standing", "ice"),
    *("rock", "wood", "brick", "potted plant", "herb", "fallen leaf", "evergreen tree", "spider web", "feather"),
    *("hedgehog", "badger", "beaver", "lizard", "lobster", "seal", "gorilla", "bison", "bicycle", "kick scooter"),
)
"""Names of the cast among which the nearest is sought, besides everything drawn by hand."""


@dataclass(frozen=True, slots=True)
class Omission:
    """A noun that is not drawn: in the prompt's own words, and in English if it has any."""

    source: str
    english: str | None


def find_omissions(
    text: Text, found: Sequence[Found], unknown: Iterable[int], script: Script, nouns: Nouns
) -> list[Omission]:
    """Return every noun that is neither drawn nor excluded by the prompt itself, in the prompt's order."""
    in_english = text.language.code == ENGLISH
    missing = {
        index: Omission(text.sources[index], text.words[index] if in_english else None)
        for index in unknown
        if not is_negated(text.words, index)
    }
    nouns_at = {phrase.start for phrase in found if phrase.is_a(Kind.SUBJECT)}
    for phrase in found:
        describes = phrase.is_a(Kind.SUBJECT) and phrase.end in nouns_at
        if phrase.end > phrase.start and not (phrase.negated or describes or _is_kin(text.words, phrase)):
            if _is_shown(phrase, script, nouns, is_thing=_is_thing(text.words, phrase)):
                continue
            source = " ".join(dict.fromkeys(text.sources[phrase.start : phrase.end]))
            english = None if phrase.is_a(Kind.PLACE) else " ".join(text.words[phrase.start : phrase.end])
            missing[phrase.start] = Omission(source, english)
    unique = {omission.source.lower(): omission for _, omission in sorted(missing.items())}
    return list(unique.values())[:MAX_LISTED]


def _is_thing(words: Sequence[str], phrase: Found) -> bool:
    """Return whether a word for a colour stands for the thing that has it, as in "bees on lavender"."""
    following = words[phrase.end] if phrase.end < len(words) else "."
    return phrase.texts.get(Kind.COLOUR) in COLOURED_THINGS and (not following.isalpha() or following in STOPS)


def _is_shown(phrase: Found, script: Script, nouns: Nouns, *, is_thing: bool) -> bool:
    """Return whether the script has what a phrase names. A phrase that names no thing is always shown."""
    texts = phrase.texts
    if phrase.is_a(Kind.COLOUR) and is_thing:
        return False
    if Kind.PARTICLES in texts:
        return PARTICLES[texts[Kind.PARTICLES]] is script.particles
    if phrase.is_a(Kind.TIME, Kind.WEATHER, Kind.CAMERA, Kind.VIEWPOINT) or not phrase.is_a(Kind.SUBJECT, Kind.PLACE):
        return True
    if Kind.PLACE in texts and (texts[Kind.PLACE] in EVERYWHERE or script.place in places_near(texts[Kind.PLACE])):
        return True
    names = {role.subject for role in script.cast}
    if Kind.SUBJECT not in texts:
        return any(texts[Kind.PLACE] in {role.subject, *role.player.words} for role in script.cast)
    subject = nouns[texts[Kind.SUBJECT]]
    if is_scenery(script.place, Role(subject.name, sprite=subject)):
        return True
    return subject.name in names or _is_part(texts[Kind.SUBJECT], names)


def _is_kin(words: Sequence[str], phrase: Found) -> bool:
    """Return whether a family word is said of somebody that is drawn anyway, as "their mother" of ducks."""
    owner = words[phrase.start - 1] if phrase.start else ""
    return phrase.texts.get(Kind.SUBJECT) in KIN and owner in {"its", "their", "her", "his"}


def _is_part(word: str, names: Iterable[str]) -> bool:
    """Return whether a thing is part of what is drawn, as the horse of a horse rider."""
    return any(word in name.split() for name in names)


def describe(omissions: Sequence[Omission], text: Text, cast: Cast | None, weights: Path) -> str:
    """Return the warning for its author."""
    language = text.language
    nearest = dict(_find_nearest(omissions, cast, weights))
    words: list[str] = []
    for omission in omissions:
        name = nearest.get(omission.source)
        if name is None:
            words.append(omission.source)
        else:
            words.append(f"{omission.source} ({language.nearest.format(name=_translate(name, text, cast))})")
    return language.not_drawn.format(words=", ".join(words))


def _find_nearest(omissions: Sequence[Omission], cast: Cast | None, weights: Path) -> Iterator[tuple[str, str]]:
    """Yield the omitted words for which something near can be drawn, with its English name."""
    asked = [omission for omission in omissions if omission.english]
    if not asked or not has_weights(weights):
        return
    offered = [*SUBJECTS, *(OFFERED if cast else ())]
    near = open_meaning(weights).compare([omission.english or "" for omission in asked], offered)
    for omission, row in zip(asked, near, strict=True):
        best = int(row.argmax())
        if row[best] >= NEAR and offered[best] != omission.english:
            yield omission.source, offered[best]


def _translate(name: str, text: Text, cast: Cast | None) -> str:
    """Return an English name in the language of the prompt, if the cast has it."""
    symbol = cast.names.find_name(name) if cast and text.language.code != ENGLISH else None
    return cast.book.read(text.language.code).name_of.get(symbol, name) if cast and symbol else name
