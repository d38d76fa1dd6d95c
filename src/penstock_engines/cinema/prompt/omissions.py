"""Lists what of a prompt is not drawn, with the nearest that can be, in the language of the prompt."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock_engines.cast.wordbook import ENGLISH, singular_forms
from penstock_engines.cinema.prompt.atlas import HAS, LOOSE
from penstock_engines.cinema.prompt.cast_search import PARTS, Cast
from penstock_engines.cinema.prompt.languages import Text
from penstock_engines.cinema.prompt.lexicon import PARTICLES, STOPS
from penstock_engines.cinema.prompt.nearness.guessing import has_weights, open_meaning
from penstock_engines.cinema.prompt.phrases import Found, Kind, is_negated
from penstock_engines.cinema.prompt.roles import KIN, PLAYERS, STAND_INS, SUBJECT_OF, Nouns, is_noun
from penstock_engines.cinema.prompt.setting import is_scenery, is_shown_at, places_near
from penstock_engines.cinema.script import Role, Script
from penstock_engines.cinema.subjects import SUBJECTS, Motion

NEAR = 0.62
"""Closeness in meaning at which something is offered as the nearest."""
MAX_LISTED = 40
EVERYWHERE = frozenset(
    {"sky", "skies", "air", "horizon", "ground", "light", "sun", "cloud", "clouds", "shadow", "shadows"}
)
ALIVE = frozenset({Motion.WALK, Motion.RUN, Motion.HOP, Motion.SWIM, Motion.FLY, Motion.HOVER})
ROOMS = frozenset({"room", "hall", "studio", "pool"})
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
    stand_in: str | None = None
    """Something near that is drawn in its place."""


def find_omissions(
    text: Text, found: Sequence[Found], unknown: Mapping[int, int], script: Script, nouns: Nouns, cast: Cast | None
) -> list[Omission]:
    """Return every noun that is neither drawn nor excluded by the prompt itself, in the prompt's order."""
    in_english = text.language.code == ENGLISH
    missing: dict[int, Omission] = {}
    for end, start in unknown.items():
        if not (is_negated(text.words, start) or (start == end and _is_seen(text.words[end], script))):
            english = " ".join(text.words[start : end + 1]) if in_english else None
            missing[start] = Omission(" ".join(text.sources[start : end + 1]), english)
    nouns_at = {phrase.start for phrase in found if phrase.is_a(Kind.SUBJECT)}
    for phrase in found:
        describes = phrase.is_a(Kind.SUBJECT) and phrase.end in nouns_at and phrase.texts[Kind.SUBJECT] in SUBJECT_OF
        inside = any(start <= phrase.start < end for end, start in unknown.items())
        if phrase.end == phrase.start or phrase.negated or describes or inside or _is_kin(text.words, phrase):
            continue
        shown = _is_shown(phrase, script, nouns, is_thing=_is_thing(text.words, phrase))
        stand_in = _find_stand_in(text.words, phrase, script, nouns, cast) if shown else None
        if (shown and stand_in is None) or not (is_noun(text.words, phrase) or phrase.is_a(Kind.PARTICLES)):
            continue
        plays = in_english and phrase.start > 0 and text.words[phrase.start] in PLAYERS
        start = phrase.start - (plays or _is_purpose(text.words, phrase))
        source = " ".join(dict.fromkeys(text.sources[start : phrase.end]))
        english = None if phrase.is_a(Kind.PLACE) else " ".join(text.words[start : phrase.end])
        missing.setdefault(start, Omission(source, english, stand_in))
    unique = {omission.source.lower(): omission for _, omission in sorted(missing.items())}
    return list(unique.values())[:MAX_LISTED]


def _is_seen(word: str, script: Script) -> bool:
    """Return whether a noun of no lexicon is seen anyway: at the place, or as a part of a being."""
    beings = any(role.player.motion in ALIVE or role.player.is_person for role in script.cast)
    worn = any(word in HAS.get(role.subject, ()) for role in script.cast)
    return worn or word in EVERYWHERE or is_shown_at(script.place, word) or (word in PARTS and beings)


def _is_purpose(words: Sequence[str], phrase: Found) -> bool:
    """Return whether a room has its purpose before it, as an "operating room" has."""
    before = words[phrase.start - 1] if phrase.start else ""
    return words[phrase.start] in ROOMS and before.endswith("ing")


def _is_loose(place: str) -> bool:
    return not LOOSE.isdisjoint({place, *singular_forms(place)})


def _find_stand_in(words: Sequence[str], phrase: Found, script: Script, nouns: Nouns, cast: Cast | None) -> str | None:
    """Return the name of what is drawn in place of a phrase, if it is only near."""
    place, text = phrase.texts.get(Kind.PLACE), phrase.texts.get(Kind.SUBJECT)
    if place is not None and text is None and (_is_loose(place) or _is_purpose(words, phrase)):
        named = any(place in {role.subject, *role.player.words} for role in script.cast)
        return None if named or is_shown_at(script.place, place) else script.place
    if text is None:
        return None
    subject = nouns[text]
    if subject.name in SUBJECTS:
        return subject.name if not STAND_INS.isdisjoint({text, *singular_forms(text)}) else None
    return subject.name if cast is not None and cast.is_near(text) else None


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
        near = Kind.PLACE not in texts or script.place in places_near(texts[Kind.PLACE])
        return near and PARTICLES[texts[Kind.PARTICLES]] is script.particles
    if phrase.is_a(Kind.TIME, Kind.WEATHER, Kind.CAMERA, Kind.VIEWPOINT) or not phrase.is_a(Kind.SUBJECT, Kind.PLACE):
        return True
    place = texts.get(Kind.PLACE)
    if place is not None and (_is_seen(place, script) or script.place in places_near(place)):
        return True
    names = {role.subject for role in script.cast}
    if Kind.SUBJECT not in texts:
        return any(texts[Kind.PLACE] in {role.subject, *role.player.words} for role in script.cast)
    subject = nouns[texts[Kind.SUBJECT]]
    if is_scenery(script.place, Role(subject.name, sprite=subject)) or _is_seen(texts[Kind.SUBJECT], script):
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
    yield from ((omission.source, omission.stand_in) for omission in omissions if omission.stand_in)
    asked = [omission for omission in omissions if omission.english and not omission.stand_in]
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
