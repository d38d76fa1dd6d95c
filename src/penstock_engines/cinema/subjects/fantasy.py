"""Creatures of tales: dragon and phoenix, mermaid and fairy."""

import itertools

from penstock_engines.cinema.paint.brush import Brush, Point, mix
from penstock_engines.cinema.subjects.gait import wave, wing_lift
from penstock_engines.cinema.subjects.subject import (
    BLACK,
    WHITE,
    Habitat,
    Look,
    Motion,
    Subject,
    darken,
    lighten,
    plural_too,
)

FLAME = (252, 176, 52)


def _dragon_wing(brush: Brush, phase: float, side: int, skin: tuple[int, int, int], bone: tuple[int, int, int]) -> None:
    beat, late = wing_lift(phase, side), wing_lift(phase - 0.07, side)
    wrist: Point = (-0.02, -0.38 * beat)
    tips: list[Point] = [
        (-0.06, -0.86 * late),
        (-0.42, -0.7 * late),
        (-0.62, -0.38 * late),
        (-0.56, -0.05 - 0.1 * beat),
    ]
    edge: list[Point] = [(0.12, 0.0), wrist, tips[0]]
    for start, end in itertools.pairwise(tips):
        dent = ((start[0] + end[0]) / 2 * 0.8, (start[1] + end[1]) / 2 * 0.8)
        edge += [dent, end]
    brush.polygon([*edge, (-0.24, 0.06)], skin)
    for tip in tips:
        brush.limb([wrist, tip], [0.035, 0.012], bone)
    brush.limb([(0.08, 0.0), wrist], [0.1, 0.05], bone)
    brush.polygon(
        [(wrist[0] - 0.02, wrist[1]), (wrist[0] + 0.08, wrist[1] - 0.06 * beat), (wrist[0] + 0.02, wrist[1] + 0.03)],
        bone,
    )


def draw_dragon(brush: Brush, phase: float, look: Look) -> None:
    """Draw a dragon that flies on wings of skin, with a long tail and a horned head."""
    body = brush.moved((0.0, 0.05 * wave(phase, 0.25)), scale=0.78)
    _dragon_wing(
        body.moved((0.16, -0.1), degrees=14, scale=1.35), phase, -1, darken(look.accent, 0.35), darken(look.main, 0.4)
    )
    sway = [0.03 * wave(phase, -0.1 * index) * index for index in range(6)]
    tail: list[Point] = [
        (-0.2, 0.06),
        (-0.5, 0.14 + sway[1]),
        (-0.8, 0.12 + sway[2]),
        (-1.06, 0.0 + sway[3]),
        (-1.24, -0.12 + sway[4]),
    ]
    for x, y in tail[1:4]:
        body.polygon([(x - 0.08, y - 0.02), (x - 0.04, y - 0.17), (x + 0.09, y - 0.04)], look.accent)
    body.ribbon(tail, [0.26, 0.17, 0.11, 0.07, 0.04], look.main)
    end = body.moved(tail[-1], degrees=38)
    end.polygon([(0.06, 0.0), (-0.04, -0.1), (-0.2, 0.0), (-0.04, 0.1)], look.accent)
    for x, paint in ((-0.02, look.shade), (-0.1, look.main)):
        body.ribbon([(x, 0.14), (x - 0.04, 0.28), (x - 0.16, 0.34)], [0.17, 0.1, 0.05], paint)
        body.limb([(x - 0.16, 0.34), (x - 0.1, 0.39)], [0.06, 0.03], paint)
    torso = [(0.36, -0.12), (0.1, -0.2), (-0.2, -0.1), (-0.34, 0.06), (-0.16, 0.2), (0.14, 0.24), (0.36, 0.1)]
    neck: list[Point] = [(0.2, 0.02), (0.46, -0.06), (0.58, -0.26), (0.72, -0.38)]
    for x, y in ((0.34, -0.2), (0.44, -0.3), (0.54, -0.43)):
        body.polygon([(x - 0.07, y + 0.02), (x - 0.07, y - 0.1), (x + 0.07, y + 0.02)], look.accent)
    body.blob(torso, look.main)
    with body.inside(torso):
        body.blob([(0.44, 0.02), (0.1, 0.1), (-0.3, 0.12), (-0.1, 0.4), (0.4, 0.3)], lighten(look.accent, 0.45))
    body.ribbon(neck, [0.3, 0.2, 0.15, 0.15], look.main)
    _dragon_head(body.moved((0.76, -0.4), degrees=4 * wave(phase, 0.3)), look)
    _dragon_wing(body.moved((0.06, -0.1), scale=1.35), phase, 1, look.accent, look.main)


