"""Paths of actors across the ground, over the water, through the air and up into the sky."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from penstock_engines.cinema.camera import View
from penstock_engines.cinema.scene import Surface
from penstock_engines.cinema.subjects import Habitat, Motion, Subject

LOOPS: dict[Motion, float] = {
    Motion.WALK: 0.95,
    Motion.RUN: 1.5,
    Motion.HOP: 1.3,
    Motion.DRIVE: 1.2,
    Motion.FLOAT: 0.4,
    Motion.SWIM: 0.9,
    Motion.FLY: 1.35,
    Motion.HOVER: 1.5,
    Motion.CLIMB: 1.6,
    Motion.DRIFT: 0.3,
    Motion.FALL: 0.4,
    Motion.STAND: 0.4,
    Motion.SWAY: 0.35,
}
"""Loops of its movement that an actor makes in a second."""


ON_GROUND = (Habitat.GROUND, Habitat.ROAD, Habitat.RAIL, Habitat.FIXED)
LEAN = 18.0
"""Degrees by which a climbing subject is drawn leaning to the right."""


@dataclass(frozen=True, slots=True)
class Pose:
    """An actor's position in units around the middle of the horizon, its rotation, and its phase in the loop."""

    x: float
    y: float
    degrees: float = 0.0
    phase: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """Inputs of an actor's path. Lengths are in units, times in seconds."""

    subject: Subject
    view: View
    surface: Surface
    height: float
    middle: float
    """Its x halfway through the clip."""
    line: float
    """The y that it stands, floats or flies on."""
    ahead: int
    """1 if it goes to the right, -1 to the left."""
    seconds: float
    offset: float
    """From 0 to 1, so that no two actors move alike."""

    @property
    def half(self) -> float:
        """Half the width of the frame."""
        return self.view.half


Path: TypeAlias = Callable[[float], Pose]


def choose_path(part: Part) -> Path:
    """Return the path that suits an actor where it plays."""
    motion, habitat, surface = part.subject.motion, part.subject.habitat, part.surface
    if motion is Motion.CLIMB:
        return _soar(part) if surface in (Surface.SPACE, Surface.SKY, Surface.UNDERWATER) else _climb(part)
    if surface is Surface.SPACE:
        return _tumble(part) if habitat in (*ON_GROUND, Habitat.WATER) else _fly(part)
    if surface is Surface.SKY and habitat in (*ON_GROUND, Habitat.WATER):
        return _glide(part)
    if habitat is Habitat.UNDERWATER and surface is Surface.WATER:
        return _leap(part)
    return PATHS.get(motion, _stand)(part)


def stays_on_ground(part: Part) -> bool:
    """Return whether it throws a shadow where it stands."""
    grounded = part.subject.habitat in (*ON_GROUND, Habitat.WATER) and not part.subject.is_bust
    afloat = part.subject.habitat is Habitat.WATER and part.surface is Surface.WATER
    return grounded and not afloat and part.surface not in (Surface.SPACE, Surface.SKY)


def _measure(part: Part, share: float = 0.9) -> tuple[float, float]:
    """Return units a second and loops a second, slow enough to be seen for most of the clip."""
    loops = LOOPS[part.subject.motion]
    stride = part.subject.stride * part.height
    longest = share * 2 * part.half / part.seconds
    if stride <= 0:
        return longest * 0.6, loops
    # Legs slow down to half at most. A faster actor leaves the picture instead.
    loops = max(loops * 0.5, min(loops, longest / stride))
    return stride * loops, loops


def _cross(part: Part) -> Path:
    """Go straight on, as fast as the legs go."""
    speed, loops = _measure(part)

    def path(seconds: float) -> Pose:
        since = seconds - part.seconds / 2
        return Pose(part.middle + part.ahead * speed * since, part.line, 0.0, seconds * loops + part.offset)

    return path


def _drive(part: Part) -> Path:
    """Drive straight on. Wheels turn at any speed."""
    speed = min(part.subject.stride * part.height * 1.2 or 0.3, 2.0 * part.half / part.seconds)
    loops = speed / (part.subject.stride * part.height) if part.subject.stride else 1.0

    def path(seconds: float) -> Pose:
        since = seconds - part.seconds / 2
        bump = 0.0012 * math.sin(seconds * 9 + part.offset * 6)
        return Pose(part.middle + part.ahead * speed * since, part.line + bump, 0.0, seconds * loops + part.offset)

    return path


