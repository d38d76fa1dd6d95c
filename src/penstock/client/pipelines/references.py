"""References in the steps of a pipeline: an earlier step's output, a param of the pipeline, an element of a list."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that the server fills in. Made by `step`, `param` and `item`."""

    fields: dict[str, Any] = field(hash=False)

    def as_input(self) -> dict[str, Any]:
        """Return the API's object."""
        return dict(self.fields)


def step(name: str, output: int | str | None = None, *, role: str | None = None) -> Reference:
    """Refer to an output of an earlier step: its number, "primary" (default) or "preview"."""
    chosen = {"step": name, "output": output, "role": role}
    return Reference({name: value for name, value in chosen.items() if value is not None})


def param(name: str) -> Reference:
    """Refer to one of the pipeline's own params."""
    return Reference({"param": name})


def item(name: str | None = None) -> Reference:
    """Refer to the element of `for_each`, or to one of its fields."""
    return Reference({"item": True if name is None else name})
