"""Swimmers of the open sea."""

from penstock_engines.cinema.paint.brush import Brush, Colour, Point
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.subject import BLACK, WHITE, Habitat, Look, Motion, darken, subject_of


def _eye(brush: Brush, place: Point, size: float) -> None:
    brush.ellipse(place, (size, size), WHITE)
    brush.ellipse((place[0] + size * 0.25, place[1]), (size * 0.62, size * 0.62), BLACK)
    brush.ellipse((place[0] + size * 0.42, place[1] - size * 0.25), (size * 0.2, size * 0.2), WHITE)


def _bend(points: list[Point], phase: float, amount: float) -> list[Point]:
    """Bend a swimmer's body in a wave that grows towards the tail."""
    return [(x, y + amount * max(0.0, 0.5 - x) ** 1.5 * wave(phase, 0.35 * x)) for x, y in points]


def draw_fish(brush: Brush, phase: float, look: Look) -> None:
    """Draw a round little fish."""
    swing = 0.5 + 0.5 * abs(wave(phase)) if wave(phase) > 0 else 0.75 + 0.25 * wave(phase)
    tail = brush.moved((-0.52, 0.0), scale=(0.55 + 0.4 * swing, 1.0))
    tail.blob(
        [(0.14, -0.06), (-0.24, -0.36), (-0.4, -0.34), (-0.26, 0.0), (-0.4, 0.34), (-0.24, 0.36), (0.14, 0.06)],
        look.accent,
    )
    brush.blob([(-0.3, -0.3), (-0.14, -0.5), (0.2, -0.46), (0.3, -0.26)], look.accent)
    brush.blob([(-0.24, 0.26), (-0.2, 0.44), (0.02, 0.42), (0.1, 0.3)], look.accent)
    body = [
        (0.62, 0.02),
        (0.44, -0.24),
        (0.08, -0.37),
        (-0.3, -0.24),
        (-0.56, -0.04),
        (-0.56, 0.04),
        (-0.3, 0.24),
        (0.08, 0.36),
        (0.44, 0.24),
    ]
    brush.blob(body, look.main)
    with brush.inside(body):
        brush.ellipse((0.0, 0.34), (0.6, 0.2), look.shade)
        brush.ellipse((0.05, -0.36), (0.5, 0.12), look.light)
        for x, y in ((-0.1, -0.06), (-0.24, -0.06), (-0.17, 0.06), (-0.31, 0.05), (-0.03, 0.06)):
            brush.ribbon([(x, y - 0.06), (x + 0.05, y), (x, y + 0.06)], [0.006, 0.018, 0.006], look.shade)
    brush.ribbon([(0.22, -0.2), (0.16, 0.0), (0.22, 0.2)], [0.01, 0.025, 0.01], look.shade)
    fin = brush.moved((0.08, 0.08), degrees=24 + 16 * wave(2 * phase))
    fin.blob([(0.02, -0.06), (-0.24, -0.02), (-0.24, 0.12), (0.02, 0.07)], look.accent)
    _eye(brush, (0.38, -0.08), 0.085)
    brush.ribbon([(0.58, 0.06), (0.52, 0.1), (0.46, 0.09)], [0.012, 0.018, 0.008], look.shade)


def draw_clownfish(brush: Brush, phase: float, look: Look) -> None:
    """Draw a tropical fish with white bands."""
    draw_fish(brush, phase, look)
    body = [
        (0.62, 0.02),
        (0.44, -0.24),
        (0.08, -0.37),
        (-0.3, -0.24),
        (-0.56, -0.04),
        (-0.56, 0.04),
        (-0.3, 0.24),
        (0.08, 0.36),
        (0.44, 0.24),
    ]
    with brush.inside(body):
        for x, wide in ((0.2, 0.075), (-0.14, 0.07), (-0.46, 0.05)):
            brush.ribbon([(x, -0.42), (x + 0.04, 0.0), (x, 0.42)], [wide * 2 + 0.05] * 3, BLACK)
            brush.ribbon([(x, -0.42), (x + 0.04, 0.0), (x, 0.42)], [wide * 2] * 3, WHITE)
    _eye(brush, (0.42, -0.08), 0.085)