def _float(part: Part) -> Path:
    """Float slowly over the water, up and down with the waves."""
    loops = LOOPS[Motion.FLOAT]
    speed = min(0.05 + part.subject.stride * part.height * loops * 0.4, 1.1 * part.half / part.seconds)
    if part.surface is not Surface.WATER:
        speed = 0.0

    def path(seconds: float) -> Pose:
        since = seconds - part.seconds / 2
        wave = seconds * 1.5 + part.offset * 6
        swell = 1.0 if speed else 0.0
        bob = swell * (0.006 * math.sin(wave) + 0.003 * math.sin(wave * 1.7))
        return Pose(
            part.middle + part.ahead * speed * since,
            part.line + bob,
            swell * 2.2 * math.sin(wave + 1),
            seconds * loops + part.offset,
        )

    return path


def _fly(part: Part) -> Path:
    """Fly across the sky in a curve, banking with it."""
    speed, loops = _measure(part, 1.0)
    speed = min(speed, 1.7 * part.half / part.seconds)
    loops = LOOPS[part.subject.motion] * (0.85 + 0.3 * part.offset)
    sweep, turn = 0.05 + 0.03 * part.offset, 0.9 + 0.3 * part.offset

    def path(seconds: float) -> Pose:
        since = seconds - part.seconds / 2
        angle = since * turn + part.offset * 2
        slope = sweep * turn * math.cos(angle) / max(0.05, speed)
        return Pose(
            part.middle + part.ahead * speed * since,
            part.line + sweep * math.sin(angle),
            -part.ahead * math.degrees(math.atan(slope)) * 0.45,
            seconds * loops + part.offset,
        )

    return path


def _hover(part: Part) -> Path:
    """Hover at one spot of the sky, never quite still."""
    loops = LOOPS[part.subject.motion]

    def path(seconds: float) -> Pose:
        angle = seconds * 0.8 + part.offset * 6
        x = (
            part.middle
            + part.ahead * 0.12 * part.half * (seconds - part.seconds / 2) / part.seconds * 4
            + 0.03 * math.sin(angle)
        )
        return Pose(x, part.line + 0.022 * math.sin(angle * 1.7), 3 * math.sin(angle), seconds * loops + part.offset)

    return path


def _drift(part: Part) -> Path:
    """Drift slowly along, like a cloud or a balloon."""
    loops = LOOPS[Motion.DRIFT]

    def path(seconds: float) -> Pose:
        since = (seconds - part.seconds / 2) / part.seconds
        angle = seconds * 0.6 + part.offset * 6
        x = part.middle + part.ahead * 0.5 * part.half * since
        return Pose(
            x, part.line + 0.012 * math.sin(angle) - 0.05 * since, 2.5 * math.sin(angle), seconds * loops + part.offset
        )

    return path


def _glide(part: Part) -> Path:
    """Carry something that cannot fly through the sky of a dream."""
    loops = LOOPS[part.subject.motion]

    def path(seconds: float) -> Pose:
        since = (seconds - part.seconds / 2) / part.seconds
        angle = seconds * 1.1 + part.offset * 6
        x = part.middle + part.ahead * 0.9 * part.half * since
        return Pose(
            x, part.line + 0.03 * math.sin(angle), -part.ahead * 5 * math.cos(angle), seconds * loops + part.offset
        )

    return path


def _swim(part: Part) -> Path:
    """Swim through the water in a gentle wave."""
    speed, loops = _measure(part, 1.0)
    speed = min(speed, 1.5 * part.half / part.seconds)

    def path(seconds: float) -> Pose:
        since = seconds - part.seconds / 2
        angle = since * 0.9 + part.offset * 6
        y = part.line + 0.035 * math.sin(angle)
        tilt = -part.ahead * 7 * math.cos(angle)
        return Pose(part.middle + part.ahead * speed * since, y, tilt, seconds * loops + part.offset)

    return path


def _leap(part: Part) -> Path:
    """Leap out of the water and in again, like a dolphin."""
    period = 1.9
    speed = min(0.28, 1.6 * part.half / part.seconds)
    high = 0.1 + 0.45 * part.height

    def path(seconds: float) -> Pose:
        since = seconds - part.seconds / 2
        share = ((since / period + 0.36 + part.offset * 0.5) % 1) * 1.45
        arc = 4 * share * (1 - share)
        slope = 4 * high * (1 - 2 * share) / period
        y = part.line - high * arc + part.height * 0.35
        tilt = part.ahead * math.degrees(math.atan2(slope, speed * 1.6))
        return Pose(part.middle + part.ahead * speed * since, y, tilt, seconds * LOOPS[Motion.SWIM] + part.offset)

    return path


