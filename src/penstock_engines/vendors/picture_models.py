"""The built-in models for pictures and for films of pictures: their params as the engines expect them."""

from collections.abc import Iterator
from typing import Any, Final

from penstock.catalog.model import GenerationModel
from penstock.catalog.text_to_image import TextToImageParams, expect_picture, picture_size
from penstock.catalog.video import VideoParams, expect_film, film_size
from penstock.domain.files import StoredFile
from penstock.vendor_api.generation import Order

SKETCH: Final = GenerationModel(
    id="sketch_1",
    kind="image",
    title="Built-in text to picture",
    params=TextToImageParams,
    example={"prompt": "A cat on a chair by the window", "size": "1024x1024", "seed": 7},
    expect=expect_picture,
    seed_param="seed",
)
STILL_FILM: Final = GenerationModel(
    id="still_film",
    kind="video",
    title="Built-in picture to film",
    params=VideoParams,
    example={
        "prompt": "Slow push in, snow is falling",
        "frame_images": [{"url": "https://example.com/picture.png"}],
        "duration": 5,
    },
    expect=expect_film,
    seed_param="seed",
)
MODELS: Final = (SKETCH, STILL_FILM)
USUAL_SIDE: Final = 1024
USUAL_SECONDS: Final = 5


def describe_picture(order: Order) -> dict[str, Any]:
    """Return an order of `sketch_1` as the engine expects it."""
    params = order.params
    width, height = picture_size(params) or (USUAL_SIDE, USUAL_SIDE)
    wish = {
        "prompt": params["prompt"],
        "negative_prompt": params.get("negative_prompt") or "",
        "width": width,
        "height": height,
        "n": params["n"],
        "seed": params.get("seed"),
        "output_format": params["output_format"],
        "transparent": params["background"] == "transparent",
        "quality": params["quality"],
    }
    return {"engine": "sketch", "wish": wish}


def describe_film(order: Order) -> dict[str, Any]:
    """Return an order of `still_film`: a camera over its pictures, or without any the film of its prompt."""
    params = order.params
    seconds = params.get("duration") or USUAL_SECONDS
    if not order.given("frame_images"):
        width, height = film_size(params)
        wish = {"prompt": params["prompt"], "width": width, "height": height, "seconds": seconds}
        return {"engine": "cinema", "wish": {**wish, "lossless": False, "people": True}}
    size = film_size(params) if "aspect_ratio" in params else None
    wish = {
        "prompt": params.get("prompt") or "",
        "size": size,
        "short_side": min(film_size(params, "1:1")),
        "seconds": seconds,
        "seed": params.get("seed"),
        "sound": params.get("generate_audio", True),
    }
    return {"engine": "still", "wish": wish}


DESCRIBERS: Final = {SKETCH.id: describe_picture, STILL_FILM.id: describe_film}


def list_inputs(order: Order) -> Iterator[tuple[str, StoredFile]]:
    """Yield the files that an order's engine needs, with their names for the studio."""
    for given in order.given("frame_images"):
        yield given.role or "first_frame", given.file


def list_unsupported(order: Order) -> Iterator[str]:
    """Yield a warning for each param that the engines cannot honour."""
    for name in ("references", "input_references"):
        if order.params.get(name):
            yield f"`{name}` has no effect: the built-in engine draws from the prompt alone."
    if order.given("frame_images") and order.params.get("negative_prompt"):
        yield "`negative_prompt` has no effect: the built-in engine shows the whole picture."


def find_refusal(order: Order) -> str | None:
    """Return the reason why the engines cannot make an order, or None."""
    if order.params.get("video"):
        return (
            "The built-in engine makes films of pictures and prompts. It cannot extend or edit a film: leave out "
            "`video`, or choose a model of a vendor that takes it."
        )
    if order.model == STILL_FILM.id and not (order.given("frame_images") or order.params.get("prompt")):
        return "The built-in engine needs `frame_images` or a `prompt`."
    return None
