"""Draws any four-legged animal from the measures of its build, walking or galloping."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.subjects.gait import knee, step, wave
from penstock_engines.cinema.subjects.subject import (
    BLACK,
    WHITE,
    Draw,
    Habitat,
    Look,
    Motion,
    Subject,
    darken,
    subject_of,
)

Detail: TypeAlias = Callable[[Brush, float, Look], None]
"""Draws a mark: at its place on the body, or around the centre of the head."""
Gait: TypeAlias = tuple[float, float, float, float]
"""Times in the loop at which the far hind, near hind, far fore and near fore foot come down."""

AMBER: Colour = (238, 206, 92)  # the eyes of a dark animal
WALK: Gait = (0.5, 0.0, 0.75, 0.25)
TROT: Gait = (0.5, 0.0, 0.0, 0.5)
GALLOP: Gait = (0.08, 0.0, 0.5, 0.42)


class Ears(Enum):
    """The shape of the ears."""

    POINTED = auto()
    FLOPPY = auto()
    ROUND = auto()
    LONG = auto()
    LEAF = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The measures of an animal whose highest point is 1.0 above the ground. The y axis points down."""

    rear: float
    front: float
    croup: float
    withers: float
    chest: float
    waist: float
    hip: Point
    shoulder: Point
    leg: tuple[float, float, float, float]
    """Widths of a leg at the top, knee, ankle and foot."""
    shank: float
    """Height of the ankle."""
    hoof: bool = False
    neck: tuple[float, float]
    """Its widths at the body and at the head."""
    arch: float = 0.0
    """Distance of the middle of the neck up and back from the straight line."""
    head: Point
    skull: float
    muzzle: tuple[float, float, float]
    """Distance of the nose ahead of and below the skull's centre, and the thickness of the muzzle there."""
    tilt: float = 0.0
    ears: Ears = Ears.POINTED
    ear: float = 0.15
    tail: tuple[Point, ...] = ()
    tail_widths: tuple[float, ...] = ()
    wag: float = 0.05
    gait: Gait = WALK
    reach: float = 0.3
    lift: float = 0.08
    ground_share: float = 0.62
    bob: float = 0.008
    belly: Colour | None = None
    snout: Colour | None = None
    socks: Colour | None = None
    tail_tip: Colour | None = None
    hair_tail: bool = False
    """True if the tail has the accent's colour, like the mane."""
    nose: Colour | None = BLACK
    """None gives a darker shade of the coat."""
    coat: Detail | None = None
    back: Detail | None = None
    """Drawn before the body, such as a hump."""
    over: Detail | None = None
    """Drawn over body and legs, such as a fleece."""
    dark_limbs: bool = False
    """True if legs and ears have the accent's colour."""
    dark_head: bool = False
    under: Detail | None = None
    """Drawn on the head before the skull, such as a mane behind it."""
    nape: Detail | None = None
    """Drawn on the neck, in its place."""
    crown: Detail | None = None
    """Drawn on the head last, such as horns."""

    @property
    def stride(self) -> float:
        """Distance that one loop covers: as far as its feet push it on the ground."""
        return self.reach / self.ground_share


def draw_quadruped(build: Build) -> Draw:
    """Return the drawing of an animal of this build."""

    def draw(brush: Brush, phase: float, look: Look) -> None:
        gallop = build.gait is GALLOP
        rise = build.bob * wave(phase if gallop else 2 * phase)
        pitch = 3.0 * wave(phase, 0.1) if gallop else 0.0
        body = brush.moved((0.0, rise), degrees=pitch)
        _tail(body, build, phase, look)
        limbs = look.accent if build.dark_limbs else look.main
        far = darken(limbs, 0.4)
        if build.back:
            build.back(body, phase, look)
        _hind_leg(brush, build, phase - build.gait[0], far, rise, far=True)
        _fore_leg(brush, build, phase - build.gait[2], far, rise, far=True)
        _torso(body, build, phase, look)
        _hind_leg(brush, build, phase - build.gait[1], limbs, rise)
        _fore_leg(brush, build, phase - build.gait[3], limbs, rise)
        if build.over:
            build.over(body, phase, look)
        _neck_and_head(body, build, phase, look)

    return draw


def outline(build: Build) -> list[Point]:
    """Return the outline of the body without neck, head and legs."""
    long = build.front - build.rear
    return [
        (build.rear + 0.06 * long, build.croup + 0.03),
        (build.rear + 0.25 * long, build.croup),
        (build.rear + 0.55 * long, (build.croup + build.withers) / 2 + 0.02),
        (build.front - 0.22 * long, build.withers),
        (build.front - 0.04 * long, build.withers + 0.25 * (build.chest - build.withers)),
        (build.front, build.withers + 0.6 * (build.chest - build.withers)),
        (build.front - 0.14 * long, build.chest),
        (build.rear + 0.5 * long, (build.chest + build.waist) / 2 + 0.01),
        (build.rear + 0.24 * long, build.waist),
        (build.rear + 0.02 * long, build.waist - 0.35 * (build.waist - build.croup)),
        (build.rear, build.croup + 0.35 * (build.waist - build.croup)),
    ]


