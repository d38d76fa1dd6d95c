"""Guesses the maps of a physical material from the picture: fine normals, occlusion and roughness."""

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.inflate.material.texture import blur_wide


def paint_normals(front: NDArray[np.uint8], depth: NDArray[np.float32], strength: float) -> NDArray[np.uint8]:
    """Return the front's detail that is too fine for the mesh, as red to the right, green up, blue out."""
    light = cv2.cvtColor(front, cv2.COLOR_RGB2GRAY).astype(np.float32) / np.float32(255)
    side = float(np.sqrt(light.size))
    fine = blur_wide(light, max(0.8, 0.0015 * side)) - blur_wide(light, 0.012 * side)
    height = np.tanh(fine * 5) * np.clip(depth / (0.04 * side), 0, 1) * np.float32(0.0035 * side * strength)
    right, down = cv2.Sobel(height, -1, 1, 0, scale=1 / 8), cv2.Sobel(height, -1, 0, 1, scale=1 / 8)
    length = np.sqrt(right * right + down * down + 1)
    normals = np.stack([-right / length, down / length, 1 / length], axis=2)
    return (normals * 127.5 + 128).astype(np.uint8)


def paint_material(front: NDArray[np.uint8], depth: NDArray[np.float32], roughness: float) -> NDArray[np.uint8]:
    """Return occlusion (red, in dark folds), roughness (green, lower in pale highlights) and metal (blue, none)."""
    colours = front.astype(np.float32) / 255
    light = cv2.cvtColor(front, cv2.COLOR_RGB2GRAY).astype(np.float32) / np.float32(255)
    side = float(np.sqrt(light.size))
    fold = np.clip(blur_wide(light, 0.03 * side) - blur_wide(light, 0.004 * side), 0, 1)
    occlusion = 1 - np.clip(fold * 1.6, 0, 0.6) * np.clip(depth / (0.03 * side), 0, 1)
    saturation = colours.max(axis=2) - colours.min(axis=2)
    gloss = np.clip((light - 0.75) * 3, 0, 1) * np.clip(1 - saturation * 3, 0, 1)
    grain = np.clip(np.abs(light - blur_wide(light, 0.006 * side)) * 4, 0, 0.25)
    rough = np.clip(roughness - 0.2 * blur_wide(gloss.astype(np.float32), 2.0) + grain, 0.25, 1)
    return (np.stack([occlusion, rough, np.zeros_like(rough)], axis=2) * 255 + 0.5).astype(np.uint8)
