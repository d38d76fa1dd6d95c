"""Things that people wear on their heads, carry on their backs and hold in their hands."""

from penstock_engines.cinema.paint.brush import Brush, Colour
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Look, darken, lighten

STRAW: Colour = (240, 204, 120)
WOOD: Colour = (140, 92, 54)
STEEL: Colour = (178, 186, 200)
GOLD: Colour = (248, 200, 76)


def straw_hat(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a wide hat with a band."""
    brush.blob([(-0.7, -0.5), (-0.55, -1.2), (0.0, -1.32), (0.5, -1.15), (0.65, -0.5)], STRAW)
    brush.limb([(-0.66, -0.62), (0.62, -0.6)], [0.2, 0.2], look.accent)
    brush.limb([(-1.45, -0.42), (0.0, -0.52), (1.4, -0.38)], [0.12, 0.24, 0.12], darken(STRAW, 0.12))


def cap(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a cap with a peak."""
    brush.blob([(-0.98, -0.25), (-0.85, -0.85), (-0.1, -1.12), (0.6, -0.85), (0.8, -0.35)], look.main)
    brush.limb([(0.3, -0.36), (1.3, -0.28)], [0.22, 0.1], look.shade)


def flat_cap(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw an old man's cap."""
    brush.blob([(-1.0, -0.3), (-0.9, -0.8), (-0.2, -1.1), (0.6, -0.95), (1.15, -0.42), (0.5, -0.4)], (96, 92, 88))


def chef_hat(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a tall white hat."""
    for x, y in ((-0.55, -1.3), (0.1, -1.5), (0.6, -1.25)):
        brush.ellipse((x, y), (0.5, 0.45), WHITE)
    brush.polygon([(-0.8, -1.2), (0.72, -1.2), (0.72, -0.5), (-0.85, -0.5)], darken(WHITE, 0.06))
    brush.limb([(-0.8, -0.5), (0.72, -0.5)], [0.2, 0.2], WHITE)


def wizard_hat(brush: Brush, phase: float, look: Look) -> None:
    """Draw a pointed hat with stars."""
    brush.blob(
        [
            (-0.85, -0.5),
            (-0.55, -1.3),
            (-0.35, -2.1),
            (-0.7 + 0.1 * wave(phase), -2.7),
            (0.15, -1.9),
            (0.5, -1.1),
            (0.8, -0.5),
        ],
        look.main,
    )
    brush.limb([(-1.5, -0.38), (0.0, -0.5), (1.45, -0.36)], [0.14, 0.3, 0.14], look.shade)
    for x, y in ((-0.2, -1.0), (0.15, -1.5), (0.3, -0.85)):
        brush.ellipse((x, y), (0.11, 0.11), GOLD)


def helmet(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a knight's closed helmet with a plume."""
    brush.ribbon([(-0.1, -0.9), (-0.6, -1.5), (-1.3, -1.3), (-1.6, -0.5)], [0.3, 0.6, 0.6, 0.1], look.accent)
    brush.blob(
        [(-1.0, 0.9), (-1.05, -0.2), (-0.6, -0.95), (0.1, -1.1), (0.75, -0.75), (1.05, -0.1), (0.95, 0.6), (0.4, 1.1)],
        STEEL,
    )
    brush.blob([(-1.0, 0.9), (-1.05, -0.2), (-0.7, -0.8), (-0.5, 0.2), (-0.4, 1.1)], darken(STEEL, 0.25))
    brush.polygon([(0.1, -0.15), (1.08, -0.1), (1.05, 0.12), (0.1, 0.15)], BLACK)
    for y in (0.4, 0.65):
        brush.limb([(0.5, y), (0.85, y)], [0.08, 0.08], darken(STEEL, 0.5))


def samurai_helmet(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a kabuto with golden horns."""
    brush.blob(
        [(-1.05, 0.1), (-0.95, -0.7), (-0.2, -1.15), (0.55, -0.9), (0.8, -0.35), (0.0, -0.35)], darken(look.main, 0.35)
    )
    brush.blob([(-1.0, -0.2), (-0.4, -0.2), (-0.55, 0.5), (-1.35, 0.65)], look.main)
    for tip in ((1.25, -1.6), (0.35, -1.75)):
        brush.ribbon([(0.55, -0.6), ((tip[0] + 0.65) / 2 + 0.1, -1.1), tip], [0.2, 0.16, 0.03], GOLD)
    brush.ellipse((0.58, -0.6), (0.17, 0.17), GOLD)


def crown(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a small golden crown."""
    brush.polygon(
        [(-0.6, -0.7), (-0.7, -1.4), (-0.3, -1.1), (0.0, -1.5), (0.3, -1.1), (0.65, -1.35), (0.55, -0.65)], GOLD
    )
    for x, y in ((-0.7, -1.42), (0.0, -1.52), (0.65, -1.38)):
        brush.ellipse((x, y), (0.1, 0.1), (226, 70, 90))


def backpack(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a hiker's pack with a rolled blanket."""
    brush.blob(
        [(-0.06, -0.76), (-0.2, -0.76), (-0.26, -0.62), (-0.24, -0.47), (-0.06, -0.47)], darken(look.accent, 0.2)
    )
    brush.ellipse((-0.16, -0.79), (0.09, 0.045), (226, 120, 70))
    brush.limb([(-0.22, -0.55), (-0.12, -0.55)], [0.05, 0.05], look.accent)


def cape(brush: Brush, phase: float, look: Look) -> None:
    """Draw a cape that flies behind the shoulders."""
    flow = 0.04 * wave(2 * phase)
    brush.blob(
        [
            (0.02, -0.76),
            (-0.12, -0.72),
            (-0.3 - flow, -0.45),
            (-0.44 - flow, -0.16 + flow),
            (-0.22, -0.12 - flow),
            (-0.06, -0.4),
        ],
        look.accent,
    )


def apron(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a white apron from the chest to the knees."""
    brush.blob(
        [(0.0, -0.68), (0.09, -0.67), (0.11, -0.5), (0.13, -0.26), (0.0, -0.24), (-0.03, -0.5)], lighten(WHITE, 0.0)
    )
    brush.limb([(-0.1, -0.5), (0.1, -0.5)], [0.02, 0.02], (226, 226, 230))


def armour(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a breastplate and tassets."""
    brush.blob([(-0.08, -0.74), (0.06, -0.76), (0.12, -0.64), (0.1, -0.5), (-0.08, -0.48), (-0.11, -0.6)], look.light)
    brush.limb([(-0.1, -0.46), (0.1, -0.46)], [0.04, 0.04], (150, 104, 60))
    for x in (-0.07, 0.0, 0.07):
        brush.polygon([(x - 0.045, -0.44), (x + 0.045, -0.44), (x + 0.04, -0.34), (x - 0.04, -0.34)], look.shade)
    brush.ellipse((0.0, -0.71), (0.075, 0.06), look.main)


def lacing(brush: Brush, _phase: float, look: Look) -> None:
    """Draw the plates of a samurai's armour."""
    for y in (-0.66, -0.58, -0.5):
        brush.limb([(-0.09, y), (0.1, y)], [0.02, 0.02], GOLD)
    for x in (-0.09, 0.0, 0.09):
        brush.polygon([(x - 0.05, -0.46), (x + 0.05, -0.46), (x + 0.06, -0.32), (x - 0.06, -0.32)], look.shade)
        brush.limb([(x - 0.05, -0.35), (x + 0.05, -0.35)], [0.014, 0.014], GOLD)


def sword(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a sword held upright and forward."""
    local = brush.moved(degrees=24)
    local.polygon([(-0.022, -0.05), (0.022, -0.05), (0.018, -0.46), (0.0, -0.52), (-0.018, -0.46)], lighten(STEEL, 0.4))
    local.limb([(-0.07, -0.05), (0.07, -0.05)], [0.03, 0.03], GOLD)
    local.limb([(0.0, -0.04), (0.0, 0.06)], [0.03, 0.03], WOOD)


def katana(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a long bent blade."""
    local = brush.moved(degrees=44)
    local.ribbon([(0.0, -0.06), (0.02, -0.3), (-0.03, -0.58)], [0.03, 0.03, 0.008], lighten(STEEL, 0.5))
    local.limb([(-0.04, -0.05), (0.04, -0.05)], [0.025, 0.025], GOLD)
    local.limb([(0.0, -0.04), (0.0, 0.1)], [0.03, 0.03], BLACK)


def shield(brush: Brush, _phase: float, look: Look) -> None:
    """Draw a shield with a cross on it."""
    shape = [(-0.12, -0.14), (0.12, -0.14), (0.12, 0.04), (0.0, 0.19), (-0.12, 0.04)]
    brush.polygon([(x * 1.16, y * 1.12) for x, y in shape], STEEL)
    brush.polygon(shape, look.accent)
    brush.limb([(0.0, -0.12), (0.0, 0.13)], [0.035, 0.035], WHITE)
    brush.limb([(-0.1, -0.03), (0.1, -0.03)], [0.035, 0.035], WHITE)


def staff(brush: Brush, phase: float, _look: Look) -> None:
    """Draw a wizard's staff whose stone shines."""
    brush.limb([(0.03, 0.36), (0.03, -0.42)], [0.028, 0.034], WOOD)
    brush.glow((0.03, -0.47), 0.17, (140, 220, 255), 0.6 + 0.3 * wave(phase))
    brush.ellipse((0.03, -0.47), (0.05, 0.05), (170, 232, 255))


def walking_stick(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a cane with a bent handle."""
    brush.ribbon([(-0.03, -0.02), (0.03, -0.03), (0.05, 0.1), (0.07, 0.36)], [0.025, 0.028, 0.024, 0.022], WOOD)


def hiking_pole(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw a long stick for the mountains."""
    brush.limb([(0.0, -0.14), (0.06, 0.4)], [0.024, 0.02], WOOD)


def pitchfork(brush: Brush, _phase: float, _look: Look) -> None:
    """Draw three prongs on a long shaft."""
    local = brush.moved(degrees=8)
    local.limb([(0.0, 0.34), (0.0, -0.36)], [0.024, 0.024], WOOD)
    for x in (-0.06, 0.0, 0.06):
        local.ribbon([(0.0, -0.34), (x, -0.38), (x, -0.52)], [0.018, 0.018, 0.01], darken(STEEL, 0.3))


def fishing_rod(brush: Brush, phase: float, _look: Look) -> None:
    """Draw a long rod, its line and a float."""
    nod = 0.015 * wave(phase)
    brush.ribbon([(-0.1, 0.06), (0.3, -0.24), (0.66, -0.36 + nod)], [0.026, 0.018, 0.008], WOOD)
    brush.ribbon([(0.66, -0.36 + nod), (0.7, 0.0), (0.7, 0.34 + nod)], [0.006, 0.006, 0.006], WHITE)
    brush.ellipse((0.7, 0.36 + nod), (0.024, 0.032), (226, 60, 50))
    brush.ellipse((0.0, 0.0), (0.03, 0.03), (70, 70, 80))


def frying_pan(brush: Brush, phase: float, _look: Look) -> None:
    """Draw a pan with a pancake that jumps."""
    high = abs(wave(phase / 2))
    brush.limb([(0.0, 0.0), (0.14, -0.01)], [0.025, 0.025], WOOD)
    brush.blob([(0.12, -0.02), (0.32, -0.02), (0.3, 0.025), (0.14, 0.025)], (58, 58, 66))
    brush.ellipse((0.22, -0.04 - 0.2 * high), (0.075, 0.02), (240, 190, 96), degrees=40 * wave(phase))


def umbrella(brush: Brush, phase: float, look: Look) -> None:
    """Draw an open umbrella held over the head."""
    local = brush.moved(degrees=-4 + 2 * wave(phase))
    local.limb([(0.0, 0.06), (0.0, -0.5)], [0.018, 0.018], WOOD)
    dome = [
        (-0.4, -0.4),
        (-0.34, -0.56),
        (-0.16, -0.68),
        (0.0, -0.71),
        (0.16, -0.68),
        (0.34, -0.56),
        (0.4, -0.4),
        (0.27, -0.44),
        (0.13, -0.4),
        (0.0, -0.44),
        (-0.13, -0.4),
        (-0.27, -0.44),
    ]
    local.blob(dome, look.accent)
    with local.inside(dome):
        local.blob([(0.0, -0.72), (0.14, -0.56), (0.13, -0.38), (0.5, -0.3), (0.4, -0.6)], darken(look.accent, 0.15))


def red_balloon(brush: Brush, phase: float, look: Look) -> None:
    """Draw a balloon on a string."""
    sway = 0.03 * wave(phase)
    brush.ribbon([(0.0, 0.0), (0.02, -0.24), (0.06 + sway, -0.5)], [0.008, 0.008, 0.008], WHITE)
    brush.ellipse((0.06 + sway, -0.65), (0.13, 0.155), look.accent)
    brush.ellipse((0.02 + sway, -0.7), (0.03, 0.05), WHITE, 0.5, degrees=20)
