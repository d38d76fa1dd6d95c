"""Steps that a flow yields to its driver: requests, streams, pauses and slow work, all as data.

A flow is a generator that does no I/O. It yields steps, receives the result of each, and returns its own. Both clients
share the flows. `sync_driver.py` and `async_driver.py` carry out the steps.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a multipart form."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request. `path` is relative to the server's address."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    json: Any = None
    upload: Upload | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other fields of the form with the upload."""
    content: bytes | None = None
    """A body of bytes."""
    read_seconds: float | None = None
    """Read timeout in seconds. None means the client's timeout."""
    follows: bool = False
    """True to follow redirects. The key is not sent to another host."""
    repeatable: bool = False
    """True if a POST is idempotent."""

    @property
    def is_repeatable(self) -> bool:
        """Return whether the request is safe to retry after a lost answer."""
        return self.repeatable or self.method in ("GET", "HEAD", "DELETE")


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of the server. `Read` steps read the body of a stream."""

    status: int
    headers: Mapping[str, str]
    """Names are in lower case."""
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Return whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def is_redirect(self) -> bool:
        """Return whether the status is 3xx."""
        return 300 <= self.status < 400


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request and read the whole answer. The result is a Reply."""

    request: Request


@dataclass(frozen=True, slots=True)
class Open:
    """Send a request and open its body for `Read`. The result is a Reply. An open stream is closed first."""

    request: Request


@dataclass(frozen=True, slots=True)
class Read:
    """Read the next bytes of the open stream. The result is empty at its end."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the open stream."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Sleep."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Work:
    """Run disk access or other slow work. The result is its return value."""

    work: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Notify:
    """Call a function of the caller. In an event loop it may return an awaitable."""

    call: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Emit:
    """Yield a value to the iterating caller."""

    value: Any


Call = Send | Open | Read | Close | Pause | Work | Notify
Step = Call | Emit
Flow = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a flow, with its result."""

    result: Any


def advance(flow: Flow[Any], came: Any, error: Exception | None = None) -> Step | Ended:
    """Send a step's result into a flow and return its next step."""
    try:
        return flow.send(came) if error is None else flow.throw(error)
    except StopIteration as end:
        return Ended(end.value)
