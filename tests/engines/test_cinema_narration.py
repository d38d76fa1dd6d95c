"""Narration: what a prompt has someone say is heard and not drawn."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_engines.cinema.narration import LEAD, narrate, split_prompt
from penstock_engines.cinema.noises import RATE

SILENCE = 0.001


@pytest.mark.parametrize(
    ("prompt", "drawn", "said"),
    [
        ('A red fox. A voice says: "The ship sails."', "A red fox. ", "The ship sails."),
        ("A fox says “hello there” in the snow", "A fox says in the snow", "hello there"),
        ("A boat on waves\nNarrator: Welcome to the sea.", "A boat on waves\n", "Welcome to the sea."),
        ('A man shouts "Land!", a girl whispers "Where?"', "A man shouts, a girl whispers", "Land!\nWhere?"),
        ('sunset, with the voice-over "good night"', "sunset, ", "good night"),
    ],
)
def test_what_is_said_is_not_drawn(prompt: str, drawn: str, said: str):
    spoken = split_prompt(prompt)
    assert (spoken.prompt.split(), spoken.text) == (drawn.split(), said)


@pytest.mark.parametrize(
    "prompt",
    ['a sign that reads "OPEN"', 'a cat, no voice, "blue" mood', 'It tells a story. "Blue" is its name', 'a "big" dog'],
)
def test_other_quotes_are_part_of_the_picture(prompt: str):
    spoken = split_prompt(prompt)
    assert (spoken.prompt, spoken.text) == (prompt, "")


@given(st.text("aA \n:.,\"“”'-voicesaynr", max_size=200))
def test_any_prompt_is_split(prompt: str):
    spoken = split_prompt(prompt)
    assert len(spoken.prompt) + len(spoken.text) <= len(prompt) + 1
    assert spoken.text or spoken.prompt == prompt


def loudness(sound: np.ndarray, begin: float, end: float) -> float:
    return float(np.sqrt(np.mean(sound[round(begin * RATE) : round(end * RATE)] ** 2)))


def test_the_voice_is_heard_over_the_place():
    place = np.full((4 * RATE, 2), 0.01, np.float32)
    sound, warnings = narrate("The sea is calm.", place)
    assert (sound.shape, sound.dtype, list(warnings)) == (place.shape, np.float32, [])
    assert loudness(sound, LEAD, 2) > 3 * loudness(place, LEAD, 2)
    assert loudness(sound, 3.8, 4) == pytest.approx(loudness(place, 3.8, 4)), "after the last word"
    assert np.abs(sound).max() <= 1


def test_a_narration_that_is_too_long_is_cut_with_a_warning():
    place = np.zeros((RATE, 2), np.float32)
    sound, [warning] = narrate("One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve.", place)
    assert "The narration was cut" in warning
    assert warning.endswith("and the clip 1.")
    assert sound.shape == place.shape
    assert abs(sound[-1]).max() < SILENCE


def test_a_narration_without_english_words_is_left_out():
    place = np.zeros((RATE, 2), np.float32)
    sound, [warning] = narrate("…", place)
    assert "no words" in warning
    assert np.array_equal(sound, place)


def test_without_the_voice_the_clip_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "hibari", None)
    place = np.zeros((RATE, 2), np.float32)
    sound, [warning] = narrate("The sea is calm.", place)
    assert "not installed" in warning
    assert sound is place
