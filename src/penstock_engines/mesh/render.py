"""Draws a model as it turns on a ground, in soft light."""

from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.raster import Fragments, fit_planes, rasterise
from penstock_engines.inflate.render import FLOOR, LIGHTS, SKY
from penstock_engines.mesh.backdrop import REACH, SHADOW_SIDE, find_shadow, paint_backdrop, read_colour
from penstock_engines.mesh.solid import Floats, Material, Solid, is_closed

DISTANCE: Final = 3.6
"""Of the camera, in radii of the model."""
FILL: Final = 0.82
"""Share of the picture's width or height that the turning model takes."""
ELEVATION: Final = 13.0
RINGS, STEPS = 64, 48
"""Heights and angles at which the space of the turning model is measured."""
CHUNK: Final = 1 << 15
"""Pixels shaded at a time: small enough for the processor's cache."""
LOOK_SIDE: Final = 192
LARGEST_TEXTURE: Final = 2048
MAX_CLOSED_FACES: Final = 500_000
"""Above this number of faces, both sides are drawn without a look at whether the model is closed."""
LINEAR: Final = np.square(np.arange(256, dtype=np.float32) / 255)


@dataclass(frozen=True, slots=True)
class _Cover:
    """A material as it is drawn, in blue, green, red, and the light by the direction of its normal."""

    colour: NDArray[np.float32]
    texture: NDArray[np.uint8] | None
    look: NDArray[np.float32]
    """Light and shine for each direction to the right and up."""


