"""Small boats, and the surfer on a board. The waterline is at 0."""

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, arc
from penstock_engines.cinema.subjects.gait import fade, wave
from penstock_engines.cinema.subjects.subject import (
    BLACK,
    WHITE,
    Box,
    Draw,
    Habitat,
    Look,
    Motion,
    Subject,
    darken,
    lighten,
    subject_of,
)

WOOD: Colour = (150, 98, 58)


CANVAS: Colour = (252, 246, 232)


RED: Colour = (214, 66, 56)


GLASS: Colour = (150, 202, 226)


def rocking(brush: Brush, phase: float, degrees: float = 2.5, heave: float = 0.015) -> Brush:
    """Return a brush that rolls and heaves with the waves."""
    return brush.moved((0.0, heave * wave(phase, 0.25)), degrees=degrees * wave(phase))


def draw_hull(brush: Brush, shape: list[Point], colour: Colour, stripe: Colour | None = None) -> None:
    """Draw a hull with a dark bottom and a lit rail."""
    brush.blob(shape, colour)
    top = min(y for _, y in shape)
    with brush.inside(shape):
        brush.polygon([(-3, -0.03), (3, -0.03), (3, 1), (-3, 1)], darken(colour, 0.4))
        if stripe:
            brush.polygon([(-3, top + 0.05), (3, top + 0.05), (3, top + 0.085), (-3, top + 0.085)], stripe)


def draw_pennant(brush: Brush, foot: Point, height: float, colour: Colour, phase: float) -> None:
    """Draw a flag that flies to the left from a pole at `foot`."""
    x, y = foot
    brush.limb([foot, (x, y - height)], [0.012, 0.012], darken(WOOD))
    wide, high = height * 0.9, height * 0.5
    ripple = 0.02 * wave(phase)
    top = y - height
    brush.blob(
        [
            (x, top),
            (x - wide * 0.5, top + ripple),
            (x - wide, top - ripple),
            (x - wide, top + high - ripple),
            (x - wide * 0.5, top + high + ripple),
            (x, top + high),
        ],
        colour,
    )


def draw_sailboat(brush: Brush, phase: float, look: Look) -> None:
    """Draw a small boat under mainsail and jib."""
    boat = rocking(brush, phase)
    puff = 0.02 * wave(phase, 0.1)
    boat.limb([(0.0, -0.1), (0.0, -0.98)], [0.03, 0.018], WOOD)
    sail = [
        *arc((-0.025, -0.95), (-0.36 - 2 * puff, -0.7), (-0.5, -0.24)),
        *arc((-0.5, -0.24), (-0.26, -0.2), (-0.025, -0.23)),
    ]
    boat.polygon(sail, look.accent)
    with boat.inside(sail, straight=True):
        boat.polygon([(-0.9, -0.56), (0.0, -0.56), (0.0, -0.44), (-0.9, -0.44)], look.main)
        boat.polygon([(-0.16, -1.0), (0.0, -1.0), (0.0, 0.0), (-0.1, 0.0)], BLACK, 0.08)
    boat.polygon(
        [
            *arc((0.03, -0.9), (0.24 + 2 * puff, -0.56), (0.58, -0.24)),
            *arc((0.58, -0.24), (0.3, -0.22), (0.08, -0.27)),
            (0.03, -0.9),
        ],
        darken(look.accent, 0.1),
    )
    boat.limb([(0.0, -0.18), (-0.44, -0.2)], [0.022, 0.018], WOOD)
    draw_hull(
        boat,
        [
            (-0.48, -0.18),
            (0.0, -0.155),
            (0.5, -0.19),
            (0.66, -0.22),
            (0.54, -0.04),
            (0.34, 0.06),
            (-0.3, 0.06),
            (-0.44, -0.02),
        ],
        look.main,
        WHITE,
    )
    draw_pennant(boat, (0.0, -0.96), 0.07, look.main, 2 * phase)


def draw_paper_boat(brush: Brush, phase: float, look: Look) -> None:
    """Draw a folded boat of paper."""
    boat = rocking(brush, phase, 5.0, 0.03)
    boat.polygon([(-0.36, -0.24), (0.0, -0.98), (0.36, -0.24)], look.main)
    boat.polygon([(0.0, -0.98), (0.36, -0.24), (0.06, -0.24)], darken(look.main, 0.14))
    boat.polygon(
        [(-0.86, -0.52), (-0.3, -0.3), (0.3, -0.3), (0.86, -0.52), (0.5, 0.06), (-0.5, 0.06)], lighten(look.main, 0.3)
    )
    boat.polygon([(0.06, -0.3), (0.3, -0.3), (0.86, -0.52), (0.5, 0.06), (0.16, 0.06)], darken(look.main, 0.1))
    boat.polygon([(-0.86, -0.52), (-0.3, -0.3), (-0.5, 0.06)], darken(look.main, 0.05))


