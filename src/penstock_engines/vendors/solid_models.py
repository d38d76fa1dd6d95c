"""The built-in models of the 3D family and the film of a 3D model: their params as the engines expect them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, StringConstraints

from penstock.catalog.file_input import FileSlot, MeshInput
from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.model_family import MESH, OPERATIONS, ConvertParams, MeshParams
from penstock.catalog.params import Boolean, Nested, Number
from penstock.catalog.video import film_size
from penstock.domain.files import StoredFile
from penstock.vendor_api.generation import Order

USUAL_SECONDS: Final = 5
Background = Annotated[str, StringConstraints(strict=True, pattern="^(studio|white|grey|black|#[0-9a-fA-F]{6})$")]


class TurntableParams(MeshParams):
    """Params of `turntable_1`."""

    nested: ClassVar[Nested] = {"mesh": MeshInput}
    files: ClassVar[tuple[FileSlot, ...]] = MeshParams.files

    duration: Number | None = Field(
        default=None,
        description="length in seconds, which is one turn",
        ge=1,
        le=30,
        json_schema_extra={"default": USUAL_SECONDS},
    )
    aspect_ratio: Literal["16:9", "9:16", "1:1", "4:3", "3:4", "21:9", "9:21"] | None = Field(
        default=None, description="width to height", json_schema_extra={"default": "1:1"}
    )
    resolution: Literal["360p", "480p", "540p", "720p", "1080p"] | None = Field(
        default=None, description="lines of the short side", json_schema_extra={"default": "720p"}
    )
    background: Background | None = Field(
        default=None,
        description="colour of the ground: `studio` (pale), `white`, `grey`, `black` or `#rrggbb`",
        json_schema_extra={"default": "studio"},
    )
    generate_audio: Boolean | None = Field(
        default=None, description="whether the film has a soft sound", json_schema_extra={"default": True}
    )

    def resolved(self) -> dict[str, Any]:
        """Return the params with defaults: one turn in five seconds, square, before a pale ground, with sound."""
        usual = {"duration": USUAL_SECONDS, "aspect_ratio": "1:1", "resolution": "720p", "background": "studio"}
        return {**usual, "generate_audio": True, **super().resolved()}


class WrittenFormatParams(ConvertParams):
    """Params of `convert_1`, which cannot write FBX."""

    format: Literal["glb", "obj", "stl", "usdz"] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        description="the file format of the result; an OBJ with textures comes as a zip"
    )


def expect_turn(params: Mapping[str, Any]) -> Expectation:
    """Expect exactly the requested size and length."""
    width, height = film_size(params, "1:1")
    return Expectation(width=width, height=height, seconds=params["duration"])


def _offer(model: str, operation: str, seed: str | None = None) -> GenerationModel:
    """Return the built-in model of an operation of the 3D family."""
    title, params, expect, example = OPERATIONS[operation]
    return GenerationModel(model, "3d", f"Built-in {title}", params, example, expect, seed_param=seed)


TURNTABLE: Final = GenerationModel(
    id="turntable_1",
    kind="video",
    title="Built-in film of a 3D model",
    params=TurntableParams,
    example={"mesh": MESH, "duration": 5, "aspect_ratio": "1:1", "resolution": "720p"},
    expect=expect_turn,
)
INFLATE_TEXT: Final = _offer("inflate_text_1", "text_to_3d", seed="seed")
INFLATE: Final = _offer("inflate_1", "image_to_3d", seed="seed")
VIEWS: Final = _offer("inflate_views_1", "multiview_to_3d", seed="seed")
REMESH: Final = _offer("remesh_1", "remesh")
CONVERT: Final = replace(_offer("convert_1", "convert"), params=WrittenFormatParams)
MODELS: Final = (INFLATE_TEXT, INFLATE, VIEWS, REMESH, CONVERT, TURNTABLE)


def describe_made(order: Order) -> dict[str, Any]:
    """Return an order that makes a model as its engine expects it."""
    params = order.params
    wish = {name: params.get(name) for name in ("face_limit", "texture", "pbr", "seed")}
    if order.model == INFLATE.id:
        return {"engine": "inflate", "wish": {**wish, "style": "auto"}, "quads": params["quads"]}
    if order.model == VIEWS.id:
        return {"engine": "hull", "wish": wish, "quads": params["quads"]}
    text = {"prompt": params["prompt"], "negative_prompt": params.get("negative_prompt") or ""}
    return {"engine": "inflate_text", "wish": {**wish, **text}, "quads": params["quads"]}


def describe_remesh(order: Order) -> dict[str, Any]:
    """Return an order of `remesh_1` as the engine expects it."""
    params = order.params
    return {"engine": "remesh", "wish": {"face_limit": params.get("face_limit"), "quads": params["quads"]}}


def describe_conversion(order: Order) -> dict[str, Any]:
    """Return an order of `convert_1` as the engine expects it."""
    params = order.params
    return {"engine": "convert", "wish": {"face_limit": params.get("face_limit"), "format": params["format"]}}


def describe_turntable(order: Order) -> dict[str, Any]:
    """Return an order of `turntable_1` as the engine expects it."""
    params = order.params
    width, height = film_size(params, "1:1")
    wish = {
        "width": width,
        "height": height,
        "seconds": params["duration"],
        "background": params["background"],
        "sound": params["generate_audio"],
    }
    return {"engine": "turntable", "wish": wish}


DESCRIBERS: Final = {
    INFLATE_TEXT.id: describe_made,
    INFLATE.id: describe_made,
    VIEWS.id: describe_made,
    REMESH.id: describe_remesh,
    CONVERT.id: describe_conversion,
    TURNTABLE.id: describe_turntable,
}


def list_inputs(order: Order) -> Iterator[tuple[str, StoredFile]]:
    """Yield the files that an order's engine needs, with their names for the studio."""
    for given in order.given("mesh"):
        yield "mesh", given.file
    for given in order.given("images"):
        yield given.role or "front", given.file
    for given in order.given("image"):
        yield "file", given.file
