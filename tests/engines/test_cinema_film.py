"""Films are decoded again and compared with what was put in."""

from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from penstock_engines.cinema.film import Film, to_planes

WIDTH, HEIGHT, FPS = 160, 96, 24
COLOURS = [(0, 0, 255), (0, 255, 0), (255, 0, 0), (255, 255, 255), (0, 0, 0), (128, 128, 128), (40, 180, 220)]


def pictures(count: int) -> list[NDArray[np.uint8]]:
    """A square that moves over noise."""
    random = np.random.default_rng(0)
    back = random.integers(90, 160, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    frames = [back.copy() for _ in range(count)]
    for index, frame in enumerate(frames):
        frame[20:60, index : index + 40] = (30, 60, 220)
    return frames


def shoot(path: Path, frames: list[NDArray[np.uint8]], *, lossless: bool = False) -> Path:
    tone = np.sin(np.arange(len(frames) * 2000) * 2 * np.pi * 440 / 48000).astype(np.float32) * 0.2
    with Film(path, WIDTH, HEIGHT, FPS, np.stack([tone, tone], axis=1), lossless=lossless) as film:
        for frame in frames:
            film.add(frame)
    return path


def planes_of(path: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray() for frame in container.decode(video=0)]


@pytest.mark.parametrize("count", [1, 7, 60])
@pytest.mark.parametrize("lossless", [False, True])
def test_has_every_frame_at_its_time(tmp_path: Path, count: int, lossless: bool):
    path = shoot(tmp_path / "clip.mp4", pictures(count), lossless=lossless)
    with av.open(str(path)) as container:
        video, audio = container.streams.video[0], container.streams.audio[0]
        assert (video.frames, video.average_rate) == (count, FPS)
        assert video.duration * float(video.time_base) == pytest.approx(count / FPS, abs=1e-4)
        assert audio.duration * float(audio.time_base) == pytest.approx(count / FPS, abs=1e-3)
        assert container.duration / av.time_base == pytest.approx(count / FPS, abs=1e-3)
        times = [frame.time for frame in container.decode(video=0)]
    assert times == pytest.approx([index / FPS for index in range(count)], abs=1e-6)


def test_says_what_it_is(tmp_path: Path):
    path = shoot(tmp_path / "clip.mp4", pictures(8))
    with av.open(str(path)) as container:
        video, audio = container.streams.video[0], container.streams.audio[0]
        context = video.codec_context
        assert (context.name, video.profile, context.pix_fmt) == ("h264", "High", "yuv420p")
        assert (context.width, context.height) == (WIDTH, HEIGHT)
        colours = (context.color_primaries, context.color_trc, context.colorspace, context.color_range)
        assert [int(value) for value in colours] == [1, 1, 1, 1], "BT.709, narrow range"
        assert (audio.codec_context.name, audio.rate, audio.layout.name) == ("aac", 48000, "stereo")
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat"), "plays before it is all there"
    assert b"colrnclx\x00\x01\x00\x01\x00\x01" in data


def test_lossless_loses_nothing(tmp_path: Path):
    frames = pictures(12)
    decoded = planes_of(shoot(tmp_path / "clip.mp4", frames, lossless=True))
    assert len(decoded) == 12
    for frame, planes in zip(frames, decoded, strict=True):
        assert np.array_equal(planes, to_planes(frame))


def test_optimized_is_smaller_and_much_alike(tmp_path: Path):
    frames = pictures(24)
    small = shoot(tmp_path / "small.mp4", frames)
    exact = shoot(tmp_path / "exact.mp4", frames, lossless=True)
    assert small.stat().st_size < exact.stat().st_size * 0.8
    error = np.mean([(a.astype(float) - b) ** 2 for a, b in zip(planes_of(small), planes_of(exact), strict=True)])
    assert 10 * np.log10(255**2 / error) > 32


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_come_back(tmp_path: Path, colour: tuple[int, int, int]):
    path = tmp_path / "clip.mp4"
    with Film(path, WIDTH, HEIGHT, FPS, np.zeros((0, 2), np.float32)) as film:
        film.add(np.full((HEIGHT, WIDTH, 3), colour, np.uint8))
    with av.open(str(path)) as container:
        planes = next(container.decode(video=0)).to_ndarray()
    luma, (blueness, redness) = planes[:HEIGHT], planes[HEIGHT:].reshape(2, HEIGHT // 2, WIDTH // 2)
    y, u, v = (float(part[20, 20]) for part in (luma, blueness, redness))
    y, u, v = (y - 16) / 219, (u - 128) / 224, (v - 128) / 224
    red, blue = y + 1.5748 * v, y + 1.8556 * u
    green = (y - 0.2126 * red - 0.0722 * blue) / 0.7152
    assert np.array([blue, green, red]) * 255 == pytest.approx(colour, abs=2.5)


def test_the_same_frames_are_the_same_film(tmp_path: Path):
    """Without loss to the last bit. With loss x264 may decide otherwise on some processors, and nobody sees it."""
    frames = pictures(30)
    for lossless, difference in ((True, 0), (False, 2)):
        first, second = (shoot(tmp_path / name, frames, lossless=lossless) for name in ("one.mp4", "two.mp4"))
        shown = zip(planes_of(first), planes_of(second), strict=True)
        assert all(np.abs(one.astype(int) - other).mean() <= difference for one, other in shown)


def test_sound_beyond_the_last_frame_is_left_out(tmp_path: Path):
    path = tmp_path / "clip.mp4"
    with Film(path, WIDTH, HEIGHT, FPS, np.full((96000, 2), 0.1, np.float32)) as film:
        for frame in pictures(6):
            film.add(frame)
    with av.open(str(path)) as container:
        audio = container.streams.audio[0]
        assert audio.duration * float(audio.time_base) == pytest.approx(0.25, abs=1e-3)


def test_one_can_jump_to_every_other_second(tmp_path: Path):
    path = shoot(tmp_path / "clip.mp4", pictures(60))
    with av.open(str(path)) as container:
        keys = [packet.pts for packet in container.demux(video=0) if packet.is_keyframe and packet.size]
        step = 1 / FPS / float(container.streams.video[0].time_base)
    assert [round(float(key / step)) for key in keys] == [0, 48]
