"""Plants: firs, leafy trees, palms, bushes, grass and flowers."""

import math
from collections.abc import Sequence

import numpy as np

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.paint.patterns import Randomness

Tones = tuple[Colour, Colour, Colour]
"""Colours in the shadow, plain, and in the light."""


def make_tones(plain: Colour, shadow: Colour, light: Colour) -> Tones:
    """Return the three tones of a plant whose shadows and lights lean towards these colours."""
    return mix(plain, shadow, 0.45), plain, mix(plain, light, 0.35)


def paint_fir(brush: Brush, foot: Point, height: float, tones: Tones, random: Randomness) -> None:
    """Paint a fir of ragged tiers, lit on its right."""
    x, y = foot
    dark, plain, light = tones
    brush.polygon(
        [
            (x - height * 0.018, y),
            (x - height * 0.01, y - height * 0.3),
            (x + height * 0.01, y - height * 0.3),
            (x + height * 0.018, y),
        ],
        mix(dark, (60, 40, 30), 0.4),
    )
    tiers = 7
    slim = random.uniform(0.17, 0.23)
    for tier in range(tiers):
        share = tier / tiers
        low = y - height * (0.1 + 0.78 * share)
        high = y - height * min(1.0, 0.1 + 0.78 * share + 0.3)
        wide = height * slim * (1 - share) ** 0.9 + height * 0.02
        drop = height * 0.035
        left = [
            (x - wide * step / 3, low + (drop if step % 2 else 0) + random.uniform(-0.3, 0.3) * drop)
            for step in (3, 2, 1)
        ]
        right = [
            (x + wide * step / 3, low + (drop if step % 2 else 0) + random.uniform(-0.3, 0.3) * drop)
            for step in (1, 2, 3)
        ]
        brush.polygon([(x, high), *left, (x, low + drop * 0.4), *right], mix(dark, plain, share * 0.8))
        brush.polygon([(x, high), (x + wide * 0.16, low - drop), *right], mix(plain, light, share))


def paint_leafy_tree(brush: Brush, foot: Point, height: float, tones: Tones, trunk: Colour, random: Randomness) -> None:
    """Paint a round crown of clumps, lit from the upper right."""
    x, y = foot
    lean = random.uniform(-0.05, 0.05) * height
    top = (x + lean, y - height * 0.62)
    brush.limb([(x, y), (x + lean * 0.4, y - height * 0.3), top], [height * 0.075, height * 0.05, height * 0.03], trunk)
    for side in (-1, 1):
        tip = (x + lean + side * height * 0.17, y - height * 0.66)
        brush.limb([(x + lean * 0.4, y - height * 0.33), tip], [height * 0.035, height * 0.018], trunk)
    middle = (x + lean, y - height * 0.68)
    clumps = [(random.uniform(-1, 1), random.uniform(-1, 1)) for _ in range(46)]
    inside = sorted(((right, down) for right, down in clumps if right**2 + down**2 < 1), key=lambda clump: -clump[1])
    brush.ellipse(middle, (height * 0.27, height * 0.24), tones[0])
    for tone, shift, size in ((0, 0.0, 0.1), (1, 0.02, 0.072), (2, 0.045, 0.045)):
        for right, down in inside:
            if right * 0.6 - down < (-9.0, -0.35, 0.2)[tone]:
                continue
            centre = (middle[0] + height * (right * 0.29 + shift), middle[1] + height * (down * 0.25 - shift))
            clump_blob(brush, centre, height * size * random.uniform(0.75, 1.2), tones[tone], random)


def clump_blob(brush: Brush, centre: Point, radius: float, colour: Colour, random: Randomness) -> None:
    """Paint a clump of leaves as a circle with a bumpy rim."""
    turns = np.linspace(0, 2 * math.pi, 10, endpoint=False)
    sizes = radius * random.uniform(0.84, 1.12, 10)
    brush.blob(
        [(centre[0] + math.cos(t) * r, centre[1] + math.sin(t) * r * 0.9) for t, r in zip(turns, sizes, strict=True)],
        colour,
    )