def _climb(part: Part) -> Path:
    """Lift off slowly, then lean over and leave the picture near the end."""
    start = 0.1 * part.seconds
    way = part.line - part.view.top + part.height * 0.1
    rest = part.line - part.height * 0.5

    def path(seconds: float) -> Pose:
        since = max(0.0, seconds - start) / (part.seconds - start)
        shake = 0.0016 * math.sin(seconds * 41) * (1 - since)
        x = part.middle + shake + 0.12 * since**3
        return Pose(x, rest - way * since**1.9, LEAN * (1 - since), seconds * LOOPS[Motion.CLIMB])

    return path


def _soar(part: Part) -> Path:
    """Fly a rocket slantwise across a place without ground."""

    def path(seconds: float) -> Pose:
        since = (seconds - part.seconds / 2) / part.seconds
        x = part.middle + part.ahead * 0.9 * part.half * since
        y = part.line - 0.42 * since + 0.008 * math.sin(seconds * 2)
        return Pose(x, y, LEAN - part.ahead * 58.0, seconds * LOOPS[Motion.CLIMB])

    return path


def _tumble(part: Part) -> Path:
    """Turn over slowly, weightless."""

    def path(seconds: float) -> Pose:
        since = (seconds - part.seconds / 2) / part.seconds
        x = part.middle + part.ahead * 0.35 * part.half * since
        y = part.line - 0.06 * since + 0.015 * math.sin(seconds * 0.7 + part.offset * 6)
        return Pose(
            x, y, part.ahead * (14 * math.sin(seconds * 0.45 + part.offset * 6) - 6), seconds * 0.3 + part.offset
        )

    return path


def _fall(part: Part) -> Path:
    """Fall from the sky halfway through the clip, and bounce once."""
    start, lands = 0.12 * part.seconds, 0.5 * part.seconds
    high = part.line - part.view.top + part.height

    def path(seconds: float) -> Pose:
        since = max(0.0, seconds - start) / (lands - start)
        bounce = 0.06 * math.sin(math.pi * min(1.0, (since - 1) * 2)) if since > 1 else 0.0
        lift = high * (1 - since**2) if since <= 1 else bounce
        return Pose(part.middle, part.line - lift, part.ahead * 40 * (1 - min(1.0, since)), seconds * 0.4 + part.offset)

    return path


def _stand(part: Part) -> Path:
    """Stay at one spot."""
    loops = LOOPS.get(part.subject.motion, 0.4)
    return lambda seconds: Pose(part.middle, part.line, 0.0, seconds * loops + part.offset)


def stand(pose: Pose, part: Part) -> Path:
    """Return the path of an actor that stays in a pose, and moves there if it always does."""
    loops = 0.0 if part.subject.motion in TRAVELLING else LOOPS[part.subject.motion]
    return lambda seconds: replace(pose, phase=pose.phase + seconds * loops)


def follow(leader: Path, part: Part, shift: tuple[float, float], *, carried: bool) -> Path:
    """Return the path of an actor that keeps its place at its leader. One that is carried leans with it."""
    motion, step = part.subject.motion, (part.subject.stride or 0.6) * part.height
    start = leader(0.0).x

    def path(seconds: float) -> Pose:
        pose = leader(seconds)
        turn = math.radians(pose.degrees if carried else 0.0)
        x = shift[0] * math.cos(turn) + shift[1] * math.sin(turn)
        y = shift[1] * math.cos(turn) - shift[0] * math.sin(turn)
        phase = seconds * LOOPS[motion] + part.offset
        if motion in TRAVELLING:
            phase = 0.0 if carried else abs(pose.x - start) / step
        elif carried and motion in FLYING:
            phase = 0.0
        return Pose(pose.x + x, pose.y + y, math.degrees(turn), phase)

    return path


FLYING = frozenset({Motion.FLY, Motion.HOVER})
TRAVELLING = frozenset({Motion.WALK, Motion.RUN, Motion.HOP, Motion.DRIVE})
"""Movements that take an actor somewhere. Without a way to go, it stands."""
PATHS: dict[Motion, Callable[[Part], Path]] = {
    Motion.WALK: _cross,
    Motion.RUN: _cross,
    Motion.HOP: _cross,
    Motion.DRIVE: _drive,
    Motion.FLOAT: _float,
    Motion.SWIM: _swim,
    Motion.FLY: _fly,
    Motion.HOVER: _hover,
    Motion.DRIFT: _drift,
    Motion.FALL: _fall,
    Motion.STAND: _stand,
    Motion.SWAY: _stand,
}
