"""Where spans begin and end; all of it is nothing unless the environment names a collector."""

import asyncio
import importlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, Self, TypeAlias

import msgspec

from penstock.domain.chat import Usage
from penstock.domain.jobs import Job

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
MAX_READ: Final = 1 << 18
MAX_TEXT: Final = 200
Fact: TypeAlias = str | int | float | bool | Sequence[str]

log = logging.getLogger(__name__)


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


class _Reply(msgspec.Struct):
    model: str | None = None
    choices: list[_Choice] = []


_reply = msgspec.json.Decoder(_Reply)


class Span(Protocol):
    """A stretch of work that somebody may look at. Its facts hold nothing that a caller said, and no secret."""

    def __enter__(self) -> Self:
        """What begins from here on belongs to it."""
        ...

    def __exit__(self, *_: object) -> None:
        """It is over; an exception on its way is its error."""
        ...

    def tell(self, facts: Mapping[str, Fact], name: str | None = None) -> None:
        """Add to what is known of it, and maybe give it a better name."""
        ...

    def fail(self, kind: str) -> None:
        """It goes wrong, in this way."""
        ...

    def end(self) -> None:
        """It is over; what is told later is lost."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    def request(self, method: str, headers: Iterable[tuple[bytes, bytes]], request_id: str) -> Span:
        """A request, which goes on with its caller's trace."""
        ...

    def chat(self, vendor: str, model: str, asked: str, *, stream: bool) -> Span:
        """A call to a chat vendor, for its model; the caller asked for ours."""
        ...

    def call(self, vendor: str, verb: str) -> Span:
        """A verb of a vendor of jobs."""
        ...

    def job(self, job: Job, epoch: int) -> Span:
        """The work on a job under one claim, which goes on with the trace of its request."""
        ...

    def current(self) -> str | None:
        """The span that this is done in, as a `traceparent`."""
        ...

    def close(self) -> None:
        """Send what is there, for some seconds at most."""
        ...


class _Nothing:
    """A span that nobody looks at."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def tell(self, facts: Mapping[str, Fact], name: str | None = None) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass

    def end(self) -> None:
        pass


NOTHING: Final[Span] = _Nothing()

tracer: Tracer | None = None
"""None: nobody wants traces. What runs thousands of times a second looks here first, and does no more."""


def start(environ: Mapping[str, str]) -> None:
    """Begin to make spans if there is a collector to send them to; without one, nothing of this is even loaded."""
    global tracer  # noqa: PLW0603  one for the process, as the environment is
    is_wanted = any(environ.get(name) for name in ENDPOINTS)
    if tracer is not None or not is_wanted or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return
    try:
        module: Any = importlib.import_module("penstock.observability.opentelemetry")
    except ModuleNotFoundError as error:
        log.warning("traces need the extra `otel` of this package", extra={"fields": {"missing": error.name}})
        return
    tracer = module.open_tracer(environ)


async def stop() -> None:
    """Make no more, and send what is there."""
    global tracer
    former, tracer = tracer, None
    if former is not None:
        await asyncio.to_thread(former.close)


def current() -> str | None:
    """The span that this is done in, as a `traceparent`; None where there are no traces."""
    return None if tracer is None else tracer.current()


def call(vendor: str, verb: str) -> Span:
    """A verb of a vendor of jobs."""
    return NOTHING if tracer is None else tracer.call(vendor, verb)


def job(job: Job, epoch: int) -> Span:
    """The work on a job under one claim."""
    return NOTHING if tracer is None else tracer.job(job, epoch)


def tell_end(span: Span, job: Job) -> None:
    """How a job ended, as its span tells it."""
    span.tell({"penstock.job.status": job.state.value})
    if job.error is not None:
        span.fail(str(job.error["code"]))


def tell_reply(span: Span, body: bytes) -> None:
    """Who answered, and why it ended, by the whole answer; a long one is not read again for that."""
    if len(body) > MAX_READ:
        return
    try:
        reply = _reply.decode(body)
    except msgspec.DecodeError:
        return
    _tell_answer(span, reply.model, [choice.finish_reason for choice in reply.choices])


def tell_stream(span: Span, first: bytes, reasons: Mapping[int, str], seconds: float) -> None:
    """The same by a stream: its first piece, why its choices ended, and when it began."""
    span.tell({"gen_ai.response.time_to_first_chunk": seconds})
    try:
        model = _reply.decode(first.partition(b"\n\n")[0].removeprefix(b"data: ")).model
    except msgspec.DecodeError:  # a comment came first
        model = None
    _tell_answer(span, model, [reasons[index] for index in sorted(reasons)])


def _tell_answer(span: Span, model: str | None, reasons: Sequence[str | None]) -> None:
    if model:
        span.tell({"gen_ai.response.model": model[:MAX_TEXT]})
    span.tell({"gen_ai.response.finish_reasons": [reason[:MAX_TEXT] for reason in reasons if reason]})


def tell_usage(span: Span, usage: Usage) -> None:
    """What a chat answer used."""
    span.tell(
        {
            "gen_ai.usage.input_tokens": usage.prompt,
            "gen_ai.usage.output_tokens": usage.completion,
            "gen_ai.usage.cache_read.input_tokens": usage.cached,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
            "penstock.usage.estimated": usage.estimated,
        }
    )
