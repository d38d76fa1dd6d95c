"""Writes a model as binary STL."""

from pathlib import Path
from typing import Final

import numpy as np

from penstock_engines.mesh.solid import Solid, find_across, unit

FACET: Final = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")])
HEAD: Final = b"binary STL, in the units of its source".ljust(80, b" ")


def write_stl(solid: Solid, path: Path) -> None:
    """Write the faces with their normals."""
    facets = np.zeros(len(solid.faces), FACET)
    facets["normal"] = unit(find_across(solid.points, solid.faces))
    facets["corners"] = solid.points[solid.faces]
    path.write_bytes(HEAD + len(facets).to_bytes(4, "little") + facets.tobytes())