def draw_shark(brush: Brush, phase: float, look: Look) -> None:
    """Draw a long and pointed shark with its fin."""
    tail = _bend(
        [(-0.82, 0.0), (-1.1, -0.42), (-1.22, -0.44), (-1.08, -0.02), (-1.16, 0.26), (-1.06, 0.24), (-0.84, 0.08)],
        phase,
        0.1,
    )
    brush.blob(tail, look.main)
    brush.blob(_bend([(-0.04, -0.22), (-0.1, -0.54), (-0.2, -0.56), (-0.34, -0.2)], phase, 0.1), look.main)
    brush.blob(_bend([(0.24, 0.14), (0.0, 0.48), (-0.1, 0.5), (-0.04, 0.14)], phase, 0.1), look.shade)
    body = _bend(
        [
            (1.0, -0.06),
            (0.7, -0.2),
            (0.2, -0.3),
            (-0.4, -0.17),
            (-0.9, -0.03),
            (-0.9, 0.05),
            (-0.4, 0.16),
            (0.2, 0.25),
            (0.7, 0.16),
            (0.94, 0.04),
        ],
        phase,
        0.1,
    )
    brush.blob(body, look.main)
    with brush.inside(body):
        brush.blob(body, (236, 238, 242))
        brush.blob([(x * 1.02, y - 0.15) for x, y in body], look.main)
    for x in (0.36, 0.42, 0.48):
        brush.ribbon([(x, -0.1), (x - 0.03, 0.0), (x, 0.08)], [0.008, 0.018, 0.008], look.shade)
    brush.ribbon([(0.9, 0.06), (0.76, 0.1), (0.64, 0.05)], [0.01, 0.02, 0.008], darken(look.main, 0.5))
    for x in (0.7, 0.76, 0.82):
        brush.polygon([(x - 0.025, 0.082), (x + 0.025, 0.085), (x, 0.125)], WHITE)
    brush.ellipse((0.72, -0.08), (0.028, 0.03), BLACK)
    brush.blob(_bend([(0.3, 0.1), (0.06, 0.42), (-0.04, 0.44), (0.04, 0.1)], phase, 0.1), look.main)


def draw_whale(brush: Brush, phase: float, look: Look) -> None:
    """Draw a huge and gentle whale whose fluke beats slowly."""
    beat = 0.16 * wave(phase)
    brush.ribbon([(-0.4, 0.02), (-0.8, -0.02 + beat * 0.5), (-1.06, -0.2 + beat)], [0.42, 0.2, 0.1], look.main)
    fluke = brush.moved((-1.06, -0.2 + beat), degrees=30 + 120 * beat)
    fluke.blob([(0.06, 0.0), (-0.12, -0.24), (-0.34, -0.32), (-0.26, -0.06), (-0.36, 0.14), (-0.14, 0.12)], look.main)
    body = [
        (0.94, -0.02),
        (0.86, -0.28),
        (0.5, -0.46),
        (0.0, -0.42),
        (-0.5, -0.2),
        (-0.86, -0.06 + beat * 0.5),
        (-0.7, 0.12 + beat * 0.3),
        (-0.2, 0.34),
        (0.4, 0.44),
        (0.8, 0.28),
    ]
    brush.blob(body, look.main)
    with brush.inside(body):
        brush.blob(body, look.accent)
        brush.blob(
            [(1.1, 0.04), (0.7, 0.0), (0.3, 0.1), (-0.2, 0.14), (-0.9, 0.1), (-1.2, -0.6), (0.0, -0.8), (1.1, -0.5)],
            look.main,
        )
        for index in range(5):
            drop = 0.12 + 0.065 * index
            brush.ribbon(
                [(0.9, drop - 0.02), (0.5, drop + 0.04), (0.0, drop + 0.06)],
                [0.008, 0.014, 0.004],
                darken(look.accent, 0.14),
            )
    brush.ribbon([(0.92, 0.02), (0.74, -0.01), (0.56, 0.08)], [0.01, 0.022, 0.01], darken(look.main, 0.4))
    fin = brush.moved((0.26, 0.2), degrees=14 - 90 * beat)
    fin.blob([(0.12, -0.04), (-0.1, 0.28), (-0.3, 0.36), (-0.16, 0.06)], look.shade)
    brush.ellipse((0.56, -0.04), (0.035, 0.038), WHITE)
    brush.ellipse((0.565, -0.04), (0.024, 0.028), BLACK)


