"""Makes the contact sheets in docs/pictures: pictures and the models made of them, prompts and frames of their films.

python tools/docs/contact_sheets.py [models] [films] [unseen] [overview] [cat]
"""

import argparse
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from penstock.settings.tables import load
from penstock_engines.cinema.places import PLACES
from penstock_engines.cinema.prompt.reading import read_prompt
from penstock_engines.cinema.script import Script
from penstock_engines.cinema.stage import Stage
from penstock_engines.cinema.subjects import draw_subject
from penstock_engines.inflate.model_engine import ModelWish, Sculpture, sculpt
from penstock_engines.inflate.render import render

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
WEIGHTS = load(None, os.environ, {}).weights
CELL = 224
SIDES = (32, 122, 212, 302)
PAPER, INK = (244, 245, 248), (70, 74, 84)

PROMPTS = (
    "A sailing boat on a calm sea at sunset",
    "A fox trots through a snowy forest at night",
    "Neon city in the rain, a red sports car drives by",
    "A rocket lifts off at dawn, the camera rises",
    "Tropical fish swim over a coral reef",
    "Hot-air balloons drift over green fields in the morning",
    "An elephant walks across the savanna, golden hour",
    "A steam train crosses the autumn countryside",
    "A whale under the ice, light from above",
    "Cherry blossom petals fall in a garden, a woman with an umbrella walks",
    "An astronaut floats above a ringed planet",
    "A cat by the fireplace in a cosy room, rain outside",
)


# -- models


def paint(subject: str, *, backdrop: bool = False) -> Image.Image:
    """A subject of the film engine as a picture: cut out, or before a wall."""
    picture = draw_subject(subject, 0.1, 560, None).picture.astype(np.float32)
    alpha = picture[..., 3:] / 255
    colours = np.where(alpha > 0, picture[..., 2::-1] / np.maximum(alpha, 1e-6), 0)
    cut = Image.fromarray(np.dstack([colours, picture[..., 3]]).clip(0, 255).astype(np.uint8), "RGBA")
    side = round(max(cut.size) * 1.15)
    canvas = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    if backdrop:
        wall = np.linspace(236, 176, side)[:, None, None] * np.array([0.97, 1.0, 0.94])
        canvas = Image.fromarray(np.broadcast_to(wall, (side, side, 3)).astype(np.uint8)).convert("RGBA")
    canvas.alpha_composite(cut, ((side - cut.width) // 2, (side - cut.height) // 2))
    return canvas.convert("RGB") if backdrop else canvas


def paint_landscape() -> Image.Image:
    """A picture with nothing to cut out."""
    frame = Stage(Script(place="mountain lake", seed=4), 640, 480, 24, 24).frame(10)
    return Image.fromarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB))


def paint_sign() -> Image.Image:
    """Artwork: letters on a plate."""
    sign = Image.new("RGB", (640, 400), (28, 52, 96))
    pen = ImageDraw.Draw(sign)
    pen.rounded_rectangle((24, 24, 616, 376), 36, outline=(240, 196, 80), width=14)
    pen.text((320, 200), "PENSTOCK", fill=(250, 250, 250), font=ImageFont.load_default(92), anchor="mm")
    return sign


def paint_ring() -> Image.Image:
    """A thing with a hole."""
    ring = Image.new("RGBA", (600, 600))
    pen = ImageDraw.Draw(ring)
    pen.ellipse((40, 40, 560, 560), fill=(222, 160, 90))
    pen.ellipse((64, 52, 540, 520), fill=(238, 140, 170))
    rng = np.random.default_rng(3)
    for turn, radius, hue in zip(
        rng.uniform(0, 6.28, 46), rng.uniform(140, 226, 46), rng.integers(0, 4, 46), strict=True
    ):
        x, y = 300 + radius * np.cos(turn), 290 + radius * np.sin(turn)
        colour = ((255, 255, 255), (120, 200, 240), (250, 220, 90), (150, 110, 220))[hue]
        pen.line((x, y, x + 16 * np.cos(turn * 3), y + 16 * np.sin(turn * 3)), fill=colour, width=8)
    pen.ellipse((215, 205, 385, 375), fill=(0, 0, 0, 0))
    return ring


