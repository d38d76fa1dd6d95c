"""Members of the cast as subjects: the habitat, movement and size of each kind, and the picture in motion."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cast.album import TONES, Album
from penstock_engines.cinema.paint.brush import Brush, Colour
from penstock_engines.cinema.subjects.subject import STEPS, Draw, Habitat, Look, Motion, Subject

PLAIN: Colour = (128, 128, 128)
ROOM = 0.14
"""Room around a picture for its movement, as a share of its height."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Behaviour of a member of the cast on the stage."""

    habitat: Habitat = Habitat.FIXED
    motion: Motion = Motion.STAND
    size: float = 0.2
    is_person: bool = False
    is_bust: bool = False
    faces_left: bool = False


def _walker(size: float) -> Traits:
    return Traits(Habitat.GROUND, Motion.WALK, size, faces_left=True)


def _flyer(size: float, motion: Motion = Motion.FLY) -> Traits:
    return Traits(Habitat.AIR, motion, size, faces_left=True)


def _swimmer(size: float) -> Traits:
    return Traits(Habitat.UNDERWATER, Motion.SWIM, size, faces_left=True)


def _driver(size: float, habitat: Habitat = Habitat.ROAD) -> Traits:
    return Traits(habitat, Motion.DRIVE, size, faces_left=True)


def _thing(size: float) -> Traits:
    return Traits(size=size)


def _athlete(habitat: Habitat, motion: Motion) -> Traits:
    return Traits(habitat, motion, 0.34, is_person=True, faces_left=True)


BUST = Traits(size=0.44, is_person=True, is_bust=True)
FLOATER = Traits(Habitat.WATER, Motion.FLOAT, 0.28, faces_left=True)
KINDS: Mapping[int, Traits] = MappingProxyType(
    {
        **dict.fromkeys((10, 11, 12, 13), _thing(0.22)),
        **dict.fromkeys((14, 15, 22), _thing(0.18)),
        25: BUST,
        26: BUST,
        27: _athlete(Habitat.FIXED, Motion.STAND),
        28: _athlete(Habitat.FIXED, Motion.STAND),
        29: Traits(size=0.3, is_person=True),
        34: _walker(0.26),
        35: _walker(0.2),
        36: _walker(0.14),
        37: _walker(0.22),
        38: _swimmer(0.22),
        39: _walker(0.1),
        40: Traits(motion=Motion.SWAY, size=0.24),
        41: Traits(motion=Motion.SWAY, size=0.24),
        **dict.fromkeys(range(42, 49), _thing(0.19)),
        49: _thing(0.26),
        51: _thing(0.52),
        52: _thing(0.52),
        53: _thing(0.48),
        54: _driver(0.26),
        55: FLOATER,
        56: _flyer(0.24),
        **dict.fromkeys(range(57, 83), _thing(0.2)),
        97: _thing(0.3),
    }
)
"""Traits by the number of a kind. A kind without traits is a sign or a flag and is not drawn."""
GLOWING = frozenset("🔥💡🕯🪔🎇🧨🌈🏮🔦🎃💥🎆🌠🚨")
BLURRED = 1.3
"""Scale from which an enlarged picture would look blurred."""
RAINBOW, RAINBOW_OPACITY = "🌈", 0.62
STILL = _thing(0.26)
HOPPER = Traits(Habitat.GROUND, Motion.HOP, 0.2)
ONE_BY_ONE: Mapping[str, Traits] = MappingProxyType(
    {
        **dict.fromkeys("🐺🦊🦝🐱🦁🐯🐴🫎🦄🐮🐷🐗🐽🐭🐹🐰🐻🐨🐼🐵🐶🐲🐸", HOPPER),
        **dict.fromkeys("🦍🦧🦬🐂🐃🦣", _walker(0.34)),
        **dict.fromkeys("🐀🐿🦫🦥🦦🦨🦡", _walker(0.18)),
        **dict.fromkeys("🕊🦅🪽", _flyer(0.2)),
        **dict.fromkeys("🦆🦢", replace(FLOATER, size=0.18)),
        **dict.fromkeys("🐣🐤🐥", _walker(0.12)),
        **dict.fromkeys("🪶🐾🐚🦪🪸🕸🪺🪹🦠", _thing(0.14)),
        **dict.fromkeys("🦀🦞🦐🦭", _walker(0.16)),
        **dict.fromkeys("🦋🐝🦟🪰", _flyer(0.1, Motion.HOVER)),
        **dict.fromkeys("🌲🌳🌴", Traits(motion=Motion.SWAY, size=0.5)),
        **dict.fromkeys("🧚", Traits(Habitat.AIR, Motion.HOVER, 0.26, is_person=True)),
        **dict.fromkeys("🧜", Traits(Habitat.UNDERWATER, Motion.SWIM, 0.3, is_person=True)),
        **dict.fromkeys("🚶", _athlete(Habitat.GROUND, Motion.WALK)),
        **dict.fromkeys("🏃", _athlete(Habitat.GROUND, Motion.RUN)),
        **dict.fromkeys("⛷🏂", _athlete(Habitat.GROUND, Motion.DRIVE)),
        **dict.fromkeys("🏄🚣🏊🤽", replace(FLOATER, is_person=True)),
        **dict.fromkeys("🚴🚵🏇", _athlete(Habitat.ROAD, Motion.DRIVE)),
        **dict.fromkeys("🚂🚃🚄🚅🚆🚈🚉🚊🚝🚋", _driver(0.3, Habitat.RAIL)),
        **dict.fromkeys("🚒🚌🚎🚛🚚🚜", _driver(0.34)),
        **dict.fromkeys("🛢⛽🛞🚨🚥🚦🛑🚧🚏⚓🛟💺", STILL),
        **dict.fromkeys("🛹🛼🛴🚲🦽🦼", _driver(0.2)),
        **dict.fromkeys("🚟🚠🚡🪂", _flyer(0.24, Motion.DRIFT)),
        **dict.fromkeys("🛰🛸☄", Traits(Habitat.SPACE, Motion.DRIFT, 0.24, faces_left=True)),
        **dict.fromkeys("⚽🏀🏐", Traits(Habitat.GROUND, Motion.HOP, 0.13)),
        **dict.fromkeys("🌵", Traits(motion=Motion.SWAY, size=0.34)),
        **dict.fromkeys("🌍🌎🌏🪐", Traits(Habitat.SPACE, Motion.DRIFT, 0.2)),
        **dict.fromkeys("🌈", Traits(Habitat.AIR, Motion.STAND, 0.6)),
        **dict.fromkeys("🌪", _walker(0.6)),
        **dict.fromkeys("🔥", Traits(motion=Motion.SWAY, size=0.3)),
        **dict.fromkeys("🪁🎈🎐🎏", _flyer(0.26, Motion.DRIFT)),
        **dict.fromkeys("🛌🛋🚪🛁🚽🛏🎹🥁🎄🚿🛒", _thing(0.32)),
        **dict.fromkeys("🏟🎪🎡🎢🏭🏥🏰🏯🗽🗼🏗", _thing(0.6)),
        **dict.fromkeys("🪨🪵🧱💈🛝🎠", _thing(0.3)),
    }
)
"""Traits of single symbols that differ from their kind."""
UNSEEN = frozenset(
    "🌁🌃🏙🌄🌅🌆🌇🌉♨🛣🛤🚇🚞🛫🛬🚔🚍🚘🚖☀🌝🌞🌛🌜🌚⛅🌤🌥🌦🌧🌨🌩⛈☁🌫🌬🌙⭐🌟🌠🌌❄💧🌊🕳💬👁🗨🗯💭💤💢💦💨💫💯💮🈁💲💱"
)
"""Symbols that are pictures of whole scenes, weather that the scene itself shows, or marks."""
WEATHER = 59
SHOWN_WEATHER = frozenset("🌈🔥🌪☂☔⛱🌂☄⛄☃🌡🪐")
CLOCK_FACES = range(0x1F550, 0x1F568)