def paint_palm(brush: Brush, foot: Point, height: float, tones: Tones, trunk: Colour, random: Randomness) -> None:
    """Paint a bent trunk with a crown of feathered leaves."""
    x, y = foot
    bend = random.choice([-1.0, 1.0]) * height * random.uniform(0.12, 0.26)
    spine = [(x + bend * step**2, y - height * 0.82 * step) for step in np.linspace(0, 1, 9)]
    brush.limb(spine, [height * (0.05 - 0.022 * step) for step in np.linspace(0, 1, 9)], trunk)
    for ring in spine[1:-1]:
        brush.ellipse(ring, (height * 0.022, height * 0.006), mix(trunk, (20, 14, 10), 0.35), 0.6)
    head = spine[-1]
    angles = np.linspace(-0.55, math.pi + 0.55, 11)
    order = sorted(angles, key=lambda angle: -abs(math.sin(angle)))
    for number, angle in enumerate(order):
        tone = tones[0] if number < 4 else tones[1] if math.cos(angle) < 0.2 else tones[2]
        _paint_frond(brush, head, height * random.uniform(0.36, 0.46), angle, tone)
    for side in (-0.02, 0.015, 0.0):
        brush.ellipse(
            (head[0] + side * height, head[1] + height * 0.025),
            (height * 0.02, height * 0.02),
            mix(trunk, (60, 30, 10), 0.5),
        )


def _paint_frond(brush: Brush, start: Point, length: float, angle: float, colour: Colour) -> None:
    across, up = math.cos(angle), math.sin(angle)
    spine = [
        (start[0] + across * length * share, start[1] - up * length * share * 0.75 + length * 0.6 * share**2.2)
        for share in np.linspace(0, 1, 9)
    ]
    upper = [
        (px, py - length * 0.05 * math.sin(math.pi * min(1, share * 1.1)))
        for (px, py), share in zip(spine, np.linspace(0, 1, 9), strict=True)
    ]
    lower = [
        (px, py + length * (0.13 if number % 2 else 0.05) * math.sin(math.pi * share))
        for number, ((px, py), share) in enumerate(zip(spine, np.linspace(0, 1, 9), strict=True))
    ]
    brush.polygon([*upper, *reversed(lower)], colour)


def paint_bush(brush: Brush, foot: Point, size: float, tones: Tones, random: Randomness) -> None:
    """Paint a low round bush."""
    for tone, shift, scale in ((0, 0.0, 1.0), (1, 0.08, 0.8), (2, 0.17, 0.45)):
        for _ in range(5):
            centre = (
                foot[0] + size * (random.uniform(-0.6, 0.6) + shift),
                foot[1] - size * (random.uniform(0.1, 0.4) + shift),
            )
            clump_blob(brush, centre, size * random.uniform(0.25, 0.4) * scale, tones[tone], random)


def paint_grass(
    brush: Brush,
    span: tuple[float, float],
    foot: float,
    height: float,
    colours: Sequence[Colour],
    random: Randomness,
    count: int,
) -> None:
    """Paint blades that lean every way, the later ones lighter."""
    for number in range(count):
        x = random.uniform(*span)
        tall = height * random.uniform(0.45, 1.0)
        lean = tall * random.uniform(-0.5, 0.5)
        wide = height * random.uniform(0.025, 0.05)
        y = foot + random.uniform(0, 0.35) * height
        colour = colours[number * len(colours) // count]
        brush.polygon(
            [
                (x - wide, y),
                (x + lean * 0.35 - wide * 0.6, y - tall * 0.55),
                (x + lean, y - tall),
                (x + lean * 0.35 + wide * 0.6, y - tall * 0.5),
                (x + wide, y),
            ],
            colour,
        )


def paint_flower(brush: Brush, foot: Point, height: float, petals: Colour, stem: Colour, random: Randomness) -> None:
    """Paint a stem, two leaves and a head of petals."""
    x, y = foot
    head = (x + random.uniform(-0.25, 0.25) * height, y - height)
    brush.limb(
        [(x, y), ((x + head[0]) / 2, y - height * 0.5), head], [height * 0.06, height * 0.045, height * 0.035], stem
    )
    size = height * random.uniform(0.12, 0.18)
    turn = random.uniform(0, 1)
    for petal in range(6):
        angle = turn + petal * math.pi / 3
        centre = (head[0] + math.cos(angle) * size * 0.8, head[1] + math.sin(angle) * size * 0.62)
        tone = mix(petals, (255, 255, 255), 0.22) if math.sin(angle) < 0 else petals
        brush.ellipse(centre, (size * 0.62, size * 0.42), tone, degrees=-math.degrees(angle))
    brush.ellipse(head, (size * 0.42, size * 0.36), mix(petals, (255, 196, 40), 0.75))