def draw_rowing_boat(brush: Brush, phase: float, look: Look) -> None:
    """Draw a wooden boat with a rower."""
    boat = rocking(brush, phase, 2.0)
    pull = wave(phase)
    lean = boat.moved((-0.05, -0.2), degrees=-12 * pull)
    lean.ribbon([(0.0, 0.06), (0.0, -0.16), (0.0, -0.36)], [0.22, 0.26, 0.2], look.accent)
    lean.ellipse((0.02, -0.52), (0.12, 0.13), look.skin)
    lean.blob([(-0.13, -0.48), (-0.12, -0.62), (0.02, -0.69), (0.14, -0.6), (0.06, -0.57), (-0.04, -0.54)], look.hair)
    lean.ellipse((0.09, -0.52), (0.014, 0.018), BLACK)
    draw_hull(
        boat,
        [
            (-0.9, -0.34),
            (-0.4, -0.2),
            (0.4, -0.2),
            (0.92, -0.36),
            (0.72, -0.02),
            (0.4, 0.07),
            (-0.5, 0.07),
            (-0.78, -0.04),
        ],
        look.main,
        lighten(look.main, 0.4),
    )
    hand = (0.26 + 0.12 * pull, -0.34 - 0.05 * wave(phase, 0.25))
    lean.ribbon([(0.0, -0.32), (0.12, -0.2), (hand[0] + 0.02, hand[1] + 0.16)], [0.09, 0.08, 0.07], look.accent)
    blade = (0.22 - 0.4 * pull, 0.06 + 0.07 * wave(phase, 0.25))
    boat.limb([hand, blade], [0.03, 0.03], WOOD)
    along = boat.moved(blade)
    along.ellipse((0.0, 0.02), (0.05, 0.1), darken(WOOD, 0.15), degrees=24 * pull)


def draw_canoe(brush: Brush, phase: float, look: Look) -> None:
    """Draw a slender canoe and its paddler."""
    boat = rocking(brush, phase, 1.5)
    stroke = wave(phase)
    body = boat.moved((-0.1, -0.16), degrees=5 + 5 * stroke)
    body.ribbon([(0.0, 0.06), (0.0, -0.2), (0.02, -0.4)], [0.22, 0.26, 0.2], look.accent)
    body.ellipse((0.04, -0.56), (0.125, 0.135), look.skin)
    body.blob(
        [(-0.1, -0.56), (-0.08, -0.68), (0.05, -0.73), (0.17, -0.64), (0.26, -0.63), (0.06, -0.6)], (240, 190, 90)
    )
    body.ellipse((0.11, -0.55), (0.014, 0.018), BLACK)
    draw_hull(
        boat,
        [
            (-1.3, -0.4),
            (-1.0, -0.2),
            (-0.4, -0.16),
            (0.4, -0.16),
            (1.0, -0.2),
            (1.32, -0.42),
            (1.16, -0.08),
            (0.8, 0.06),
            (-0.8, 0.06),
            (-1.16, -0.08),
        ],
        look.main,
        lighten(look.main, 0.4),
    )
    paddle = boat.moved((0.16, -0.34), degrees=24 * stroke - 10)
    paddle.limb([(0.0, -0.36), (0.0, 0.36)], [0.03, 0.03], WOOD)
    paddle.ellipse((0.0, 0.4), (0.06, 0.13), darken(WOOD, 0.1))
    paddle.limb([(-0.2, -0.14), (0.0, -0.28)], [0.08, 0.07], look.accent)
    paddle.limb([(-0.2, -0.1), (0.0, 0.06)], [0.08, 0.07], look.accent)


def draw_raft(brush: Brush, phase: float, look: Look) -> None:
    """Draw logs tied together, a mast and a patched sail."""
    boat = rocking(brush, phase, 2.5, 0.02)
    puff = 0.03 * wave(phase, 0.2)
    boat.limb([(0.0, -0.06), (0.0, -0.98)], [0.04, 0.03], WOOD)
    boat.blob(
        [
            (-0.36, -0.92),
            (0.36, -0.92),
            (0.46 + puff, -0.6),
            (0.38, -0.28),
            (0.0, -0.33),
            (-0.38, -0.28),
            (-0.3 + puff, -0.6),
        ],
        look.accent,
    )
    boat.polygon([(0.06, -0.7), (0.24, -0.72), (0.26, -0.54), (0.08, -0.53)], look.main)
    boat.limb([(-0.4, -0.92), (0.4, -0.92)], [0.03, 0.03], WOOD)
    for index in range(6):
        x = -0.75 + 0.3 * index
        boat.limb(
            [(x - 0.15, -0.05 + 0.02 * (index % 2)), (x + 0.15, -0.05 + 0.02 * (index % 2))],
            [0.17, 0.17],
            darken(WOOD, 0.1 * (index % 2)),
        )
    for x in (-0.6, 0.6):
        boat.limb([(x, -0.16), (x, 0.06)], [0.04, 0.04], (224, 200, 150))


