"""Whatever the mask: the surface is closed, and stays so with fewer faces."""

import cv2
import numpy as np
import trimesh
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inflate_steps import assert_sound

from penstock_engines.inflate.shape.form import shape_form
from penstock_engines.inflate.shape.inflation import InflationMode, solve_poisson


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    coarseness=st.integers(2, 12),
    limit=st.sampled_from([48, 120, 700]),
    flat=st.booleans(),
    closed=st.booleans(),
)
def test_random_masks_give_sound_surfaces(seed, coarseness, limit, flat, closed):
    generator = np.random.default_rng(seed)
    blobs = generator.random((coarseness, coarseness)).astype(np.float32)
    mask = np.clip(cv2.resize(blobs, (60, 48), interpolation=cv2.INTER_CUBIC), 0, 1).astype(np.float32)
    mask[20:28, 20:40] = 1  # never nothing
    light = generator.random(mask.shape).astype(np.float32)
    form = shape_form(mask, light, InflationMode.from_seed(seed), limit, flat=flat, closed=closed)
    solid = trimesh.Trimesh(form.surface.points, form.surface.faces, process=False)
    solid.merge_vertices()
    assert len(solid.faces) <= limit
    assert_sound(solid)


def test_a_disc_becomes_a_half_ball():
    rows, columns = np.indices((160, 160))
    distance = np.hypot(rows - 79.5, columns - 79.5)
    height = 2 * np.sqrt(solve_poisson(distance < 60, screen=0.0))
    inner = distance < 55
    assert np.abs(height - np.sqrt(np.maximum(3600 - distance**2, 0)))[inner].max() < 0.03 * 60
