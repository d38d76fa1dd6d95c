"""Inflates the outline like a balloon, or raises it as a plaque: heights of the front and back sheet."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.shape.outline import Outline

CROSS = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], np.float32)
SWEEPS = 40
COARSEST = 12


@dataclass(frozen=True, slots=True)
class InflationMode:
    """Variations by seed: one seed always gives one shape, another seed a visibly different one.

    puffiness: 0.75 to 1.25, thickness of the whole.
    relief: 0.7 to 1.3, height of light and dark parts on the front.
    back: 0.55 to 0.95, bulge of the back, as a share of the front.
    roughness: 0.55 to 0.8, of the material.
    """

    puffiness: float
    relief: float
    back: float
    roughness: float

    @classmethod
    def from_seed(cls, seed: int) -> "InflationMode":
        """Draw the four values."""
        puffiness, relief, back, roughness = np.random.default_rng(abs(seed)).random(4).tolist()
        return cls(0.75 + 0.5 * puffiness, 0.7 + 0.6 * relief, 0.55 + 0.4 * back, 0.55 + 0.25 * roughness)


@dataclass(frozen=True, slots=True)
class Sheets:
    """Positions of the nodes (in cells, pulled towards the rim), and heights of front, back and the rim between."""

    columns: NDArray[np.float32]
    rows: NDArray[np.float32]
    front: NDArray[np.float32]
    back: NDArray[np.float32]
    middle: NDArray[np.float32]


def inflate(outline: Outline, light: NDArray[np.float32], manner: InflationMode) -> Sheets:
    """Return a balloon: round where the subject is wide, thin where it is thin. `light` is the nodes' luminance."""
    size = outline.size
    columns, rows, depth = _gather_at_rim(outline)
    squared = _square_height(outline, columns, rows, depth)
    cap = 0.6 * size
    # A disc would become a full ball and a broad body a barrel, so thick parts are flattened.
    height = np.sqrt(squared / (1 + squared / (cap * cap))) * np.float32(manner.puffiness * 0.95)
    height *= round_off(_move(outline.frame, columns, rows), 0.045 * size)
    band = _band(light, outline, 0.006 * size, 0.05 * size)
    fade = np.clip(depth / (0.05 * size), 0, 1)
    felt = _move(np.tanh(band * 4), columns, rows) * fade * fade * (3 - 2 * fade)
    relief = felt * np.float32(0.022 * size * manner.relief)
    front = np.maximum(height + relief, 0.3 * height)
    back = (-manner.back * height).astype(np.float32)
    return Sheets(columns, rows, front.astype(np.float32), back, np.zeros_like(back))


def emboss(outline: Outline, light: NDArray[np.float32], manner: InflationMode) -> Sheets:
    """Return a plaque: flat back, round edge, light parts high and dark parts low."""
    size = outline.size
    columns, rows, depth = _gather_at_rim(outline)
    thickness = 0.055 * size * manner.puffiness
    edge = round_off(depth, 0.035 * size)
    fine = np.tanh(_band(light, outline, 0.004 * size, 0.06 * size) * 3)
    broad = cv2.GaussianBlur(light, (0, 0), max(0.5, 0.008 * size))
    fade = np.clip((depth - 0.02 * size) / (0.03 * size), 0, 1)
    felt = _move((0.55 * fine + 0.9 * (broad - float(broad.mean()))).astype(np.float32), columns, rows) * fade
    front = thickness * edge + felt * np.float32(0.03 * size * manner.relief)
    front = np.maximum(front, 0.35 * thickness * edge)
    flat = np.zeros_like(front, np.float32)
    return Sheets(columns, rows, front.astype(np.float32), flat, flat)