def draw_surfer(brush: Brush, phase: float, look: Look) -> None:
    """Draw a surfer who rides a board, arms out for balance."""
    board = brush.moved((0.0, 0.03 * wave(phase)), degrees=-8 + 4 * wave(phase, 0.2))
    for index in range(5):
        drop = (phase + index / 5) % 1.0
        brush.ellipse(
            (-0.2 - 0.5 * drop, 0.0 - 0.12 * wave(drop / 2)),
            (0.1 - 0.05 * drop, 0.06 - 0.03 * drop),
            WHITE,
            0.85 * fade(drop),
        )
    board.blob([(0.66, -0.14), (0.3, -0.02), (-0.4, 0.02), (-0.56, -0.01), (-0.4, -0.05), (0.2, -0.08)], look.main)
    board.blob([(0.5, -0.1), (0.2, -0.04), (-0.3, -0.01), (-0.2, -0.035), (0.2, -0.06)], WHITE)
    sway = 0.03 * wave(phase, 0.4)
    hips, chest = (-0.04 + sway, -0.4), (0.04 + sway, -0.66)
    for foot, bend in (((-0.24, -0.05), (-0.24, -0.24)), ((0.24, -0.1), (0.22, -0.3))):
        board.ribbon([hips, bend, foot], [0.15, 0.11, 0.07], look.skin)
        board.ribbon([hips, ((hips[0] + bend[0] * 2) / 3, (hips[1] + bend[1] * 2) / 3)], [0.17, 0.15], look.accent)
    board.ribbon(
        [chest, (-0.2 + sway, -0.66), (-0.4 + sway, -0.6 - sway)], [0.09, 0.075, 0.05], darken(look.skin, 0.15)
    )
    board.ribbon([hips, chest], [0.17, 0.2], look.skin)
    board.ribbon(
        [(0.06 + sway, -0.67), (0.26 + sway, -0.64), (0.44 + sway, -0.72 + sway)], [0.09, 0.075, 0.05], look.skin
    )
    board.ellipse((0.1 + sway, -0.84), (0.095, 0.105), look.skin)
    board.blob(
        [(-0.02 + sway, -0.78), (-0.02 + sway, -0.92), (0.1 + sway, -0.97), (0.2 + sway, -0.89), (0.1 + sway, -0.88)],
        look.hair,
    )
    board.ellipse((0.15 + sway, -0.84), (0.012, 0.015), BLACK)


def afloat(
    draw: Draw, size: float, stride: float, box: Box, look: Look, *words: str, is_person: bool = False
) -> Subject:
    """Return a subject that floats on the water."""
    return subject_of(draw, Habitat.WATER, Motion.FLOAT, size, stride, box, look, *words, is_person=is_person)


BOATS = (
    afloat(
        draw_sailboat,
        0.36,
        0.4,
        (-0.62, -1.1, 0.78, 0.16),
        Look((206, 70, 60), CANVAS),
        "sailboat",
        "boat",
        "sailing boat",
        "dinghy",
        "gondola",
        "fishing boat",
    ),
    afloat(
        draw_paper_boat,
        0.18,
        0.5,
        (-0.95, -1.08, 0.95, 0.16),
        Look((246, 246, 250)),
        "paper boat",
        "origami boat",
        "toy boat",
    ),
    afloat(
        draw_rowing_boat,
        0.22,
        0.5,
        (-1.05, -1.0, 1.05, 0.3),
        Look((170, 106, 60), (66, 116, 176)),
        "rowing boat",
        "rowboat",
        "rower",
        is_person=True,
    ),
    afloat(
        draw_canoe,
        0.22,
        0.6,
        (-1.42, -1.0, 1.45, 0.35),
        Look((200, 84, 56), (60, 132, 110)),
        "canoe",
        "kayak",
        "kayaker",
        "paddler",
        is_person=True,
    ),
    afloat(draw_raft, 0.26, 0.4, (-1.05, -1.1, 1.05, 0.2), Look((208, 96, 70), CANVAS), "raft", "castaway raft"),
    afloat(
        draw_surfer,
        0.24,
        0.9,
        (-0.8, -1.08, 0.8, 0.16),
        Look((250, 190, 60), (40, 110, 170), hair=(226, 180, 90)),
        "surfer",
        "surfboard",
        "paddleboarder",
        is_person=True,
    ),
)