def _torso(brush: Brush, build: Build, phase: float, look: Look) -> None:
    shape = outline(build)
    below = build.belly or look.shade
    brush.blob(shape, look.main)
    deep = build.chest - build.withers
    with brush.inside(shape):
        brush.blob(shape, below)
        middle = (build.rear + build.front) / 2
        brush.blob([(middle + (x - middle) * 1.25, y - 0.16 * deep) for x, y in shape], look.main)
        if build.coat:
            build.coat(brush, phase, look)


def _hind_leg(brush: Brush, build: Build, phase: float, colour: Colour, rise: float, *, far: bool = False) -> None:
    top, middle, ankle_width, foot_width = build.leg
    aside = 0.05 if far else 0.0
    hip = (build.hip[0] + aside, build.hip[1] + rise)
    swing = step(phase, build.reach, build.lift, ground_share=build.ground_share)
    foot = (hip[0] - 0.04 + swing[0], swing[1] - foot_width / 2)
    fold = swing[1] / build.lift if build.lift else 0.0
    ankle = (foot[0] - build.shank * (0.34 - 0.5 * fold), foot[1] - build.shank * (0.94 + 0.3 * fold))
    high = ankle[1] - hip[1]
    joint = knee(hip, ankle, 0.6 * high, 0.62 * high, forward=True)
    brush.ribbon([hip, joint, ankle, foot], [top, middle, ankle_width, foot_width], colour)
    _foot(brush, build, foot, foot_width, colour)


def _fore_leg(brush: Brush, build: Build, phase: float, colour: Colour, rise: float, *, far: bool = False) -> None:
    top, middle, ankle_width, foot_width = build.leg
    aside = 0.05 if far else 0.0
    shoulder = (build.shoulder[0] + aside, build.shoulder[1] + rise)
    swing = step(phase, build.reach, build.lift, ground_share=build.ground_share)
    foot = (shoulder[0] + 0.03 + swing[0], swing[1] - foot_width / 2)
    fold = swing[1] / build.lift if build.lift else 0.0
    wrist = (foot[0] - build.shank * (0.05 + 0.6 * fold), foot[1] - build.shank * (0.95 + 0.35 * fold))
    high = wrist[1] - shoulder[1]
    elbow = knee(shoulder, wrist, 0.53 * high, 0.53 * high, forward=False)
    brush.ribbon([shoulder, elbow, wrist, foot], [top * 0.85, middle * 0.9, ankle_width, foot_width], colour)
    _foot(brush, build, foot, foot_width, colour)


def _foot(brush: Brush, build: Build, foot: Point, width: float, colour: Colour) -> None:
    x, y = foot
    if build.hoof:
        half, low = width * 0.62, y + width / 2
        dark = darken(build.socks or BLACK, 0.1)
        brush.polygon(
            [(x - half, low), (x - half * 0.8, low - width), (x + half * 0.7, low - width), (x + half * 1.3, low)], dark
        )
        return
    paint = colour if build.socks is None else build.socks
    brush.ellipse((x + width * 0.3, y), (width * 0.85, width / 2), paint)


def _tail(brush: Brush, build: Build, phase: float, look: Look) -> None:
    if not build.tail:
        return
    last = len(build.tail) - 1
    points = [
        (
            x + build.wag * wave(phase, -0.12 * index) * index / last,
            y + build.wag * 0.5 * wave(2 * phase, -0.1 * index) * index / last,
        )
        for index, (x, y) in enumerate(build.tail)
    ]
    paint = look.accent if build.hair_tail else mix(look.main, look.shade, 0.35)
    brush.ribbon(points, build.tail_widths, paint)
    if build.tail_tip:
        brush.ribbon(points[-2:], build.tail_widths[-2:], build.tail_tip)


def _neck_and_head(brush: Brush, build: Build, phase: float, look: Look) -> None:
    nod = 0.012 * wave(2 * phase, 0.1)
    head = (build.head[0] + nod * 0.5, build.head[1] + nod)
    local = brush.moved(head, degrees=build.tilt + 2 * wave(2 * phase, 0.2))
    if build.under:
        build.under(local, phase, look)
    long = build.front - build.rear
    base = (build.front - 0.2 * long, build.withers + 0.38 * (build.chest - build.withers))
    between = ((base[0] + head[0]) / 2 - build.arch, (base[1] + head[1]) / 2 - build.arch)
    broad, narrow = build.neck
    brush.ribbon([base, between, head], [broad, (broad + narrow) / 2, narrow], look.main)
    if build.nape:
        build.nape(brush, phase, look)
    draw_head(local, build, phase, look)


