"""Makes many models and films with the built-in engines and proves each of them; exits 1 if one falls short.

python tests/engines/proof.py [models] [videos]

models: more than sixty drawn pictures of every mode and size, each made twice with one seed and once with another.
videos: every length, ratio and quality at 720p, two at 1080p, each made twice and decoded again.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from inflate_steps import read_solid
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from penstock.settings.tables import load
from penstock_engines.cinema.film import to_planes
from penstock_engines.cinema.prompt.reading import read_prompt
from penstock_engines.cinema.script import Script, Time
from penstock_engines.cinema.stage import Stage
from penstock_engines.cinema.subjects import draw_subject
from penstock_engines.cinema.video_engine import FPS, VideoWish, make_video
from penstock_engines.inflate.model_engine import ModelWish, make_model

WEIGHTS = load(None, os.environ, {}).weights
VALIDATOR = Path(__file__).parents[1] / "javascript" / "validate_glb.mjs"
WORKERS = 2

# -- pictures

CUTOUTS = (
    *("astronaut", "bee", "cactus", "camel", "crab", "dancer", "dragon", "elephant", "giraffe", "guitar"),
    *("jellyfish", "octopus", "windmill"),
)
ON_GROUNDS = (
    *("apple", "car", "castle", "dog", "horse rider", "lighthouse", "owl", "penguin", "robot", "rose"),
    *("sailboat", "teapot", "turtle"),
)
PLACES = ("open sea", "forest", "city street", "cosy room", "space", "desert")
PILE = (("fox", (40, 60)), ("balloon", (280, 20)), ("duck", (300, 330)))


def cut_out(name: str, height: int) -> Image.Image:
    """A subject of the film engine on nothing; its colours are premultiplied there, and here they are not."""
    pixels = draw_subject(name, 0.3, height).picture.astype(np.float32)
    alpha = np.maximum(pixels[..., 3:], 1) / 255
    colours = np.clip(pixels[..., 2::-1] / alpha, 0, 255)
    return Image.fromarray(np.concatenate([colours, pixels[..., 3:]], axis=2).astype(np.uint8))


def show_place(name: str, width: int = 640, height: int = 480, time_of_day: Time = Time.DAY) -> Image.Image:
    frame = Stage(Script(place=name, time=time_of_day), width, height, 24, FPS).frame(12)
    return Image.fromarray(np.ascontiguousarray(frame[..., ::-1]))


def paint_gradient(width: int, height: int, random: np.random.Generator) -> Image.Image:
    """A wall in slanting light, with a camera's noise."""
    rows, columns = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    first, second = random.uniform(60, 220, (2, 3))
    share = (0.6 * rows + 0.4 * columns)[..., None]
    return _to_image(first * (1 - share) + second * share + random.normal(0, 4, (height, width, 3)))


