"""The choice among routes: by order, by weight, and around those that are closed."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as some

from penstock.offers.route import Route, rank_routes

SHAPES = some.lists(
    some.tuples(some.integers(1, 4), some.integers(1, 1_000_000), some.booleans()), min_size=1, max_size=8
)


def make_routes(shape):
    return [Route(f"v{number}", "m", weight, order) for number, (order, weight, _) in enumerate(shape)]


def seeded(seed):
    return random.Random(seed).random  # noqa: S311  no secret


def rank_often(routes, times):
    chance = seeded(20)
    return [[route.vendor for route in rank_routes(routes, chance=chance)] for _ in range(times)]


@given(SHAPES, some.integers(0))
def test_open_routes_come_once_each_by_order(shape, seed):
    routes = make_routes(shape)
    is_open = {route: opened for route, (_, _, opened) in zip(routes, shape, strict=True)}
    ranked = rank_routes(routes, is_open.__getitem__, seeded(seed))
    assert sorted(ranked, key=routes.index) == [route for route in routes if is_open[route]]
    assert [route.order for route in ranked] == sorted(route.order for route in ranked)


@given(SHAPES, some.integers(0))
def test_without_health_every_route_is_open(shape, seed):
    routes = make_routes(shape)
    every = rank_routes(routes, lambda _: True, seeded(seed))
    assert rank_routes(routes, chance=seeded(seed)) == every


@given(SHAPES, some.floats(0.001, 0.999))
def test_with_equal_luck_the_heavier_route_comes_first(shape, luck):
    ranked = rank_routes(make_routes(shape), chance=lambda: luck)
    keys = [(route.order, -route.weight) for route in ranked]
    assert keys == sorted(keys)


def test_the_first_goes_by_weight_in_the_long_run():
    ranked = rank_often([Route("heavy", "m", weight=3), Route("light", "m", weight=1)], 4000)
    first = Counter(vendors[0] for vendors in ranked)
    assert 0.70 < first["heavy"] / 4000 < 0.80


def test_the_first_goes_by_weight_however_small_or_large_the_weights_are():
    for scale in (1e-6, 1e9):
        ranked = rank_often([Route("heavy", "m", weight=3 * scale), Route("light", "m", weight=scale)], 4000)
        first = Counter(vendors[0] for vendors in ranked)
        assert 0.70 < first["heavy"] / 4000 < 0.80


def test_the_next_goes_by_weight_too():
    ranked = rank_often([Route("a", "m", weight=100), Route("b", "m", weight=10), Route("c", "m", weight=1)], 3000)
    second = Counter(tuple(vendors[:2]) for vendors in ranked)
    assert second["a", "b"] > 5 * second["a", "c"]
