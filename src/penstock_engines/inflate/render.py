"""Renders a model like a product photograph: three-quarter view, soft light, a shadow on the ground."""

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.glb_writer import NEUTRAL
from penstock_engines.inflate.material.skin import Skin
from penstock_engines.inflate.material.uv_charts import Shape
from penstock_engines.inflate.raster import Fragments, fit_planes, rasterise

FINER = 2  # supersampling
DISTANCE = 3.4  # of the camera, in radii of the model
FILL = 0.86  # of the picture's side
ELEVATION = 14.0
CHUNK = 1 << 15  # pixels shaded at a time: small enough for the processor's cache
GROUND = 96  # pixels of the shadow's own map
# Direction towards the light (right, up, to the camera) and its strength.
LIGHTS = (((-0.45, 0.65, 0.62), 0.95), ((0.8, 0.15, 0.5), 0.32), ((0.25, 0.5, -0.85), 0.35))
SKY, FLOOR = 0.42, 0.2
TOP, BOTTOM = (244, 246, 249), (214, 218, 225)


def render(shape: Shape, skin: Skin, angle_degrees: float = 32.0, size: int = 768) -> NDArray[np.uint8]:
    """Return height x width x 3, red, green, blue. At 0 degrees the front is seen, at 180 the back."""
    turn = _look(angle_degrees)
    middle = np.array([0.0, float(shape.points[:, 1].max()) / 2, 0.0])
    radius = _measure_radius(shape.points.astype(np.float64) - middle)
    side = size * FINER
    points = (shape.points.astype(np.float64) - middle) @ turn.T / radius
    screen, inverse = _project(points, side)
    corners = screen[shape.faces]
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    seen = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0] < -1e-9  # y points down, so these face the camera
    faces, corners = shape.faces[seen], corners[seen]
    fragments = rasterise(corners, inverse[faces], side, side)
    subject = np.zeros((side * side, 4), np.uint8)
    values = np.concatenate([shape.normals @ turn.T, shape.places], axis=1) * inverse[:, None]
    planes = fit_planes(corners, values[faces]).astype(np.float32)
    for part in fragments.split(CHUNK):
        subject[part.pixels, :3] = _shade(skin, planes, part, side)
    subject[fragments.pixels, 3] = 255
    small = cv2.resize(subject.reshape(side, side, 4), (size, size), interpolation=cv2.INTER_AREA).astype(np.float32)
    scene = _draw_ground(shape, turn, middle, radius, size)
    return np.clip(small[..., :3] + scene * (1 - small[..., 3:] / 255) + 0.5, 0, 255).astype(np.uint8)


def _measure_radius(points: NDArray[np.float64]) -> float:
    """Return the radius that must fit into half the picture, whatever the angle, so a turning model keeps its size."""
    wide = float(np.hypot(points[:, 0], points[:, 2]).max())
    tilt = np.radians(ELEVATION)
    return max(wide, float(points[:, 1].max() * np.cos(tilt) + wide * np.sin(tilt)))


def _look(angle: float) -> NDArray[np.float64]:
    """Turn the world so that the camera looks along -z."""
    around, down = np.radians(-angle), np.radians(ELEVATION)
    yaw = np.array([[np.cos(around), 0, np.sin(around)], [0, 1, 0], [-np.sin(around), 0, np.cos(around)]])
    pitch = np.array([[1, 0, 0], [0, np.cos(down), -np.sin(down)], [0, np.sin(down), np.cos(down)]])
    return pitch @ yaw


