"""Input files: the objects by which a caller gives a file, and the params of a model that take them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, cast

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from penstock.catalog.params import BRANCHES, Nested, Params, Text, as_object
from penstock.domain.files import MAX_BYTES, MAX_FILE_BYTES, MAX_SIDE, MIN_SIDE, FileKind
from penstock.errors import Detail

SOURCES: Final = ("url", "file_token", "data", "object", "job")
MAX_OUTPUT_NUMBER: Final = 99


class StoredObject(Params):
    """A file in a bucket that the vendor itself can read."""

    bucket: Text = Field(min_length=1, max_length=255)
    key: Text = Field(min_length=1, max_length=1024)


def _branch(value: Any) -> str:
    return BRANCHES[isinstance(value, Mapping | StoredObject)]  # called on validation and on serialisation


def _read_output(value: Any) -> Any:
    """Return an output's number or role; reject everything else with one message."""
    if value in ("primary", "preview"):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_OUTPUT_NUMBER:
        number = int(value)
        if number == value:
            return number
    raise PydanticCustomError(
        "output", 'Input should be "primary", "preview" or a number from 0 to {most}', {"most": MAX_OUTPUT_NUMBER}
    )


OutputName = Annotated[
    Any,
    BeforeValidator(_read_output),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_OUTPUT_NUMBER},
                {"type": "string", "enum": ["primary", "preview"]},
            ]
        }
    ),
]


class GivenInput(Params):
    """A file, by exactly one of `url`, `file_token`, `data`, `object` and `job`."""

    nested: ClassVar[Nested] = {"object": StoredObject}

    url: Text | None = Field(default=None, description="http(s) URL or `data:` URI of the file", min_length=1)
    file_token: Text | None = Field(
        default=None, description="token of an upload to `POST /api/v1/files`", min_length=1
    )
    data: Text | None = Field(default=None, description="the file itself, in Base64 or as a `data:` URI", min_length=1)
    object: (
        Annotated[
            Annotated[Text, Field(min_length=1, max_length=2048), Tag(BRANCHES[0])]
            | Annotated[StoredObject, Tag(BRANCHES[1])],
            Discriminator(_branch),
        ]
        | None
    ) = Field(default=None, description="reference of a stored object, where the vendor can read it")
    job: Text | None = Field(
        default=None, description="id of a succeeded job of yours: use one of its outputs", min_length=1, max_length=64
    )
    output: OutputName | None = Field(
        default=None, description="which output of `job`: its number, `primary` or `preview`; default `primary`"
    )


class FileInput(GivenInput):
    """The input picture: exactly one of `url`, `file_token`, `data`, `object` and `job`."""

    url: Text | None = Field(
        default=None,
        description=f"http(s) URL, or a `data:` URI, of a JPEG, PNG or WebP of at most {MAX_FILE_BYTES >> 20} MB, "
        f"each side {MIN_SIDE} to {MAX_SIDE} pixels",
        min_length=1,
    )
    type: Literal["jpg", "jpeg", "png", "webp", "image"] | None = Field(
        default=None, description="type of the picture; detected when absent, an error when it contradicts the bytes"
    )


class ImageInput(FileInput):
    """A picture."""


class VideoInput(GivenInput):
    """A film."""

    type: Literal["mp4", "mov", "webm", "video"] | None = Field(
        default=None,
        description=f"type of the film, of at most {MAX_BYTES['video'] >> 20} MB; detected when absent",
    )


class AudioInput(GivenInput):
    """A sound."""

    type: Literal["mp3", "wav", "flac", "ogg", "m4a", "webm", "audio"] | None = Field(
        default=None,
        description=f"type of the sound, of at most {MAX_BYTES['audio'] >> 20} MB; detected when absent",
    )


class MeshInput(GivenInput):
    """A 3D model."""

    type: Literal["glb", "obj", "fbx", "stl", "usdz", "3d"] | None = Field(
        default=None,
        description=f"type of the 3D model, of at most {MAX_BYTES['3d'] >> 20} MB; detected when absent",
    )


def as_list(value: Any) -> Any:
    """Return a list of one for a single file, as callers may leave the brackets out."""
    return [value] if isinstance(value, Mapping) else value


OneOrMore = BeforeValidator(as_list)
"""Marks a param that takes a list of files, or a single one."""


@dataclass(frozen=True, slots=True)
class FileSlot:
    """A param that takes files of these kinds. With `most` above 1 it is a list."""

    name: str
    kinds: tuple[FileKind, ...] = ("image",)
    most: int = 1
    roles: tuple[str, ...] = ()

    def entries(self, params: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield each file given for this param with its path among the params."""
        value = params.get(self.name)
        if isinstance(value, list):
            for number, entry in enumerate(cast("list[Any]", value)[: self.most]):
                yield f"{self.name}.{number}", as_object(entry)
        elif isinstance(value, Mapping):
            yield self.name, as_object(value)


class FileParams(Params):
    """Base of params that take files."""

    files: ClassVar[tuple[FileSlot, ...]] = ()

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield the files that have no source, or several."""
        for slot in cls.files:
            for path, entry in slot.entries(given):
                yield from file_conflicts(entry, path)


def file_conflicts(file: Any, place: str = "file") -> Iterator[Detail]:
    """Yield the conflicts between the fields of a raw file, whose path among the params is `place`."""
    if not isinstance(file, Mapping):
        return
    given = [name for name in SOURCES if name in file]
    if len(given) != 1:
        got = " and ".join(f"`{name}`" for name in given) or "none of them"
        allowed = ", ".join(f"`{name}`" for name in SOURCES[:-1])
        yield Detail(place, f"Give exactly one of {allowed} and `{SOURCES[-1]}`, got {got}.")
    elif "output" in file and "job" not in file:
        yield Detail(f"{place}.output", "`output` names an output of `job`, which is not given.")


def given_file(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `file` among a job's params; an empty object if there is none."""
    return as_object(params.get("file"))


def file_at(params: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the file at a path such as `images.0`; an empty object if there is none."""
    name, _, number = path.partition(".")
    value = params.get(name)
    if number and isinstance(value, list):
        entries = cast("list[Any]", value)
        return as_object(entries[int(number)]) if int(number) < len(entries) else {}
    return as_object(value)


def with_file(params: Mapping[str, Any], path: str, file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params with another file object at this path."""
    name, _, number = path.partition(".")
    if not number:
        return {**params, name: file}
    entries = list(cast("Sequence[Any]", params[name]))
    entries[int(number)] = file
    return {**params, name: entries}
