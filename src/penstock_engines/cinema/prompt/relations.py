"""Finds the relations of a prompt's subjects: "a cat on a chair", "a fox and a hare behind a barn"."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from penstock_engines.cinema.prompt.lexicon import STOPS
from penstock_engines.cinema.prompt.phrases import Found, Kind
from penstock_engines.cinema.prompt.roles import ANYONE, Nouns, find_role_colour, is_noun
from penstock_engines.cinema.script import Relation, Role, Side

SIDES: Mapping[tuple[str, ...], Side] = MappingProxyType(
    {
        tuple(phrase.split()): side
        for side, text in {
            Side.ON: "on, onto, upon, atop, on top of, on the back of, riding, rides, ride, rides on, mounted on",
            Side.IN: "in, inside, into, within, inside of, out of",
            Side.UNDER: "under, underneath, beneath, below",
            Side.ABOVE: "above, over",
            Side.BESIDE: "beside, by, near, next to, alongside, close to, at, against, at the side of, close by",
            Side.LEFT: "left of, on the left of, to the left of, at the left of, on the left side of, "
            "to the left side of",
            Side.RIGHT: "right of, on the right of, to the right of, at the right of, on the right side of, "
            "to the right side of",
            Side.BEHIND: "behind, in back of, at the back of",
            Side.BEFORE: "in front of, before",
            Side.BETWEEN: "between",
        }.items()
        for phrase in text.split(", ")
    }
)
"""Phrases between a subject and its anchor. The longest that ends last counts."""
TRAILING: Mapping[tuple[str, ...], Side] = MappingProxyType(
    {
        tuple(f"{link} the {side}{more}".split()): meant
        for side, meant in (("left", Side.LEFT), ("right", Side.RIGHT))
        for link in ("on", "to", "at")
        for more in ("", " side")
    }
)
"""Phrases after a subject that state its side of the others."""
PRONOUNS = frozenset({"it", "him", "her", "them"})
LONGEST = max(map(len, SIDES))
BREAKS = frozenset({".", ";", "!", "?", ",", "and", "with", "while", "but"})
"""Words after which a preposition belongs to something else than the subject before them."""
RIDING, HORSES = ("riding ", "rides "), frozenset({"horse", "horses"})
WORN = frozenset({"wearing", "wears"})
WORN_ON_HEAD = frozenset(("hat", "crown", "cap", "helmet", "bowler", "sombrero", "fedora", "beanie"))
CARRYING = frozenset({Side.ON, Side.IN})


def find_relations(
    words: Sequence[str], found: Sequence[Found], nouns: Nouns, cast: Sequence[Role]
) -> tuple[Relation, ...]:
    """Return the relations between roles. Each role has at most one anchor, and no two anchor each other."""
    subjects = [phrase for phrase in found if phrase.is_a(Kind.SUBJECT) and is_noun(words, phrase)]
    roles = [_find_role(found, phrase, words, nouns, cast) for phrase in subjects]
    chosen: dict[int, Relation] = {}
    for subject, side, anchor in _state(words, subjects):
        role, other = roles[subject], roles[anchor]
        if role is None or other is None or role in chosen or _leads_to(chosen, other, role):
            continue
        chosen[role] = Relation(role, side, other)
    return tuple(chosen.values())


def part_riders(words: Sequence[str], found: Sequence[Found], nouns: Nouns) -> Iterator[Found]:
    """Yield all phrases, with "riding a horse" as the horse alone after somebody who is not drawn as its rider."""
    rider: Found | None = None
    for phrase in found:
        mounted = phrase.texts.get(Kind.SUBJECT, "").startswith(RIDING) and words[phrase.end - 1] in HORSES
        if mounted and rider is not None and nouns[rider.texts[Kind.SUBJECT]].name not in ANYONE:
            yield Found(phrase.end - 1, phrase.end, {Kind.SUBJECT: "horse"}, phrase.negated)
        else:
            yield phrase
        if phrase.is_a(Kind.SUBJECT):
            rider = phrase


def _leads_to(chosen: Mapping[int, Relation], start: int, end: int) -> bool:
    """Return whether a role is anchored, over any others, to another."""
    while start != end and start in chosen:
        start = chosen[start].anchor
    return start == end


def _find_role(
    found: Sequence[Found], phrase: Found, words: Sequence[str], nouns: Nouns, cast: Sequence[Role]
) -> int | None:
    """Return the position of a phrase's role in the cast: the one in its colour, else the only one of its name."""
    name = nouns[phrase.texts[Kind.SUBJECT]].name
    colour = find_role_colour(words, found, phrase, name)
    named = [index for index, role in enumerate(cast) if role.subject == name]
    return next((index for index in named if cast[index].colour == colour), named[0] if named else None)


def _state(words: Sequence[str], subjects: Sequence[Found]) -> Iterator[tuple[int, Side, int]]:
    """Yield subject, side and anchor of everything that the prompt states, by positions among the subjects."""
    for index, phrase in enumerate(subjects):
        following = subjects[index + 1] if index + 1 < len(subjects) else None
        after = words[phrase.end : following.start if following else len(words)]
        back, trailing = _find_back_reference(after), _find_trailing(after)
        if index and back is not None:
            yield index, back, index - 1
        elif trailing is not None and len(subjects) > 1:
            yield index, trailing, index - 1 if index else 1
        elif following is not None:
            yield from _link(words, subjects, index, after)


def _link(
    words: Sequence[str], subjects: Sequence[Found], index: int, between: Sequence[str]
) -> Iterator[tuple[int, Side, int]]:
    """Yield the relations of a subject to the next one, also of the subject that "and" joins to it."""
    side, following = _find_side(between), subjects[index + 1]
    if not WORN.isdisjoint(between) and words[following.end - 1] in WORN_ON_HEAD:
        yield index + 1, Side.ON, index
    elif side is Side.BETWEEN:
        another = index + 2 < len(subjects) and _is_joined(words, following, subjects[index + 2])
        yield index + 1, Side.LEFT if another else Side.BETWEEN, index
        if another:
            yield index + 2, Side.RIGHT, index
    elif side is not None:
        yield index, side, index + 1
        if index and _is_joined(words, subjects[index - 1], subjects[index]):
            yield index - 1, side, index + 1


def _is_joined(words: Sequence[str], first: Found, second: Found) -> bool:
    return words[first.end : first.end + 1] == ["and"] and STOPS.isdisjoint(words[first.end : second.start])


def _find_side(between: Sequence[str]) -> Side | None:
    """Return the side that the words between a subject and its anchor state: the last phrase for one."""
    for end in range(len(between), 0, -1):
        for size in range(min(LONGEST, end), 0, -1):
            side = SIDES.get(tuple(between[end - size : end]))
            if side is not None:
                return side if BREAKS.isdisjoint(between[: end - size]) else None
        if between[end - 1] in STOPS | BREAKS:
            return None
    return None


def _find_back_reference(between: Sequence[str]) -> Side | None:
    """Return the side in "with a rabbit under it", whose anchor is the subject before."""
    for end, word in enumerate(between):
        if word in PRONOUNS:
            return _find_side(between[:end])
    return None


def _find_trailing(between: Sequence[str]) -> Side | None:
    """Return the side in "a boat on the right", unless "of" follows."""
    for size in (4, 3):
        side = TRAILING.get(tuple(between[:size]))
        if side is not None and between[size : size + 1] != ["of"]:
            return side
    return None
