"""The stage of the text-to-video engine: every place, hour and weather plays, moves smoothly and is the same again."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from dataclasses import fields, replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Lens, View
from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.scene import Scene
from penstock_engines.cinema.script import Camera, Particles, Role, Script, Time, Weather
from penstock_engines.cinema.stage import Stage
from penstock_engines.cinema.subjects import SUBJECTS

WIDTH, HEIGHT, FRAMES, FPS = 320, 180, 48, 24
SEEN_PLACES = ["open sea", "city street", "coral reef", "space", "cosy room"]


def play(script: Script, *indices: int, width: int = WIDTH, height: int = HEIGHT) -> list[NDArray[np.uint8]]:
    stage = Stage(script, width, height, FRAMES, FPS)
    return [stage.frame(index) for index in indices]


def differ(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    return float(np.abs(one.astype(np.int16) - other).mean())


def find_shift(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> int:
    """How many pixels the picture has moved to the right."""
    profiles = [picture.astype(np.float64).mean(axis=(0, 2)) for picture in (before, after)]
    edges = [np.diff(profile) - np.diff(profile).mean() for profile in profiles]
    reach = range(-30, 31)
    score = [float((np.roll(edges[0], step)[30:-30] * edges[1][30:-30]).sum()) for step in reach]
    return reach[int(np.argmax(score))]


def test_there_are_many_places_and_each_can_be_found_by_its_own_words():
    assert len(PLACES) >= 28
    assert all(name == place.name for name, place in PLACES.items())
    assert all(len(place.words) >= 8 and all(place.words) for place in PLACES.values())
    words = [word for place in PLACES.values() for word in place.words]
    assert len(words) == len(set(words))
    sounds = {"sea", "forest", "city", "wind", "room", "space", "underwater", "meadow", "fire", "rain", "cave", "crowd"}
    assert {place.sound for place in PLACES.values()} <= sounds


@pytest.mark.parametrize(("number", "name"), list(enumerate(PLACES)))
def test_every_place_plays_by_day_and_by_night_and_some_at_another_hour(number: int, name: str):
    others = [time for time in Time if time not in {Time.DAY, Time.NIGHT}]
    another = {others[number // 3 % len(others)]} if number % 3 == 0 else set[Time]()
    play_hours(number, name, {Time.DAY, Time.NIGHT} | another)


@pytest.mark.long
@pytest.mark.parametrize(("number", "name"), list(enumerate(PLACES)))
def test_every_place_plays_at_every_hour_and_all_weathers_meet_all_hours(number: int, name: str):
    play_hours(number, name, set(Time))


def play_hours(number: int, name: str, hours: set[Time]) -> None:
    """Look at a place: by day and by night in a tall frame and one weather, to compare them."""
    means: dict[Time, float] = {}
    for step, time in enumerate(Time):
        if time not in hours:
            continue
        is_tall = time in {Time.DAY, Time.NIGHT}
        weather = list(Weather)[(number + (0 if is_tall else step)) % len(Weather)]
        camera = list(Camera)[(number + 2 * step) % len(Camera)]
        width, height = (90, 160) if is_tall else (96, 54)
        script = Script(place=name, time=time, weather=weather, camera=camera)
        (picture,) = play(script, 20, width=width, height=height)
        assert picture.shape == (height, width, 3)
        assert picture.dtype == np.uint8
        assert picture.std() > 4, (time, weather)
        means[time] = float(picture.mean())
    free = PLACES[name].default_time is Time.NIGHT
    assert means[Time.DAY] >= means[Time.NIGHT] - (6 if free else 0)


@pytest.mark.parametrize("name", ["beach", "forest", "city street", "space", "flower meadow"])
def test_frames_move_a_little_at_a_time(name: str):
    frames = play(Script(place=name, camera=Camera.STILL), 20, 21, 22)
    steps = [differ(*pair) for pair in pairwise(frames)]
    assert all(0 < step < 6 for step in steps)


@pytest.mark.parametrize("particles", Particles)
def test_the_same_script_gives_the_same_frames_in_any_order_and_in_threads(particles: Particles):
    weather = Weather.SNOW if particles is Particles.NONE else Weather.STORM
    cast = (Role("cat", 2), Role("sailboat"))
    script = Script(place="harbour", weather=weather, particles=particles, time=Time.DUSK, cast=cast, seed=5)
    order = [0, 11, 30, 47]
    forth = play(script, *order, width=160, height=90)
    stage = Stage(script, 160, 90, FRAMES, FPS)
    with ThreadPoolExecutor(2) as pool:
        back = list(pool.map(stage.frame, reversed(order)))[::-1]
    assert all(np.array_equal(one, other) for one, other in zip(forth, back, strict=True))


def test_another_seed_gives_another_picture():
    one, other = (play(Script(place="desert", seed=seed), 24)[0] for seed in (1, 2))
    assert differ(one, other) > 2


def test_the_first_frame_is_dim_but_shows_the_scene():
    first, later = play(Script(place="beach"), 0, 8)
    assert 20 < first.mean() < later.mean()


@pytest.mark.parametrize(("camera", "sign"), [(Camera.PAN_RIGHT, -1), (Camera.PAN_LEFT, 1)])
def test_what_is_seen_moves_against_a_panning_camera(camera: Camera, sign: int):
    start, end = play(Script(place="city street", camera=camera, time=Time.DAY), 8, 38)
    assert np.sign(find_shift(start[100:], end[100:])) == sign


@pytest.mark.parametrize(("camera", "sign"), [(Camera.RISE, 1), (Camera.DESCEND, -1)])
def test_near_things_sink_under_a_rising_camera(camera: Camera, sign: int):
    lens = Lens(Script(place="beach", camera=camera), View(WIDTH, HEIGHT, 100), FRAMES, FPS)
    (near_start, near_end), (far_start, far_end) = (
        [lens.project(depth, lens.look(index).shot)[2] for index in (0, FRAMES - 1)] for depth in (1.0, 0.1)
    )
    assert sign * (near_end - near_start) > 5 * abs(far_end - far_start) > 0


@pytest.mark.parametrize(("camera", "grows"), [(Camera.PUSH_IN, True), (Camera.PULL_OUT, False)])
def test_the_camera_comes_nearer_or_goes_away(camera: Camera, grows: bool):
    lens = Lens(Script(place="beach", camera=camera), View(WIDTH, HEIGHT, 100), FRAMES, FPS)
    sizes = [lens.project(0.8, lens.look(index).shot)[0] for index in range(FRAMES)]
    steps = np.diff(sizes)
    assert (steps > 0).all() if grows else (steps < 0).all()
    assert np.abs(steps).max() < 0.02


@pytest.mark.parametrize("camera", Camera)
def test_no_layer_ends_inside_the_frame(camera: Camera):
    lens = Lens(Script(place="beach", camera=camera, pace=2.0), View(WIDTH, HEIGHT, 100), 200, FPS)
    for depth in (0.0, 0.4, 1.0):
        left, top, right, bottom = lens.reach(depth)
        for index in range(200):
            scale, x, y = lens.project(depth, lens.look(index).shot)
            size = scale * lens.view.unit
            assert x + left * size <= 0
            assert y + top * size <= 0
            assert x + right * size >= WIDTH
            assert y + bottom * size >= HEIGHT


SAMPLE = [
    next(name for name, subject in SUBJECTS.items() if subject.habitat is habitat and subject.motion is motion)
    for habitat, motion in sorted({(subject.habitat, subject.motion) for subject in SUBJECTS.values()})
]


def build_once(build: Callable[[Scene], None]) -> Callable[[Scene], None]:
    """Paint a place for the first scene, and hand the painting and the randomness after it to those that follow."""
    painted: list[Scene] = []

    def build_again(scene: Scene) -> None:
        if not painted:
            build(scene)
            painted.append(replace(scene, planes=copy(scene.planes), random=deepcopy(scene.random)))
            return
        for field in fields(Scene):
            if field.name not in {"script", "lens", "light"}:
                setattr(scene, field.name, getattr(painted[0], field.name))
        scene.planes, scene.random = copy(scene.planes), deepcopy(scene.random)

    return build_again


@pytest.fixture(scope="module")
def painted_once() -> Iterator[None]:
    """Places that are painted once for all actors: neither camera nor light differ among their scripts."""
    once = {name: replace(PLACES[name], build=build_once(PLACES[name].build)) for name in SEEN_PLACES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock_engines.cinema.stage.PLACES", {**PLACES, **once})
        yield


@cache
def see_empty(place: str) -> list[NDArray[np.uint8]]:
    return play(Script(place=place, camera=Camera.STILL, seed=3), 16, 24, 34)


@pytest.mark.usefixtures("painted_once")
@pytest.mark.parametrize("place", SEEN_PLACES)
@pytest.mark.parametrize("subject", SAMPLE)
def test_every_kind_of_actor_is_seen_everywhere(place: str, subject: str):
    full = play(Script(place=place, camera=Camera.STILL, seed=3, cast=(Role(subject),)), 16, 24, 34)
    changes = [np.abs(a.astype(np.int16) - b).max(axis=2) > 24 for a, b in zip(see_empty(place), full, strict=True)]
    assert sum(change.mean() > 0.002 for change in changes) >= 2


def test_a_walker_goes_the_way_it_faces_and_more_actors_fill_more_of_the_frame():
    def columns(count: int, index: int) -> NDArray[np.bool_]:
        empty = play(Script(place="desert", camera=Camera.STILL, seed=1), index)[0].astype(np.int16)
        full = play(Script(place="desert", camera=Camera.STILL, seed=1, cast=(Role("horse", count),)), index)[0]
        return (np.abs(empty - full).max(axis=2) > 24).any(axis=0)

    early, late = (np.flatnonzero(columns(1, index)).mean() for index in (16, 32))
    assert abs(late - early) > 8
    assert columns(4, 24).sum() > columns(1, 24).sum()


@pytest.mark.parametrize("seed", range(4))
def test_two_birds_are_seen_beside_each_other(seed: int):
    def width(count: int) -> int:
        empty = play(Script(place="open sea", camera=Camera.STILL, seed=seed), 24)[0].astype(np.int16)
        full = play(Script(place="open sea", camera=Camera.STILL, seed=seed, cast=(Role("bird", count),)), 24)[0]
        return int((np.abs(empty - full).max(axis=2) > 24).any(axis=0).sum())

    assert width(2) > 1.4 * width(1)


def test_day_is_brighter_than_night_and_a_tint_colours_the_sky():
    hours = (Time.DAY, Time.DUSK, Time.NIGHT)
    pictures = {time: play(Script(place="flower meadow", time=time), 24)[0] for time in hours}
    assert pictures[Time.DAY].mean() > pictures[Time.DUSK].mean() > pictures[Time.NIGHT].mean() > 20
    (purple,) = play(Script(place="flower meadow", tint=(160, 40, 220)), 24)
    sky = np.s_[5:40, :]
    red, green = (purple[sky][..., channel].mean() for channel in (2, 1))
    assert red - green > pictures[Time.DAY][sky][..., 2].mean() - pictures[Time.DAY][sky][..., 1].mean() + 30


def test_haste_makes_the_clouds_run():
    slow, fast = (
        differ(*play(Script(place="above the clouds", camera=Camera.STILL, weather=Weather.CLOUDS, pace=pace), 20, 26))
        for pace in (0.5, 2.0)
    )
    assert fast > slow
