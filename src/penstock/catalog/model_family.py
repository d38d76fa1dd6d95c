"""The 3D family: the params that all vendors and engines share, one class for each operation."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, StringConstraints

from penstock.catalog.file_input import FileParams, FileSlot, ImageInput, MeshInput
from penstock.catalog.image_to_model import MAX_FACES, MIN_FACES
from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.params import Boolean, Integer, Nested, Number, Params
from penstock.errors import Detail

VIEWS: Final = ("front", "left", "back", "right")
MESH_SLOT: Final = FileSlot("mesh", kinds=("3d",))
PICTURE: Final = {"url": "https://example.com/cat.png"}
MESH: Final = {"url": "https://example.com/cat.glb"}

Prompt = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=1024)]
Seed = Annotated[Integer, Field(ge=0, le=2147483647)]
Faces = Annotated[Integer, Field(ge=MIN_FACES, le=MAX_FACES)]
RIGID_FORMATS: Final = {"obj", "stl"}
"""Formats that hold no skeleton."""
Format = Literal["glb", "obj", "stl", "usdz", "fbx"]
RigType = Literal["biped", "quadruped", "hexapod", "octopod", "avian", "serpentine", "aquatic"]


class SurfaceParams(FileParams):
    """Params of every operation that makes a model."""

    face_limit: Faces | None = Field(default=None, description="most faces of the result; adaptive when absent")
    quads: Boolean | None = Field(
        default=None, description="whether to make faces of four corners", json_schema_extra={"default": False}
    )
    texture: Boolean | None = Field(
        default=None, description="whether to texture the result", json_schema_extra={"default": True}
    )
    pbr: Boolean | None = Field(
        default=None,
        description="whether to make PBR materials; implies `texture`; default true unless `texture` is false",
    )
    seed: Seed | None = Field(default=None, description="seed; random when absent, where the vendor takes it")

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield conflicts: no PBR without texture."""
        yield from super().conflicts(given)
        if given.get("texture") is False and given.get("pbr") is True:
            yield Detail("pbr", "`pbr: true` needs a texture, but `texture` is false: leave one of them out.")

    def resolved(self) -> dict[str, Any]:
        """Return the params with defaults: textured triangles, PBR with every texture."""
        texture = self.texture is not False
        return {"quads": False, "texture": texture, "pbr": texture, **super().resolved()}


class TextTo3dParams(SurfaceParams):
    """Params of models that make a 3D model from a prompt."""

    prompt: Prompt = Field(description="what the model shows")
    negative_prompt: Annotated[str, StringConstraints(strict=True, max_length=1024)] | None = Field(
        default=None, description="what it should not show, where the vendor takes it"
    )


class ImageTo3dParams(SurfaceParams):
    """Params of models that make a 3D model from a picture."""

    nested: ClassVar[Nested] = {"image": ImageInput}
    files: ClassVar = (FileSlot("image"),)

    image: ImageInput = Field(description="the picture of the subject")


class ViewInput(ImageInput):
    """A picture of the subject from one side."""

    role: Literal["front", "left", "back", "right"] = Field(description="the side that it shows")


class MultiviewTo3dParams(SurfaceParams):
    """Params of models that make a 3D model from pictures of several sides."""

    nested: ClassVar[Nested] = {"images": ViewInput}
    files: ClassVar = (FileSlot("images", most=len(VIEWS), roles=VIEWS),)

    images: list[ViewInput] = Field(
        description="pictures of the subject, each with the `role` `front`, `left`, `back` or `right`; the front is "
        "required",
        min_length=2,
        max_length=len(VIEWS),
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield conflicts: each side once, and the front among them."""
        yield from super().conflicts(given)
        roles = [str(entry.get("role")) for _, entry in cls.files[0].entries(given)]
        if len(set(roles)) < len(roles):
            yield Detail("images", "Give each side at most once: `front`, `left`, `back`, `right`.")
        elif roles and "front" not in roles:
            yield Detail("images", "One of the pictures must have the role `front`.")


class MeshParams(FileParams):
    """Params of every operation on a model."""

    nested: ClassVar[Nested] = {"mesh": MeshInput}
    files: ClassVar[tuple[FileSlot, ...]] = (MESH_SLOT,)

    mesh: MeshInput = Field(description="the model to work on")


class RetextureParams(MeshParams):
    """Params of models that texture a model."""

    nested: ClassVar[Nested] = {"mesh": MeshInput, "image": ImageInput}
    files: ClassVar[tuple[FileSlot, ...]] = (MESH_SLOT, FileSlot("image"))

    prompt: Prompt | None = Field(default=None, description="what the surface looks like; or give `image`")
    image: ImageInput | None = Field(default=None, description="a picture to take the surface from; or give `prompt`")
    pbr: Boolean | None = Field(
        default=None, description="whether to make PBR materials", json_schema_extra={"default": True}
    )
    seed: Seed | None = Field(default=None, description="seed; random when absent, where the vendor takes it")

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield conflicts: exactly one of prompt and picture."""
        yield from super().conflicts(given)
        if ("prompt" in given) == ("image" in given):
            yield Detail("prompt", "Give either `prompt` or `image`.")

    def resolved(self) -> dict[str, Any]:
        """Return the params with PBR materials."""
        return {"pbr": True, **super().resolved()}


class RemeshParams(MeshParams):
    """Params of models that rebuild the faces of a model."""

    face_limit: Faces | None = Field(default=None, description="most faces of the result; adaptive when absent")
    quads: Boolean | None = Field(
        default=None, description="whether to make faces of four corners", json_schema_extra={"default": False}
    )

    def resolved(self) -> dict[str, Any]:
        """Return the params, of triangles."""
        return {"quads": False, **super().resolved()}


class RigParams(MeshParams):
    """Params of models that give a model a skeleton."""

    rig_type: RigType | None = Field(
        default=None, description="the build of the body", json_schema_extra={"default": "biped"}
    )
    height_meters: Number | None = Field(
        default=None, description="height of the body in meters, where the vendor takes it", gt=0, le=100
    )

    def resolved(self) -> dict[str, Any]:
        """Return the params, of a biped."""
        return {"rig_type": "biped", **super().resolved()}


class AnimateParams(MeshParams):
    """Params of models that move a rigged model."""

    animation: Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=100)] = (
        Field(description="the movement: a name such as `idle`, `walk`, `run` or `jump`, or the vendor's own id")
    )


