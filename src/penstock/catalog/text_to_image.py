"""Pictures from a text prompt: the params that all such models share."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from penstock.catalog.file_input import FileParams, FileSlot, ImageInput, OneOrMore
from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.params import Integer, Nested
from penstock.errors import Detail

MAX_PICTURES: Final = 10
MAX_REFERENCES: Final = 16
MIN_SIDE, MAX_SIDE = 64, 4096
SIZE: Final = re.compile(r"([1-9][0-9]{1,3})x([1-9][0-9]{1,3})")
RATIOS: Final = (
    "1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "9:21", "21:9", "1:2", "2:1",
)  # fmt: skip
LONG_SIDE: Final = {"512": 512, "1K": 1024, "2K": 2048, "4K": 4096}

Prompt = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=32000)]
Ratio = Literal["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "9:21", "21:9", "1:2", "2:1"]


def _check_size(value: str) -> str:
    found = SIZE.fullmatch(value)
    if value == "auto" or (found and all(MIN_SIDE <= int(side) <= MAX_SIDE for side in found.groups())):
        return value
    raise PydanticCustomError(
        "size",
        'Input should be "auto", or width and height such as "1024x768", each {least} to {most}',
        {"least": MIN_SIDE, "most": MAX_SIDE},
    )


class PictureParams(FileParams):
    """Params of every model that makes pictures."""

    prompt: Prompt = Field(description="what the picture shows")
    negative_prompt: Annotated[str, StringConstraints(strict=True, max_length=4000)] | None = Field(
        default=None, description="what it should not show, where the vendor takes it"
    )
    size: Annotated[str, StringConstraints(strict=True), AfterValidator(_check_size)] | None = Field(
        default=None, description='"WIDTHxHEIGHT" in pixels, or "auto"; instead of `aspect_ratio` and `resolution`'
    )
    aspect_ratio: Ratio | None = Field(
        default=None, description="width to height", json_schema_extra={"default": "1:1"}
    )
    resolution: Literal["512", "1K", "2K", "4K"] | None = Field(
        default=None, description="pixels of the long side", json_schema_extra={"default": "1K"}
    )
    n: Integer | None = Field(
        default=None, description="how many pictures", ge=1, le=MAX_PICTURES, json_schema_extra={"default": 1}
    )
    seed: Integer | None = Field(default=None, description="seed; random when absent, echoed", ge=0, le=2147483647)
    output_format: Literal["png", "jpeg", "webp"] | None = Field(
        default=None, description="file type", json_schema_extra={"default": "png"}
    )
    background: Literal["auto", "opaque", "transparent"] | None = Field(
        default=None, description="`transparent` needs png or webp", json_schema_extra={"default": "auto"}
    )
    quality: Literal["auto", "low", "medium", "high"] | None = Field(
        default=None, description="effort, where the vendor takes it", json_schema_extra={"default": "auto"}
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield conflicts: one way to say the size, and no transparent JPEG."""
        yield from super().conflicts(given)
        for name in ("aspect_ratio", "resolution"):
            if name in given and given.get("size") not in (None, "auto"):
                yield Detail(name, f"Give `size` or `{name}`, not both.")
        if given.get("background") == "transparent" and given.get("output_format") == "jpeg":
            yield Detail("background", "A JPEG cannot be transparent: use `output_format` png or webp.")

    def resolved(self) -> dict[str, Any]:
        """Return the params with defaults: one PNG of the vendor's usual background and quality."""
        defaults = {"n": 1, "output_format": "png", "background": "auto", "quality": "auto"}
        return defaults | super().resolved()


class TextToImageParams(PictureParams):
    """Params of models that make pictures from a prompt, and optionally from reference pictures."""

    nested: ClassVar[Nested] = {"references": ImageInput}
    files: ClassVar = (FileSlot("references", most=MAX_REFERENCES),)

    references: Annotated[list[ImageInput], OneOrMore] | None = Field(
        default=None, description="pictures to follow in style or subject", min_length=1, max_length=MAX_REFERENCES
    )


def picture_size(params: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return width and height in pixels, multiples of 16; None for a size that the vendor chooses."""
    size = params.get("size")
    if size == "auto":
        return None
    if size is not None:
        width, _, height = size.partition("x")
        return int(width), int(height)
    if "aspect_ratio" not in params and "resolution" not in params:
        return None
    wide, _, high = params.get("aspect_ratio", "1:1").partition(":")
    longest = LONG_SIDE[params.get("resolution", "1K")]
    scale = longest / max(int(wide), int(high))
    return _round(int(wide) * scale), _round(int(high) * scale)


def _round(side: float) -> int:
    return max(64, round(side / 16) * 16)


def picture_ratio(params: Mapping[str, Any]) -> float | None:
    """Return the requested width to height; None if the vendor chooses it."""
    size = params.get("size")
    wide, _, high = (size.replace("x", ":") if size and size != "auto" else params.get("aspect_ratio", "")).partition(
        ":"
    )
    return int(wide) / int(high) if high else None


def expect_picture(params: Mapping[str, Any]) -> Expectation:
    """Expect the requested file type, and the requested size or else the requested ratio."""
    picture_type = params.get("output_format")
    if params.get("size") in (None, "auto"):
        return Expectation(ratio=picture_ratio(params), picture_type=picture_type)
    width, height = picture_size(params) or (None, None)
    return Expectation(width=width, height=height, picture_type=picture_type)


def make_text_to_image(model_id: str, title: str) -> GenerationModel:
    """Return a model with these params."""
    return GenerationModel(
        id=model_id,
        kind="image",
        title=title,
        params=TextToImageParams,
        expect=expect_picture,
        example={"prompt": "A red fox in the snow, in soft morning light", "aspect_ratio": "3:2"},
    )


MODELS = (make_text_to_image("text_to_image", "Text to picture"),)
