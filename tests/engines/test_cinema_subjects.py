"""Every subject of a clip can be drawn, moves in a seamless loop, and is found by words of its own."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from penstock_engines.cinema.paint.brush import Brush
from penstock_engines.cinema.subjects import SUBJECTS, Habitat, Motion, Sprite, draw_subject

HEIGHT = 40
PHASES = (0.0, 0.25, 0.6)
HOVERING = {Habitat.AIR, Habitat.SPACE, Habitat.UNDERWATER}

# Each test names all subjects that fail it at once: a sheet of drawings is mended together.


@cache
def draw_once(name: str, phase: float) -> Sprite:
    """Draw for all tests: a sprite cannot be painted over."""
    return draw_subject(name, phase, HEIGHT)


def draw_exactly(name: str, phase: float) -> NDArray[np.int32]:
    """Draw without the steps into which `draw_subject` divides a loop."""
    subject = SUBJECTS[name]
    left, top, right, bottom = (round(edge * HEIGHT) for edge in subject.box)
    brush = Brush(right - left, bottom - top, HEIGHT, (-left, -top))
    subject.draw(brush, phase, subject.look)
    return brush.picture.astype(np.int32)


@cache
def draw_start(name: str) -> NDArray[np.int32]:
    """Draw the first moment of a loop, for all tests."""
    return draw_exactly(name, 0.0)


def rows_of(sprite: Sprite) -> NDArray[np.intp]:
    return np.flatnonzero((sprite.picture[..., 3] > 128).any(axis=1))


def covers_enough(name: str) -> bool:
    covers = [float((draw_once(name, phase).picture[..., 3] > 128).mean()) for phase in PHASES]
    return min(covers) > 0.04 and max(covers) < 0.92


def is_premultiplied(name: str) -> bool:
    picture = draw_once(name, 0.25).picture
    return picture.dtype == np.uint8 and bool((picture[..., :3] <= picture[..., 3:]).all())


def is_as_high_as_asked(name: str) -> bool:
    rows = np.concatenate([rows_of(draw_once(name, phase)) for phase in PHASES])
    return 0.55 * HEIGHT < rows.max() - rows.min() + 1 < 1.9 * HEIGHT


def stands_on_its_anchor(name: str) -> bool:
    sprite = draw_once(name, 0.0)
    (x, y), rows = sprite.anchor, rows_of(sprite)
    inside = 0 <= x < sprite.picture.shape[1]
    if SUBJECTS[name].habitat in HOVERING:
        return inside and rows[0] < y < rows[-1]
    return inside and abs(y - rows[-1]) < 0.3 * HEIGHT


def loops_without_a_jump(name: str) -> bool:
    return float(np.abs(draw_start(name) - draw_exactly(name, 1.0 - 1e-7)).mean()) < 0.2


def moves(name: str) -> bool:
    return int(np.abs(draw_start(name) - draw_exactly(name, 0.1)).max()) > 40


def takes_a_colour(name: str) -> bool:
    natural = draw_once(name, 0.0).picture.astype(np.int32)
    green = draw_subject(name, 0.0, HEIGHT, (40, 220, 60)).picture.astype(np.int32)
    return float((np.abs(natural - green).max(axis=2) > 20).mean()) > 0.003


def travels_unless_fixed(name: str) -> bool:
    subject = SUBJECTS[name]
    fixed = subject.habitat is Habitat.FIXED
    return (subject.stride == 0) == fixed and (subject.motion in {Motion.STAND, Motion.SWAY}) == fixed


@pytest.mark.parametrize(
    "holds",
    [
        covers_enough,
        is_premultiplied,
        is_as_high_as_asked,
        stands_on_its_anchor,
        loops_without_a_jump,
        moves,
        takes_a_colour,
        travels_unless_fixed,
    ],
)
def test_every_subject(holds):
    assert [name for name in SUBJECTS if not holds(name)] == []


def test_is_the_same_every_time():
    for name in ("cat", "campfire", "train"):
        assert np.array_equal(draw_exactly(name, 0.4), draw_exactly(name, 0.4))


def test_phase_one_is_phase_zero():
    assert draw_subject("dog", 1.0, HEIGHT) is draw_subject("dog", 0.0, HEIGHT)


def test_a_sprite_is_shared_and_so_cannot_be_painted_over():
    with pytest.raises(ValueError, match="read-only"):
        draw_subject("dog", 0.0, HEIGHT).picture[:] = 0


def test_a_word_means_one_subject_only():
    counts = Counter(word for subject in SUBJECTS.values() for word in subject.words)
    assert [word for word, count in counts.items() if count > 1] == []
    assert all(subject.name in subject.words for subject in SUBJECTS.values())
    assert all(word == word.lower().strip() for word in counts)


@pytest.mark.parametrize(
    ("noun", "name"),
    [("wolves", "wolf"), ("butterflies", "butterfly"), ("boats", "sailboat"), ("buses", "bus"), ("people", "man")],
)
def test_knows_plurals_and_synonyms(noun: str, name: str):
    assert noun in SUBJECTS[name].words


def test_people_are_told_from_others():
    people = {name for name, subject in SUBJECTS.items() if subject.is_person}
    assert people >= {"man", "woman", "child", "astronaut", "cyclist", "knight", "couple", "diver", "surfer", "witch"}
    assert not people & {"robot", "snowman", "ghost", "monster", "alien", "cat", "statue", "car"}


def test_there_are_many():
    assert len(SUBJECTS) >= 150
