"""`sim_*`: models whose successes and failures can be scripted, to test clients for free."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from penstock.catalog import image_to_model, text_to_video
from penstock.catalog.file_input import (
    AudioInput,
    FileInput,
    FileParams,
    FileSlot,
    ImageInput,
    MeshInput,
    OneOrMore,
    VideoInput,
)
from penstock.catalog.model import GenerationModel
from penstock.catalog.params import Boolean, Integer, Nested, Number, Params, Text
from penstock.catalog.text_to_image import TextToImageParams, expect_picture
from penstock.catalog.video import FRAMES, MAX_FRAMES, FrameImage

MAX_REFERENCES: Final = 4

Seconds = Annotated[Number, Field(ge=0, le=86400)]


class Ending(StrEnum):
    """The ending of a simulated job."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    FILTERED = "filtered"
    NO_OUTPUT = "no_output"
    CORRUPT = "corrupt"
    WRONG_SIZE = "wrong_size"
    NEVER = "never"


class Submission(StrEnum):
    """The fate of the submit call."""

    ACCEPTED = "accepted"
    REPLY_LOST = "reply_lost"
    NEVER_ARRIVED = "never_arrived"
    UNREACHABLE = "unreachable"
    BUSY = "busy"
    REJECTED = "rejected"
    UNAUTHORIZED = "unauthorized"


class Script(Params):
    """The script that the simulator plays. Every field has a default: an empty script succeeds after a moment."""

    latency: Seconds = Field(default=0.5, description="seconds from submit to the ending")
    queued: Seconds = Field(default=0, description="seconds of that spent in the vendor's queue")
    ending: Ending = Field(default=Ending.SUCCEEDED, description="how the job ends")
    submission: Submission = Field(default=Submission.ACCEPTED, description="what happens to the submit call")
    submission_times: Integer = Field(
        default=1, ge=1, le=1000, description="for how many calls, before one is accepted"
    )
    poll_errors: Integer = Field(
        default=0, ge=0, le=1000, description="how many polls first fail with 503, HTML or cut JSON"
    )
    download_errors: Integer = Field(default=0, ge=0, le=1000, description="how many downloads first fail")
    findable: Boolean = Field(default=True, description="whether the vendor can look up a lost order")
    cancelable: Boolean = Field(default=True, description="whether the vendor can stop a job")
    progress: Boolean = Field(default=True, description="whether the vendor reports progress")


class SimModelParams(FileParams):
    """Params of `sim_image_to_model`: those of `vendora_image_to_model` that shape a result, and a script."""

    files: ClassVar = (FileSlot("file"),)
    nested: ClassVar[Nested] = {"file": FileInput, "script": Script}

    file: FileInput | None = Field(default=None, description="an input picture, if the test needs one")
    model_seed: Integer | None = Field(default=None, ge=0, le=2147483647)
    face_limit: Integer | None = Field(default=None, ge=image_to_model.MIN_FACES, le=image_to_model.MAX_FACES)
    texture: Boolean | None = Field(default=None)
    script: Script | None = Field(default=None, description="what to play; default: the vendor's configured script")


class SimVideoParams(FileParams):
    """Params of `sim_text_to_video`: those of `vendorb_video_31` that shape a result, files of any kind, a script."""

    files: ClassVar = (
        FileSlot("frame_images", most=MAX_FRAMES, roles=FRAMES),
        FileSlot("input_references", most=MAX_REFERENCES),
        FileSlot("video", kinds=("video",)),
        FileSlot("audio", kinds=("audio",)),
        FileSlot("mesh", kinds=("3d",)),
    )
    nested: ClassVar[Nested] = {
        "frame_images": FrameImage,
        "input_references": ImageInput,
        "video": VideoInput,
        "audio": AudioInput,
        "mesh": MeshInput,
        "script": Script,
    }

    prompt: Text | None = Field(default=None, max_length=4000)
    durationSeconds: Integer | None = Field(default=None, ge=1, le=8)
    aspectRatio: Literal["16:9", "9:16"] | None = Field(default=None)
    resolution: Literal["720p", "1080p"] | None = Field(default=None)
    frame_images: Annotated[list[FrameImage], OneOrMore] | None = Field(
        default=None, description="pictures for a test, each with a role", min_length=1, max_length=MAX_FRAMES
    )
    input_references: Annotated[list[ImageInput], OneOrMore] | None = Field(
        default=None, description="pictures for a test", min_length=1, max_length=MAX_REFERENCES
    )
    video: VideoInput | None = Field(default=None, description="a film for a test")
    audio: AudioInput | None = Field(default=None, description="a sound for a test")
    mesh: MeshInput | None = Field(default=None, description="a 3D model for a test")
    script: Script | None = Field(default=None, description="what to play; default: the vendor's configured script")

    def resolved(self) -> dict[str, Any]:
        """Return the params with defaults: one second of 720p."""
        defaults = {"prompt": "", "durationSeconds": 1, "aspectRatio": "16:9", "resolution": "720p"}
        resolved = defaults | super().resolved()
        if self.frame_images is not None:
            resolved["frame_images"] = [frame.resolved() for frame in self.frame_images]
        return resolved


class SimImageParams(TextToImageParams):
    """Params of `sim_text_to_image`: those of all models that make pictures, and a script."""

    nested: ClassVar[Nested] = {**TextToImageParams.nested, "script": Script}

    script: Script | None = Field(default=None, description="what to play; default: the vendor's configured script")


class SimTurntableParams(FileParams):
    """Params of `sim_model_to_video`: a 3D model, and a script."""

    files: ClassVar = (FileSlot("mesh", kinds=("3d",)),)
    nested: ClassVar[Nested] = {"script": Script, "mesh": MeshInput}

    mesh: MeshInput = Field(description="the 3D model to be shown")
    script: Script | None = Field(default=None, description="what to play; default: the vendor's configured script")

    def resolved(self) -> dict[str, Any]:
        """Return the params with those of a short film."""
        return {"durationSeconds": 1, "aspectRatio": "16:9", "resolution": "720p"} | super().resolved()


MODELS = (
    GenerationModel(
        id="sim_model_to_video",
        kind="video",
        title="Simulated turntable film",
        params=SimTurntableParams,
        expect=text_to_video.expect,
        example={"mesh": {"url": "https://example.com/cat.glb"}, "script": {"latency": 1, "ending": "succeeded"}},
    ),
    GenerationModel(
        id="sim_image_to_model",
        kind="3d",
        title="Simulated 3D model",
        params=SimModelParams,
        expect=image_to_model.expect,
        example={"script": {"latency": 2, "ending": "succeeded"}},
        seed_param="model_seed",
    ),
    GenerationModel(
        id="sim_text_to_video",
        kind="video",
        title="Simulated video",
        params=SimVideoParams,
        expect=text_to_video.expect,
        example={"prompt": "A paper boat drifts down a rainy street", "script": {"latency": 2, "ending": "succeeded"}},
    ),
    GenerationModel(
        id="sim_text_to_image",
        kind="image",
        title="Simulated picture",
        params=SimImageParams,
        expect=expect_picture,
        example={"prompt": "A red fox", "script": {"latency": 2, "ending": "succeeded"}},
        seed_param="seed",
    ),
)
