"""`vendora_image_to_model`: a 3D model from a picture."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from penstock.catalog.file_input import FileInput, FileParams, FileSlot
from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.params import Boolean, Integer, Nested, shorten
from penstock.errors import Detail

Version = Literal[
    "v3.1-20260211",
    "v3.0-20250812",
    "v2.5-20250123",
    "v2.0-20240919",
    "Turbo-v1.0-20250506",
    "P1-20260311",
    "P2-20260801",
    "v1.4-20240625",
]
DEFAULT_VERSION = "v3.1-20260211"
MIN_FACES, MAX_FACES = 48, 2_000_000
MAX_FACES_BY_VERSION = {
    "v3.1-20260211": 1_500_000,
    "v3.0-20250812": 1_000_000,
    "v2.5-20250123": 500_000,
    "P1-20260311": 20_000,
    "P2-20260801": 20_000,
}


class ImageToModelParams(FileParams):
    """Params of `vendora_image_to_model`."""

    files: ClassVar = (FileSlot("file"),)
    nested: ClassVar[Nested] = {"file": FileInput}

    file: FileInput = Field(description="the input picture")
    model_version: Version | None = Field(
        default=None, description="which release to run", json_schema_extra={"default": DEFAULT_VERSION}
    )
    model_seed: Integer | None = Field(
        default=None, description="seed; random when absent, echoed", ge=0, le=2147483647
    )
    face_limit: Integer | None = Field(
        default=None, description="most faces of the result; adaptive when absent", ge=MIN_FACES, le=MAX_FACES
    )
    texture: Boolean | None = Field(
        default=None, description="whether to texture the result", json_schema_extra={"default": True}
    )
    pbr: Boolean | None = Field(
        default=None,
        description="whether to make PBR materials; implies `texture`; default true unless `texture` is false",
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield conflicts: one source for the file, no PBR without texture, each version's own face limit."""
        yield from super().conflicts(given)
        if given.get("texture") is False and given.get("pbr") is True:
            yield Detail("pbr", "`pbr: true` needs a texture, but `texture` is false: leave one of them out.")
        version = given.get("model_version", DEFAULT_VERSION)
        faces = given.get("face_limit")
        most = most_faces(given)
        if isinstance(faces, int | float) and not isinstance(faces, bool) and most < faces <= MAX_FACES:
            yield Detail("face_limit", f"{version} makes {MIN_FACES} to {most} faces, got {shorten(faces)}.")

    def resolved(self) -> dict[str, Any]:
        """Return the params with defaults: the newest version, textured, PBR with every texture."""
        texture = self.texture is not False
        return {
            **super().resolved(),
            "model_version": self.model_version or DEFAULT_VERSION,
            "texture": texture,
            "pbr": texture if self.pbr is None else self.pbr,
        }


def most_faces(params: Mapping[str, Any]) -> int:
    """Return the maximum number of faces of the requested version."""
    version = params.get("model_version", DEFAULT_VERSION)
    return MAX_FACES_BY_VERSION.get(version, MAX_FACES) if isinstance(version, str) else MAX_FACES


def expect(params: Mapping[str, Any]) -> Expectation:
    """Return the requested face limit."""
    return Expectation(face_limit=params.get("face_limit"))


MODELS = (
    GenerationModel(
        id="vendora_image_to_model",
        kind="3d",
        title="Image to 3D model",
        params=ImageToModelParams,
        expect=expect,
        example={"file": {"url": "https://example.com/cat.png"}, "face_limit": 10000, "texture": True, "pbr": True},
        seed_param="model_seed",
        most_faces=most_faces,
    ),
)
