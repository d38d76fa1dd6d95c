"""Distinctive marks of four-legged animals: stripes, spots, manes, horns, trunks."""

from penstock_engines.cinema.paint.brush import Brush, Colour, Point
from penstock_engines.cinema.subjects.animals.quadruped import Detail
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Look, darken, lighten

IVORY: Colour = (244, 236, 214)
BEIGE: Colour = (214, 190, 150)


def stripes(
    colour: Colour | None = None, *, count: int, left: float, right: float, top: float, bottom: float
) -> Detail:
    """Return bands that run down from the back to a point, by default in the coat's shade."""

    def draw(brush: Brush, _phase: float, look: Look) -> None:
        paint = colour or look.shade
        gap = (right - left) / count
        for index in range(count):
            x = left + (index + 0.5) * gap
            low = bottom - (0.06 if index % 2 else 0.0)
            wide = gap * 0.3
            brush.blob(
                [(x - wide, top), (x + wide, top), (x + wide * 0.4, (top + low) / 2), (x - gap * 0.35, low)], paint
            )

    return draw


def spots(colour: Colour | None, places: tuple[tuple[float, float, float], ...]) -> Detail:
    """Return round marks (x, y and size of each), by default in the coat's shade."""

    def draw(brush: Brush, _phase: float, look: Look) -> None:
        paint = colour or look.shade
        for index, (x, y, size) in enumerate(places):
            brush.ellipse((x, y), (size, size * 0.8), paint, degrees=37 * index)

    return draw


def spots_over(colour: Colour | None, left: float, right: float, top: float, bottom: float, *, gap: float) -> Detail:
    """Return rows of round marks all over the body."""
    rows, columns = round((bottom - top) / gap), round((right - left) / gap)
    places = tuple(
        (left + (column + 0.5 * (row % 2)) * gap, top + row * gap, gap * (0.28 + 0.08 * ((row * 3 + column * 5) % 3)))
        for row in range(rows)
        for column in range(columns)
    )
    return spots(colour, places)


def patches(colour: Colour, *shapes: tuple[Point, ...]) -> Detail:
    """Return large marks of any outline."""

    def draw(brush: Brush, _phase: float, _look: Look) -> None:
        for shape in shapes:
            brush.blob(shape, colour)

    return draw


def all_of(*details: Detail) -> Detail:
    """Return these details, one drawn after the other."""

    def draw(brush: Brush, phase: float, look: Look) -> None:
        for detail in details:
            detail(brush, phase, look)

    return draw


def lion_mane(brush: Brush, phase: float, look: Look) -> None:
    """Draw a thick wreath of hair all around the head."""
    dark = darken(look.accent, 0.25)
    shift = 0.01 * wave(phase)
    brush.blob(
        [
            (0.12, -0.2),
            (-0.06, -0.29),
            (-0.24, -0.2),
            (-0.36 + shift, 0.0),
            (-0.34 + shift, 0.24),
            (-0.2, 0.4),
            (0.0, 0.36),
            (0.1, 0.24),
        ],
        dark,
    )
    brush.blob(
        [(0.13, -0.17), (-0.04, -0.24), (-0.19, -0.15), (-0.27, 0.03), (-0.22, 0.22), (-0.08, 0.3), (0.08, 0.2)],
        look.accent,
    )


def horse_mane(brush: Brush, phase: float, look: Look) -> None:
    """Draw hair along the neck that flows back in the wind."""
    for index in range(6):
        share = index / 5
        start = (0.49 - 0.34 * share, -0.95 + 0.23 * share)
        flow = 0.02 * wave(phase, -0.12 * index)
        bend = (start[0] - 0.07, start[1] - 0.02 + flow)
        end = (start[0] - 0.17 - flow, start[1] + 0.05 + flow)
        brush.ribbon([start, bend, end], [0.07, 0.08, 0.012], look.accent)