def _dragon_head(brush: Brush, look: Look) -> None:
    for x, paint in ((0.05, look.shade), (0.0, (240, 226, 190))):
        brush.ribbon([(x - 0.02, -0.08), (x - 0.12, -0.15), (x - 0.24, -0.14)], [0.06, 0.045, 0.008], paint)
    brush.blob([(0.06, 0.04), (0.22, 0.06), (0.36, 0.06), (0.2, 0.13), (0.0, 0.1)], look.shade)
    brush.blob(
        [
            (-0.13, 0.0),
            (-0.06, -0.12),
            (0.08, -0.12),
            (0.2, -0.05),
            (0.34, -0.07),
            (0.41, 0.0),
            (0.36, 0.06),
            (0.18, 0.07),
            (0.02, 0.1),
            (-0.1, 0.1),
        ],
        look.main,
    )
    for x in (0.22, 0.29, 0.35):
        brush.polygon([(x - 0.02, 0.055), (x + 0.02, 0.055), (x, 0.1)], WHITE)
    brush.ellipse((0.35, -0.03), (0.018, 0.014), darken(look.main, 0.5))
    brush.ellipse((0.08, -0.04), (0.042, 0.036), (252, 220, 90))
    brush.ellipse((0.09, -0.04), (0.014, 0.032), BLACK)
    brush.polygon([(0.02, -0.1), (0.14, -0.07), (0.13, -0.055), (0.03, -0.07)], look.shade)


def draw_phoenix(brush: Brush, phase: float, look: Look) -> None:
    """Draw a bird of fire with a flowing tail."""
    brush.glow((-0.05, 0.0), 0.8, FLAME, 0.5)
    body = brush.moved((0.0, 0.05 * wave(phase, 0.25)))
    warm = mix(look.main, FLAME, 0.55)
    for index in range(5):
        spread = (index - 2) * 0.1
        points: list[Point] = [
            (
                -0.2 - 0.2 * reach,
                0.02 + spread * reach * 0.55 + 0.035 * wave(phase, -0.16 * reach + 0.1 * index) * reach,
            )
            for reach in range(5)
        ]
        body.ribbon(points, [0.12, 0.14, 0.12, 0.08, 0.015], (look.main, warm, FLAME, warm, look.main)[index])
        body.ellipse(points[3], (0.05, 0.035), look.accent)
    for far in (True, False):
        beat, late = (wing_lift(phase - lag, -1 if far else 1) for lag in (0.0, 0.07))
        wing = body.moved((0.2, -0.06), degrees=16) if far else body.moved((0.1, -0.06))
        tones = (darken(look.main, 0.3), darken(warm, 0.3)) if far else (look.main, warm)
        for index in range(6):
            reach = 1.0 - 0.1 * index
            tip = (0.02 - 0.14 * index, -0.9 * late * reach)
            wing.ribbon(
                [(0.06 - 0.04 * index, 0.0), (0.12 - 0.1 * index, -0.42 * beat * reach), tip],
                [0.14, 0.17, 0.02],
                tones[index % 2],
            )
        wing.ribbon(
            [(0.1, 0.0), (0.1, -0.3 * beat), (0.04, -0.52 * late)], [0.12, 0.11, 0.03], FLAME if not far else tones[1]
        )
    body.blob([(-0.32, 0.0), (0.0, -0.14), (0.3, -0.16), (0.44, -0.06), (0.3, 0.1), (0.0, 0.13)], look.main)
    body.blob([(-0.1, 0.04), (0.2, 0.0), (0.34, 0.04), (0.1, 0.12)], FLAME)
    body.ribbon([(0.3, -0.06), (0.44, -0.2), (0.52, -0.26)], [0.2, 0.13, 0.14], look.main)
    for tilt in (-50, -30, -10):
        crest = body.moved((0.5, -0.3), degrees=tilt + 4 * wave(phase))
        crest.ribbon([(0, 0), (0, -0.1), (-0.03, -0.2)], [0.05, 0.045, 0.01], FLAME)
    body.ellipse((0.54, -0.27), (0.09, 0.08), look.main)
    body.polygon([(0.61, -0.31), (0.74, -0.24), (0.61, -0.22)], look.accent)
    body.ellipse((0.56, -0.29), (0.02, 0.022), BLACK)