def solve_poisson(inside: NDArray[np.bool_], screen: float) -> NDArray[np.float32]:
    """Solve `screen u - laplace u = 1` inside and u = 0 outside, mirrored beyond the array.

    Each grid starts from the solution on a coarser one, so only fine errors are left to remove.
    """
    rows, columns = inside.shape
    if min(rows, columns) > COARSEST:
        size = ((columns + 1) // 2, (rows + 1) // 2)
        coarse = cv2.resize(inside.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.5
        start = cv2.resize(solve_poisson(coarse, screen * 4) * 4, (columns, rows), interpolation=cv2.INTER_LINEAR)
        sweeps = SWEEPS
    else:
        start, sweeps = np.zeros(inside.shape, np.float32), 12 * SWEEPS
    solid = inside.astype(np.float32)
    field, before = start * solid, start * solid
    share = np.float32(1 / (4 + screen))
    for sweep in range(sweeps):
        around = cv2.filter2D(field, -1, CROSS, borderType=cv2.BORDER_REPLICATE)
        relaxed = (0.5 * field + (around + 1) * (0.5 * share)) * solid
        momentum = np.float32(sweep / (sweep + 3))
        field, before = relaxed + momentum * (relaxed - before), relaxed
    return np.maximum(before, 0)


def _gather_at_rim(outline: Outline) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Pull nodes near the rim towards it, where the surface is steep and a regular grid too coarse."""
    rows, columns = np.indices(outline.inside.shape, np.float32)
    depth = np.minimum(outline.depth, outline.frame)
    soft = cv2.GaussianBlur(depth, (0, 0), 1.0)
    down, right = cv2.Sobel(soft, -1, 0, 1, scale=1 / 8), cv2.Sobel(soft, -1, 1, 0, scale=1 / 8)
    reach = np.float32(5.0)
    share = np.clip(depth / reach, 0, 1)
    shift = reach * 0.7 * share * (1 - share) ** 2 * (depth > 0)
    moved = (columns - shift * right, rows - shift * down, np.maximum(depth - shift, 0))
    return moved[0].astype(np.float32), moved[1].astype(np.float32), moved[2].astype(np.float32)


def _move(values: NDArray[np.float32], columns: NDArray[np.float32], rows: NDArray[np.float32]) -> NDArray[np.float32]:
    moved = cv2.remap(values, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return moved.astype(np.float32, copy=False)


def _square_height(
    outline: Outline, columns: NDArray[np.float32], rows: NDArray[np.float32], depth: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the balloon's squared height. For a disc it is that of a half ball.

    Near the rim the solution shows the steps of the grid. There it is replaced by depth times a smooth slope.
    """
    solved = 4 * solve_poisson(outline.inside > 0, screen=0.3 / outline.size**2)
    trusted = (outline.depth > 2).astype(np.float32)
    slope = solved / np.maximum(outline.depth, 0.5)
    weight = cv2.GaussianBlur(trusted, (0, 0), 2.5)
    smooth = cv2.GaussianBlur(slope * trusted, (0, 0), 2.5) / np.maximum(weight, 1e-4)
    near = _move(np.where(weight > 0.02, smooth, slope).astype(np.float32), columns, rows) * depth
    share = np.clip((depth - 2) / 3, 0, 1)
    return (near + share * (_move(solved, columns, rows) - near)).astype(np.float32)


def round_off(distance: NDArray[np.float32], width: float) -> NDArray[np.float32]:
    """Return a quarter circle: 0 at the end, 1 from `width` on."""
    left = 1 - np.clip(distance / max(width, 1e-3), 0, 1)
    return np.sqrt(1 - left * left).astype(np.float32)


def _band(light: NDArray[np.float32], outline: Outline, fine: float, broad: float) -> NDArray[np.float32]:
    """Return light minus the mean light around it, counting the subject only."""
    solid = (outline.inside > 0).astype(np.float32)
    weight = np.maximum(cv2.GaussianBlur(solid, (0, 0), broad), 1e-3)
    around = cv2.GaussianBlur(light * solid, (0, 0), broad) / weight
    sigma = max(0.6, fine)
    weight = np.maximum(cv2.GaussianBlur(solid, (0, 0), sigma), 1e-3)
    return (cv2.GaussianBlur(light * solid, (0, 0), sigma) / weight - around).astype(np.float32)
