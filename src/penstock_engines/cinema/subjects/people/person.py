"""Draws a person who walks, runs or stands, seen from the side, in any outfit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.subjects.gait import knee, step, wave
from penstock_engines.cinema.subjects.subject import BLACK, Draw, Look, darken, lighten

Garment: TypeAlias = Callable[[Brush, float, Look], None]
"""Draws a part of an outfit, around the head's centre, the hand or the ground below the person."""
Arm: TypeAlias = tuple[float, float, float]
"""Degrees of the upper arm and of the lower arm against it (0 hangs down, 90 points ahead), and of the swing."""

WALKING: tuple[Arm, Arm] = ((0.0, 18.0, 26.0), (0.0, 18.0, -26.0))
RUNNING: tuple[Arm, Arm] = ((0.0, 95.0, 46.0), (0.0, 95.0, -46.0))


class Hair(Enum):
    """Hair styles."""

    SHORT = auto()
    LONG = auto()
    BUN = auto()
    PONYTAIL = auto()
    BALD = auto()
    CURLY = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    """A person's build and clothes. The person is 1.0 high."""

    head: float = 0.1
    hair: Hair = Hair.SHORT
    beard: Colour | None = None
    shoulder: float = 0.73
    hip: float = 0.46
    girth: float = 0.2
    leg: float = 0.115
    sleeve: bool = True
    sleeve_colour: Colour | None = None
    shoe: Colour = (66, 50, 48)
    hem: float | None = None
    """Height above the ground at which a skirt or robe ends."""
    flare: float = 0.16
    skirt_colour: Colour | None = None
    lean: float = 2.0
    arms: tuple[Arm, Arm] = WALKING
    """The near and the far arm."""
    reach: float = 0.34
    lift: float = 0.07
    ground_share: float = 0.6
    stands: bool = False
    back: Garment | None = None
    chest: Garment | None = None
    hat: Garment | None = None
    held: Garment | None = None
    far_held: Garment | None = None

    @property
    def stride(self) -> float:
        """Distance that one loop covers."""
        return 0.0 if self.stands else self.reach / self.ground_share


def draw_person(outfit: Outfit) -> Draw:
    """Return the drawing of a person in this outfit."""

    def draw(brush: Brush, phase: float, look: Look) -> None:
        rise = 0.0 if outfit.stands else 0.014 * wave(2 * phase, 0.1) * (1.6 if outfit.ground_share < 0.5 else 1.0)
        body = brush.moved((0.0, rise))
        trunk = body.moved(
            (0.0, -outfit.hip), degrees=outfit.lean + (1.2 * wave(phase) if outfit.stands else 0.0)
        ).moved((0.0, outfit.hip))
        sleeve = outfit.sleeve_colour or look.main
        _draw_arm(trunk, outfit, 1, phase, look, darken(sleeve, 0.35))
        if outfit.back:
            outfit.back(trunk, phase, look)
        _draw_leg(brush, outfit, phase + 0.5, rise, look, far=True)
        _draw_leg(brush, outfit, phase, rise, look)
        if outfit.hem is not None:
            _draw_skirt(body, outfit, phase, outfit.skirt_colour or look.main)
        _draw_torso(trunk, outfit, look)
        if outfit.chest:
            outfit.chest(trunk, phase, look)
        _draw_head(trunk.moved((0.02, -1.0 + outfit.head * 1.02)), outfit, phase, look)
        _draw_arm(trunk, outfit, 0, phase, look, lighten(sleeve, 0.07))

    return draw


def _draw_leg(brush: Brush, outfit: Outfit, phase: float, rise: float, look: Look, *, far: bool = False) -> None:
    hip = (0.012 if far else -0.012, -outfit.hip + rise)
    if outfit.stands:
        swing = (0.07 if far else -0.05, 0.0)
    else:
        swing = step(phase, outfit.reach, outfit.lift, ground_share=outfit.ground_share)
    thick = outfit.leg * 0.26
    # The heel leaves the ground before the foot does, so the sole turns with the swing.
    tilt = (
        0.0
        if outfit.stands
        else max(0.0, -swing[0] / outfit.reach - 0.2) * 90 - (12 if swing[0] > outfit.reach * 0.4 else 0)
    )
    foot = (swing[0] - 0.02, swing[1] - 0.045 - (0.02 if tilt > 5 else 0.0))
    half = (outfit.hip - 0.045) * 0.515
    bend = knee(hip, foot, half, half, forward=True)
    cloth = darken(look.accent, 0.35) if far else look.accent
    bare = outfit.hem is not None and outfit.hem > 0.12
    paint = (darken(look.skin, 0.3) if far else look.skin) if bare else cloth
    brush.ribbon([hip, bend, foot], [outfit.leg * 1.2, outfit.leg * 0.88, outfit.leg * 0.62], paint)
    shoe = brush.moved(foot, degrees=tilt)
    shoe.blob(
        [
            (-thick * 1.4, -0.02),
            (thick, -0.03),
            (thick * 2.2, 0.008),
            (thick * 3.1, 0.03),
            (thick * 2.9, 0.045),
            (-thick * 1.4, 0.045),
        ],
        darken(outfit.shoe, 0.3) if far else outfit.shoe,
    )