def _project(points: NDArray[np.float64], side: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    inverse = 1 / (DISTANCE - points[:, 2])
    scale = side / 2 * FILL * np.sqrt(DISTANCE * DISTANCE - 1)
    return points[:, :2] * (scale, -scale) * inverse[:, None] + side / 2, inverse


def _shade(skin: Skin, planes: NDArray[np.float32], fragments: Fragments, side: int) -> NDArray[np.uint8]:
    row, column = np.divmod(fragments.pixels, side)
    across, down = column.astype(np.float32) + np.float32(0.5), row.astype(np.float32) + np.float32(0.5)
    owner = planes[fragments.triangles]
    # Divided by depth, values are linear over the screen, which keeps the texture in perspective.
    flat = owner[:, 0] * across[:, None] + owner[:, 1] * down[:, None] + owner[:, 2]
    fields = (flat / fragments.nearness[:, None]).astype(np.float32, copy=False)
    normal = fields[:, :3]
    normal /= np.maximum(np.sqrt(np.einsum("ij,ij->i", normal, normal)), np.float32(1e-6))[:, None]
    return _light(_sample(skin, fields[:, 3], fields[:, 4]), normal, skin.roughness)


def _sample(skin: Skin, across: NDArray[np.float32], down: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the texture's colours, 0 to 1, squared, which is close to linear light."""
    if skin.colour is None:
        return np.full((len(across), 3), np.square(NEUTRAL[:3]), np.float32)
    height, width = skin.colour.shape[:2]
    rows = -(-len(across) // 1024)
    maps = [
        np.resize(place * length - 0.5, (rows, 1024)).astype(np.float32)
        for place, length in ((across, width), (down, height))
    ]
    found = cv2.remap(skin.colour, maps[0], maps[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    linear = np.square(np.arange(256, dtype=np.float32) / 255)
    return linear[found.astype(np.uint8, copy=False).reshape(-1, 3)[: len(across)]]


def _light(colour: NDArray[np.float32], normal: NDArray[np.float32], roughness: float) -> NDArray[np.uint8]:
    up = normal[:, 1] * np.float32(0.5) + np.float32(0.5)
    diffuse = FLOOR + (SKY - FLOOR) * up
    shine = np.zeros_like(up)
    power = np.float32(60 * (1 - roughness) + 6)
    for direction, strength in LIGHTS:
        light = np.array(direction, np.float32) / np.float32(np.linalg.norm(direction))
        facing = normal @ light
        diffuse += np.float32(strength) * np.square(np.clip(facing * 0.75 + 0.25, 0, 1))
        half = light + np.array([0, 0, 1], np.float32)
        half /= np.float32(np.linalg.norm(half))
        glint = np.clip(normal @ half, 0, 1)
        shine += np.float32(strength * 0.09 * (1.2 - roughness)) * np.exp(power * (glint - 1)) * (facing > 0)
    lit = colour * diffuse[:, None] + shine[:, None]
    toned = lit * (1 + lit * 0.15) / (1 + lit * 0.32)  # bright parts are compressed instead of clipped
    return (np.sqrt(np.clip(toned * 1.12, 0, 1)) * 255 + 0.5).astype(np.uint8)


def _draw_ground(
    shape: Shape, turn: NDArray[np.float64], middle: NDArray[np.float64], radius: float, size: int
) -> NDArray[np.float32]:
    """Return a pale studio background, darker where the model is near the ground."""
    share = np.linspace(0, 1, size, dtype=np.float32)[:, None, None] ** 1.3
    scene = np.array(TOP, np.float32) * (1 - share) + np.array(BOTTOM, np.float32) * share
    reach = 1.5 * float(np.abs(shape.points[:, [0, 2]]).max())
    flat = (shape.points[:, [0, 2]].astype(np.float64) / reach + 1) * (GROUND / 2)
    corners = flat[shape.faces]
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    below = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0] > 1e-6
    heights = -shape.points[shape.faces[below], 1].astype(np.float64)
    fragments = rasterise(corners[below][:, ::-1], heights[:, ::-1], GROUND, GROUND)
    near = np.zeros(GROUND * GROUND, np.float32)
    near[fragments.pixels] = np.exp(fragments.nearness / 0.12)
    near = near.reshape(GROUND, GROUND)
    shadow = 0.5 * cv2.GaussianBlur(near, (0, 0), 1.6) + 0.5 * cv2.GaussianBlur(near, (0, 0), 6.0)
    square = np.array([[-reach, 0, -reach], [reach, 0, -reach], [reach, 0, reach], [-reach, 0, reach]])
    screen, _ = _project((square - middle) @ turn.T / radius, size)
    source = np.array([[0, 0], [GROUND, 0], [GROUND, GROUND], [0, GROUND]], np.float32)
    matrix = cv2.getPerspectiveTransform(source, screen.astype(np.float32))
    cast = cv2.warpPerspective(shadow, matrix, (size, size), flags=cv2.INTER_LINEAR)
    return (scene * (1 - 0.5 * np.clip(cast, 0, 1))[..., None]).astype(np.float32)
