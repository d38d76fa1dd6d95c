"""Arranges subjects that belong together, such as a cat on a chair, around the one that leads them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.paint.brush import Brush
from penstock_engines.cinema.script import Relation, Side
from penstock_engines.cinema.subjects import Habitat, Look, Motion, Subject, draw_step

MEASURED_PIXELS = 96
MEMBERS_AT_MOST = 7
"""The largest number of one role's subjects in a group."""
GAP = 0.08
"""Space between neighbours, as a share of the smaller one's height."""
SEATS: Mapping[str, float] = MappingProxyType(
    {"chair": 0.5, "couch and lamp": 0.42, "couch": 0.42, "bed": 0.5, "throne": 0.5, "seat": 0.5, "toilet": 0.5}
    | {"bathtub": 0.6, "sailboat": 0.2, "rowing boat": 0.3, "canoe": 0.5, "skateboard": 0.9, "motor scooter": 0.55}
    | {"motorbike": 0.7, "sled": 0.4, "shopping cart": 0.6}
)
"""Height of the seat of things that are higher behind it, as a share of their height."""
RIMS: Mapping[str, float] = MappingProxyType({"sailboat": 0.19, "ship": 0.35, "pirate ship": 0.35})
"""Height of the side of a boat, as a share of its height."""
HIDDEN = 0.3
"""Share of somebody in a boat that its side hides."""
ARCHES: Mapping[str, float] = MappingProxyType(
    {"tree": 0.42, "cherry tree": 0.42, "pine": 0.25, "palm": 0.6, "palm tree": 0.6, "evergreen tree": 0.25}
    | {"deciduous tree": 0.42, "mushroom": 0.5, "chair": 0.45, "bed": 0.3, "elephant": 0.4, "giraffe": 0.4}
    | {"horse": 0.4, "camel": 0.4, "cow": 0.3, "dinosaur": 0.35, "sauropod": 0.4, "bridge": 0.4, "umbrella": 0.7}
    | {"umbrella on ground": 0.7, "flower": 0.5, "sunflower": 0.5}
)
"""Height of the room below things that others can stand under, as a share of their height."""
TRUNKS = frozenset({"tree", "cherry tree", "pine", "palm", "palm tree", "deciduous tree", "mushroom", "flower"})
"""Things with a trunk in the middle, beside which others stand."""
WORN = frozenset({"crown", "top hat", "woman s hat", "billed cap", "rescue worker s helmet", "military helmet"})
WORN_SHARE = 0.3
BOATS = Habitat.WATER
STILL = frozenset({Motion.STAND, Motion.SWAY})
NEXT_TO = frozenset({Side.BESIDE, Side.LEFT, Side.RIGHT, Side.BETWEEN})
CENTRED = frozenset({Habitat.AIR, Habitat.UNDERWATER, Habitat.SPACE})


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline of a drawn subject around its anchor, in units of its height. Its anchor is at (0, 0)."""

    left: float
    top: float
    right: float
    bottom: float
    back: tuple[float, float]
    """The middle of its upper side."""
    head: tuple[float, float]
    """Its highest point, in front if it stands on four legs."""

    def scaled(self, height: float) -> "Outline":
        """Return the outline of a subject of a height."""
        (back_x, back_y), (head_x, head_y) = self.back, self.head
        return Outline(
            self.left * height,
            self.top * height,
            self.right * height,
            self.bottom * height,
            (back_x * height, back_y * height),
            (head_x * height, head_y * height),
        )

    @property
    def width(self) -> float:
        """The distance from the left to the right."""
        return self.right - self.left

    @property
    def middle(self) -> float:
        """The height of its middle."""
        return (self.top + self.bottom) / 2


@lru_cache(maxsize=64)
def measure(subject: Subject) -> Outline:
    """Return the outline of a subject."""
    sprite = draw_step(subject, 0, MEASURED_PIXELS, None)
    solid: NDArray[np.bool_] = sprite.picture[..., 3] > 64  # steam and shine do not count
    if not solid.any():
        left, top, right, bottom = subject.box
        return Outline(left, top, right, bottom, (0.0, top), (0.0, top))
    columns, rows = np.flatnonzero(solid.any(axis=0)), np.flatnonzero(solid.any(axis=1))
    tops: NDArray[np.int64] = np.argmax(solid, axis=0)
    tops[~np.any(solid, axis=0)] = solid.shape[0]
    first, last = int(columns[0]), int(columns[-1]) + 1
    wide = last - first
    inner = slice(first + wide * 35 // 100, max(first + wide * 35 // 100 + 1, last - wide * 35 // 100))
    in_front = first + (wide * 6 // 10 if wide > 0.9 * (rows[-1] - rows[0]) else 0)
    highest = in_front + int(tops[in_front:last].argmin())

    def place(column: float, row: float) -> tuple[float, float]:
        return (column - sprite.anchor[0]) / MEASURED_PIXELS, (row - sprite.anchor[1]) / MEASURED_PIXELS

    left, top = place(first, int(rows[0]))
    right, bottom = place(last, int(rows[-1]) + 1)
    back = place((first + last) / 2, float(np.median(tops[inner])))
    return Outline(left, top, right, bottom, back, place(highest, float(tops[highest])))


@dataclass(frozen=True, slots=True)
class Member:
    """A subject of a group: its place beside the leader's anchor, in units, with y down, and its height."""

    role: int
    subject: Subject
    height: float
    x: float = 0.0
    y: float = 0.0
    front: int = 0
    """Its layer: above 0 it stands before the leader, below 0 behind it."""
    side: Side | None = None
    """Its side of its anchor. None means the leader."""

    @property
    def outline(self) -> Outline:
        """Its outline around its own anchor, in units."""
        return measure(self.subject).scaled(self.height)


