"""Draws birds and others that fly by beating wings, seen from the side."""

from dataclasses import dataclass
from enum import Enum, auto

from penstock_engines.cinema.paint.brush import Brush, Colour, Point, mix
from penstock_engines.cinema.subjects.gait import wave, wing_lift
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Draw, Look, darken, lighten


class Beak(Enum):
    """The shape of a beak."""

    SHORT = auto()
    HOOKED = auto()
    LONG = auto()
    FLAT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plumage:
    """The measures of a flying bird around its centre. The y axis points down."""

    length: float = 0.9
    depth: float = 0.24
    neck: float = 0.0
    """Distance from the body to the head."""
    head_size: float = 0.13
    span: float = 0.78
    chord: float = 0.44
    fingers: int = 4
    tail: float = 0.3
    tail_spread: float = 0.16
    forked: bool = False
    beak: Beak = Beak.SHORT
    beak_length: float = 0.12
    beak_colour: Colour = (240, 168, 50)
    head: Colour | None = None
    belly: Colour | None = None
    tail_colour: Colour | None = None
    wing_tip: Colour | None = None
    wing: Colour | None = None
    glide: float = 0.14
    """Asymmetry of the beat upwards: 0 is even."""


def draw_flyer(plumage: Plumage) -> Draw:
    """Return the drawing of a bird in flight."""

    def draw(brush: Brush, phase: float, look: Look) -> None:
        body = brush.moved((0.0, 0.05 * wave(phase, 0.25)), degrees=-4)
        wing = plumage.wing or look.main
        back, deep = plumage.length / 2, plumage.depth / 2
        shoulder = (plumage.length * 0.12, -deep * 0.45)
        draw_wing(body.moved((shoulder[0] + 0.12, shoulder[1]), degrees=16), plumage, phase, darken(wing, 0.4), side=-1)
        _draw_tail(body.moved((-back * 0.8, 0.0)), plumage, phase, look)
        _draw_body(body, plumage, back, deep, look)
        _draw_head(body.moved((back * 0.9 + plumage.neck, -deep * 0.4 - plumage.neck * 0.12)), plumage, look)
        draw_wing(body.moved(shoulder), plumage, phase, wing)

    return draw


def draw_wing(brush: Brush, plumage: Plumage, phase: float, colour: Colour, *, side: int = 1) -> None:
    """Draw one wing from its root at (0, 0), near at side 1 and far at -1. Its tip lags behind the beat."""
    inner, outer = (wing_lift(phase - late, side, plumage.glide) for late in (0.0, 0.07))
    span, chord = plumage.span, plumage.chord
    elbow, tip = -span * 0.5 * inner, -span * outer
    sweep = 0.3 * (1 - abs(outer))
    front = (0.18 * chord + 0.05, elbow)
    outline = [
        (0.42 * chord, 0.0),
        front,
        (-0.05 - sweep * 0.4, (elbow + 2 * tip) / 3),
        (-0.18 - sweep, tip),
        (-0.3 - sweep * 0.8, tip * 0.8),
        (-0.55 * chord - 0.08 - sweep * 0.4, elbow * 0.95),
        (-0.72 * chord, elbow * 0.3),
        (-0.55 * chord, 0.06),
    ]
    brush.blob(outline, colour)
    end = plumage.wing_tip or darken(colour, 0.18)
    for index in range(plumage.fingers):
        share = index / max(plumage.fingers - 1, 1)
        start = (-0.06 - sweep * 0.5 - 0.16 * share, elbow + (tip - elbow) * (0.62 - 0.3 * share))
        reach = (-0.2 - sweep * 1.1 - 0.2 * share, tip * (1.04 - 0.26 * share))
        brush.limb([start, reach], [0.1, 0.035], end)
    lit = [
        (0.3 * chord, -0.01),
        front,
        (-0.06, elbow + (tip - elbow) * 0.4),
        (-0.2 * chord, elbow * 0.9),
        (-0.3 * chord, elbow * 0.25),
    ]
    brush.blob(lit, lighten(colour, 0.14))