PICTURES: tuple[tuple[str, Callable[[], Image.Image]], ...] = (
    ("fox, cut out", lambda: paint("fox")),
    ("elephant before a wall", lambda: paint("elephant", backdrop=True)),
    ("robot, cut out", lambda: paint("robot")),
    ("rocket before a wall", lambda: paint("rocket", backdrop=True)),
    ("owl, cut out", lambda: paint("owl")),
    ("sports car before a wall", lambda: paint("sports car", backdrop=True)),
    ("ring with a hole", paint_ring),
    ("letters on a plate", paint_sign),
    ("landscape, nothing to cut out", paint_landscape),
    ("tyrannosaurus, cut out", lambda: paint("tyrannosaurus")),
)


def sculpt_picture(picture: Image.Image) -> Sculpture:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        picture.save(path)
        wish = ModelWish(picture=path, face_limit=20_000, texture=True, pbr=True, style="auto", seed=7)
        return sculpt(wish, WEIGHTS, lambda _share: None)


def show_model(name: str, picture: Image.Image, row: int, sheet: Image.Image) -> None:
    """The picture, then its model from four sides."""
    sculpture = sculpt_picture(picture)
    thumb = picture.convert("RGBA")
    thumb.thumbnail((CELL - 24, CELL - 24))
    sheet.paste(thumb, ((CELL - thumb.width) // 2, row * CELL + (CELL - thumb.height) // 2), thumb)
    for column, angle in enumerate(SIDES, 1):
        view = Image.fromarray(render(sculpture.shape, sculpture.skin, angle, CELL * 2)[..., :3])
        sheet.paste(view.resize((CELL, CELL), Image.Resampling.LANCZOS), (column * CELL, row * CELL))
    note = f"{name} · {sculpture.style} · {len(sculpture.shape.faces):,} faces"
    ImageDraw.Draw(sheet).text((8, row * CELL + 6), note, fill=INK, font=ImageFont.load_default(13))


def make_models() -> None:
    sheet = Image.new("RGB", (CELL * 5, CELL * len(PICTURES)), PAPER)
    for row, (name, draw) in enumerate(PICTURES):
        show_model(name, draw(), row, sheet)
        print(f"{name}", flush=True)
    sheet.save(FOLDER / "models.webp", quality=86, method=6)


# -- films


def make_films(width: int = 384, height: int = 216, frames: int = 96) -> None:
    moments = (0.15, 0.5, 0.85)
    label = 24
    sheet = Image.new("RGB", (width * len(moments), (height + label) * len(PROMPTS)), PAPER)
    for row, prompt in enumerate(PROMPTS):
        script = read_prompt(prompt, people=True, weights=WEIGHTS).script
        stage = Stage(script, width * 2, height * 2, frames, 24)
        for column, moment in enumerate(moments):
            frame: NDArray[np.uint8] = stage.frame(int(frames * moment))
            small = cv2.resize(frame, (width, height), interpolation=cv2.INTER_AREA)
            sheet.paste(
                Image.fromarray(cv2.cvtColor(small, cv2.COLOR_BGR2RGB)),
                (column * width, row * (height + label) + label),
            )
        text = textwrap.shorten(prompt, 120)
        ImageDraw.Draw(sheet).text((8, row * (height + label) + 5), text, fill=INK, font=ImageFont.load_default(14))
        cast = ", ".join(role.subject for role in script.cast)
        print(f"{prompt}: {PLACES[script.place].name}; {script.time}, {script.weather}; {cast}", flush=True)
    sheet.save(FOLDER / "films.webp", quality=84, method=6)


def make_unseen(width: int = 400, height: int = 225, frames: int = 144, columns: int = 4) -> None:
    """One frame from the middle of each film that an unseen prompt makes, with the list of what is not drawn."""
    lines = (Path(__file__).parent / "unseen_prompts.txt").read_text("utf-8").splitlines()[1:]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    label = 86
    sheet = Image.new("RGB", (width * columns, (height + label) * (-(-len(rows) // columns))), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, (name, before, now, prompt) in enumerate(rows):
        reading = read_prompt(prompt, people=True, weights=WEIGHTS)
        frame = Stage(reading.script, width * 2, height * 2, frames, 24).frame(frames // 2)
        left, top = number % columns * width, number // columns * (height + label)
        small = cv2.resize(frame, (width, height), interpolation=cv2.INTER_AREA)
        sheet.paste(Image.fromarray(cv2.cvtColor(small, cv2.COLOR_BGR2RGB)), (left, top))
        title = textwrap.wrap(f"{name}. {prompt}", 58)
        note = textwrap.wrap(" ".join(reading.warnings) or "Nothing is listed.", 64)
        pen.text((left + 6, top + height + 3), "\n".join(title), fill=(20, 22, 28), font=_load_font(12))
        below = top + height + 20 + 15 * len(title)
        pen.text((left + 6, below - 15), f"before {before}, now {now}", fill=INK, font=_load_font(11))
        pen.text((left + 6, below), "\n".join(note), fill=(120, 50, 40), font=_load_font(11))
    sheet.save(FOLDER / "unseen_prompts.webp", quality=84, method=6)


def _load_font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return a font with Arabic letters, if the machine has one."""
    try:
        return ImageFont.truetype("DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)


def make_overview(side: int = 288) -> None:
    """A row of models above a row of films."""
    height = side * 9 // 16
    sheet = Image.new("RGB", (side * 4, side + height), PAPER)
    for column, (name, angle) in enumerate((("fox", 32), ("robot", 40), ("tyrannosaurus", 25), ("rocket", 20))):
        sculpture = sculpt_picture(paint(name))
        view = Image.fromarray(render(sculpture.shape, sculpture.skin, angle, side * 2)[..., :3])
        sheet.paste(view.resize((side, side), Image.Resampling.LANCZOS), (column * side, 0))
    for column, number in enumerate((0, 2, 4, 6)):
        script = read_prompt(PROMPTS[number], people=True, weights=WEIGHTS).script
        frame = cv2.resize(
            Stage(script, side * 2, height * 2, 96, 24).frame(48), (side, height), interpolation=cv2.INTER_AREA
        )
        sheet.paste(Image.fromarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB)), (column * side, side))
    sheet.save(FOLDER / "overview.webp", quality=86, method=6)


def make_cat() -> None:
    """The picture that the quickstart turns into a model, and that model from two sides."""
    side = 320
    cat = paint("cat").resize((512, 512), Image.Resampling.LANCZOS)
    cat.quantize(128, method=Image.Quantize.FASTOCTREE).save(FOLDER / "cat.png", optimize=True)
    sculpture = sculpt_picture(cat)
    sheet = Image.new("RGB", (side * 3, side), PAPER)
    thumb = cat.resize((side, side), Image.Resampling.LANCZOS)
    sheet.paste(thumb, (0, 0), thumb)
    for column, angle in enumerate((32, 300), 1):
        view = Image.fromarray(render(sculpture.shape, sculpture.skin, angle, side * 2)[..., :3])
        sheet.paste(view.resize((side, side), Image.Resampling.LANCZOS), (column * side, 0))
    sheet.save(FOLDER / "cat-model.webp", quality=86, method=6)


MAKERS = {"models": make_models, "films": make_films, "unseen": make_unseen, "overview": make_overview, "cat": make_cat}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="*", choices=[*MAKERS, []], default=[])
    FOLDER.mkdir(exist_ok=True)
    for name in parser.parse_args().what or MAKERS:
        MAKERS[name]()


if __name__ == "__main__":
    sys.exit(main())