@dataclass(frozen=True, slots=True)
class Group:
    """Subjects that keep their places to each other. The first leads."""

    members: tuple[Member, ...]

    @property
    def leader(self) -> Member:
        """The subject that the others stand at."""
        return self.members[0]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom around the leader's anchor."""
        outlines = [(member, member.outline) for member in self.members]
        return (
            min(member.x + outline.left for member, outline in outlines),
            min(member.y + outline.top for member, outline in outlines),
            max(member.x + outline.right for member, outline in outlines),
            max(member.y + outline.bottom for member, outline in outlines),
        )

    @property
    def is_sided(self) -> bool:
        """Return whether the prompt states who is on the left, so that its mirror image would be wrong."""
        return any(member.side in {Side.LEFT, Side.RIGHT} for member in self.members)

    def scaled(self, factor: float) -> "Group":
        """Return the group in another size."""
        return Group(
            tuple(
                replace(member, height=member.height * factor, x=member.x * factor, y=member.y * factor)
                for member in self.members
            )
        )

    def facing(self, ahead: int) -> "Group":
        """Return the group, or its mirror image if it goes to the left."""
        if ahead > 0:
            return self
        return Group(tuple(replace(member, x=-member.x) for member in self.members))

    @property
    def stands(self) -> bool:
        """Return whether something that cannot move stands beside its leader, who then stays with it."""
        beside = [member for member in self.members[1:] if member.side not in {Side.ON, Side.IN}]
        return any(member.subject.motion in STILL for member in beside)


@dataclass(slots=True)
class _Space:
    """The room that an anchor and its neighbours take, left and right."""

    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """A role as the arrangement takes it."""

    subject: Subject
    height: float
    count: int = 1


def arrange(wanted: Sequence[Wanted], relations: Sequence[Relation], *, repeat: bool = False) -> list[Group]:
    """Return all roles in groups. A role without relations is a group of its own, with one member for all of it.

    With `repeat`, it has as many members as the role has subjects.
    """
    stated = {relation.role: relation for relation in _turn_around(wanted, relations)}
    leaders = [number for number in range(len(wanted)) if number not in stated]
    return [_Arrangement(wanted, stated, leader).arrange(repeat=repeat) for leader in leaders]


