"""The animated subjects of a clip: `SUBJECTS` by name, and `draw_subject` for one at a phase of its loop."""

from functools import lru_cache

import cv2

from penstock_engines.cinema.paint.brush import Brush, Colour
from penstock_engines.cinema.subjects.animals.birds import BIRDS
from penstock_engines.cinema.subjects.animals.ground_birds import GROUND_BIRDS
from penstock_engines.cinema.subjects.animals.hoofed_animals import HOOFED_ANIMALS
from penstock_engines.cinema.subjects.animals.insects import INSECTS
from penstock_engines.cinema.subjects.animals.pets import PETS
from penstock_engines.cinema.subjects.animals.reef import REEF
from penstock_engines.cinema.subjects.animals.reptiles import REPTILES
from penstock_engines.cinema.subjects.animals.sea import SEA
from penstock_engines.cinema.subjects.animals.small_animals import SMALL_ANIMALS
from penstock_engines.cinema.subjects.animals.wild_animals import WILD_ANIMALS
from penstock_engines.cinema.subjects.fantasy import FANTASY
from penstock_engines.cinema.subjects.people.figures import FIGURES
from penstock_engines.cinema.subjects.people.gliders import GLIDERS
from penstock_engines.cinema.subjects.people.people import PEOPLE
from penstock_engines.cinema.subjects.people.riders import RIDERS
from penstock_engines.cinema.subjects.plants import PLANTS
from penstock_engines.cinema.subjects.subject import STEPS, Draw, Habitat, Look, Motion, Sprite, Subject, colour_in
from penstock_engines.cinema.subjects.things.buildings import BUILDINGS
from penstock_engines.cinema.subjects.things.household import HOUSEHOLD
from penstock_engines.cinema.subjects.things.landmarks import LANDMARKS
from penstock_engines.cinema.subjects.vehicles.aircraft import AIRCRAFT
from penstock_engines.cinema.subjects.vehicles.boats import BOATS
from penstock_engines.cinema.subjects.vehicles.railway import RAILWAY
from penstock_engines.cinema.subjects.vehicles.road_vehicles import VEHICLES
from penstock_engines.cinema.subjects.vehicles.ships import SHIPS
from penstock_engines.cinema.subjects.vehicles.spacecraft import SPACECRAFT

__all__ = ["STEPS", "SUBJECTS", "Draw", "Habitat", "Look", "Motion", "Sprite", "Subject", "draw_step", "draw_subject"]

SUBJECTS: dict[str, Subject] = {
    subject.name: subject
    for subject in (
        *PETS,
        *HOOFED_ANIMALS,
        *WILD_ANIMALS,
        *SMALL_ANIMALS,
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
        *HOUSEHOLD,
    )
}


def draw_subject(name: str, phase: float, height: int, colour: Colour | None = None) -> Sprite:
    """Draw a subject, facing right, `height` pixels high. Phases 0 and 1 are one moment of its loop."""
    return draw_step(SUBJECTS[name], round(phase * STEPS) % STEPS, height, colour)


@lru_cache(maxsize=8)  # callers that draw a loop keep its pictures
def draw_step(subject: Subject, step: int, height: int, colour: Colour | None) -> Sprite:
    """Draw any subject, also one of the cast, at a step of its loop."""
    left, top, right, bottom = (round(edge * height) for edge in subject.box)
    width, tall = right - left, bottom - top
    finer = subject.finer
    brush = Brush(width * finer, tall * finer, height * finer, (-left * finer, -top * finer))
    subject.draw(brush, step / STEPS, colour_in(subject.look, colour))
    picture = brush.picture
    if finer > 1:
        picture = cv2.resize(picture, (width, tall), interpolation=cv2.INTER_AREA).astype("uint8", copy=False)
    picture.flags.writeable = False
    return Sprite(picture, (-left, -top))