class Renderer:
    """A model before its backdrop. Everything that does not turn is prepared once."""

    def __init__(
        self, solid: Solid, width: int, height: int, *, background: str = "studio", finer: float = 1.5
    ) -> None:
        self._size = width, height
        self._fine = round(width * finer), round(height * finer)
        self._faces, self._owners = solid.faces, solid.owners
        self._culls = len(solid.faces) <= MAX_CLOSED_FACES and is_closed(solid)
        low, high = solid.points.min(axis=0), solid.points.max(axis=0)
        middle = (low + high) / 2
        self._radius = max(float(np.linalg.norm(solid.points - middle, axis=1).max()), 1e-12)
        self._points = (solid.points - middle) / self._radius
        self._normals = solid.normals
        self._places = np.zeros((len(solid.points), 2)) if solid.places is None else solid.places
        self._tints = None if solid.tints is None else solid.tints[:, ::-1]
        self._scale, self._shift = self._frame()
        self._covers = [_cover(material, max(self._fine)) for material in solid.materials]
        self._ground = float(self._points[:, 1].min())
        horizon = self._project(np.array([[0.0, self._ground, 0.0]]) @ _look(0.0).T)[0][0, 1] / self._fine[1]
        colour = read_colour(background)[::-1]
        self._scene = paint_backdrop(colour, width, height, float(np.clip(horizon, 0.4, 0.95)))
        self._shadow = find_shadow(solid, self._points)

    def draw(self, angle_degrees: float) -> NDArray[np.uint8]:
        """Return blue, green, red. At 0 degrees the front is seen, at 90 the model's right side, at 180 the back."""
        turn = _look(angle_degrees)
        screen, inverse = self._project(_turn(self._points, turn))
        faces, signs, owners = self._list_seen(screen)
        width, height = self._fine
        corners = screen[faces]
        fragments = rasterise(corners, inverse[faces], width, height)
        subject = np.zeros((width * height, 4), np.uint8)
        seen, compact = np.unique(fragments.triangles, return_inverse=True)
        fragments = Fragments(fragments.pixels, compact.reshape(-1), fragments.nearness)
        planes = self._fit(turn, corners[seen], inverse, faces[seen], signs[seen])
        for part in fragments.split(CHUNK):
            subject[part.pixels, :3] = self._shade(planes, owners[seen], part)
        subject[fragments.pixels, 3] = 255
        return self._lay(
            cv2.resize(subject.reshape(height, width, 4), self._size, interpolation=cv2.INTER_LINEAR), turn
        )

    # -- the camera

    def _frame(self) -> tuple[float, float]:
        """Return the scale at which the turning model fits, and how far down its middle is."""
        heights = self._points[:, 1]
        ring = np.clip(
            ((heights - heights.min()) / max(float(np.ptp(heights)), 1e-9) * RINGS).astype(int), 0, RINGS - 1
        )
        reach = np.zeros(RINGS)
        np.maximum.at(reach, ring, np.hypot(self._points[:, 0], self._points[:, 2]))
        used = np.unique(ring)
        low, high = np.full(RINGS, np.inf), np.full(RINGS, -np.inf)
        np.minimum.at(low, ring, heights)
        np.maximum.at(high, ring, heights)
        angles = np.linspace(0, 2 * np.pi, STEPS, endpoint=False)
        rounds = [
            np.stack([reach[used] * np.cos(angle), level, reach[used] * np.sin(angle)], axis=1)
            for angle in angles
            for level in (low[used], high[used])
        ]
        points = np.concatenate(rounds) @ _look(0.0).T
        places = points[:, :2] / (DISTANCE - points[:, 2:])
        width, height = self._fine
        tall, wide = float(np.ptp(places[:, 1])), 2 * float(np.abs(places[:, 0]).max())
        scale = FILL * min(width / max(wide, 1e-9), height / max(tall, 1e-9))
        return scale, float(places[:, 1].max() + places[:, 1].min()) / 2

    def _project(self, points: Floats) -> tuple[Floats, Floats]:
        """Return places on the screen, y down, and the inverse of the distances."""
        inverse = 1 / (DISTANCE - points[:, 2])
        x, y = points[:, 0] * inverse * self._scale, (self._shift - points[:, 1] * inverse) * self._scale
        return np.stack([x + self._fine[0] / 2, y + self._fine[1] / 2], axis=1), inverse

    def _list_seen(self, screen: Floats) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the faces that may be seen, counter-clockwise to the eye, and -1 where the back is seen."""
        corners = screen[self._faces]
        first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        area = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
        front = area < -1e-9  # y points down
        if self._culls:
            faces = self._faces[front]
            return faces, np.ones(len(faces)), self._owners[front]
        kept = np.abs(area) > 1e-9
        faces = np.where(front[:, None], self._faces, self._faces[:, ::-1])[kept]
        return faces, np.where(front[kept], 1.0, -1.0), self._owners[kept]

    # -- light and colour

    def _fit(
        self, turn: Floats, corners: Floats, inverse: Floats, faces: NDArray[np.int64], signs: Floats
    ) -> NDArray[np.float32]:
        """Return what each triangle shows as planes over the screen: texture coordinates, normal, perhaps a tint.

        Divided by the distance, they are linear over the screen, which keeps the texture in perspective.
        """
        turned = _turn(self._normals, turn)[:, :2][faces] * signs[:, None, None]
        fields = [self._places[faces], turned]
        if self._tints is not None:
            fields.append(self._tints[faces])
        values = np.concatenate(fields, axis=2) * inverse[faces][..., None]
        return fit_planes(corners, values).astype(np.float32)

    def _shade(self, planes: NDArray[np.float32], owners: NDArray[np.int64], part: Fragments) -> NDArray[np.uint8]:
        row, column = np.divmod(part.pixels, self._fine[0])
        across, down = column.astype(np.float32) + np.float32(0.5), row.astype(np.float32) + np.float32(0.5)
        own = planes[part.triangles]
        flat = own[:, 0] * across[:, None] + own[:, 1] * down[:, None] + own[:, 2]
        fields = (flat / part.nearness[:, None]).astype(np.float32, copy=False)
        if len(self._covers) == 1:
            return _paint(self._covers[0], fields)
        painted = np.zeros((len(fields), 3), np.uint8)
        numbers = owners[part.triangles]
        present: list[int] = np.unique(numbers).tolist()
        for number in present:
            chosen = numbers == number
            painted[chosen] = _paint(self._covers[number], fields[chosen])
        return painted

    def _lay(self, small: NDArray[Any], turn: Floats) -> NDArray[np.uint8]:
        """Lay the model over the backdrop with its shadow."""
        square = np.array([[-REACH, 0, -REACH], [REACH, 0, -REACH], [REACH, 0, REACH], [-REACH, 0, REACH]])
        screen, _ = self._project((square + np.array([0, self._ground, 0])) @ turn.T)
        screen *= np.divide(self._size, self._fine)
        side = SHADOW_SIDE
        source = np.array([[0, 0], [side, 0], [side, side], [0, side]], np.float32)
        matrix = cv2.getPerspectiveTransform(source, screen.astype(np.float32))
        cast = cv2.warpPerspective(self._shadow, matrix, self._size, flags=cv2.INTER_LINEAR)
        open_share = (1 - 0.75 * np.clip(cast, 0, 1)) * (1 - small[..., 3].astype(np.float32) / 255)
        ground = cv2.multiply(self._scene, cv2.merge([open_share] * 3))
        return np.asarray(cv2.add(small[..., :3], cv2.convertScaleAbs(ground)), np.uint8)


def _look(angle: float) -> Floats:
    """Turn the world so that the camera looks along -z."""
    around, down = np.radians(-angle), np.radians(ELEVATION)
    yaw = np.array([[np.cos(around), 0, np.sin(around)], [0, 1, 0], [-np.sin(around), 0, np.cos(around)]])
    pitch = np.array([[1, 0, 0], [0, np.cos(down), -np.sin(down)], [0, np.sin(down), np.cos(down)]])
    return pitch @ yaw


def _turn(vectors: Floats, turn: Floats) -> Floats:
    """Return the turned vectors. A library's product of matrices may round otherwise when other threads are busy."""
    return vectors[:, :1] * turn[:, 0] + vectors[:, 1:2] * turn[:, 1] + vectors[:, 2:] * turn[:, 2]