def _turn_around(wanted: Sequence[Wanted], relations: Sequence[Relation]) -> Iterator[Relation]:
    """Yield the relations, with "under" a thing without room below it turned into the thing above."""
    anchored = {relation.role for relation in relations}
    for relation in relations:
        anchor = wanted[relation.anchor].subject
        solid = relation.side is Side.UNDER and anchor.name not in ARCHES
        if solid and relation.anchor not in anchored:
            yield Relation(relation.anchor, Side.ABOVE, relation.role)
        else:
            yield relation


class _Arrangement:
    """One group in the making."""

    def __init__(self, wanted: Sequence[Wanted], stated: Mapping[int, Relation], leader: int) -> None:
        self._wanted, self._stated, self._leader = wanted, stated, leader
        self._placed: list[Member] = []
        self._spaces: dict[int, _Space] = {}

    def arrange(self, *, repeat: bool) -> Group:
        self._place(self._leader, None)
        if repeat and len(self._placed) == 1:
            self._repeat(self._placed[0], self._wanted[self._leader].count)
        return Group(tuple(self._placed))

    def _place(self, role: int, at: Member | None) -> None:
        """Place a role, then all that are at it."""
        followers = [relation for relation in self._stated.values() if relation.anchor == role]
        wanted = self._wanted[role]
        if at is None:
            height = wanted.height
            for relation in followers:
                follower = self._wanted[relation.role]
                height = max(height, _find_least(relation.side, wanted.subject, follower))
            first = Member(role, wanted.subject, height)
            self._placed.append(first)
        else:
            first = self._join(role, self._stated[role].side, at)
        self._note_space(role, first)
        if at is None and followers:
            self._repeat(first, wanted.count)
        for relation in followers:
            self._place(relation.role, first)

    def _repeat(self, first: Member, count: int) -> None:
        """Put the leader's likes beside it."""
        for number in range(1, min(count, MEMBERS_AT_MOST)):
            self._placed.append(self._put_beside(replace(first, side=Side.BESIDE), first, number))

    def _note_space(self, role: int, first: Member) -> None:
        outline = first.outline
        self._spaces[role] = _Space(first.x + outline.left, first.x + outline.right)

    def _join(self, role: int, side: Side, anchor: Member) -> Member:
        """Place all subjects of a role at their anchor. Return the first."""
        wanted = self._wanted[role]
        height = _limit(side, wanted, anchor)
        members: list[Member] = []
        count = min(wanted.count, MEMBERS_AT_MOST)
        for number in range(count):
            subject = _cut(wanted.subject) if _is_cut(side, anchor.subject) else wanted.subject
            member = Member(role, subject, height, side=side)
            members.append(self._put(member, anchor, number, count))
        self._placed += members
        return members[0]

    def _put(self, member: Member, anchor: Member, number: int, count: int) -> Member:
        own, other = member.outline, anchor.outline
        side = member.side
        spread = (number - (count - 1) / 2) * own.width * 0.85
        match side:
            case Side.ON | Side.ABOVE | Side.IN:
                x, y = _stack(member, anchor)
                front = anchor.front + (-1 if side is Side.IN and not _is_cut(side, anchor.subject) else 1)
                return replace(member, x=anchor.x + x + spread, y=anchor.y + y, front=front)
            case Side.UNDER:
                aside = 0.3 * other.width if anchor.subject.name in TRUNKS else 0.0
                y = other.bottom - own.bottom + 0.02 * anchor.height
                return replace(member, x=anchor.x + aside + spread, y=anchor.y + y, front=anchor.front + 1)
            case Side.BEHIND:
                x = _peek(own, other) + spread
                y = _level(member, anchor) - 0.1 * anchor.height
                return replace(member, x=anchor.x + x, y=anchor.y + y, front=anchor.front - 1)
            case Side.BEFORE:
                x = -0.32 * other.width + spread
                y = _level(member, anchor) + 0.1 * anchor.height
                return replace(member, x=anchor.x + x, y=anchor.y + y, front=anchor.front + 1)
            case _:
                return self._put_beside(member, anchor, number)

    def _put_beside(self, member: Member, anchor: Member, number: int) -> Member:
        """Put a member beside its anchor and all that stand there."""
        own, space = member.outline, self._spaces[anchor.role]
        gap = GAP * min(member.height, anchor.height)
        left = member.side is Side.LEFT or (member.side is Side.BETWEEN and number % 2 == 0)
        if member.side is Side.BESIDE:
            left = anchor.x - space.left < space.right - anchor.x - 1e-6
        y = anchor.y + _level(member, anchor)
        if left:
            x = space.left - gap - own.right
            space.left = x + own.left
        else:
            x = space.right + gap - own.left
            space.right = x + own.right
        return replace(member, x=x, y=y, front=anchor.front)


