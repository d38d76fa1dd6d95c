"""What every built-in engine gives back, how it tells its progress, and how it says that it cannot."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Tell: TypeAlias = Callable[[float], None]
"""Takes the share that is done, from 0 to 1."""


class Unable(Exception):
    """The engine cannot work on this input. The sentence is told to the caller."""


@dataclass(frozen=True, slots=True)
class Product:
    """What was made: the files, primary first, and what a caller should know of it."""

    primary: Path
    preview: Path
    seed: int
    warnings: tuple[str, ...] = ()
