"""`file`: the input picture, in every model that takes one."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from penstock.catalog.params import BRANCHES, Nested, Params, Text, as_object
from penstock.domain.files import MAX_FILE_BYTES, MAX_SIDE, MIN_SIDE
from penstock.errors import Detail

SOURCES = ("url", "file_token", "object")


class StoredObject(Params):
    """A file in a bucket that the vendor itself can read."""

    bucket: Text = Field(min_length=1, max_length=255)
    key: Text = Field(min_length=1, max_length=1024)


def _branch(value: Any) -> str:
    return BRANCHES[isinstance(value, Mapping | StoredObject)]  # called on validation and on serialisation


class FileInput(Params):
    """The input picture: exactly one of `url`, `file_token` and `object`."""

    nested: ClassVar[Nested] = {"object": StoredObject}

    url: Text | None = Field(
        default=None,
        description=f"http(s) URL, or a `data:` URI, of a JPEG, PNG or WebP of at most {MAX_FILE_BYTES >> 20} MB, "
        f"each side {MIN_SIDE} to {MAX_SIDE} pixels",
        min_length=1,
    )
    file_token: Text | None = Field(
        default=None, description="token of an upload to `POST /api/v1/files`", min_length=1
    )
    object: (
        Annotated[
            Annotated[Text, Field(min_length=1, max_length=2048), Tag(BRANCHES[0])]
            | Annotated[StoredObject, Tag(BRANCHES[1])],
            Discriminator(_branch),
        ]
        | None
    ) = Field(default=None, description="reference of a stored object, where the vendor can read it")
    type: Literal["jpg", "jpeg", "png", "webp", "image"] | None = Field(
        default=None, description="type of the picture; detected when absent, an error when it contradicts the bytes"
    )


def file_conflicts(file: Any) -> Iterator[Detail]:
    """Yield the conflicts between the fields of a raw `file`."""
    if not isinstance(file, Mapping):
        return
    given = [name for name in SOURCES if name in file]
    if len(given) != 1:
        got = " and ".join(f"`{name}`" for name in given) or "none of them"
        yield Detail("file", f"Give exactly one of `url`, `file_token` and `object`, got {got}.")


def given_file(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `file` among a job's params; an empty object if there is none."""
    return as_object(params.get("file"))
