"""The ambience of a clip: soft, without clicks, and made of what is there to be heard."""

import numpy as np
import pytest

from penstock_engines.cinema.noises import NOISES
from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.script import Particles, Role, Script, Time, Weather
from penstock_engines.cinema.sound import CAST, LIVELY, NIGHTLY, PARTICLES, SOUNDS, THERE, WEATHER, make_ambience
from penstock_engines.cinema.subjects import SUBJECTS

RATE = 48000
SCENE = Script(place="anywhere")


def decibels(value: float) -> float:
    return float(20 * np.log10(value))


def energy(sound: np.ndarray, low: float, high: float) -> float:
    """The share of a sound that lies between two pitches."""
    power = np.abs(np.fft.rfft(sound.mean(axis=1))) ** 2
    pitch = np.fft.rfftfreq(len(sound), 1 / RATE)
    return float(power[(pitch >= low) & (pitch < high)].sum() / power.sum())


@pytest.mark.parametrize("sound", SOUNDS)
@pytest.mark.parametrize("weather", [Weather.CLEAR, Weather.STORM])
def test_is_soft_and_clean(sound: str, weather: Weather):
    heard = make_ambience(sound, Script(place="anywhere", weather=weather, time=Time.NIGHT), 2.0, 7)
    assert heard.shape == (2 * RATE, 2)
    assert heard.dtype == np.float32
    assert np.isfinite(heard).all()
    assert -32 < decibels(float(np.sqrt(np.mean(heard**2)))) < -26
    assert decibels(float(np.abs(heard).max())) < -6
    assert abs(float(heard.mean())) < 1e-4
    assert float(np.abs(np.diff(heard, axis=0)).max()) < 0.2, "a click"
    assert np.abs(heard[[0, -1]]).max() < 1e-6, "it begins and ends in silence"


def test_the_same_seed_is_the_same_sound():
    first, second, other = (make_ambience("sea", SCENE, 1.0, seed) for seed in (3, 3, 4))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_left_and_right_differ():
    heard = make_ambience("river", SCENE, 1.0, 1)
    assert abs(np.corrcoef(heard[:, 0], heard[:, 1])[0, 1]) < 0.9


@pytest.mark.parametrize(
    ("sound", "script", "low", "high"),
    [
        ("city", Script(place="x", weather=Weather.RAIN), 1500, 8000),
        ("meadow", Script(place="x", time=Time.NIGHT), 4000, 5000),
        ("meadow", Script(place="x", particles=Particles.EMBERS), 20, 500),
        ("underwater", Script(place="x", cast=(Role("whale"),)), 150, 450),
    ],
)
def test_what_happens_is_heard(sound: str, script: Script, low: float, high: float):
    plain, eventful = make_ambience(sound, SCENE, 4.0, 5), make_ambience(sound, script, 4.0, 5)
    assert energy(eventful, low, high) > 1.1 * energy(plain, low, high)


def test_a_storm_thunders():
    rain, storm = (
        make_ambience("room", Script(place="x", weather=weather), 4.0, 5) for weather in (Weather.RAIN, Weather.STORM)
    )
    assert energy(storm, 20, 200) > 1.3 * energy(rain, 20, 200)


def test_neither_rain_nor_crickets_are_heard_under_water():
    wet = Script(place="x", weather=Weather.RAIN, time=Time.NIGHT)
    assert np.array_equal(make_ambience("underwater", wet, 1.0, 2), make_ambience("underwater", SCENE, 1.0, 2))


def test_a_sound_nobody_knows_is_a_hush():
    assert np.array_equal(make_ambience("unheard", SCENE, 1.0, 2), make_ambience("hush", SCENE, 1.0, 2))


def test_every_layer_is_known():
    tables = (SOUNDS, LIVELY, NIGHTLY, WEATHER, PARTICLES, CAST, THERE)
    assert {noise for table in tables for layers in table.values() for noise, _ in layers} <= set(NOISES)
    assert {place.sound for place in PLACES.values()} <= set(SOUNDS)
    assert set(CAST) <= set(SUBJECTS)
    assert set(THERE) <= set(PLACES)