def draw_head(brush: Brush, build: Build, phase: float, look: Look) -> None:
    """Draw the head around (0, 0)."""
    size, (ahead, below, thick) = build.skull, build.muzzle
    if build.dark_head:
        look = replace(look, main=look.accent, accent=look.main)
    flick = 6 * wave(phase, 0.3)
    paint = look.accent if build.dark_limbs and not build.dark_head else look.main
    _ear(brush.moved((size * 0.15, -size * 0.72), degrees=14 + flick), build, darken(paint, 0.35), look)
    brush.ellipse((0, 0), (size, size * 0.95), look.main)
    brush.limb([(size * 0.1, size * 0.12), (ahead, below)], [size * 1.55, thick], look.main)
    snout = build.snout
    if snout:
        brush.limb([(ahead * 0.62, below + size * 0.1), (ahead, below + size * 0.06)], [size * 0.8, thick * 0.9], snout)
    brush.ellipse(
        (ahead + thick * 0.3, below - thick * 0.22), (thick * 0.24, thick * 0.2), build.nose or darken(look.main)
    )
    if sum(look.main) < 200:
        brush.ellipse((size * 0.42, -size * 0.18), (size * 0.2, size * 0.2), AMBER)
    brush.ellipse((size * 0.42, -size * 0.18), (size * 0.14, size * 0.17), BLACK)
    brush.ellipse((size * 0.47, -size * 0.24), (size * 0.05, size * 0.05), WHITE)
    _ear(brush.moved((-size * 0.28, -size * 0.68), degrees=-10 - flick), build, paint, look)
    if build.crown:
        build.crown(brush, phase, look)


def _ear(brush: Brush, build: Build, colour: Colour, look: Look) -> None:
    """Draw an ear that grows upward from (0, 0)."""
    size, inner = build.ear, mix(look.accent, look.main, 0.3)
    match build.ears:
        case Ears.POINTED:
            brush.blob(
                [
                    (-0.5 * size, 0.35 * size),
                    (-0.3 * size, -0.5 * size),
                    (-0.05 * size, -size),
                    (0.35 * size, -0.45 * size),
                    (0.6 * size, 0.3 * size),
                ],
                colour,
            )
            brush.blob([(-0.15 * size, 0.1 * size), (-0.08 * size, -0.6 * size), (0.35 * size, 0.05 * size)], inner)
        case Ears.FLOPPY:
            shape = [
                (-0.25 * size, -0.05 * size),
                (0.25 * size, -0.12 * size),
                (0.3 * size, 0.5 * size),
                (0.02 * size, 1.05 * size),
                (-0.36 * size, 0.85 * size),
                (-0.5 * size, 0.3 * size),
            ]
            brush.blob(shape, darken(colour, 0.3))
        case Ears.ROUND:
            brush.ellipse((0, -0.2 * size), (0.55 * size, 0.55 * size), colour)
            brush.ellipse((0.03 * size, -0.16 * size), (0.3 * size, 0.3 * size), inner)
        case Ears.LONG:
            leaf = brush.moved(degrees=-16)
            leaf.ellipse((0, -0.5 * size), (0.17 * size, 0.56 * size), colour)
            leaf.ellipse((0.03 * size, -0.5 * size), (0.08 * size, 0.42 * size), inner)
        case Ears.LEAF:
            leaf = brush.moved(degrees=-38)
            leaf.blob(
                [
                    (-0.12 * size, 0.1 * size),
                    (-0.24 * size, -0.45 * size),
                    (0, -size),
                    (0.22 * size, -0.45 * size),
                    (0.12 * size, 0.1 * size),
                ],
                colour,
            )
        case Ears.NONE:
            pass


def animal(build: Build, size: float, look: Look, *words: str, motion: Motion = Motion.WALK) -> Subject:
    """Return a subject of this build on the ground."""
    stride = build.stride
    return subject_of(draw_quadruped(build), Habitat.GROUND, motion, size, stride, _box(build), look, *words)


def _box(build: Build) -> tuple[float, float, float, float]:
    tail = [x for x, _ in build.tail] or [build.rear]
    left = min(*tail, build.rear - build.reach / 2, build.hip[0] - build.reach / 2 - 0.2) - build.wag - 0.1
    right = max(build.head[0] + build.muzzle[0] + build.skull, build.front + build.reach / 2) + 0.1
    return left, -1.25, right, 0.06
