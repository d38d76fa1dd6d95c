"""Whole clips, small and short."""

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from penstock_engines.cinema.video_engine import FPS, VideoWish, make_video
from penstock_engines.product import Product

PROMPT = "Two swans on a lake at sunset"


def make(folder: Path, weights: Path, prompt: str = PROMPT, *, told: list[float] | None = None, **wish: Any) -> Product:
    folder.mkdir()
    defaults = {"width": 160, "height": 90, "seconds": 1, "lossless": False, "people": True}
    return make_video(
        VideoWish(prompt=prompt, **{**defaults, **wish}), folder, weights, (told if told is not None else []).append
    )


@pytest.mark.parametrize(("width", "height"), [(160, 90), (90, 160)])
def test_makes_a_clip_and_its_preview(tmp_path: Path, weights: Path, width: int, height: int):
    product = make(tmp_path / "out", weights, width=width, height=height)
    assert (product.primary.name, product.preview.name) == ("video.mp4", "preview.png")
    assert sorted(path.name for path in product.primary.parent.iterdir()) == ["preview.png", "video.mp4"]
    with av.open(str(product.primary)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        assert container.duration / av.time_base == pytest.approx(1, abs=1e-3)
        assert len(container.streams.audio) == 1
    assert len(frames) == FPS
    assert {frame.shape for frame in frames} == {(height, width, 3)}
    assert np.abs(frames[0].astype(int) - frames[12]).mean() > 0.5, "nothing moves"
    with Image.open(product.preview) as preview:
        assert preview.size == (width, height)
        shown = np.asarray(preview.convert("RGB"), int)
    assert np.abs(shown - frames[int(FPS * 0.4)]).mean() < 12, "the preview is a frame of the clip"


def test_tells_every_frame(tmp_path: Path, weights: Path):
    told: list[float] = []
    make(tmp_path / "out", weights, told=told)
    assert told == pytest.approx([(index + 1) / FPS for index in range(FPS)])


def decode(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray() for frame in container.decode(video=0)]


def test_the_same_wish_is_the_same_film(tmp_path: Path, weights: Path):
    """Without loss, as then only the drawing counts: x264 decides otherwise now and then on some processors."""
    first, second = (make(tmp_path / name, weights, "A cat in the rain", lossless=True) for name in ("one", "two"))
    assert np.array_equal(decode(first.primary), decode(second.primary))
    assert first.preview.read_bytes() == second.preview.read_bytes()
    assert (first.seed, first.warnings) == (second.seed, second.warnings)
    assert make(tmp_path / "three", weights, "A cat in the rain!").seed != first.seed


def test_lossless_is_another_profile(tmp_path: Path, weights: Path):
    product = make(tmp_path / "out", weights, lossless=True)
    with av.open(str(product.primary)) as container:
        assert container.streams.video[0].profile == "High 4:4:4 Predictive"


def test_says_that_it_is_drawn(tmp_path: Path, weights: Path):
    assert make(tmp_path / "out", weights).warnings == (
        "Drawn by the built-in engine: an illustrated animation, not a photographic video.",
    )


def test_whoever_stops_it_stops_it(tmp_path: Path, weights: Path):
    def stop(share: float) -> None:
        if share > 0.2:
            raise InterruptedError

    wish = VideoWish(prompt=PROMPT, width=160, height=90, seconds=8, lossless=False, people=True)
    with pytest.raises(InterruptedError):
        make_video(wish, tmp_path, weights, stop)
