"""People who walk, run, stand or dance."""

from dataclasses import replace

from penstock_engines.cinema.paint.brush import Brush, Colour
from penstock_engines.cinema.subjects.gait import wave
from penstock_engines.cinema.subjects.people import outfits
from penstock_engines.cinema.subjects.people.person import Hair, Outfit, draw_person
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
    plural_too,
)

GREY: Colour = (214, 214, 218)


JEANS: Colour = (62, 86, 132)


DARK: Colour = (62, 56, 66)


BLOND: Colour = (228, 180, 92)


TAN: Colour = (196, 138, 96)


BROWN: Colour = (138, 90, 64)


def draw_couple(brush: Brush, phase: float, look: Look) -> None:
    """Draw two people who walk hand in hand."""
    other = Look(look.accent, (84, 70, 92), TAN, (60, 40, 36))
    draw_person(replace(outfits.MAN, arms=((0.0, 18.0, 20.0), (14.0, 10.0, 3.0))))(
        brush.moved((0.2, 0.0)), phase, Look((70, 104, 160), (70, 66, 84))
    )
    draw_person(replace(outfits.WOMAN, arms=((0.0, 18.0, 20.0), (26.0, 30.0, 3.0)), far_held=None))(
        brush.moved((-0.17, 0.0), scale=0.94), phase + 0.5, replace(other, main=look.main, hair=BLOND)
    )


def draw_dancer(brush: Brush, phase: float, look: Look) -> None:
    """Draw a ballerina on the tip of one foot."""
    sway = wave(phase)
    body = brush.moved(degrees=3 * sway)
    skin = look.skin
    body.ribbon([(0.0, -0.44), (0.01, -0.22), (0.0, -0.01)], [0.09, 0.07, 0.035], skin)
    body.limb([(0.0, -0.06), (0.005, 0.0)], [0.045, 0.03], look.accent)
    lift = 0.05 * wave(phase, 0.25)
    body.ribbon(
        [(0.0, -0.45), (-0.2, -0.36 - lift), (-0.42, -0.42 - 2 * lift)], [0.09, 0.07, 0.035], darken(skin, 0.14)
    )
    body.limb([(-0.38, -0.41 - 1.9 * lift), (-0.46, -0.44 - 2 * lift)], [0.045, 0.025], look.accent)
    body.ribbon([(0.02, -0.7), (0.16, -0.8), (0.22, -0.95 - lift)], [0.05, 0.045, 0.032], darken(skin, 0.2))
    for spread, drop, paint in ((0.34, 0.0, look.light), (0.31, -0.02, look.main), (0.24, -0.045, look.light)):
        body.blob(
            [
                (-0.06, -0.53),
                (0.06, -0.53),
                (spread, -0.46 + drop + 0.02 * sway),
                (spread * 0.5, -0.39 + drop),
                (0.0, -0.41 + drop),
                (-spread * 0.5, -0.39 + drop),
                (-spread, -0.46 + drop - 0.02 * sway),
            ],
            paint,
        )
    body.blob(
        [(-0.055, -0.73), (0.055, -0.73), (0.07, -0.64), (0.055, -0.5), (-0.055, -0.5), (-0.07, -0.64)], look.main
    )
    body.limb([(0.0, -0.72), (0.005, -0.8)], [0.05, 0.045], darken(skin, 0.12))
    body.ellipse((0.01, -0.87), (0.075, 0.085), skin)
    body.ellipse((-0.05, -0.97), (0.045, 0.045), look.hair)
    body.blob(
        [(0.07, -0.91), (0.02, -0.92), (-0.03, -0.87), (-0.06, -0.83), (-0.08, -0.88), (-0.05, -0.95), (0.02, -0.965)],
        look.hair,
    )
    body.ellipse((0.05, -0.87), (0.009, 0.012), BLACK)
    body.ribbon([(-0.03, -0.7), (-0.18, -0.74), (-0.32, -0.68 + lift)], [0.05, 0.045, 0.032], skin)