def is_drawable(album: Album, symbol: str) -> bool:
    """Return whether a symbol shows a thing or a being, not a sign, a flag, a mood or a whole scene."""
    kind = album.kind(symbol)
    if symbol[0] in UNSEEN or ord(symbol[0]) in CLOCK_FACES:
        return False
    if kind == WEATHER:
        return symbol[0] in SHOWN_WEATHER
    return kind in KINDS and not (kind in {10, 12, 13} and symbol not in "💀👻")


def make_sprite(album: Album, symbol: str, name: str, seed: int) -> Subject:
    """Return a member of the cast as a subject. The seed chooses the skin of a person."""
    traits = ONE_BY_ONE.get(symbol[0]) or KINDS[album.kind(symbol)]
    tone = 1 + seed % (len(TONES) - 1) if traits.is_person else 0
    picture = album.picture(symbol, tone)
    if symbol == RAINBOW:  # the picture is half of the arch
        half = picture[:, : -picture.shape[1] // 16]  # without its rounded edge
        whole = np.concatenate([half, half[:, ::-1]], axis=1)
        picture = (whole * np.float32(RAINBOW_OPACITY)).astype(np.uint8)
    if traits.faces_left:
        picture = np.ascontiguousarray(picture[:, ::-1])
    wide = picture.shape[1] / picture.shape[0]
    size = traits.size * min(1.0, 1.5 / wide)
    look = Look(PLAIN)
    aloft = traits.habitat in {Habitat.AIR, Habitat.UNDERWATER}
    rise = 0.5 if aloft else 1.0
    return Subject(
        name=name,
        words=(name,),
        habitat=traits.habitat,
        motion=traits.motion,
        size=size,
        is_person=traits.is_person,
        is_bust=traits.is_bust,
        glows=symbol in GLOWING,
        turns=traits.faces_left,
        steps=1 if traits.motion is Motion.STAND and not traits.is_person else STEPS // 2,
        kind=album.kind(symbol),
        finer=1,
        draw=_move_picture(picture, traits, look),
        box=(-wide / 2 - ROOM, -rise - ROOM, wide / 2 + ROOM, 1 - rise + ROOM),
        look=look,
    )


def _move_picture(picture: NDArray[np.uint8], traits: Traits, natural: Look) -> Draw:
    """Return a function that draws a picture at a phase of its movement."""
    foot = (0.5, 0.5 if traits.habitat in {Habitat.AIR, Habitat.UNDERWATER} else 1.0)

    def draw(brush: Brush, phase: float, look: Look) -> None:
        degrees, stretch, lift = _pose(traits, phase * 2 * math.pi)
        unit = float(brush.matrix[0, 0])
        drawn = resize(picture if look is natural else recolour(picture, look.main), unit)
        height, width = drawn.shape[:2]
        turn = math.radians(degrees)
        matrix = np.array([[math.cos(turn), -math.sin(turn) * stretch], [math.sin(turn), math.cos(turn) * stretch]])
        matrix *= unit / height
        target = np.array([float(brush.origin[0]), float(brush.origin[1]) - lift * unit])
        shift = target - matrix @ np.array([foot[0] * width, foot[1] * height])
        size = (brush.picture.shape[1], brush.picture.shape[0])
        whole = np.concatenate([matrix, shift[:, None]], axis=1)
        moved = np.asarray(cv2.warpAffine(drawn, whole, size, flags=cv2.INTER_LINEAR), np.uint8)
        brush.picture[:] = moved

    return draw


def resize(picture: NDArray[np.uint8], height: float) -> NDArray[np.uint8]:
    """Return a picture that is to be turned at a height in pixels.

    Turning a larger one would make its edges flicker. A much smaller one would be blurred: it is enlarged first.
    """
    scale = height / picture.shape[0]
    size = (max(1, round(picture.shape[1] * scale)), max(1, round(height)))
    if scale < 1:
        return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    return _sharpen(picture, size, scale) if scale > BLURRED else picture


def _sharpen(picture: NDArray[np.uint8], size: tuple[int, int], scale: float) -> NDArray[np.uint8]:
    """Enlarge a picture, and make its outline and its inner edges steep again."""
    large = cv2.resize(picture.astype(np.float32), size, interpolation=cv2.INTER_CUBIC)
    soft = cv2.GaussianBlur(large, (0, 0), 0.55 * scale)
    crisp = large + (large - soft) * 0.9
    cover = np.clip((large[..., 3:] - 127.5) * min(scale, 4.0) * 0.75 + 127.5, 0, 255)
    plain = np.clip(crisp[..., :3] / np.maximum(crisp[..., 3:], 24) * 255, 0, 255)
    return np.concatenate([plain * cover / 255, cover], axis=2).round().astype(np.uint8)


def _pose(traits: Traits, angle: float) -> tuple[float, float, float]:
    """Return the rotation in degrees, the stretch upwards and the lift in heights at an angle of the loop."""
    match traits.motion:
        case Motion.WALK | Motion.RUN:
            return 3.5 * math.sin(angle), 1.0, 0.03 * abs(math.sin(angle))
        case Motion.HOP:
            return 4 * math.sin(angle), 1 - 0.06 * max(0.0, math.cos(angle * 2)), 0.1 * abs(math.sin(angle))
        case Motion.SWIM | Motion.HOVER | Motion.FLY:
            return 4 * math.sin(angle), 1.0, 0.0
        case Motion.SWAY:
            return 2 * math.sin(angle), 1 + 0.03 * math.sin(angle * 2), 0.0
        case Motion.DRIVE:
            return 0.0, 1 + 0.008 * math.sin(angle * 2), 0.0
        case _:
            still = 1.0 if traits.is_person else 0.0
            return still * 1.5 * math.sin(angle), 1 + still * 0.012 * math.sin(angle), 0.0


def recolour(picture: NDArray[np.uint8], colour: Colour) -> NDArray[np.uint8]:
    """Return a picture whose strong colours became one colour, with their light and shade."""
    alpha = picture[..., 3:].astype(np.float32)
    plain = picture[..., :3].astype(np.float32) * 255 / np.maximum(alpha, 1)
    low, high = plain.min(axis=2, keepdims=True), plain.max(axis=2, keepdims=True)
    strong = np.clip((high - low) / np.maximum(high, 1) * 2.2 - 0.3, 0, 1)
    bright = plain.mean(axis=2, keepdims=True) / 135
    wanted = np.clip(np.array(colour[::-1], np.float32) * np.clip(bright, 0.35, 1.6), 0, 255)
    mixed = plain * (1 - strong) + wanted * strong
    return np.concatenate([mixed * alpha / 255, alpha], axis=2).round().astype(np.uint8)
