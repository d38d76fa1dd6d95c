"""`vendorb_video_31`: a video from a text prompt."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.params import Integer, Params

DURATIONS = (4, 6, 8)
SHORT_SIDE = {"720p": 720, "1080p": 1080}


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _one_of_durations(value: int) -> int:
    if value not in DURATIONS:
        raise PydanticCustomError("duration", "Input should be 4, 6 or 8")
    return value


class TextToVideoParams(Params):
    """Params of `vendorb_video_31`; its names are the vendor's own."""

    prompt: Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=4000)] = (
        Field(description="what the video shows, 1 to 4000 characters after trimming")
    )
    durationSeconds: Annotated[Integer, AfterValidator(_one_of_durations)] | None = Field(
        None, description="length in seconds; default 8", json_schema_extra={"enum": [*DURATIONS, None], "default": 8}
    )
    aspectRatio: Literal["16:9", "9:16"] | None = Field(
        default=None, description="width to height", json_schema_extra={"default": "16:9"}
    )
    resolution: Literal["720p", "1080p"] | None = Field(
        default=None, description="lines of the short side", json_schema_extra={"default": "720p"}
    )
    compressionQuality: (
        Annotated[Literal["optimized", "lossless"], BeforeValidator(_lower, json_schema_input_type=str)] | None
    ) = Field(
        default=None,
        description="in any case",
        json_schema_extra={"enum": ["optimized", "lossless", None], "default": "optimized"},
    )
    personGeneration: Literal["dont_allow", "allow_adult", "allow_all"] | None = Field(
        None, description="which people may appear", json_schema_extra={"default": "allow_adult"}
    )

    def resolved(self) -> dict[str, Any]:
        """Return the params with defaults: eight seconds of 720p, 16:9, optimized, adults allowed."""
        return {
            "prompt": self.prompt,
            "durationSeconds": self.durationSeconds or 8,
            "aspectRatio": self.aspectRatio or "16:9",
            "resolution": self.resolution or "720p",
            "compressionQuality": self.compressionQuality or "optimized",
            "personGeneration": self.personGeneration or "allow_adult",
        }


def frame_size(params: Mapping[str, Any]) -> tuple[int, int]:
    """Return width and height in pixels by ratio and resolution."""
    short = SHORT_SIDE[params["resolution"]]
    long = short * 16 // 9
    return (long, short) if params["aspectRatio"] == "16:9" else (short, long)


def expect(params: Mapping[str, Any]) -> Expectation:
    """Return the requested size and length."""
    width, height = frame_size(params)
    return Expectation(width=width, height=height, seconds=params["durationSeconds"])


MODELS = (
    GenerationModel(
        id="vendorb_video_31",
        kind="video",
        title="Text to video",
        params=TextToVideoParams,
        expect=expect,
        example={
            "prompt": "A paper boat drifts down a rainy street",
            "durationSeconds": 8,
            "aspectRatio": "16:9",
            "resolution": "720p",
        },
    ),
)