def draw_musician(brush: Brush, phase: float, look: Look) -> None:
    """Draw a musician who stands and plays the guitar."""
    outfit = Outfit(stands=True, arms=((34.0, 74.0, 12.0), (70.0, 20.0, 3.0)), hair=Hair.CURLY, lean=0.0, chest=_guitar)
    draw_person(outfit)(brush, phase, look)
    drift = phase
    note = brush.moved((0.34 + 0.1 * drift, -0.8 - 0.16 * drift), degrees=10 * wave(phase))
    note.ellipse((0.0, 0.0), (0.035, 0.026), look.accent, wave(phase / 2) * 0.98, degrees=-20)
    note.limb([(0.03, 0.0), (0.03, -0.12), (0.08, -0.09)], [0.014, 0.014, 0.014], look.accent, wave(phase / 2) * 0.98)


def _guitar(brush: Brush, _phase: float, _look: Look) -> None:
    local = brush.moved((0.09, -0.51), degrees=-24)
    local.limb([(0.06, 0.0), (0.42, 0.0)], [0.035, 0.03], (96, 60, 40))
    local.limb([(0.42, 0.0), (0.48, 0.0)], [0.055, 0.05], (70, 44, 32))
    local.blob(
        [
            (-0.18, 0.0),
            (-0.12, -0.12),
            (0.0, -0.09),
            (0.09, -0.085),
            (0.13, 0.0),
            (0.09, 0.085),
            (0.0, 0.09),
            (-0.12, 0.12),
        ],
        (206, 132, 66),
    )
    local.ellipse((0.02, 0.0), (0.036, 0.036), (80, 48, 34))


WALKING_BOX: Box = (-0.48, -1.16, 0.5, 0.05)


WIDE_BOX: Box = (-0.5, -1.5, 0.75, 0.05)


def _person(
    draw: Outfit | Draw,
    size: float,
    look: Look,
    *words: str,
    motion: Motion = Motion.WALK,
    stride: float = 0.0,
    box: Box = WALKING_BOX,
) -> Subject:
    outfit = draw if isinstance(draw, Outfit) else None
    moves = outfit.stride if outfit else stride
    return Subject(
        name=words[0].partition("/")[0],
        words=plural_too(*words),
        habitat=Habitat.GROUND if moves else Habitat.FIXED,
        motion=motion if moves else Motion.STAND,
        size=size,
        stride=moves,
        is_person=True,
        draw=draw_person(draw) if isinstance(draw, Outfit) else draw,
        box=box,
        look=look,
    )


