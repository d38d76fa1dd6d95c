"""The stage of the text-to-video engine: every place, hour and weather plays, moves smoothly and is the same again."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from penstock_engines.cinema.camera import Lens, View
from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.script import Camera, Particles, Role, Script, Time, Weather
from penstock_engines.cinema.stage import Stage
from penstock_engines.cinema.subjects import SUBJECTS

WIDTH, HEIGHT, FRAMES, FPS = 320, 180, 48, 24


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
def test_every_place_plays_at_every_hour_and_all_weathers_meet_all_hours(number: int, name: str):
    for step, time in enumerate(Time):
        weather = list(Weather)[(number + step) % len(Weather)]
        camera = list(Camera)[(number + 2 * step) % len(Camera)]
        (picture,) = play(Script(place=name, time=time, weather=weather, camera=camera), 20, width=96, height=54)
        assert picture.shape == (54, 96, 3)
        assert picture.dtype == np.uint8
        assert picture.std() > 4, (time, weather)


@pytest.mark.parametrize("name", PLACES)
def test_every_place_fits_a_tall_frame_and_its_day_is_no_darker_than_its_night(name: str):
    (day,) = play(Script(place=name, time=Time.DAY), 24, width=90, height=160)
    (night,) = play(Script(place=name, time=Time.NIGHT), 24, width=90, height=160)
    assert day.shape == (160, 90, 3)
    free = PLACES[name].default_time is Time.NIGHT
    assert day.mean() >= night.mean() - (6 if free else 0)


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


@cache
def see_empty(place: str) -> list[NDArray[np.uint8]]:
    return play(Script(place=place, camera=Camera.STILL, seed=3), 16, 24, 34)


@pytest.mark.parametrize("place", ["open sea", "city street", "coral reef", "space", "cosy room"])
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


def test_day_is_brighter_than_night_and_a_tint_colours_the_sky():
    pictures = {time: play(Script(place="flower meadow", time=time), 24)[0] for time in Time}
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