def draw_dolphin(brush: Brush, phase: float, look: Look) -> None:
    """Draw a dolphin that leaps in an arc."""
    lean = brush.moved(degrees=10 * wave(phase))
    arch = 0.1 + 0.07 * wave(phase, 0.25)

    def bow(points: list[Point]) -> list[Point]:
        return [(x, y + arch * (1.6 if x < 0 else 0.9) * x * x) for x, y in points]

    lean.blob(bow([(-0.86, 0.0), (-1.0, -0.2), (-1.16, -0.24), (-1.08, 0.0), (-1.16, 0.2), (-0.98, 0.18)]), look.shade)
    lean.blob(bow([(0.06, -0.2), (-0.14, -0.5), (-0.26, -0.5), (-0.24, -0.18)]), look.shade)
    body = bow(
        [
            (1.04, 0.0),
            (0.82, -0.05),
            (0.7, -0.18),
            (0.4, -0.27),
            (-0.1, -0.26),
            (-0.6, -0.12),
            (-0.96, -0.03),
            (-0.96, 0.05),
            (-0.5, 0.12),
            (0.0, 0.21),
            (0.5, 0.18),
            (0.78, 0.09),
            (1.0, 0.06),
        ]
    )
    lean.blob(body, look.main)
    with lean.inside(body):
        lean.blob(body, (232, 238, 244))
        lean.blob([(x * 1.1, y - 0.13) for x, y in body], look.main)
    lean.blob(bow([(0.3, 0.1), (0.1, 0.4), (0.0, 0.42), (0.06, 0.1)]), look.shade)
    place = bow([(0.66, -0.03)])[0]
    lean.ellipse(place, (0.026, 0.028), BLACK)
    lean.ribbon(bow([(1.02, 0.02), (0.84, 0.02), (0.74, 0.04)]), [0.008, 0.012, 0.006], look.shade)


def draw_ray(brush: Brush, phase: float, look: Look) -> None:
    """Draw a ray that flies through the water on wide wings."""
    beat, late = wave(phase), wave(phase, -0.1)
    brush.ribbon(
        [(-0.4, 0.04), (-0.8, 0.0), (-1.1, 0.06 * beat), (-1.4, -0.04 - 0.06 * beat)],
        [0.08, 0.04, 0.02, 0.006],
        look.shade,
    )
    brush.blob(
        [(0.4, -0.04), (0.2, -0.2 - 0.2 * beat), (-0.06, -0.26 - 0.4 * late), (-0.2, -0.14 - 0.2 * beat), (-0.4, 0.02)],
        darken(look.main, 0.42),
    )
    brush.blob(
        [(0.72, 0.0), (0.5, -0.12), (0.1, -0.16), (-0.3, -0.1), (-0.56, 0.03), (-0.2, 0.12), (0.3, 0.14), (0.62, 0.1)],
        look.main,
    )
    brush.blob(
        [
            (0.52, 0.02),
            (0.24, -0.1),
            (-0.3, -0.06),
            (-0.38, 0.06),
            (-0.3, 0.16 - 0.24 * beat),
            (-0.14, 0.34 - 0.56 * late),
            (0.06, 0.26 - 0.5 * late),
            (0.3, 0.1 - 0.16 * beat),
        ],
        look.light,
    )
    brush.ribbon([(0.66, 0.0), (0.78, 0.0), (0.84, 0.06)], [0.08, 0.05, 0.03], look.main)
    for x, y in ((0.1, 0.02), (-0.06, 0.06), (0.2, 0.07), (-0.2, 0.0)):
        brush.ellipse((x, y), (0.03, 0.02), WHITE, 0.7)
    _eye(brush, (0.56, -0.04), 0.032)


CORAL: Colour = (240, 110, 90)


DEEP = Habitat.UNDERWATER


SEA = (
    subject_of(
        draw_fish,
        DEEP,
        Motion.SWIM,
        0.12,
        0.9,
        (-1.0, -0.6, 0.75, 0.55),
        Look((250, 190, 60), (240, 130, 50)),
        "fish/",
        "goldfish/",
        "salmon/",
        "koi/",
        "school of fish/",
        "carp/",
        "trout/",
    ),
    subject_of(
        draw_clownfish,
        DEEP,
        Motion.SWIM,
        0.12,
        0.9,
        (-1.0, -0.6, 0.75, 0.55),
        Look((250, 120, 36), (250, 120, 36)),
        "tropical fish/",
        "clownfish/",
        "coral fish/",
        "angelfish/",
    ),
    subject_of(
        draw_shark,
        DEEP,
        Motion.SWIM,
        0.24,
        1.2,
        (-1.35, -0.7, 1.1, 0.65),
        Look((106, 124, 144)),
        "shark",
        "great white",
        "hammerhead",
    ),
    subject_of(
        draw_whale,
        DEEP,
        Motion.SWIM,
        0.4,
        0.6,
        (-1.55, -0.8, 1.05, 0.8),
        Look((62, 104, 152), (214, 226, 236)),
        "whale",
        "blue whale",
        "humpback",
        "orca",
        "humpback whale",
    ),
    subject_of(
        draw_dolphin,
        DEEP,
        Motion.SWIM,
        0.2,
        1.2,
        (-1.3, -0.75, 1.2, 0.75),
        Look((92, 136, 176)),
        "dolphin",
        "porpoise",
        "narwhal",
    ),
    subject_of(
        draw_ray,
        DEEP,
        Motion.SWIM,
        0.24,
        0.8,
        (-1.55, -0.8, 1.0, 0.95),
        Look((70, 88, 130)),
        "manta ray",
        "stingray",
        "manta",
    ),
)
