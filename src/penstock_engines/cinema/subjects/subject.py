"""A subject of a clip: its words, its habitat, its movement and its drawing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from penstock_engines.cinema.paint.brush import Brush, Colour, Picture, mix

STEPS = 32
"""Number of moments in a loop."""
BLACK: Colour = (24, 22, 30)
WHITE: Colour = (255, 255, 255)


class Habitat(StrEnum):
    """The medium in which the stage places a subject."""

    GROUND = "ground"
    ROAD = "road"
    RAIL = "rail"
    WATER = "water"
    """It floats on the water."""
    UNDERWATER = "underwater"
    AIR = "air"
    SPACE = "space"
    FIXED = "fixed"
    """It stands still on the ground."""


class Motion(StrEnum):
    """A subject's way of moving."""

    WALK = "walk"
    RUN = "run"
    HOP = "hop"
    DRIVE = "drive"
    FLOAT = "float"
    SWIM = "swim"
    FLY = "fly"
    HOVER = "hover"
    CLIMB = "climb"
    DRIFT = "drift"
    FALL = "fall"
    STAND = "stand"
    SWAY = "sway"


@dataclass(frozen=True, slots=True)
class Look:
    """The colours of one drawing. A prompt may change `main`. `accent` contrasts with it."""

    main: Colour
    accent: Colour = WHITE
    skin: Colour = (232, 184, 146)
    hair: Colour = (70, 45, 35)

    @property
    def shade(self) -> Colour:
        """The main colour, away from the light."""
        return darken(self.main)

    @property
    def light(self) -> Colour:
        """The main colour, in the light."""
        return lighten(self.main)


Draw: TypeAlias = Callable[[Brush, float, Look], None]
"""Draws at a phase from 0 to 1. The subject is 1.0 high, faces right, and has its anchor at (0, 0)."""
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom in units of the subject's height."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A being or thing that a prompt may name."""

    name: str
    words: tuple[str, ...]
    """Nouns and short phrases that mean it, with their plurals. A word belongs to one subject only."""
    habitat: Habitat
    motion: Motion
    size: float
    """Its height as a share of the frame's height, at middle distance."""
    stride: float = 0.0
    """Its own heights that it travels in one loop, 0 for things that stand."""
    is_person: bool = False
    is_bust: bool = False
    """True if it is drawn down to the chest, so that it belongs at the lower edge of the frame."""
    glows: bool = False
    """True if it shines by itself, so that the night does not darken it."""
    steps: int = STEPS
    """Number of different pictures in its loop, 1 for a thing that never moves."""
    kind: int = -1
    """The number of its kind in the cast. -1 means that it is drawn by hand."""
    finer: int = 2
    """Factor by which it is drawn larger and then shrunk, for clean edges."""
    turns: bool = True
    """False if its mirror image would look wrong, as of letters."""
    draw: Draw
    box: Box
    look: Look
    """Its natural colours."""


@dataclass(frozen=True, slots=True)
class Sprite:
    """A drawn subject. `anchor`, in pixels, is where it touches ground or water, else the centre."""

    picture: Picture
    anchor: tuple[float, float]


def subject_of(
    draw: Draw,
    habitat: Habitat,
    motion: Motion,
    size: float,
    stride: float,
    box: Box,
    look: Look,
    *words: str,
    is_person: bool = False,
) -> Subject:
    """Return a subject named by the first of its words, which are in the form that `plural_too` takes."""
    return Subject(
        name=words[0].partition("/")[0],
        words=plural_too(*words),
        habitat=habitat,
        motion=motion,
        size=size,
        stride=stride,
        is_person=is_person,
        draw=draw,
        box=box,
        look=look,
    )


def plural_too(*nouns: str) -> tuple[str, ...]:
    """Return the nouns with plurals. Write an irregular plural as "wolf/wolves", and none as "fish/"."""
    words: list[str] = []
    for noun in nouns:
        single, slash, many = noun.partition("/")
        words.append(single)
        if not slash:
            words.append(_pluralise(single))
        elif many:
            words.append(many)
    return tuple(words)


def _pluralise(noun: str) -> str:
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return noun[:-1] + "ies"
    return noun + "s"


def darken(colour: Colour, share: float = 0.28) -> Colour:
    """Return a colour away from the light: darker, and a little bluer."""
    return mix(colour, (28, 20, 58), share)


def lighten(colour: Colour, share: float = 0.3) -> Colour:
    """Return a colour in the light: brighter, and a little warmer."""
    return mix(colour, (255, 253, 246), share)


def colour_in(look: Look, colour: Colour | None) -> Look:
    """Return the look in the prompt's colour, if any. Black is lifted, so that its shade can be seen."""
    if colour is None:
        return look
    return replace(look, main=mix(colour, (88, 86, 102), 0.6) if max(colour) < 64 else colour)