def _cover(material: Material, side: int) -> _Cover:
    texture = None
    if material.texture is not None:
        texture = np.ascontiguousarray(material.texture.decode(min(LARGEST_TEXTURE, 2 * side))[..., ::-1])
    return _Cover(np.array(material.colour[::-1], np.float32), texture, _light(material.roughness, material.metallic))


def _light(roughness: float, metallic: float) -> NDArray[np.float32]:
    """Return light and shine for each direction of a normal: right from left to right, up from bottom to top."""
    line = np.linspace(-1, 1, LOOK_SIDE, dtype=np.float32)
    right, up = np.meshgrid(line, line)
    out = np.sqrt(np.clip(1 - right * right - up * up, 0, 1))
    normal = np.stack([right, up, out], axis=2)
    normal /= np.linalg.norm(normal, axis=2, keepdims=True)
    diffuse = FLOOR + (SKY - FLOOR) * (normal[..., 1] * 0.5 + 0.5)
    shine = np.zeros_like(diffuse)
    power = 60 * (1 - roughness) + 6
    for direction, strength in LIGHTS:
        light = np.array(direction) / np.linalg.norm(direction)
        facing = normal @ light
        diffuse += strength * np.square(np.clip(facing * 0.75 + 0.25, 0, 1))
        half = light + np.array([0, 0, 1])
        half /= np.linalg.norm(half)
        glint = np.clip(normal @ half, 0, 1)
        shine += strength * 0.09 * (1.2 - roughness) * (1 + 3 * metallic) * np.exp(power * (glint - 1)) * (facing > 0)
    rim = np.square(1 - normal[..., 2]) * 0.06
    return np.stack([diffuse * (1 - 0.35 * metallic) + rim, shine], axis=2).astype(np.float32)


def _paint(cover: _Cover, fields: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the colours of pixels by their texture coordinates, normals and tints."""
    count = len(fields)
    place = (fields[:, 2:4] + 1) * np.float32((LOOK_SIDE - 1) / 2)
    lit = _remap(cover.look, place, cv2.BORDER_REPLICATE)[:count]
    colour = np.tile(cover.colour, (count, 1))
    if cover.texture is not None:
        height, width = cover.texture.shape[:2]
        spot = (fields[:, :2] - np.floor(fields[:, :2])) * np.array([width, height], np.float32) - np.float32(0.5)
        colour *= LINEAR[_remap(cover.texture, spot, cv2.BORDER_WRAP)[:count].astype(np.uint8)]
    if fields.shape[1] > 4:
        colour *= np.clip(fields[:, 4:], 0, 1)
    light = colour * lit[:, :1] + lit[:, 1:]
    toned = light * (1 + light * np.float32(0.15)) / (1 + light * np.float32(0.32))  # compresses bright parts
    return (np.sqrt(np.clip(toned * np.float32(1.12), 0, 1)) * 255 + np.float32(0.5)).astype(np.uint8)


def _remap(picture: NDArray[np.uint8] | NDArray[np.float32], places: NDArray[np.float32], border: int) -> NDArray[Any]:
    """Return the picture's values at places in pixels. Maps have rows of 1024, as OpenCV's are limited in width."""
    rows = -(-len(places) // 1024)
    padded = np.zeros((rows * 1024, 2), np.float32)
    padded[: len(places)] = places
    maps = padded.reshape(rows, 1024, 2)
    found = cv2.remap(picture, maps[..., 0], maps[..., 1], cv2.INTER_LINEAR, borderMode=border)
    return np.asarray(found).reshape(rows * 1024, -1)
