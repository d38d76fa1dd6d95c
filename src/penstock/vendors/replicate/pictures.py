"""Pictures by the catalogue's params at Replicate: each model has its own names for them."""

from typing import Any, Final

from penstock.catalog import edit_image, text_to_image
from penstock.catalog.edit_image import make_edit_image
from penstock.catalog.text_to_image import make_text_to_image
from penstock.vendor_api.films import Unfit
from penstock.vendor_api.generation import Order, ServedModel
from penstock.vendor_api.pictures import ParamTerm, PictureOrder, PictureTerms, PixelTerms, RatioTerms, ask_picture
from penstock.vendor_api.replies import seed_of

FLUX: Final = "black-forest-labs/flux-schnell"
FLUX_2: Final = "black-forest-labs/flux-2-pro"
BANANA: Final = "google/nano-banana-2"
RATIOS: Final = ("1:1", "16:9", "21:9", "3:2", "2:3", "4:5", "5:4", "3:4", "4:3", "9:16", "9:21")
TYPES: Final = {"png": "png", "jpeg": "jpg", "webp": "webp"}
USUAL: Final = {
    "prompt": ParamTerm("prompt"),
    "seed": ParamTerm("seed"),
    "output_format": ParamTerm("output_format", TYPES),
}
FLUX_TERMS: Final = PictureTerms(
    vendor="Replicate",
    terms={**USUAL, "n": ParamTerm("num_outputs")},
    size=RatioTerms("aspect_ratio", RATIOS),
    most=4,
)
FLUX_2_TERMS: Final = PictureTerms(
    vendor="Replicate",
    terms=USUAL,
    size=PixelTerms(
        lambda width, height: {"aspect_ratio": "custom", "width": width, "height": height}, step=16, sides=(256, 2048)
    ),
    most=1,
    images="input_images",
    most_images=8,
)
BANANA_TERMS: Final = PictureTerms(
    vendor="Replicate",
    terms={
        "prompt": ParamTerm("prompt"),
        "output_format": ParamTerm("output_format", {name: TYPES[name] for name in ("png", "jpeg")}),
    },
    size=RatioTerms("aspect_ratio", RATIOS, ParamTerm("resolution", {name: name for name in ("1K", "2K", "4K")})),
    most=1,
    images="image_input",
    most_images=14,
)
APPS: Final = {
    FLUX: FLUX_TERMS,
    "black-forest-labs/flux-dev": FLUX_TERMS,
    FLUX_2: FLUX_2_TERMS,
    BANANA: BANANA_TERMS,
}
"""Models to which a route of the catalogue's picture models may lead. Any other is declared in the settings.

Not certain, as only pages tell: the file types of all of them, and the resolutions of `google/nano-banana-2`.
"""
MODELS: Final = (
    *(ServedModel(model, name=FLUX) for model in text_to_image.MODELS),
    *(ServedModel(model, name=FLUX_2) for model in edit_image.MODELS),
    ServedModel(make_text_to_image("replicate_flux_image", "FLUX at Replicate: text to picture"), name=FLUX),
    ServedModel(make_text_to_image("replicate_flux2_image", "FLUX 2 at Replicate: text to picture"), name=FLUX_2),
    ServedModel(make_edit_image("replicate_flux2_edit", "FLUX 2 at Replicate: edit a picture"), name=FLUX_2),
    ServedModel(
        make_edit_image("replicate_nano_banana_edit", "Nano Banana 2 at Replicate: edit a picture"), name=BANANA
    ),
)
RECIPE: Final = {"kind": "image", "output": "output"}
"""All pictures of a result, which is a list or a single address."""


def most_results(model: str) -> int | None:
    """Return the pictures of one prediction, where the fields of the model are known."""
    terms = APPS.get(model)
    return terms and terms.most


def ask(order: Order) -> PictureOrder:
    """Return the order in the model's terms. Raise `Unfit` for a model whose fields are not known."""
    if order.model not in APPS:
        advice = "Declare it as a model of its own, or name one of"
        problem = f"`{order.model_id}` does not know the fields of `{order.model}`. {advice} {', '.join(APPS)}."
        raise Unfit("model", problem)
    return ask_picture(order, APPS[order.model])


def describe(order: Order) -> dict[str, Any]:
    """Return the input, with its files, and with a seed of ours where the caller gave none."""
    asked, terms = ask(order), APPS[order.model]
    seed = {"seed": seed_of(order)} if "seed" in terms.terms else {}
    return {**seed, **asked.body, **asked.files(terms)}
