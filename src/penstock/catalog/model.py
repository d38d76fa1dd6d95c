"""What the catalogue says of one model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.catalog.params import Params


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the primary output must be, so that it can be checked before a job succeeds."""

    face_limit: int | None = None
    width: int | None = None
    height: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class GenerationModel:
    """A model that makes an asset from params."""

    id: str
    kind: str
    title: str
    params: type[Params]
    expect: Callable[[Mapping[str, Any]], Expectation]
    example: Mapping[str, Any]
    seed_param: str | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of `params`."""
        return self.params.model_json_schema()
