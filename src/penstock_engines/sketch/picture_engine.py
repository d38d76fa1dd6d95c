"""Makes pictures of a prompt: a place with its subjects, or the subjects alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.prompt.reading import Reading, read_prompt
from penstock_engines.processors import count_processors
from penstock_engines.product import Product, ReportProgress
from penstock_engines.sketch.composition import LARGEST_SIDE, is_narrow, paint, vary
from penstock_engines.sketch.cutout import choose_one, list_left_out, paint_cutout
from penstock_engines.sketch.picture_file import SUFFIXES, write_picture

MAX_THREADS = 16
NATURE = "Drawn by the built-in engine: an illustration, not a photograph or a painting."
NO_CLEAR_JPEG = "JPEG has no transparency: the subjects stand on white. Use png or webp."
NARROW = "The picture is very narrow: it shows the middle of a wider one."
LIKE = "All pictures of subjects alone are alike."


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureWish:
    """A request for pictures."""

    prompt: str
    width: int
    height: int
    negative_prompt: str = ""
    """Things that must not be seen, between commas."""
    n: int = 1
    seed: int | None = None
    """None lets the prompt decide."""
    output_format: Literal["png", "jpeg", "webp"] = "png"
    transparent: bool = False
    """True draws the subjects alone."""
    subject_only: bool = False
    """True draws one subject alone, as large as fits, for a model."""
    quality: Literal["auto", "low", "medium", "high"] = "auto"


def make_pictures(wish: PictureWish, folder: Path, weights: Path, report: ReportProgress) -> Product:
    """Write `picture.png`, `picture1.png` and so on into the folder."""
    cv2.setNumThreads(min(count_processors(), MAX_THREADS))
    alone = wish.transparent or wish.subject_only
    reading = read_prompt(_join(wish), people=True, weights=weights, alone=alone, unwanted=wish.negative_prompt)
    seed = reading.seed if wish.seed is None else wish.seed
    paths: list[Path] = []
    warnings = [NATURE, *reading.warnings]
    for number in range(wish.n):
        if alone:
            picture = _paint_alone(wish, reading)
        else:
            is_free = not reading.is_timed and (wish.seed is not None or number > 0)
            script = vary(reading.script, (seed + number) & 0x7FFFFFFF, hour=is_free)
            picture = paint(script, wish.width, wish.height, finer=2 if wish.quality == "high" else 1)
        path = folder / f"picture{number or ''}{SUFFIXES[wish.output_format]}"
        write_picture(picture, path, coarse=wish.quality == "low")
        paths.append(path)
        report((number + 1) / wish.n)
    warnings += _warn(wish, reading, alone=alone)
    return Product(paths[0], None, seed, tuple(warnings), tuple(paths[1:]))


def _join(wish: PictureWish) -> str:
    """Return the prompt, with the things that must not be seen as its last sentences."""
    unwanted = [part.strip() for part in wish.negative_prompt.split(",") if part.strip()]
    return ". ".join((wish.prompt, *(f"No {part}" for part in unwanted)))


def _paint_alone(wish: PictureWish, reading: Reading) -> NDArray[np.uint8]:
    roles, relations = list(reading.script.cast), list(reading.script.relations)
    if wish.subject_only:
        roles, relations = choose_one(roles, relations)
    picture = paint_cutout(roles, relations, wish.width, wish.height)
    if wish.output_format != "jpeg":
        return picture
    cover = picture[..., 3:].astype(np.float32)
    return (picture[..., :3] + (255 - cover)).round().astype(np.uint8)


def _warn(wish: PictureWish, reading: Reading, *, alone: bool) -> Iterator[str]:
    if alone and wish.output_format == "jpeg":
        yield NO_CLEAR_JPEG
    if not alone and max(wish.width, wish.height) > LARGEST_SIDE:
        yield f"The picture was drawn with a long side of {LARGEST_SIDE} pixels, and enlarged."
    if not alone and is_narrow(wish.width, wish.height):
        yield NARROW
    if alone and wish.n > 1:
        yield LIKE
    if wish.subject_only:
        roles = reading.script.cast
        left_out = ", ".join(list_left_out(roles, choose_one(roles, reading.script.relations)[0]))
        if left_out:
            yield f"One subject is drawn: {left_out} was left out."