def _draw_skirt(brush: Brush, outfit: Outfit, phase: float, colour: Colour) -> None:
    hem = -(outfit.hem or 0.0)
    move = 0.0 if outfit.stands else 0.025
    front, behind = outfit.flare + move * wave(phase), -outfit.flare + move * wave(phase, 0.3)
    waist = outfit.girth * 0.42
    high = -outfit.hip - 0.1
    brush.blob(
        [
            (-waist, high),
            (waist, high),
            (waist * 1.3, -outfit.hip),
            (front * 0.8, (hem - outfit.hip) / 2),
            (front, hem),
            (0.0, hem + 0.015),
            (behind, hem),
            (behind * 0.8, (hem - outfit.hip) / 2),
            (-waist * 1.3, -outfit.hip),
        ],
        colour,
    )
    brush.blob(
        [
            (0.0, high + 0.04),
            (waist * 0.3, -outfit.hip),
            (behind * 0.1, hem),
            (behind, hem),
            (behind * 0.75, (hem - outfit.hip) / 2),
            (-waist * 1.1, -outfit.hip),
        ],
        darken(colour, 0.16),
    )


def _draw_torso(brush: Brush, outfit: Outfit, look: Look) -> None:
    half, top, low = outfit.girth / 2, -outfit.shoulder, -outfit.hip + 0.03
    brush.limb([(0.0, top + 0.02), (0.012, top - 0.09)], [0.08, 0.075], darken(look.skin, 0.18))
    shape = [
        (-half * 0.55, top - 0.03),
        (half * 0.5, top - 0.035),
        (half * 0.95, top + 0.05),
        (half * 0.9, (top + low) / 2),
        (half * 0.8, low),
        (0.0, low + 0.02),
        (-half * 0.85, low),
        (-half * 0.92, (top + low) / 2),
        (-half, top + 0.05),
    ]
    brush.blob(shape, look.main)
    with brush.inside(shape):
        brush.blob(
            [
                (-half * 1.4, top),
                (-half * 0.5, top),
                (-half * 0.35, (top + low) / 2),
                (-half * 0.5, low + 0.1),
                (-half * 1.4, low + 0.1),
            ],
            look.shade,
        )


def _draw_arm(brush: Brush, outfit: Outfit, which: int, phase: float, look: Look, paint: Colour) -> None:
    upper, lower, swing = outfit.arms[which]
    shoulder = (0.0 if which == 0 else 0.02, -outfit.shoulder + 0.025)
    first = math.radians(upper + swing * -math.cos(2 * math.pi * phase))
    second = first + math.radians(
        lower + 0.3 * abs(swing) * (0.5 - 0.5 * math.cos(2 * math.pi * phase + (math.pi if swing < 0 else 0)))
    )
    bone = outfit.shoulder * 0.2
    elbow = (shoulder[0] + bone * math.sin(first), shoulder[1] + bone * math.cos(first))
    hand = (elbow[0] + bone * math.sin(second), elbow[1] + bone * math.cos(second))
    skin = look.skin if which == 0 else darken(look.skin, 0.25)
    held = outfit.held if which == 0 else outfit.far_held
    if held:
        held(brush.moved(hand), phase, look)
    thick = outfit.leg * 0.72
    brush.ellipse(
        (hand[0] + 0.012 * math.sin(second), hand[1] + 0.012 * math.cos(second)), (thick * 0.48, thick * 0.48), skin
    )
    brush.ribbon([shoulder, elbow, hand], [thick * 1.12, thick * 0.95, thick * 0.72], paint if outfit.sleeve else skin)
    if not outfit.sleeve:
        short = ((shoulder[0] + elbow[0]) / 2, (shoulder[1] + elbow[1]) / 2)
        brush.limb([shoulder, short], [thick * 1.3, thick * 1.15], paint)


