"""Covers a shape with all maps of the material, front on the left and back on the right."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.material.pbr import paint_material, paint_normals
from penstock_engines.inflate.material.texture import cut_window, paint_back, paint_front, size_chart
from penstock_engines.inflate.material.uv_charts import Window
from penstock_engines.inflate.shape.inflation import InflationMode


@dataclass(frozen=True, slots=True)
class Skin:
    """The maps that cover the shape, in red, green, blue. Maps that are None are left out."""

    colour: NDArray[np.uint8] | None
    normals: NDArray[np.uint8] | None
    material: NDArray[np.uint8] | None
    roughness: float


def paint_skin(
    colours: NDArray[np.uint8], mask: NDArray[np.float32], window: Window, manner: InflationMode, *, pbr: bool
) -> Skin:
    """Paint the colours, and with `pbr` the other maps too."""
    size = size_chart(window)
    chart_mask = cut_window(_surround(mask), _shift(window), size)
    photograph = cut_window(colours, window, size)
    front = paint_front(photograph, chart_mask)
    back = paint_back(front, chart_mask)
    colour = np.concatenate([front, back], axis=1)
    if not pbr:
        return Skin(colour, None, None, manner.roughness)
    half = (max(1, size[0] // 2), max(1, size[1] // 2))  # enough for maps that are only guessed
    front, back = (cv2.resize(side, half, interpolation=cv2.INTER_AREA).astype(np.uint8) for side in (front, back))
    solid = cv2.resize(chart_mask, half, interpolation=cv2.INTER_AREA) > 0.5
    depth = cv2.distanceTransform(solid.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5).astype(np.float32)
    normals = paint_normals(front, depth, manner.relief)
    flat = np.full_like(normals, 128)
    flat[..., 2] = 255
    material = np.concatenate([paint_material(side, depth, manner.roughness) for side in (front, back)], axis=1)
    return Skin(colour, np.concatenate([normals, flat], axis=1), material, manner.roughness)


def _surround(mask: NDArray[np.float32]) -> NDArray[np.float32]:
    """Add one pixel of border without subject around the picture."""
    return cv2.copyMakeBorder(mask, 1, 1, 1, 1, borderType=cv2.BORDER_CONSTANT, value=0).astype(np.float32)


def _shift(window: Window) -> Window:
    return Window(window.left + 1, window.top + 1, window.width, window.height)
