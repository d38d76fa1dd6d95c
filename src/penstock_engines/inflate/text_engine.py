"""Makes a textured GLB of a prompt: draws its first subject alone, and gives it depth."""

from dataclasses import dataclass, replace
from pathlib import Path

from penstock_engines.inflate.model_engine import ModelWish, make_model
from penstock_engines.product import Product, ReportProgress, Unable
from penstock_engines.sketch.picture_engine import PictureWish, make_pictures

SIDE = 1024
DRAWN = 0.3
"""Share of the time that the drawing takes."""
NO_SUBJECT = (
    "The prompt names no subject that can be drawn: name an animal, a person, a vehicle or a thing, "
    "such as 'a red fox'."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWish:
    """A request for a model of a prompt."""

    prompt: str
    negative_prompt: str
    face_limit: int | None
    texture: bool
    pbr: bool
    seed: int


def make_model_of_prompt(wish: TextWish, folder: Path, weights: Path, report: ReportProgress) -> Product:
    """Write `model.glb` and `preview.png` into the folder."""
    order = PictureWish(
        prompt=wish.prompt,
        negative_prompt=wish.negative_prompt,
        width=SIDE,
        height=SIDE,
        seed=wish.seed,
        transparent=True,
        subject_only=True,
    )
    try:
        picture = make_pictures(order, folder, weights, lambda share: report(share * DRAWN))
    except Unable as error:
        raise Unable(NO_SUBJECT) from error
    model = ModelWish(
        picture=picture.primary,
        face_limit=wish.face_limit,
        texture=wish.texture,
        pbr=wish.pbr,
        style="auto",
        seed=wish.seed,
    )
    product = make_model(model, folder, weights, lambda share: report(DRAWN + share * (1 - DRAWN)))
    return replace(product, warnings=(*picture.warnings, *product.warnings))
