"""Small animals with wings: insects, and the bat."""

from penstock_engines.cinema.paint.brush import Brush, Colour
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken, lighten, subject_of

GLASS: Colour = (226, 240, 250)


def draw_butterfly(brush: Brush, phase: float, look: Look) -> None:
    """Draw a butterfly, half from behind, with wings that open and close."""
    fold = 0.6 + 0.4 * wave(phase)
    lean = brush.moved((0.0, 0.05 * wave(phase, 0.3)), degrees=18)
    for side, dim in ((-1, 0.12), (1, 0.0)):
        half = lean.moved(scale=(side * (0.25 + 0.75 * fold), 1.0))
        dark, base = darken(look.accent, dim), darken(look.main, dim)
        upper = [(0.02, -0.06), (0.14, -0.34), (0.42, -0.5), (0.62, -0.42), (0.56, -0.16), (0.34, 0.02), (0.04, 0.06)]
        lower = [(0.02, 0.0), (0.3, 0.04), (0.46, 0.2), (0.38, 0.42), (0.22, 0.44), (0.08, 0.26)]
        half.blob(lower, dark)
        half.blob(upper, dark)
        half.blob([(x * 0.8 + 0.04, y * 0.8 - 0.02) for x, y in upper], base)
        half.blob([(x * 0.76 + 0.04, y * 0.78 + 0.03) for x, y in lower], lighten(base, 0.25))
        half.ellipse((0.36, -0.28), (0.07, 0.06), lighten(base, 0.55))
        half.ellipse((0.24, -0.12), (0.04, 0.035), lighten(base, 0.55))
        half.ellipse((0.27, 0.26), (0.05, 0.05), dark)
        for x, y in ((0.55, -0.4), (0.57, -0.31), (0.56, -0.22), (0.4, 0.34)):
            half.ellipse((x, y), (0.018, 0.018), WHITE)
    lean.limb([(0.0, -0.16), (0.0, 0.05), (0.0, 0.26)], [0.07, 0.075, 0.03], look.accent)
    lean.ellipse((0.0, -0.2), (0.05, 0.05), look.accent)
    for side in (-1, 1):
        lean.ribbon([(0.0, -0.22), (0.06 * side, -0.34), (0.14 * side, -0.4)], [0.014, 0.012, 0.012], look.accent)
        lean.ellipse((0.14 * side, -0.4), (0.018, 0.018), look.accent)


def draw_bee(brush: Brush, phase: float, look: Look) -> None:
    """Draw a round and striped bee with humming wings."""
    body = brush.moved((0.0, 0.04 * wave(phase)), degrees=-6)
    hum = 16 * wave(4 * phase)
    body.moved((0.06, -0.22), degrees=-8 + hum).ellipse((-0.02, -0.26), (0.16, 0.28), GLASS, 0.6)
    shape = [
        (0.4, 0.0),
        (0.28, -0.22),
        (-0.05, -0.3),
        (-0.4, -0.2),
        (-0.56, 0.02),
        (-0.4, 0.22),
        (-0.05, 0.3),
        (0.28, 0.22),
    ]
    body.polygon([(-0.5, -0.05), (-0.68, 0.03), (-0.5, 0.09)], BLACK)
    body.blob(shape, look.main)
    with body.inside(shape):
        for x in (-0.42, -0.2, 0.02):
            body.ribbon([(x, -0.4), (x - 0.04, 0.0), (x, 0.4)], [0.11, 0.11, 0.11], look.accent)
        body.ellipse((-0.1, 0.34), (0.5, 0.14), BLACK, 0.18)
    body.ellipse((0.38, -0.02), (0.22, 0.21), look.accent)
    body.ellipse((0.46, -0.06), (0.07, 0.08), WHITE)
    body.ellipse((0.48, -0.06), (0.045, 0.055), BLACK)
    for x, high in ((0.42, -0.42), (0.54, -0.4)):
        body.ribbon([(0.4, -0.18), (x, high + 0.08), (x + 0.08, high)], [0.022, 0.018, 0.018], look.accent)
        body.ellipse((x + 0.08, high), (0.03, 0.03), look.accent)
    body.ribbon([(0.42, 0.09), (0.49, 0.12), (0.55, 0.07)], [0.01, 0.018, 0.01], WHITE)
    body.moved((-0.06, -0.24), degrees=-30 - hum).ellipse((0.0, -0.27), (0.18, 0.3), GLASS, 0.82)


def draw_dragonfly(brush: Brush, phase: float, look: Look) -> None:
    """Draw a long body and four clear wings."""
    hum = wave(4 * phase)
    body = brush.moved((0.0, 0.03 * wave(phase)), degrees=-8)
    for x, tilt, dim in ((0.2, 10, 0.45), (0.06, -16, 0.45)):
        body.moved((x, -0.04), degrees=tilt - 12 * hum).ellipse((0.0, -0.33), (0.07, 0.36), GLASS, dim)
    body.limb([(0.3, 0.0), (0.1, 0.0), (-0.9, 0.04)], [0.17, 0.13, 0.05], look.main)
    for index in range(6):
        x = -0.08 - 0.13 * index
        body.limb([(x, -0.04), (x, 0.055)], [0.022, 0.022], look.shade)
    body.ellipse((0.36, -0.01), (0.11, 0.1), look.main)
    body.ellipse((0.4, -0.04), (0.075, 0.075), darken(look.main, 0.5))
    body.ellipse((0.42, -0.065), (0.022, 0.022), WHITE)
    for x, tilt in ((0.18, -6), (0.02, -34)):
        wing = body.moved((x, -0.05), degrees=tilt + 14 * hum)
        wing.ellipse((0.0, -0.36), (0.085, 0.4), GLASS, 0.78)
        wing.limb([(0.02, 0.0), (0.03, -0.7)], [0.014, 0.008], look.shade)
        wing.ellipse((0.03, -0.66), (0.022, 0.05), look.shade)


