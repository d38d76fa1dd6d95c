"""The description of one model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from penstock.catalog.file_input import FileSlot
from penstock.catalog.params import Params, read
from penstock.catalog.schema_params import SchemaParams, largest_of
from penstock.errors import Detail


@dataclass(frozen=True, slots=True)
class Expectation:
    """The properties of the primary output that are checked before a job succeeds."""

    face_limit: int | None = None
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    formats: tuple[str, ...] = ("glb",)
    """Formats of a 3D model that the order allows. The file's content decides which it is."""
    parts: tuple[Literal["skeleton", "clip"], ...] = ()
    """Parts that a 3D model must have, as far as its format shows them."""
    ratio: float | None = None  # width to height, where the vendor chooses the pixels
    picture_type: str | None = None  # such as `png`

    @property
    def kept(self) -> dict[str, Any]:
        """Return the size, length and type that are set, to be kept in an operation as they come out of the store."""
        names = ("width", "height", "seconds", "ratio", "picture_type")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Recipe:
    """The way to run a declared model: the facts that its vendor's file cannot know."""

    kind: str
    file: str | None = None  # the vendor's param for the caller's file
    output: str | None = None  # path of the asset in the vendor's result, such as `video.url`
    preview: str | None = None  # path of a preview picture in the result
    workflow: Mapping[str, Any] | None = None  # for ComfyUI: the graph, in its API format
    bind: Mapping[str, str] | None = None  # for ComfyUI: the node input that each param sets


def expect_anything(params: Mapping[str, Any]) -> Expectation:
    """Expect only that the output can be opened."""
    del params
    return Expectation()


@dataclass(frozen=True, slots=True)
class GenerationModel:
    """A model that makes an asset from params."""

    id: str
    kind: str
    title: str
    params: type[Params] | SchemaParams
    example: Mapping[str, Any]
    expect: Callable[[Mapping[str, Any]], Expectation] = expect_anything
    seed_param: str | None = None
    recipe: Recipe | None = None
    most_faces: Callable[[Mapping[str, Any]], int | None] | None = None
    """Returns the maximum number of faces of a result; None for the bound of `face_limit` in the schema."""

    @property
    def files(self) -> tuple[FileSlot, ...]:
        """Return the params that take files."""
        return self.params.files if isinstance(self.params, SchemaParams) else getattr(self.params, "files", ())

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of `params`. Its parts are shared, so do not change them."""
        return dict(self.params.schema if isinstance(self.params, SchemaParams) else _schema_of(self.params))

    def largest(self, names: Sequence[str]) -> int | None:
        """Return the upper bound of these params; None if the schema has none."""
        return largest_of(self.schema, names)

    def read(self, given: Mapping[str, Any], place: str) -> tuple[dict[str, Any] | None, list[Detail]]:
        """Return the params with defaults filled, or every problem found; `place` is their path in the request."""
        if isinstance(self.params, SchemaParams):
            return self.params.read(given, place)
        params, details = read(self.params, given, place)
        return (None if params is None else params.resolved()), details


@lru_cache(256)
def _schema_of(params: type[Params]) -> dict[str, Any]:
    """Return the JSON Schema of a class. Making it takes milliseconds, so it is kept."""
    return params.model_json_schema()