def zebra_nape(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a short upright mane and the stripes of the neck."""
    brush.ribbon([(0.5, -1.0), (0.38, -0.92), (0.24, -0.77), (0.14, -0.69)], [0.02, 0.05, 0.05, 0.01], BLACK)
    for index in range(5):
        share = index / 4
        top = (0.43 - 0.25 * share, -0.93 + 0.2 * share)
        brush.limb([top, (top[0] + 0.1 + 0.07 * share, top[1] + 0.1 + 0.08 * share)], [0.038, 0.012], BLACK)


def forelock(brush: Brush, _phase: float, look: Look) -> None:
    """Draw the hair between a horse's ears."""
    brush.blob([(-0.1, -0.05), (-0.02, -0.11), (0.06, -0.05), (0.0, -0.03)], look.accent)


def unicorn_horn(brush: Brush, phase: float, look: Look) -> None:
    """Draw one straight golden horn."""
    forelock(brush, phase, look)
    brush.polygon([(0.01, -0.075), (0.07, -0.055), (0.2, -0.26)], (250, 206, 92))
    brush.polygon([(0.045, -0.065), (0.07, -0.055), (0.2, -0.26)], (226, 166, 58))


def bridle_stripe(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw the dark stripes of a zebra's face."""
    for x in (0.02, 0.075, 0.125):
        brush.limb([(x, -0.06), (x - 0.015, 0.06)], [0.018, 0.008], BLACK)


def antlers(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a stag's pair of antlers."""
    for shift, colour in ((0.05, darken(BEIGE, 0.3)), (0.0, BEIGE)):
        local = brush.moved((shift, 0.0), degrees=-20)
        local.ribbon([(0.0, -0.06), (-0.06, -0.15), (-0.05, -0.27), (0.01, -0.36)], [0.03, 0.028, 0.024, 0.01], colour)
        for start, end in (
            ((-0.04, -0.13), (0.06, -0.2)),
            ((-0.055, -0.21), (0.05, -0.29)),
            ((-0.055, -0.2), (-0.14, -0.3)),
        ):
            local.limb([start, end], [0.024, 0.01], colour)


def cow_horns(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw two short horns that bend forward."""
    brush.ribbon([(0.02, -0.1), (0.07, -0.15), (0.12, -0.16)], [0.035, 0.03, 0.008], IVORY)
    brush.ribbon([(-0.03, -0.1), (0.0, -0.17), (0.06, -0.2)], [0.04, 0.032, 0.008], IVORY)


def goat_horns(brush: Brush, _phase: float, look: Look) -> None:
    """Draw horns that bend back, and a beard."""
    brush.ribbon([(-0.02, -0.1), (-0.07, -0.2), (-0.19, -0.24)], [0.06, 0.05, 0.01], (120, 104, 92))
    brush.ribbon([(0.13, 0.08), (0.14, 0.16), (0.1, 0.22)], [0.06, 0.05, 0.008], darken(look.main, 0.12))


def trunk_and_tusk(brush: Brush, phase: float, look: Look) -> None:
    """Draw an elephant's trunk, tusk and great ear."""
    swing = 0.03 * wave(phase, 0.1)
    brush.ribbon(
        [(0.1, 0.0), (0.2, 0.12), (0.22 + swing * 0.5, 0.34), (0.23 + swing, 0.52), (0.31 + swing * 1.6, 0.57)],
        [0.22, 0.16, 0.11, 0.08, 0.06],
        look.main,
    )
    for index in range(4):
        y = 0.2 + 0.08 * index
        brush.limb([(0.19 + swing * 0.4, y), (0.255 + swing * 0.4, y - 0.01)], [0.008, 0.008], look.shade)
    brush.ribbon([(0.12, 0.13), (0.2, 0.22), (0.31, 0.2)], [0.05, 0.045, 0.012], IVORY)
    flap = 0.03 * wave(phase)
    ear = [
        (-0.02, -0.16),
        (-0.18, -0.2),
        (-0.3 - flap, -0.06),
        (-0.26 - flap, 0.16),
        (-0.14, 0.27),
        (-0.04, 0.16),
        (0.02, 0.0),
    ]
    brush.blob(ear, look.shade)
    brush.blob([(x * 0.78 - 0.02, y * 0.78) for x, y in ear], darken(look.main, 0.16))


def wool(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a tuft of wool on the forehead."""
    for x, y, size in ((-0.1, -0.08, 0.1), (-0.01, -0.13, 0.08), (-0.13, 0.03, 0.08)):
        brush.ellipse((x, y), (size, size), look.accent)


def pig_snout(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a flat disc with two nostrils."""
    brush.ellipse((0.4, 0.08), (0.045, 0.11), darken(look.main, 0.22))
    brush.ellipse((0.405, 0.045), (0.014, 0.02), darken(look.main, 0.55))
    brush.ellipse((0.405, 0.115), (0.014, 0.02), darken(look.main, 0.55))
    brush.ribbon([(0.16, 0.17), (0.24, 0.2), (0.32, 0.17)], [0.006, 0.016, 0.006], darken(look.main, 0.35))


def hippo_mouth(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a wide mouth with one tooth, and nostrils on top of the muzzle."""
    brush.ribbon([(0.08, 0.18), (0.24, 0.22), (0.42, 0.16)], [0.008, 0.018, 0.008], darken(look.main, 0.45))
    brush.polygon([(0.33, 0.2), (0.37, 0.19), (0.35, 0.26)], IVORY)
    brush.ellipse((0.37, -0.02), (0.03, 0.02), darken(look.main, 0.45))
    brush.ellipse((0.02, 0.1), (0.06, 0.04), look.accent, 0.5)


def panda_eye(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a dark patch around the eye."""
    brush.ellipse((0.08, -0.02), (0.06, 0.075), BLACK, degrees=20)
    brush.ellipse((0.095, -0.035), (0.024, 0.026), WHITE)
    brush.ellipse((0.1, -0.035), (0.016, 0.018), BLACK)


def giraffe_horns(brush: Brush, _phase: float, look: Look) -> None:
    """Draw two knobs on the head."""
    for x, colour in ((0.03, darken(look.main, 0.35)), (-0.01, look.main)):
        brush.limb([(x, -0.03), (x - 0.02, -0.085)], [0.016, 0.014], colour)
        brush.ellipse((x - 0.02, -0.088), (0.013, 0.013), look.accent)


def rhino_horns(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a large horn on the nose and a small one behind it."""
    brush.blob([(0.22, -0.02), (0.32, 0.0), (0.42, -0.22), (0.3, -0.1)], IVORY)
    brush.blob([(0.12, -0.08), (0.2, -0.04), (0.22, -0.16)], IVORY)


def cat_face(brush: Brush, _phase: float, look: Look) -> None:
    """Draw whiskers, and stripes on the forehead."""
    for drop in (0.02, 0.05):
        brush.limb([(0.12, 0.08 + drop * 0.3), (0.27, 0.04 + drop * 2)], [0.006, 0.003], lighten(look.main, 0.8))
    for x in (-0.03, 0.03):
        brush.limb([(x, -0.165), (x + 0.015, -0.1)], [0.018, 0.006], look.shade)


def tiger_face(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw stripes on forehead and cheek."""
    for start, end in (
        ((-0.04, -0.15), (-0.02, -0.08)),
        ((0.02, -0.15), (0.025, -0.09)),
        ((-0.15, -0.03), (-0.06, 0.0)),
        ((-0.15, 0.04), (-0.06, 0.05)),
    ):
        brush.limb([start, end], [0.025, 0.008], BLACK)


def collar(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a dog's collar with a golden tag, below the head's centre."""
    brush.ribbon([(-0.22, 0.04), (-0.13, 0.15), (0.02, 0.2)], [0.045, 0.045, 0.045], look.accent)
    brush.ellipse((-0.02, 0.235), (0.028, 0.028), (250, 206, 92))


def giraffe_nape(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a brown mane and the spots of the long neck."""
    brush.ribbon([(0.3, -0.95), (0.15, -0.7), (0.06, -0.5)], [0.015, 0.03, 0.02], look.accent)
    for x, y, size in (
        (0.31, -0.88, 0.02),
        (0.29, -0.8, 0.024),
        (0.24, -0.73, 0.022),
        (0.28, -0.7, 0.02),
        (0.2, -0.65, 0.026),
        (0.25, -0.61, 0.022),
        (0.16, -0.57, 0.028),
        (0.22, -0.53, 0.026),
    ):
        brush.ellipse((x, y), (size, size * 0.8), look.accent, degrees=30)


def camel_hump(brush: Brush, _phase: float, look: Look) -> None:
    """Draw one great hump on the back."""
    brush.blob([(-0.3, -0.62), (-0.2, -0.74), (-0.08, -0.86), (0.04, -0.74), (0.14, -0.62), (-0.08, -0.56)], look.main)
    brush.blob([(-0.2, -0.72), (-0.08, -0.86), (-0.0, -0.78), (-0.08, -0.76)], look.light)


def fleece(brush: Brush, phase: float, look: Look) -> None:
    """Draw curls of wool around the whole body."""
    shift = 0.006 * wave(2 * phase)
    rows = ((-0.5, -0.66), (-0.34, -0.78), (-0.14, -0.82), (0.06, -0.82), (0.24, -0.76), (0.36, -0.62), (0.34, -0.46))
    low = ((-0.54, -0.5), (-0.44, -0.38), (-0.26, -0.33), (-0.06, -0.32), (0.14, -0.33), (0.28, -0.38))
    for x, y in low:
        brush.ellipse((x, y + shift), (0.14, 0.13), look.shade)
    for x, y in rows:
        brush.ellipse((x, y + shift), (0.16, 0.15), look.main)
    brush.blob(
        [(-0.56, -0.56), (-0.36, -0.72), (0.0, -0.78), (0.3, -0.7), (0.38, -0.52), (0.1, -0.4), (-0.4, -0.42)],
        look.main,
    )
    for x, y in ((-0.3, -0.62), (-0.02, -0.66), (0.16, -0.54), (-0.14, -0.5)):
        brush.ribbon([(x - 0.05, y), (x, y + 0.035), (x + 0.05, y)], [0.008, 0.016, 0.008], look.shade)