PEOPLE = (
    _person(
        outfits.MAN,
        0.34,
        Look((72, 128, 176), DARK),
        "man/men",
        "person/people",
        "guy",
        "gentleman/gentlemen",
        "figure",
        "human",
        "boyfriend",
        "businessman/businessmen",
        "father",
        "pedestrian",
        "walker",
    ),
    _person(
        outfits.WOMAN,
        0.33,
        Look((224, 82, 92), DARK, hair=(90, 52, 36)),
        "woman/women",
        "lady",
        "girlfriend",
        "mother",
        "businesswoman/businesswomen",
    ),
    _person(
        outfits.CHILD,
        0.24,
        Look((250, 190, 66), JEANS, hair=(120, 74, 44)),
        "child/children",
        "boy",
        "kid",
        "toddler",
        "son",
        motion=Motion.RUN,
        box=(-0.5, -1.12, 0.5, 0.05),
    ),
    _person(
        outfits.GIRL,
        0.24,
        Look((238, 120, 160), (226, 60, 60), hair=BLOND),
        "girl",
        "little girl",
        "daughter",
        motion=Motion.RUN,
        box=(-0.55, -1.75, 0.6, 0.05),
    ),
    _person(
        outfits.OLD_MAN,
        0.31,
        Look((132, 110, 92), (92, 86, 92), hair=GREY),
        "old man/old men",
        "grandfather",
        "grandpa",
        "elder",
        "elderly man/elderly men",
    ),
    _person(
        outfits.OLD_WOMAN,
        0.3,
        Look((126, 92, 148), (232, 226, 236), hair=GREY),
        "old woman/old women",
        "grandmother",
        "granny",
        "grandma",
        "elderly woman/elderly women",
        "old lady",
        "nana",
    ),
    _person(
        outfits.RUNNER,
        0.34,
        Look((240, 96, 60), (48, 54, 76), TAN),
        "runner",
        "jogger",
        "athlete",
        "sprinter",
        "marathon runner",
        motion=Motion.RUN,
    ),
    _person(
        outfits.HIKER,
        0.33,
        Look((206, 92, 60), (90, 104, 84)),
        "hiker",
        "traveller",
        "traveler",
        "explorer",
        "backpacker",
        "mountaineer",
        "climber",
        "wanderer",
        "adventurer",
    ),
    _person(
        draw_dancer,
        0.34,
        Look((244, 150, 182), (240, 110, 150), hair=(60, 40, 36)),
        "dancer",
        "ballerina",
        "ballet dancer",
        box=(-0.62, -1.12, 0.52, 0.05),
    ),
    _person(
        draw_musician,
        0.34,
        Look((96, 64, 128), DARK, BROWN, (40, 30, 32)),
        "musician",
        "guitarist",
        "singer",
        "busker",
        box=(-0.4, -1.12, 0.7, 0.05),
    ),
    _person(
        outfits.KNIGHT,
        0.35,
        Look((170, 178, 192), (190, 48, 52)),
        "knight",
        "soldier",
        "warrior",
        box=(-0.6, -1.2, 0.65, 0.05),
    ),
    _person(
        outfits.SAMURAI,
        0.35,
        Look((176, 44, 50), (52, 48, 66)),
        "samurai/",
        "ninja",
        "ronin/",
        "swordsman/swordsmen",
        box=(-0.5, -1.25, 0.8, 0.05),
    ),
    _person(
        outfits.FARMER,
        0.33,
        Look((196, 70, 62), JEANS),
        "farmer",
        "gardener",
        "scarecrow",
        "cowboy",
        box=(-0.48, -1.25, 0.6, 0.05),
    ),
    _person(
        outfits.FISHERMAN,
        0.33,
        Look((236, 196, 76), (74, 92, 84)),
        "fisherman/fishermen",
        "angler",
        "fisher",
        box=(-0.4, -1.2, 1.15, 0.12),
    ),
    _person(
        outfits.CHEF,
        0.34,
        Look((250, 250, 250), (70, 74, 90)),
        "chef",
        "baker",
        "waiter",
        box=(-0.45, -1.25, 0.7, 0.05),
    ),
    _person(
        outfits.WIZARD,
        0.36,
        Look((86, 70, 166), (60, 50, 110), hair=GREY),
        "wizard",
        "sorcerer",
        "magician",
        "mage",
        "witch doctor",
        box=(-0.5, -1.35, 0.62, 0.05),
    ),
    _person(
        outfits.PRINCESS,
        0.34,
        Look((240, 130, 180), WHITE, hair=BLOND),
        "princess",
        "queen",
        "bride",
        "fairy",
        box=(-0.5, -1.18, 0.5, 0.05),
    ),
    _person(
        outfits.KING,
        0.35,
        Look((104, 66, 140), (190, 44, 52)),
        "king",
        "prince",
        "emperor",
        "superhero/superheroes",
        "hero/heroes",
        box=(-0.62, -1.18, 0.5, 0.05),
    ),
    _person(outfits.MONK, 0.33, Look((226, 130, 50), (160, 90, 40), TAN, (110, 84, 66)), "monk", "pilgrim", "priest"),
    _person(
        outfits.STROLLER,
        0.34,
        Look((58, 130, 128), (236, 90, 76), hair=(52, 36, 40)),
        "woman with an umbrella/",
        "umbrella",
        "person with an umbrella/",
        box=WIDE_BOX,
    ),
    _person(
        draw_couple,
        0.34,
        Look((232, 110, 120), (200, 190, 180)),
        "couple",
        "lovers/",
        "family",
        "friend",
        stride=outfits.MAN.stride,
        box=(-0.62, -1.12, 0.66, 0.05),
    ),
)