def draw_firefly(brush: Brush, phase: float, look: Look) -> None:
    """Draw a firefly whose lamp swells and fades."""
    shine = 0.6 + 0.4 * wave(phase)
    brush.glow((-0.24, 0.12), 0.62, look.main, 0.85 * shine)
    body = brush.moved((0.0, 0.04 * wave(phase, 0.3)), degrees=-24)
    hum = 14 * wave(4 * phase)
    body.moved((0.04, -0.08), degrees=-34 - hum).ellipse((0.0, -0.24), (0.1, 0.27), GLASS, 0.6)
    body.ellipse((-0.26, 0.02), (0.25, 0.15), lighten(look.main, 0.3 + 0.4 * shine))
    body.ellipse((0.02, 0.0), (0.22, 0.14), (72, 54, 48))
    body.ellipse((0.26, -0.02), (0.12, 0.11), (150, 66, 50))
    body.ellipse((0.3, -0.05), (0.035, 0.04), WHITE)
    body.ellipse((0.31, -0.05), (0.02, 0.025), BLACK)
    for rise in (-0.2, -0.27):
        body.ribbon([(0.3, -0.1), (0.36, rise), (0.44, rise - 0.02)], [0.016, 0.014, 0.014], (72, 54, 48))
    body.moved((-0.04, -0.1), degrees=-52 + hum).ellipse((0.0, -0.24), (0.11, 0.28), GLASS, 0.75)


def draw_bat(brush: Brush, phase: float, look: Look) -> None:
    """Draw a bat that flies towards the camera on wings of skin."""
    body = brush.moved((0.0, 0.06 * wave(phase, 0.25)))
    beat, late = wave(phase), wave(phase, -0.08)
    for side in (-1, 1):
        half = body.moved(scale=(side, 1.0))
        tip = (0.96, -0.06 - 0.4 * late)
        wrist = (0.5, -0.3 - 0.24 * beat)
        bottom = [
            (0.86, 0.16 - 0.3 * late),
            (0.66, 0.06 - 0.2 * late),
            (0.5, 0.24 - 0.12 * beat),
            (0.32, 0.12 - 0.06 * beat),
            (0.14, 0.26),
        ]
        half.polygon([(0.06, -0.12), (0.2, -0.16), wrist, tip, *bottom, (0.04, 0.2)], look.shade)
        for end in (bottom[0], bottom[2], tip):
            half.limb([wrist, end], [0.025, 0.01], look.main)
        half.limb([(0.06, -0.06), wrist, tip], [0.06, 0.04, 0.012], look.main)
        half.polygon([(0.02, -0.24), (0.16, -0.44), (0.19, -0.2)], look.main)
        half.polygon([(0.07, -0.25), (0.14, -0.37), (0.155, -0.22)], look.accent)
    body.ellipse((0.0, 0.04), (0.15, 0.24), look.main)
    body.ellipse((0.0, -0.16), (0.18, 0.165), look.main)
    for side in (-1, 1):
        body.ellipse((0.07 * side, -0.18), (0.042, 0.048), WHITE)
        body.ellipse((0.065 * side, -0.175), (0.024, 0.03), BLACK)
        body.polygon([(0.045 * side, -0.08), (0.015 * side, -0.08), (0.03 * side, -0.035)], WHITE)
    body.ellipse((0.0, -0.115), (0.025, 0.018), look.accent)


INSECTS = (
    subject_of(
        draw_butterfly,
        Habitat.AIR,
        Motion.FLY,
        0.14,
        0.6,
        (-0.8, -0.72, 0.85, 0.7),
        Look((250, 140, 40), (52, 34, 40)),
        "butterfly",
        "moth",
    ),
    subject_of(
        draw_bee,
        Habitat.AIR,
        Motion.HOVER,
        0.11,
        0.5,
        (-0.8, -0.85, 0.8, 0.45),
        Look((252, 200, 52), (56, 44, 44)),
        "bee",
        "bumblebee",
        "honeybee",
        "wasp",
        "hornet",
    ),
    subject_of(
        draw_dragonfly,
        Habitat.AIR,
        Motion.HOVER,
        0.12,
        0.6,
        (-1.05, -0.95, 0.65, 0.3),
        Look((46, 160, 170)),
        "dragonfly",
        "mosquito",
    ),
    subject_of(
        draw_firefly,
        Habitat.AIR,
        Motion.HOVER,
        0.09,
        0.4,
        (-0.9, -0.55, 0.65, 0.8),
        Look((246, 240, 110)),
        "firefly",
        "glow-worm",
        "lightning bug",
    ),
    subject_of(
        draw_bat,
        Habitat.AIR,
        Motion.FLY,
        0.16,
        0.8,
        (-1.05, -0.7, 1.05, 0.7),
        Look((86, 70, 104), (226, 150, 170)),
        "bat",
        "vampire bat",
    ),
)