def _find_least(side: Side, anchor: Subject, follower: Wanted) -> float:
    """Return the height that an anchor needs to hold a follower."""
    own, other = measure(follower.subject).scaled(follower.height), measure(anchor)
    if follower.subject.name in WORN:
        return 0.0
    match side:
        case Side.ON:
            return 0.8 * own.width / max(0.1, other.width)
        case Side.IN:
            return 0.0 if anchor.habitat is BOATS else own.width * follower.count / 0.9 / max(0.1, other.width)
        case Side.UNDER:
            return min(2.5 * follower.height, follower.height / ARCHES.get(anchor.name, 0.5))
        case _:
            return 0.0


def _limit(side: Side, wanted: Wanted, anchor: Member) -> float:
    """Return the height of a follower that fits its anchor."""
    if side is Side.ON and wanted.subject.name in WORN:
        return WORN_SHARE * anchor.height
    if side is Side.UNDER:
        return min(wanted.height, anchor.height * ARCHES.get(anchor.subject.name, 0.5))
    if side is Side.IN and anchor.subject.habitat is BOATS:
        return min(wanted.height, 0.42 * anchor.height)
    return wanted.height


def _stack(member: Member, anchor: Member) -> tuple[float, float]:
    """Return where a member is on, above or in its anchor."""
    own, other, name = member.outline, anchor.outline, anchor.subject.name
    if member.side is Side.ABOVE:
        return 0.0, other.top - 0.1 * member.height - own.bottom
    if member.side is Side.IN:
        if not _is_cut(Side.IN, anchor.subject):
            return other.back[0], other.bottom - 0.5 * anchor.height - own.bottom
        return other.back[0], other.bottom - RIMS.get(name, 0.25) * anchor.height + HIDDEN * member.height
    if member.subject.name in WORN:
        return other.head[0] - (own.left + own.right) / 2, other.head[1] - own.bottom + 0.25 * member.height
    seat = other.bottom - SEATS[name] * anchor.height if name in SEATS else other.back[1]
    sunk = 0.4 if member.subject.habitat is Habitat.AIR else 0.04  # wings reach below the feet
    return other.back[0] - (own.left + own.right) / 2, seat - own.bottom + sunk * member.height


def _level(member: Member, anchor: Member) -> float:
    """Return how far below its anchor a member stands: on one ground, or its middle at the anchor's."""
    own, other = member.outline, anchor.outline
    if member.subject.habitat in CENTRED and anchor.subject.habitat not in CENTRED:
        return other.middle - own.middle
    return other.middle - own.middle if anchor.subject.habitat in CENTRED else other.bottom - own.bottom


def _peek(own: Outline, other: Outline) -> float:
    """Return how far to the side a subject behind another stands, so that it is seen."""
    tall = other.top - own.top
    share = 0.2 if tall > 0.35 * -own.top else 0.5
    return share * other.width + (0.15 * own.width if share > 0.2 else 0.0)


def _is_cut(side: Side, anchor: Subject) -> bool:
    """Return whether a follower is seen only above the side of a boat."""
    return side is Side.IN and anchor.habitat is BOATS


@lru_cache(maxsize=16)
def _cut(subject: Subject) -> Subject:
    """Return a subject without its lower part, as behind the side of a boat."""

    def draw(brush: Brush, phase: float, look: Look) -> None:
        subject.draw(brush, phase, look)
        row = round(float(brush.origin[1]) - HIDDEN * float(brush.matrix[1, 1]))
        brush.picture[max(0, row) :] = 0

    return replace(subject, draw=draw)
