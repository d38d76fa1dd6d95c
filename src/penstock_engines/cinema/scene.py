"""Places, and the scene that one is built into: light, camera, randomness, and planes from back to front."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from penstock_engines.cinema.camera import Lens, View
from penstock_engines.cinema.landscape.mist import Mist
from penstock_engines.cinema.landscape.sky import Sky
from penstock_engines.cinema.landscape.water import Water
from penstock_engines.cinema.paint.brush import Colour
from penstock_engines.cinema.paint.layers import Layer, Plane, Sheet
from penstock_engines.cinema.paint.light import Light
from penstock_engines.cinema.paint.patterns import Randomness
from penstock_engines.cinema.script import Script, Time


class Surface(StrEnum):
    """The surface or medium that the actors of a place move on or in."""

    GROUND = "ground"
    ROAD = "road"
    WATER = "water"
    UNDERWATER = "underwater"
    SPACE = "space"
    INDOOR = "indoor"
    SKY = "sky"


@dataclass(frozen=True, slots=True)
class Floor:
    """The strip where actors stand, from a far to a near line, in units below the horizon."""

    far: float
    near: float
    depth: float | None = None
    """Depth of the layer that they stand on. None means water, where the depth follows from the line."""


@dataclass(slots=True)
class Scene:
    """A scene in the making."""

    script: Script
    lens: Lens
    light: Light
    random: Randomness
    planes: list[Plane] = field(default_factory=list[Plane])
    sun: tuple[float, float] = (0.0, 0.0)
    floor: Floor = Floor(0.1, 0.2)
    actors_at: int | None = None
    """Number of planes behind the actors."""
    outdoors: bool = True
    """True if rain and snow fall in front of the camera."""
    water_row: int | None = None
    last_depth: float | None = 0.3
    """Depth of the sheet that was laid last."""

    @property
    def view(self) -> View:
        """The frame."""
        return self.lens.view

    def sheet(self, depth: float) -> Sheet:
        """Return an empty sheet at a depth: 0 is infinity, 1 near."""
        return Sheet(self.lens, depth)

    def lay(self, sheet: Sheet, *, sway: float = 0.0, foot: float = 0.0, rhythm: float = 1.0, bob: float = 0.0) -> None:
        """Put a painted sheet in front of everything so far. `sway` is for a calm day. Wind adds to it."""
        self.last_depth = sheet.depth
        self.planes.append(Layer(sheet, sway=sway * self.light.wind, foot=foot, rhythm=rhythm, bob=bob))

    def add(self, plane: Plane) -> None:
        """Put any other plane in front of everything so far."""
        self.planes.append(plane)

    def insert(self, place: int, plane: Plane) -> None:
        """Insert a plane at a position, and keep the actors where they were among the planes."""
        self.planes.insert(place, plane)
        if self.actors_at is not None and place <= self.actors_at:
            self.actors_at += 1

    def add_sky(self, *, sun_x: float | None = None, everywhere: bool = False) -> None:
        """Add the backdrop. The sun stands a third from an edge."""
        if sun_x is None:
            sun_x = float(self.random.choice([0.3, 0.68]) + self.random.uniform(-0.05, 0.05))
        sky = Sky(self.view, self.light, self.random, sun_x=sun_x, stars_everywhere=everywhere)
        self.sun = sky.sun
        self.planes.append(sky)

    def add_water(self, colour: Colour, *, top: float = 0.0, calm: float = 0.5) -> None:
        """Add water from a line down, in units below the horizon."""
        row = self.view.horizon + round(top * self.view.unit)
        water = Water(self.view, self.light, self.random, top=row, colour=colour, sun=self.sun, calm=calm)
        self.water_row = row
        self.last_depth = None
        self.planes.append(water)

    def add_mist(
        self, colour: Colour, *, top: float, bottom: float, strength: float, speed: float = 0.02, even: float = 0.35
    ) -> None:
        """Add a bank of fog between two lines, in units below the horizon."""
        mist = Mist(self.view, self.random, colour, top=top, bottom=bottom, strength=strength, speed=speed, even=even)
        self.planes.append(mist)

    def perform(self, far: float, near: float) -> None:
        """Let actors play in front of everything so far, between two lines in units below the horizon."""
        self.floor = Floor(far, near, self.last_depth)
        self.actors_at = len(self.planes)

    def spots(self, count: int, low: float, high: float) -> list[float]:
        """Return positions along a line, spread evenly but not regularly."""
        steps = np.linspace(low, high, count, endpoint=False) + self.random.uniform(0, (high - low) / count, count)
        return [float(step) for step in steps]


@dataclass(frozen=True, slots=True)
class Place:
    """A setting in which a clip can play. The prompt reader finds it by its words."""

    name: str
    words: tuple[str, ...]
    surface: Surface
    sound: str
    build: Callable[[Scene], None]
    default_time: Time | None = None
    horizon: float = 0.6
    """The horizon's position, as a share of the frame's height."""


def list_words(text: str) -> tuple[str, ...]:
    """Return the words and short phrases of a comma-separated list."""
    return tuple(text.split(", "))
