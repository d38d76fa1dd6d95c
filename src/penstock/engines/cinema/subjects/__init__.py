"""The animated subjects of a clip: `SUBJECTS` by name, and `draw_subject`, which draws one at a phase of its loop."""

from functools import lru_cache

import cv2

from penstock.engines.cinema.brush import Brush, Colour
from penstock.engines.cinema.subjects.aircraft import AIRCRAFT
from penstock.engines.cinema.subjects.birds import BIRDS
from penstock.engines.cinema.subjects.boats import BOATS
from penstock.engines.cinema.subjects.buildings import BUILDINGS
from penstock.engines.cinema.subjects.critters import CRITTERS
from penstock.engines.cinema.subjects.fantasy import FANTASY
from penstock.engines.cinema.subjects.figures import FIGURES
from penstock.engines.cinema.subjects.gliders import GLIDERS
from penstock.engines.cinema.subjects.ground_birds import GROUND_BIRDS
from penstock.engines.cinema.subjects.hoofed_animals import HOOFED_ANIMALS
from penstock.engines.cinema.subjects.insects import INSECTS
from penstock.engines.cinema.subjects.instruments import INSTRUMENTS
from penstock.engines.cinema.subjects.landmarks import LANDMARKS
from penstock.engines.cinema.subjects.people import PEOPLE
from penstock.engines.cinema.subjects.pets import PETS
from penstock.engines.cinema.subjects.plants import PLANTS
from penstock.engines.cinema.subjects.railway import RAILWAY
from penstock.engines.cinema.subjects.reef import REEF
from penstock.engines.cinema.subjects.reptiles import REPTILES
from penstock.engines.cinema.subjects.riders import RIDERS
from penstock.engines.cinema.subjects.sea import SEA
from penstock.engines.cinema.subjects.ships import SHIPS
from penstock.engines.cinema.subjects.spacecraft import SPACECRAFT
from penstock.engines.cinema.subjects.subject import (
    Draw,
    Habitat,
    Look,
    Motion,
    Sprite,
    Subject,
    colour_in,
)
from penstock.engines.cinema.subjects.things import THINGS
from penstock.engines.cinema.subjects.treats import TREATS
from penstock.engines.cinema.subjects.vehicles import VEHICLES
from penstock.engines.cinema.subjects.wild_animals import WILD_ANIMALS

__all__ = ["SUBJECTS", "Draw", "Habitat", "Look", "Motion", "Sprite", "Subject", "draw_subject"]

STEPS = 32
"""How many pictures a loop has."""
FINER = 2
"""Subjects are drawn this much larger and then shrunk, for clean edges."""

SUBJECTS: dict[str, Subject] = {
    subject.name: subject
    for subject in (
        *PETS,
        *HOOFED_ANIMALS,
        *WILD_ANIMALS,
        *CRITTERS,
        *REPTILES,
        *BIRDS,
        *GROUND_BIRDS,
        *FANTASY,
        *INSECTS,
        *SEA,
        *REEF,
        *BOATS,
        *SHIPS,
        *VEHICLES,
        *RAILWAY,
        *AIRCRAFT,
        *SPACECRAFT,
        *PEOPLE,
        *FIGURES,
        *RIDERS,
        *GLIDERS,
        *PLANTS,
        *BUILDINGS,
        *LANDMARKS,
        *THINGS,
        *INSTRUMENTS,
        *TREATS,
    )
}


def draw_subject(name: str, phase: float, height: int, colour: Colour | None = None) -> Sprite:
    """Draw a subject, facing right, `height` pixels high; phases 0 and 1 are the same moment of its loop."""
    return _draw(name, round(phase * STEPS) % STEPS, height, colour)


@lru_cache(maxsize=8)  # who draws a loop keeps its pictures
def _draw(name: str, step: int, height: int, colour: Colour | None) -> Sprite:
    subject = SUBJECTS[name]
    left, top, right, bottom = (round(edge * height) for edge in subject.box)
    width, tall = right - left, bottom - top
    origin = (-left * FINER, -top * FINER)
    brush = Brush(width * FINER, tall * FINER, height * FINER, origin)
    subject.draw(brush, step / STEPS, colour_in(subject.look, colour))
    picture = cv2.resize(brush.picture, (width, tall), interpolation=cv2.INTER_AREA).astype("uint8", copy=False)
    picture.flags.writeable = False
    return Sprite(picture, (-left, -top))