def draw_mermaid(brush: Brush, phase: float, look: Look) -> None:
    """Draw a mermaid that swims with a fish's tail."""
    bend = 0.09 * wave(phase)
    tail: list[Point] = [(0.1, 0.02), (-0.2, 0.08), (-0.5, 0.06 + bend * 0.6), (-0.8, -0.02 + bend)]
    fluke = brush.moved(tail[-1], degrees=10 + 120 * bend)
    fluke.blob([(0.08, 0.0), (-0.14, -0.22), (-0.32, -0.26), (-0.22, 0.0), (-0.3, 0.24), (-0.12, 0.2)], look.light)
    for index in range(5):
        flow = 0.02 * wave(phase, 0.1 * index)
        brush.ribbon(
            [(0.5, -0.2), (0.3, -0.3 + 0.05 * index + flow), (0.06, -0.3 + 0.09 * index + flow * 2)],
            [0.14, 0.1, 0.02],
            look.hair,
        )
    brush.ribbon([(0.36, -0.08), (0.62, 0.02), (0.86, -0.04)], [0.07, 0.06, 0.045], darken(look.skin, 0.2))
    brush.ribbon([(0.42, -0.1), (0.26, -0.03), (0.08, 0.03)], [0.17, 0.16, 0.18], look.skin)
    brush.ribbon(tail, [0.23, 0.22, 0.14, 0.06], look.main)
    for x, y in ((0.02, 0.0), (-0.1, 0.04), (-0.1, 0.12), (-0.24, 0.05), (-0.24, 0.14), (-0.4, 0.05 + bend * 0.4)):
        brush.ribbon([(x, y - 0.03), (x - 0.035, y), (x, y + 0.03)], [0.008, 0.016, 0.008], look.shade)
    brush.ellipse((0.3, 0.02), (0.09, 0.065), look.accent, degrees=-20)
    brush.ellipse((0.56, -0.22), (0.125, 0.13), look.skin)
    brush.blob(
        [(0.42, -0.1), (0.38, -0.3), (0.52, -0.4), (0.66, -0.34), (0.64, -0.28), (0.54, -0.28), (0.48, -0.16)],
        look.hair,
    )
    brush.ellipse((0.61, -0.2), (0.018, 0.022), BLACK)
    brush.ribbon([(0.58, -0.13), (0.62, -0.12), (0.65, -0.14)], [0.006, 0.014, 0.006], (206, 84, 84))
    brush.ribbon([(0.4, -0.06), (0.6, 0.1), (0.82, 0.08)], [0.075, 0.065, 0.045], look.skin)


FANTASY = (
    Subject(
        name="dragon",
        words=plural_too("dragon", "wyvern", "fire-breathing beast"),
        habitat=Habitat.AIR,
        motion=Motion.FLY,
        size=0.5,
        stride=0.9,
        draw=draw_dragon,
        box=(-1.2, -1.25, 1.0, 1.06),
        look=Look((70, 148, 92), (232, 116, 64)),
    ),
    Subject(
        name="phoenix",
        words=plural_too("phoenix", "firebird", "fire bird"),
        habitat=Habitat.AIR,
        motion=Motion.FLY,
        size=0.32,
        stride=1.0,
        draw=draw_phoenix,
        box=(-1.25, -1.2, 0.95, 1.1),
        look=Look((226, 62, 40), (252, 224, 120)),
    ),
    Subject(
        name="mermaid",
        words=plural_too("mermaid", "merman/mermen", "siren"),
        habitat=Habitat.UNDERWATER,
        motion=Motion.SWIM,
        size=0.3,
        stride=0.8,
        is_person=True,
        draw=draw_mermaid,
        box=(-1.25, -0.55, 1.0, 0.5),
        look=Look((46, 160, 150), (236, 120, 170), hair=(196, 70, 50)),
    ),
)