class ConvertParams(MeshParams):
    """Params of models that write a model in another format."""

    format: Format = Field(description="the file format of the result; an OBJ with textures comes as a zip")
    face_limit: Faces | None = Field(default=None, description="most faces of the result, where the vendor takes it")


def expect_surface(params: Mapping[str, Any]) -> Expectation:
    """Expect at most the requested faces. A GLB has only triangles, so quads may come in another format."""
    formats = ("glb", "fbx", "obj") if params.get("quads") else ("glb",)
    return Expectation(face_limit=params.get("face_limit"), formats=formats)


def expect_texture(params: Mapping[str, Any]) -> Expectation:
    """Expect a GLB, or the format of a model of quads."""
    del params
    return Expectation(formats=("glb", "fbx", "obj"))


def expect_skeleton(params: Mapping[str, Any]) -> Expectation:
    """Expect a GLB with a skeleton."""
    del params
    return Expectation(parts=("skeleton",))


def expect_clip(params: Mapping[str, Any]) -> Expectation:
    """Expect a GLB with an animation."""
    del params
    return Expectation(parts=("clip",))


def expect_format(params: Mapping[str, Any]) -> Expectation:
    """Expect the requested format, and at most the requested faces."""
    return Expectation(face_limit=params.get("face_limit"), formats=(params["format"],))


OPERATIONS: Final[
    Mapping[str, tuple[str, type[Params], Callable[[Mapping[str, Any]], Expectation], Mapping[str, Any]]]
] = {
    "text_to_3d": ("text to 3D model", TextTo3dParams, expect_surface, {"prompt": "a red fox", "face_limit": 10000}),
    "image_to_3d": ("picture to 3D model", ImageTo3dParams, expect_surface, {"image": PICTURE, "face_limit": 10000}),
    "multiview_to_3d": (
        "views to 3D model",
        MultiviewTo3dParams,
        expect_surface,
        {"images": [{**PICTURE, "role": "front"}, {"url": "https://example.com/cats-back.png", "role": "back"}]},
    ),
    "retexture": ("new texture", RetextureParams, expect_texture, {"mesh": MESH, "prompt": "weathered bronze"}),
    "remesh": ("new faces", RemeshParams, expect_surface, {"mesh": MESH, "face_limit": 5000}),
    "rig": ("skeleton", RigParams, expect_skeleton, {"mesh": MESH, "rig_type": "biped"}),
    "animate": ("animation", AnimateParams, expect_clip, {"mesh": MESH, "animation": "walk"}),
    "convert": ("another format", ConvertParams, expect_format, {"mesh": MESH, "format": "stl"}),
}
"""Title, params, expectation and example of each operation, by its name."""


def offer(prefix: str, vendor: str, operation: str, params: type[Params] | None = None) -> GenerationModel:
    """Return the model of one operation: `offer("tripo", "Tripo", "rig")` is `tripo_rig`, titled `Tripo: skeleton`."""
    title, usual, expect, example = OPERATIONS[operation]
    name, shown = (f"{prefix}_{operation}", f"{vendor}: {title}") if prefix else (operation, title.capitalize())
    return GenerationModel(name, "3d", shown, params or usual, example, expect)


MODELS: Final = tuple(offer("", "", operation) for operation in OPERATIONS)
"""Models that several vendors run, so that a route chooses among them."""


def find_skeleton_loss(vendor: str, operation: str | None, params: Mapping[str, Any]) -> str | None:
    """Return why a vendor's rigged model should not be changed in this way; None if it may."""
    if operation in ("remesh", "retexture"):
        return f"A rigged model loses its skeleton on {operation}: do that with the model from before the rig job."
    if operation == "convert" and params["format"] in RIGID_FORMATS:
        return f"{vendor} writes a rigged model as glb, fbx or usdz only: change `format`."
    return None


def operation_of(model: str) -> str | None:
    """Return the operation that a model's id ends with; None for a model outside of the family."""
    return next((name for name in OPERATIONS if model == name or model.endswith(f"_{name}")), None)


def asked_operation(params: Mapping[str, Any]) -> str | None:
    """Return the operation that these resolved params are of; None if they are not of the family."""
    if "mesh" not in params:
        return next((name for given, name in MAKERS.items() if given in params and "quads" in params), None)
    return next((name for given, name in CHANGERS.items() if given in params), None)


MAKERS: Final = {"image": "image_to_3d", "images": "multiview_to_3d", "prompt": "text_to_3d"}
CHANGERS: Final = {
    "format": "convert",
    "animation": "animate",
    "rig_type": "rig",
    "quads": "remesh",
    "prompt": "retexture",
    "image": "retexture",
}
"""The operation by a param that only its resolved params have, in this order."""