def _draw_head(brush: Brush, outfit: Outfit, phase: float, look: Look) -> None:
    size = outfit.head
    local = brush.moved(scale=size)
    _draw_hair_behind(local, outfit.hair, phase, look.hair)
    local.ellipse((0.0, 0.05), (0.86, 0.95), look.skin)
    local.ellipse((0.86, 0.16), (0.16, 0.14), look.skin)
    local.ellipse((0.48, 0.38), (0.2, 0.14), (236, 120, 110), 0.35)
    local.ellipse((0.5, 0.02), (0.1, 0.13), BLACK)
    local.ribbon(
        [(0.42, 0.52), (0.58, 0.58), (0.74, 0.5)], [0.04, 0.1, 0.04], darken(mix(look.skin, (190, 60, 60), 0.5))
    )
    if outfit.beard:
        local.blob(
            [(-0.3, 0.2), (0.1, 0.5), (0.45, 0.4), (0.9, 0.42), (0.8, 1.0), (0.4, 1.4), (-0.1, 1.0)], outfit.beard
        )
    _draw_hair(local, outfit.hair, look.hair)
    local.ellipse((-0.12, 0.16), (0.17, 0.22), darken(look.skin, 0.08))
    if outfit.hat:
        outfit.hat(local, phase, look)


def _draw_hair_behind(brush: Brush, hair: Hair, phase: float, colour: Colour) -> None:
    flow = 0.12 * wave(2 * phase)
    match hair:
        case Hair.LONG:
            brush.blob(
                [
                    (-0.2, -0.9),
                    (0.3, 0.2),
                    (0.0, 1.0),
                    (-0.4 + flow, 1.9),
                    (-1.2 + flow, 1.8),
                    (-1.25, 0.6),
                    (-1.0, -0.5),
                ],
                darken(colour, 0.12),
            )
        case Hair.BUN:
            brush.ellipse((-0.95, -0.65), (0.48, 0.46), colour)
        case Hair.PONYTAIL:
            brush.ribbon(
                [(-0.7, -0.4), (-1.35, -0.3 + flow), (-1.6, 0.5 + flow), (-1.5, 1.1 + flow)],
                [0.4, 0.55, 0.5, 0.1],
                colour,
            )
        case _:
            pass


HAIR_OUTLINES: dict[Hair, list[Point]] = {
    Hair.SHORT: [
        (0.72, -0.4),
        (0.3, -0.5),
        (-0.05, -0.3),
        (-0.2, 0.1),
        (-0.5, 0.55),
        (-0.85, 0.5),
        (-1.02, -0.1),
        (-0.8, -0.75),
        (-0.1, -1.05),
        (0.55, -0.9),
    ],
    Hair.LONG: [
        (0.75, -0.3),
        (0.3, -0.55),
        (0.0, -0.2),
        (-0.1, 0.5),
        (-0.35, 1.1),
        (-0.95, 1.0),
        (-1.1, 0.0),
        (-0.8, -0.8),
        (-0.1, -1.08),
        (0.6, -0.85),
    ],
    Hair.BUN: [
        (0.72, -0.35),
        (0.3, -0.55),
        (-0.05, -0.25),
        (-0.3, 0.3),
        (-0.75, 0.45),
        (-1.02, -0.1),
        (-0.8, -0.75),
        (-0.1, -1.05),
        (0.55, -0.9),
    ],
}
HAIR_OUTLINES[Hair.PONYTAIL] = HAIR_OUTLINES[Hair.BUN]


def _draw_hair(brush: Brush, hair: Hair, colour: Colour) -> None:
    if hair in HAIR_OUTLINES:
        brush.blob(HAIR_OUTLINES[hair], colour)
    elif hair is Hair.CURLY:
        for x, y, size in (
            (0.45, -0.7, 0.34),
            (0.0, -0.85, 0.42),
            (-0.5, -0.7, 0.42),
            (-0.8, -0.25, 0.42),
            (-0.75, 0.25, 0.36),
            (-0.3, -0.4, 0.4),
        ):
            brush.ellipse((x, y), (size, size), colour)
    elif hair is Hair.BALD:
        brush.blob([(-0.2, 0.0), (-0.35, 0.5), (-0.8, 0.45), (-0.92, 0.0), (-0.6, -0.1)], colour)
