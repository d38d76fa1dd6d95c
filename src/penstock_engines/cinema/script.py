"""The script of a clip: the meaning of a prompt, in the few terms that the stage can play."""

from dataclasses import dataclass
from enum import StrEnum

from penstock_engines.cinema.paint.brush import Colour
from penstock_engines.cinema.subjects import SUBJECTS, Subject


class Time(StrEnum):
    """Time of day."""

    DAWN = "dawn"
    DAY = "day"
    SUNSET = "sunset"
    DUSK = "dusk"
    NIGHT = "night"


class Weather(StrEnum):
    """Weather and visibility."""

    CLEAR = "clear"
    CLOUDS = "clouds"
    RAIN = "rain"
    STORM = "storm"
    SNOW = "snow"
    FOG = "fog"
    WIND = "wind"


class Camera(StrEnum):
    """Camera movement over the whole clip."""

    STILL = "still"
    PAN_LEFT = "pan_left"
    PAN_RIGHT = "pan_right"
    PUSH_IN = "push_in"
    PULL_OUT = "pull_out"
    RISE = "rise"
    DESCEND = "descend"


class Particles(StrEnum):
    """Small things in the air besides the weather."""

    NONE = "none"
    FIREFLIES = "fireflies"
    PETALS = "petals"
    LEAVES = "leaves"
    EMBERS = "embers"
    BUBBLES = "bubbles"
    DUST = "dust"
    CONFETTI = "confetti"
    LANTERNS = "lanterns"
    FIREWORKS = "fireworks"


class Side(StrEnum):
    """The position of a subject at another one."""

    ON = "on"
    IN = "in"
    UNDER = "under"
    ABOVE = "above"
    BESIDE = "beside"
    LEFT = "left"
    RIGHT = "right"
    BEHIND = "behind"
    BEFORE = "before"
    BETWEEN = "between"


@dataclass(frozen=True, slots=True)
class Relation:
    """A position that the prompt states. `role` and `anchor` are positions in the script's cast."""

    role: int
    side: Side
    anchor: int


@dataclass(frozen=True, slots=True)
class Role:
    """A subject of `subjects.SUBJECTS` or of the cast, its number, and its colour if the prompt names one."""

    subject: str
    count: int = 1
    colour: Colour | None = None
    scale: float = 1.0
    """Its size beside others of its kind: less for young ones, more in a close-up."""
    sprite: Subject | None = None
    """A member of the cast. None means a subject that is drawn by hand."""

    @property
    def player(self) -> Subject:
        """The subject that plays this role."""
        return self.sprite or SUBJECTS[self.subject]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Everything the stage needs. `place` is a name of `places.PLACES`."""

    place: str
    time: Time = Time.DAY
    weather: Weather = Weather.CLEAR
    camera: Camera = Camera.PAN_RIGHT
    particles: Particles = Particles.NONE
    cast: tuple[Role, ...] = ()
    relations: tuple[Relation, ...] = ()
    tint: Colour | None = None
    """A colour that the prompt gives the whole scene, as in "purple sky"."""
    pace: float = 1.0
    """0.5 for slow motion, 2 for fast motion."""
    seed: int = 0
    still: bool = False
    """A picture instead of a clip: its subjects are large, and none hides another by chance."""
