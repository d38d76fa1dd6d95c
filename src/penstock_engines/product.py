"""Interface of the built-in engines: the result, the progress callback and the error for bad input."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ReportProgress: TypeAlias = Callable[[float], None]
"""Takes the completed share, from 0 to 1."""


class Unable(Exception):
    """The engine cannot work on this input. The message is shown to the caller."""


@dataclass(frozen=True, slots=True)
class Product:
    """The files of an order, with seed and warnings for the caller."""

    primary: Path
    preview: Path | None
    """None if the primary file is its own preview, as a picture is."""
    seed: int
    warnings: tuple[str, ...] = ()
    more: tuple[Path, ...] = ()
    """Further primary files, where an order asked for several."""