def paint_noise(width: int, height: int, random: np.random.Generator) -> Image.Image:
    """Plaster or leaves, out of focus."""
    coarse = random.normal(0, 22, (max(2, height // 40), max(2, width // 40), 3)).astype(np.float32)
    return _to_image(random.uniform(80, 180, 3) + cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC))


def paint_place(width: int, height: int, random: np.random.Generator) -> Image.Image:
    return show_place(str(random.choice(PLACES)), width, height).filter(ImageFilter.GaussianBlur(3))


def _to_image(values: NDArray[Any]) -> Image.Image:
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def put_on(ground: Image.Image, *subjects: tuple[Image.Image, tuple[int, int]]) -> Image.Image:
    for subject, place in subjects:
        ground.paste(subject, place, subject)
    return ground


def draw(size: tuple[int, int], paint: Callable[[ImageDraw.ImageDraw], Any], ground: Any = (0, 0, 0, 0)) -> Image.Image:
    picture = Image.new("RGBA" if isinstance(ground, tuple) else "RGB", size, ground)
    paint(ImageDraw.Draw(picture))
    return picture


def punch(pen: ImageDraw.ImageDraw) -> None:
    """A plate with 25 holes."""
    pen.rounded_rectangle((30, 30, 570, 570), 60, fill="#5588cc")
    for column, row in product(range(5), repeat=2):
        pen.ellipse((85 + 90 * column, 85 + 90 * row, 145 + 90 * column, 145 + 90 * row), fill=(0, 0, 0, 0))


def scatter(pen: ImageDraw.ImageDraw) -> None:
    """200 dots."""
    for number in range(200):
        x, y = 20 + 37 * number % 560, 20 + 61 * number % 557
        pen.ellipse((x, y, x + 6 + number % 17, y + 6 + number % 17), fill=(number, 255 - number, 120, 255))


def coil(pen: ImageDraw.ImageDraw) -> None:
    turn = np.linspace(0, 10 * np.pi, 400)
    pen.line([(300 + 8 * t * np.cos(t), 300 + 8 * t * np.sin(t)) for t in turn], fill="#aa2266", width=9)


def hatch(pen: ImageDraw.ImageDraw) -> None:
    """Lines of one pixel."""
    for step in range(0, 600, 25):
        pen.line((step, 0, 599 - step, 599), fill="black", width=1)
        pen.line((0, step, 599, step), fill="black", width=1)


def link(pen: ImageDraw.ImageDraw) -> None:
    """Rings that touch in single pixels."""
    for number in range(5):
        pen.ellipse((20 + 110 * number, 100, 130 + 110 * number, 210), outline="#d0a020", width=14)


def fill_squares(pen: ImageDraw.ImageDraw) -> None:
    """Squares that touch at their corners only."""
    for column, row in product(range(8), repeat=2):
        if (column + row) % 2:
            pen.rectangle((column * 64, row * 64, column * 64 + 63, row * 64 + 63), fill="#227744")


def write(words: str, size: int) -> Callable[[ImageDraw.ImageDraw], Any]:
    return lambda pen: pen.multiline_text((20, 20), words, font=ImageFont.load_default(size), fill="#202080")


def list_shapes(random: np.random.Generator) -> Iterator[tuple[str, Image.Image]]:
    yield "plate with holes", draw((600, 600), punch)
    yield "200 dots", draw((600, 600), scatter)
    yield "200 dots on white", draw((600, 600), scatter, "white")
    yield "coil", draw((600, 600), coil)
    yield "lines of one pixel", draw((600, 600), hatch)
    yield "lines on white", draw((600, 600), hatch, "white")
    yield "touching rings", draw((620, 300), link)
    yield "touching corners", draw((512, 512), fill_squares)
    yield "word, cut out", draw((640, 220), write("Penstock", 120))
    yield "page of text", draw((700, 500), write("In the beginning\nwas the word,\nand 3D it was not.", 60), "white")
    ground = paint_gradient(600, 500, random)
    yield "several parts", put_on(ground, *((cut_out(name, 180), place) for name, place in PILE))
    yield "cut by the frame", cut_out("lion", 500).crop((300, 100, 700, 500))
    yield "cut by all sides", cut_out("bear", 900).crop((300, 350, 800, 850))
    yield "cut, on a ground", put_on(paint_noise(500, 400, random), (cut_out("woman", 700), (-20, 60)))
    rows, columns = np.mgrid[-1:1:400j, -1:1:400j]
    halo = np.clip(1.2 - np.hypot(rows, columns) * 1.3, 0, 1)[..., None] * 255
    yield "soft edge", _to_image(np.concatenate([np.full((400, 400, 3), 180), halo], axis=2))
    haze = np.full((300, 300, 4), 90)
    haze[100:200, 100:200, 3] = 140
    yield "half transparent", _to_image(haze)
    yield "noise", _to_image(random.integers(0, 256, (300, 400, 3)))
    yield "noisy alpha", _to_image(random.integers(0, 256, (200, 200, 4)))
    yield "one colour", Image.new("RGB", (300, 200), "#336699")
    yield "one dot", draw((400, 400), lambda pen: pen.ellipse((190, 190, 215, 215), fill="red"))
    for width, height in ((20, 20), (20, 2000), (2000, 20), (3000, 2000), (6000, 40), (33, 1999)):
        subject = cut_out("penguin", max(12, min(width, height) * 3 // 4))
        place = ((width - subject.width) // 2, (height - subject.height) // 2)
        yield f"{width} x {height}", put_on(paint_gradient(width, height, random), (subject, place))


def list_files() -> Iterator[tuple[str, bytes]]:
    """Every mode and format; the names begin with what is odd about them."""
    cat, ground = cut_out("cat", 400), Image.new("RGB", (720, 480), "#e8e0d0")
    solid = put_on(ground, (cat, (20, 30)))
    yield "P with transparency", save(cat.quantize(64), "PNG")
    yield "P", save(solid.quantize(32), "PNG")
    yield "1 bit", save(solid.convert("1"), "PNG")
    yield "L", save(solid.convert("L"), "PNG")
    yield "LA", save(cat.convert("LA"), "PNG")
    yield "RGB with a clear colour", save(solid, "PNG", transparency=(0xE8, 0xE0, 0xD0))
    yield "16 bits of grey", save(Image.fromarray(np.asarray(solid.convert("L")).astype(np.uint16) * 257), "PNG")
    deep = np.asarray(solid.resize((2400, 1600)).convert("L")).astype(np.uint16) * 257
    yield "large, 16 bits of grey", save(Image.fromarray(deep), "PNG", compress_level=1)
    yield "CMYK JPEG", save(solid.convert("CMYK"), "JPEG")
    yield "grey, progressive JPEG", save(solid.convert("L"), "JPEG", progressive=True)
    rotated = Image.Exif()
    rotated[0x0112] = 6
    yield "JPEG turned by EXIF", save(solid.rotate(90, expand=True), "JPEG", exif=rotated)
    yield "WebP", save(cat, "WEBP")
    yield "lossless WebP", save(solid, "WEBP", lossless=True)
    frames = [cat.rotate(angle) for angle in (0, 20, 40)]
    yield "animated WebP", save(cat, "WEBP", save_all=True, append_images=frames)
    yield "animated PNG", save(cat, "PNG", save_all=True, append_images=frames)


def save(picture: Image.Image, kind: str, **options: Any) -> bytes:
    output = io.BytesIO()
    picture.save(output, kind, **options)
    return output.getvalue()


def list_pictures() -> Iterator[tuple[str, bytes]]:
    random = np.random.default_rng(2026)
    for number, name in enumerate(CUTOUTS):
        yield f"{name}, cut out", save(cut_out(name, 150 + 70 * number), "PNG")
    for number, name in enumerate(ON_GROUNDS):
        paint = (paint_gradient, paint_noise, paint_place)[number % 3]
        subject = cut_out(name, 260 + 30 * number)
        ground = paint(subject.width + 160, subject.height + 100, random)
        yield f"{name}, {paint.__name__[6:]}", save(put_on(ground, (subject, (80, 60))), "JPEG", quality=88)
    for name, moment in zip(PLACES, (*Time, Time.DAY), strict=True):
        yield f"{name}, {moment}", save(show_place(name, time_of_day=moment), "JPEG")
    for name, picture in list_shapes(random):
        yield name, save(picture, "PNG")
    yield from list_files()
    for path in sorted(Path(sysconfig.get_path("purelib")).rglob("*.[pj][np]g")):
        with Image.open(path) as picture:
            if min(picture.size) > 64:
                yield f"found {path.name}", path.read_bytes()


# -- models


@dataclass(frozen=True, slots=True)
class Case:
    """One picture and what is asked for."""

    name: str
    picture: Path
    limit: int | None
    texture: bool
    pbr: bool
    seed: int


@dataclass(frozen=True, slots=True)
class Row:
    """What a model turned out to be, and what is wrong with it."""

    text: str
    file: Path | None
    problems: tuple[str, ...]


def prove_model(case: Case) -> Row:
    """Make it three times and look at the first."""
    begun = time.monotonic()
    try:
        first, again, other = (_make(case, name, seed) for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    except Exception as error:  # noqa: BLE001  whatever it is, it is to be reported beside the others
        return Row(f"{case.name:<26} failed", None, (f"{case.name}: {error!r}",))
    seconds = (time.monotonic() - begun) / 3
    solid = read_solid(first)
    findings = {
        "not watertight": not solid.is_watertight,
        "winding": not solid.is_winding_consistent,
        "volume": solid.volume <= 0,
        "too many faces": len(solid.faces) > (case.limit or len(solid.faces)),
        "a face without area": solid.area_faces.min() <= 0,
        "same seed, other bytes": first.read_bytes() != again.read_bytes(),
        "other seed, same bytes": first.read_bytes() == other.read_bytes(),
    }
    asked = f"{case.limit or '-':>6} {'texture' if case.texture else '':<7} {'pbr' if case.pbr else '':<3}"
    text = f"{case.name:<26} {asked} {len(solid.faces):>6} {solid.euler_number:>5} {solid.volume:8.5f} {seconds:5.1f} s"
    return Row(text, first, tuple(f"{case.name}: {what}" for what, found in findings.items() if found))


def _make(case: Case, name: str, seed: int) -> Path:
    folder = case.picture.with_name(f"{case.picture.name}-{name}")
    folder.mkdir()
    wish = ModelWish(
        picture=case.picture,
        face_limit=case.limit,
        texture=case.texture,
        pbr=case.pbr,
        style="auto",
        seed=case.seed + seed,
    )
    return make_model(wish, folder, WEIGHTS, lambda _: None).primary


def prove_models(folder: Path, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    cases: list[Case] = []
    for number, (name, data) in enumerate(list_pictures()):
        picture = folder / f"{number:03}"
        picture.write_bytes(data)
        limit = (48, 500, 3000, 10000, 50000, None)[random.integers(6)]
        texture, pbr = ((True, True), (True, False), (False, False))[random.integers(3)]
        cases.append(Case(name, picture, limit, texture, pbr, int(random.integers(2**31 - 1))))
    print(f"{'picture':<26} {'limit':>6} {'':<12} {'faces':>6} {'euler':>5} {'volume':>8} {'each':>7}")
    rows: list[Row] = []
    with ProcessPoolExecutor(WORKERS) as pool:
        for row in pool.map(prove_model, cases):
            print(row.text, *(f"!! {problem}" for problem in row.problems), sep="  ", flush=True)
            rows.append(row)
    files = [row.file for row in rows if row.file]
    problems = [problem for row in rows for problem in row.problems] + list(validate(files))
    print(f"models: {len(rows)} pictures, {3 * len(files)} models, {len(problems)} problems")
    return problems


def validate(files: list[Path]) -> Iterator[str]:
    ran = subprocess.run(["node", VALIDATOR, *files], stdout=subprocess.PIPE, check=True)  # noqa: S603, S607
    counts: dict[str, int] = {}
    for path, found in json.loads(ran.stdout).items():
        for kind in ("errors", "warnings", "infos", "hints"):
            counts[kind] = counts.get(kind, 0) + found[kind]
        if found["errors"] or found["warnings"]:
            yield f"{path}: {found['messages'][:3]}"
    print(f"glTF validator over {len(files)} files: {counts}")


# -- videos

PROMPTS = (
    "A red sailing boat on the sea at sunset",
    "A fox walks through a snowy forest at night",
    "Neon city street in heavy rain, a taxi drives by",
    "An astronaut on an alien planet, the camera pushes in",
    "Hot-air balloons over a flower meadow at dawn",
    "A whale in the deep sea",
    "Fireworks above a castle",
    "A steam train in autumn, falling leaves",
    "A cat in a cosy room by the fire",
    "Thunderstorm over the harbour with a lighthouse",
    "Cherry blossom garden, petals, slow motion",
    "Camels in the desert, fast",
)


def prove_videos(folder: Path) -> list[str]:
    wishes = [
        VideoWish(prompt=prompt, width=width, height=height, seconds=seconds, lossless=lossless, people=True)
        for prompt, (seconds, (width, height), lossless) in zip(
            PROMPTS, product((4, 6, 8), ((1280, 720), (720, 1280)), (False, True)), strict=True
        )
    ]
    for prompt, size, lossless in ((PROMPTS[4], (1920, 1080), True), (PROMPTS[2], (1080, 1920), False)):
        width, height = size
        wishes.append(VideoWish(prompt=prompt, width=width, height=height, seconds=4, lossless=lossless, people=False))
    problems: list[str] = []
    for number, wish in enumerate(wishes):
        begun = time.monotonic()
        first, again = (_film(wish, folder / f"{number}{name}") for name in "ab")
        seconds = (time.monotonic() - begun) / 2
        found = list(examine(first, wish))
        found += ["same prompt, other bytes"] if first.read_bytes() != again.read_bytes() else []
        proved, total = compare_frames(first, wish) if wish.lossless else (0, 0)
        found += [f"only {proved} of {total} frames are exact"] if proved < total else []
        exact = f"{proved:>3} of {total:>3} exact" if total else ""
        size = f"{first.stat().st_size / 1e6:6.2f} MB"
        asked = f"{wish.seconds} s {wish.width:>4} x {wish.height:<4} {'lossless' if wish.lossless else 'optimized':<9}"
        print(f"{asked} {size} {seconds:6.1f} s  {exact:<16} {wish.prompt[:44]:<44}", *found, sep="  ", flush=True)
        problems += [f"{asked} {wish.prompt}: {what}" for what in found]
    print(f"videos: {len(wishes)} films, each twice, {len(problems)} problems")
    return problems


def _film(wish: VideoWish, folder: Path) -> Path:
    folder.mkdir()
    return make_video(wish, folder, WEIGHTS, lambda _: None).primary


def examine(path: Path, wish: VideoWish) -> Iterator[str]:
    """What the container, the streams and every packet's time say, against what they should."""
    data = path.read_bytes()
    frames = wish.seconds * FPS
    with av.open(str(path)) as container:
        video, audio = container.streams.video[0], container.streams.audio[0]
        context = video.codec_context
        times = [frame.pts * frame.time_base for frame in container.decode(video=0)]
        heard = Fraction(audio.duration * audio.time_base)
        colours = (context.color_primaries, context.color_trc, context.colorspace, context.color_range)
        facts = {
            "container": (container.format.name.split(",")[1], "mp4"),
            "streams": (len(container.streams), 2),
            "index first": (data.index(b"moov") < data.index(b"mdat"), True),
            "codec": (context.name, "h264"),
            "profile": (video.profile, "High 4:4:4 Predictive" if wish.lossless else "High"),
            "pixels": (context.pix_fmt, "yuv420p"),
            "size": ((context.width, context.height), (wish.width, wish.height)),
            "pixel ratio": (video.sample_aspect_ratio, 1),
            "rate": (video.average_rate, FPS),
            "frames": (video.frames, frames),
            "times": (times, [Fraction(index, FPS) for index in range(frames)]),
            "length": (video.duration * video.time_base, wish.seconds),
            "whole length": (Fraction(container.duration, av.time_base), wish.seconds),
            "colours": ([int(value) for value in colours], [1, 1, 1, 1]),
            "sound": (
                (audio.codec_context.name, audio.rate, audio.layout.name),
                ("aac", 48000, "stereo"),
            ),
            "sound's length": (abs(heard - wish.seconds) <= Fraction(1024, 48000), True),
        }
    yield from (f"{name}: {got}, not {wanted}" for name, (got, wanted) in facts.items() if got != wanted)


def compare_frames(path: Path, wish: VideoWish) -> tuple[int, int]:
    """How many of every eighth frame are, decoded, exactly what was drawn."""
    frames = wish.seconds * FPS
    script = read_prompt(wish.prompt, people=wish.people, weights=WEIGHTS).script
    stage = Stage(script, wish.width, wish.height, frames, FPS)
    with av.open(str(path)) as container:
        shown = [frame.to_ndarray() for index, frame in enumerate(container.decode(video=0)) if index % 8 == 0]
    drawn = [to_planes(stage.frame(index)) for index in range(0, frames, 8)]
    return sum(map(np.array_equal, shown, drawn)), len(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="models|videos", help="default: both")
    parser.add_argument("--seed", type=int, default=1, help="of what is asked for with each picture")
    arguments = parser.parse_args()
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        if "models" in (arguments.parts or ["models"]):
            problems += prove_models(Path(folder), arguments.seed)
        if "videos" in (arguments.parts or ["videos"]):
            (Path(folder) / "films").mkdir()
            problems += prove_videos(Path(folder) / "films")
    print(*problems, sep="\n")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
