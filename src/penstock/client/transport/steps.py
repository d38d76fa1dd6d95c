"""What a flow asks of its driver: calls, streams, pauses and slow work, all of them data.

A flow is a generator that does no I/O. It yields steps, is sent what came of each, and returns its result. One flow
serves both clients: `sync_driver.py` and `async_driver.py` do the steps, each in its own way.
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
    """One HTTP request below the server's address."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    json: Any = None
    upload: Upload | None = None
    read_seconds: float | None = None
    """How long the next bytes may take to come; None: as long as the client's timeout."""
    follows: bool = False
    """Whether a redirect is followed; the key stays behind when it leads to another host."""
    repeatable: bool = False
    """Whether sending it twice does no more than sending it once, though its method does not say so."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again when nobody knows if it arrived."""
        return self.repeatable or self.method in ("GET", "HEAD", "DELETE")


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered; a stream's body is read by `Read`."""

    status: int
    headers: Mapping[str, str]
    """With small letters."""
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Whether it is neither an error nor a redirect."""
        return 200 <= self.status < 300

    @property
    def is_redirect(self) -> bool:
        """Whether it leads on to another place."""
        return 300 <= self.status < 400


@dataclass(frozen=True, slots=True)
class Send:
    """Send it and read the whole answer: comes to a Reply."""

    request: Request


@dataclass(frozen=True, slots=True)
class Open:
    """Send it and leave a success's body to `Read`: comes to a Reply. What was open before is closed."""

    request: Request


@dataclass(frozen=True, slots=True)
class Read:
    """Comes to the next bytes of what is open; none are left: b""."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close what is open."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Work:
    """Do something that touches the disk or takes its time: comes to what it returns."""

    work: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Tell:
    """Call something of the caller's; in an event loop it may be awaited."""

    call: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Emit:
    """Hand a value to whoever iterates."""

    value: Any


Call = Send | Open | Read | Close | Pause | Work | Tell
Step = Call | Emit
Flow = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Ended:
    """A flow is over."""

    result: Any


def advance(flow: Flow[Any], came: Any, error: Exception | None = None) -> Step | Ended:
    """Tell a flow what came of its step; its next one."""
    try:
        return flow.send(came) if error is None else flow.throw(error)
    except StopIteration as end:
        return Ended(end.value)
