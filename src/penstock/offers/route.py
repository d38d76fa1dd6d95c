"""A route to a vendor, and the one law by which jobs and chat requests choose among several."""

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """One way to run a model: the vendor's configured name and the vendor's own name for the model."""

    vendor: str
    model: str
    weight: float = 1.0
    order: int = 1


def rank_routes(
    routes: Iterable[Route],
    is_open: Callable[[Route], bool] | None = None,
    chance: Callable[[], float] = random.random,
) -> list[Route]:
    """Return the open routes in the order in which to try them: by their `order`, then at random by weight.

    `chance` returns numbers from 0 up to 1. Each route draws a waiting time that is shorter the heavier the route.
    The shortest wins, so a route comes first with a probability of its weight over the sum of all weights.
    """
    candidates = routes if is_open is None else filter(is_open, routes)
    return sorted(candidates, key=lambda route: (route.order, -math.log(1.0 - chance()) / route.weight))