def _draw_body(brush: Brush, plumage: Plumage, back: float, deep: float, look: Look) -> None:
    shape = [
        (-back, -0.02),
        (-back * 0.4, -deep * 0.8),
        (back * 0.4, -deep),
        (back, -deep * 0.6),
        (back * 0.95, deep * 0.3),
        (back * 0.35, deep),
        (-back * 0.4, deep * 0.62),
    ]
    if plumage.neck:
        brush.ribbon(
            [(back * 0.4, 0), (back * 0.9 + plumage.neck, -deep * 0.4 - plumage.neck * 0.12)],
            [deep * 1.2, plumage.head_size],
            look.main,
        )
    brush.blob(shape, look.main)
    with brush.inside(shape):
        brush.blob(shape, plumage.belly or look.shade)
        brush.blob([(x * 1.1, y - deep * 0.55) for x, y in shape], look.main)


def _draw_tail(brush: Brush, plumage: Plumage, phase: float, look: Look) -> None:
    colour = plumage.tail_colour or mix(look.main, look.shade, 0.6)
    tilt = brush.moved(degrees=4 * wave(phase, 0.1))
    length, spread = plumage.tail, plumage.tail_spread
    if plumage.forked:
        for side in (-1, 1):
            tilt.blob(
                [(0.1, -0.05), (0.1, 0.05), (-length, spread * side), (-length * 0.4, spread * 0.3 * side)], colour
            )
        return
    tilt.blob(
        [
            (0.16, -0.06),
            (0.16, 0.06),
            (-length * 0.7, spread * 0.9),
            (-length, spread * 0.35),
            (-length, -spread * 0.3),
            (-length * 0.7, -spread * 0.6),
        ],
        colour,
    )


def _draw_head(brush: Brush, plumage: Plumage, look: Look) -> None:
    size, head = plumage.head_size, plumage.head or look.main
    brush.ellipse((0, 0), (size * 1.1, size), head)
    draw_beak(brush.moved((size * 0.85, size * 0.12)), plumage.beak, plumage.beak_length, plumage.beak_colour)
    eye = BLACK if sum(head) > 180 else WHITE
    brush.ellipse((size * 0.4, -size * 0.2), (size * 0.17, size * 0.19), eye)


def draw_beak(brush: Brush, kind: Beak, length: float, colour: Colour) -> None:
    """Draw a beak that points right from (0, 0)."""
    thick = length * 0.42
    below = darken(colour, 0.2)
    outlines: dict[Beak, tuple[list[Point], list[Point]]] = {
        Beak.SHORT: ([(0, -thick), (length, 0.0), (0, 0.2 * thick)], [(0, 0), (length * 0.8, 0.0), (0, thick)]),
        Beak.HOOKED: (
            [
                (-0.1 * length, -1.1 * thick),
                (0.6 * length, -0.9 * thick),
                (length, 0.1 * thick),
                (0.95 * length, 1.1 * thick),
                (0.6 * length, 0.3 * thick),
                (0, 0.4 * thick),
            ],
            [(0, 0), (0.65 * length, 0.3 * thick), (0, thick)],
        ),
        Beak.LONG: (
            [(0, -0.5 * thick), (1.7 * length, 0.2 * thick), (0, 0.2 * thick)],
            [(0, 0), (1.5 * length, 0.25 * thick), (0, 0.6 * thick)],
        ),
        Beak.FLAT: (
            [
                (0, -thick),
                (0.6 * length, -0.3 * thick),
                (1.1 * length, -0.2 * thick),
                (1.1 * length, 0.3 * thick),
                (0, 0.4 * thick),
            ],
            [(0, 0.1 * thick), (1.0 * length, 0.3 * thick), (0.9 * length, 0.7 * thick), (0, thick)],
        ),
    }
    upper, lower = outlines[kind]
    brush.polygon(lower, below)
    if kind is Beak.HOOKED:
        brush.blob(upper, colour)
    else:
        brush.polygon(upper, colour)
