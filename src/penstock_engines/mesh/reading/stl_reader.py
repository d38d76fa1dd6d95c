"""Opens STL models, binary and text."""

from typing import Final

import numpy as np

from penstock_engines.mesh.solid import Material, Piece, Solid, check_size, join, weld
from penstock_engines.product import Unable

HEAD_BYTES: Final = 84
FACET: Final = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")])


def is_binary(data: bytes) -> bool:
    """Return whether the number of facets in the head fits the size."""
    return len(data) >= HEAD_BYTES and len(data) == HEAD_BYTES + FACET.itemsize * int.from_bytes(data[80:84], "little")


def read_stl(data: bytes) -> Solid:
    """Return an STL, binary or text, with its vertices joined."""
    if is_binary(data):
        check_size((len(data) - HEAD_BYTES) // FACET.itemsize, 0)
        corners = np.frombuffer(data, FACET, offset=HEAD_BYTES)["corners"].astype(np.float64).reshape(-1, 3)
    else:
        words = data.split()
        places = np.flatnonzero(np.array([word == b"vertex" for word in words]))
        if not len(places) or len(places) % 3:
            raise Unable("The STL has no facets, or a facet without three corners.")
        check_size(len(places) // 3, 0)
        corners = np.array([[float(word) for word in words[place + 1 : place + 4]] for place in places.tolist()])
    if not len(corners):
        raise Unable("The STL has no facets.")
    if not np.isfinite(corners).all():
        raise Unable("The 3D model has positions that are not finite numbers.")
    _, first, joined = np.unique(weld(corners), return_index=True, return_inverse=True)
    faces = joined.reshape(-1, 3)
    return join([Piece(points=corners[first], faces=faces)], [Material(name="surface")])
