"""Meshy's terms for the 3D family, at Meshy itself and at services that run its models."""

from collections.abc import Mapping
from typing import Any, Final

FEWEST_FACES: Final = 100
MOST_FACES: Final = 300_000
PER_CENT: Final = 95
"""Share of the face limit that is requested: Meshy treats it as a target and may exceed it slightly."""
MAX_PROMPT: Final = 600
ACTIONS: Final = {"idle": 0, "attack": 4, "run": 14, "dance": 22, "wave": 28, "walk": 30, "jump": 466}
"""Meshy's ids of common animations. Only those of idle, attack and run are certain by its own list."""


def ask_faces(params: Mapping[str, Any], vendor: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the field for the face limit, and a warning if Meshy cannot make so few or so many."""
    limit = params.get("face_limit")
    if limit is None:
        return {}, ()
    target = limit * PER_CENT // 100
    asked = min(MOST_FACES, max(FEWEST_FACES, target))
    is_far = limit < FEWEST_FACES or target > MOST_FACES
    text = f"`face_limit` {limit} is not supported by {vendor}: about {asked} faces were requested instead."
    return {"target_polycount": asked}, ((text,) if is_far else ())


def most_faces(limit: Any) -> int | None:
    """Return the faces of a result whose face limit was too low to be requested; None for any other."""
    return FEWEST_FACES * 100 // PER_CENT if isinstance(limit, int) and limit < FEWEST_FACES else None


def find_action(animation: str) -> int | None:
    """Return the id of an animation, by our name for it or by its number."""
    plain = animation.removeprefix("-")
    return int(animation) if plain.isascii() and plain.isdigit() and len(plain) < 6 else ACTIONS.get(animation)


def explain_actions(vendor: str) -> str:
    """Return the problem of an animation that Meshy does not know."""
    return f"{vendor} takes {', '.join(sorted(ACTIONS))}, or a number of Meshy's animation library."
