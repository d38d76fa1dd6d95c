"""Films from a prompt, pictures or a film: the params that all such models share, with neutral names."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, StringConstraints

from penstock.catalog.file_input import FileParams, FileSlot, ImageInput, OneOrMore, VideoInput
from penstock.catalog.model import Expectation
from penstock.catalog.params import Boolean, Integer, Nested, Number
from penstock.errors import Detail

MAX_FRAMES: Final = 2
MAX_REFERENCES: Final = 9
FRAMES: Final = ("first_frame", "last_frame")
RATIOS: Final = ("16:9", "9:16", "1:1", "4:3", "3:4", "21:9", "9:21")
SHORT_SIDE: Final = {"360p": 360, "480p": 480, "540p": 540, "720p": 720, "1080p": 1080, "4k": 2160}


class FrameImage(ImageInput):
    """A picture that becomes the first or the last frame."""

    role: Literal["first_frame", "last_frame"] | None = Field(
        default=None, description="which frame", json_schema_extra={"default": "first_frame"}
    )

    def resolved(self) -> dict[str, Any]:
        """Return the picture with its role."""
        return {"role": "first_frame", **super().resolved()}


class VideoParams(FileParams):
    """Params of models that make films."""

    nested: ClassVar[Nested] = {"frame_images": FrameImage, "input_references": ImageInput, "video": VideoInput}
    files: ClassVar = (
        FileSlot("frame_images", most=MAX_FRAMES, roles=FRAMES),
        FileSlot("input_references", most=MAX_REFERENCES),
        FileSlot("video", kinds=("video",)),
    )

    prompt: Annotated[str, StringConstraints(strict=True, strip_whitespace=True, max_length=6000)] | None = Field(
        default=None, description="what the film shows"
    )
    negative_prompt: Annotated[str, StringConstraints(strict=True, max_length=2500)] | None = Field(
        default=None, description="what it should not show, where the vendor takes it"
    )
    duration: Number | None = Field(default=None, description="length in seconds", gt=0, le=60)
    aspect_ratio: Literal["16:9", "9:16", "1:1", "4:3", "3:4", "21:9", "9:21"] | None = Field(
        default=None, description="width to height; that of the first frame when absent"
    )
    resolution: Literal["360p", "480p", "540p", "720p", "1080p", "4k"] | None = Field(
        default=None, description="lines of the short side"
    )
    generate_audio: Boolean | None = Field(default=None, description="whether the film has sound")
    seed: Integer | None = Field(default=None, description="seed; random when absent, echoed", ge=0, le=2147483647)
    frame_images: Annotated[list[FrameImage], OneOrMore] | None = Field(
        default=None, description="the first frame, the last frame, or both", min_length=1, max_length=MAX_FRAMES
    )
    input_references: Annotated[list[ImageInput], OneOrMore] | None = Field(
        default=None,
        description="pictures of subjects or styles that the film should show",
        min_length=1,
        max_length=MAX_REFERENCES,
    )
    video: VideoInput | None = Field(default=None, description="a film to extend or to edit")
    mode: Literal["extend", "edit"] | None = Field(
        default=None, description="what to do with `video`", json_schema_extra={"default": "extend"}
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield conflicts: each frame once, a mode only with a film, and at least one input."""
        yield from super().conflicts(given)
        roles = [str(frame.get("role", FRAMES[0])) for _, frame in cls.files[0].entries(given)]
        if len(set(roles)) < len(roles):
            yield Detail("frame_images", "Give each of `first_frame` and `last_frame` at most once.")
        if "mode" in given and "video" not in given:
            yield Detail("mode", "`mode` says what to do with `video`, which is not given.")
        if not any(given.get(name) for name in ("prompt", "frame_images", "input_references", "video")):
            message = "Give a `prompt`, `frame_images`, `input_references` or a `video`."
            yield Detail("prompt", message, "missing_required_parameter")

    def resolved(self) -> dict[str, Any]:
        """Return the params, with the role of each frame and the mode of a film."""
        resolved = super().resolved()
        if self.frame_images is not None:
            resolved["frame_images"] = [frame.resolved() for frame in self.frame_images]
        return ({"mode": "extend"} if self.video is not None else {}) | resolved


def film_size(params: Mapping[str, Any], ratio: str = "16:9", resolution: str = "720p") -> tuple[int, int]:
    """Return width and height in pixels by ratio and resolution, both even; the arguments are the defaults."""
    wide, _, high = params.get("aspect_ratio", ratio).partition(":")
    short = SHORT_SIDE[params.get("resolution", resolution)]
    scale = short / min(int(wide), int(high))
    return round(int(wide) * scale / 2) * 2, round(int(high) * scale / 2) * 2


def expect_film(params: Mapping[str, Any]) -> Expectation:
    """Expect the requested length, and the size where ratio and resolution are both given."""
    seconds = None if "video" in params else params.get("duration")
    if "aspect_ratio" not in params or "resolution" not in params:
        return Expectation(seconds=seconds)
    width, height = film_size(params)
    return Expectation(width=width, height=height, seconds=seconds)
