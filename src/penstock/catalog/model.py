"""What the catalogue says of one model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.catalog.params import Params, read
from penstock.catalog.schema_params import SchemaParams, largest_of
from penstock.errors import Detail


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the primary output must be, so that it can be checked before a job succeeds."""

    face_limit: int | None = None
    width: int | None = None
    height: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model that the configuration declares is run: what its vendor's file cannot know."""

    kind: str
    file: str | None = None  # the upstream param that takes the caller's file
    output: str | None = None  # where in the upstream's result the asset is, such as `video.url`
    preview: str | None = None  # the same of a picture to show
    workflow: Mapping[str, Any] | None = None  # of ComfyUI: the graph, in its API format
    bind: Mapping[str, str] | None = None  # of ComfyUI: the node input that each param sets


def expect_anything(params: Mapping[str, Any]) -> Expectation:
    """Only that the output can be opened."""
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
    """How many faces a result may have; None: what the schema says of `face_limit`."""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of `params`."""
        return self.params.schema if isinstance(self.params, SchemaParams) else self.params.model_json_schema()

    def largest(self, names: Sequence[str]) -> int | None:
        """The largest number that any of these params may be; None where the schema does not tell."""
        return largest_of(self.schema, names)

    def read(self, given: Mapping[str, Any], place: str) -> tuple[dict[str, Any] | None, list[Detail]]:
        """The params with defaults filled, or every problem found; `place` is where they stand in the request."""
        if isinstance(self.params, SchemaParams):
            return self.params.read(given, place)
        params, details = read(self.params, given, place)
        return (None if params is None else params.resolved()), details
