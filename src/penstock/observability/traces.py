"""Tracing: begin and end of spans; without a configured collector all of this does nothing."""

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
    """A traced unit of work. Its attributes hold no caller's content and no secret."""

    def __enter__(self) -> Self:
        """Make it the current span."""
        ...

    def __exit__(self, *_: object) -> None:
        """End the span; an exception becomes its error."""
        ...

    def tell(self, facts: Mapping[str, Fact], name: str | None = None) -> None:
        """Add attributes, and optionally rename the span."""
        ...

    def fail(self, kind: str) -> None:
        """Mark the span as failed with this error type."""
        ...

    def end(self) -> None:
        """End the span; later attributes are dropped."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    def request(self, method: str, headers: Iterable[tuple[bytes, bytes]], request_id: str) -> Span:
        """Begin the span of a request, which continues its caller's trace."""
        ...

    def chat(self, vendor: str, model: str, asked: str, *, stream: bool, operation: str = "chat") -> Span:
        """Begin the span of a call to a chat vendor, with the vendor's and the caller's name of the model."""
        ...

    def call(self, vendor: str, verb: str) -> Span:
        """Begin the span of a generation vendor's verb."""
        ...

    def job(self, job: Job, epoch: int) -> Span:
        """Begin the span of the work on a job under one claim, which continues the trace of its request."""
        ...

    def current(self) -> str | None:
        """Return the current span as a `traceparent`."""
        ...

    def close(self) -> None:
        """Send the remaining spans, for some seconds at most."""
        ...


class _Nothing:
    """A span that does nothing."""

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
"""The tracer; None without a collector. Hot paths check it first."""


def start(environ: Mapping[str, str]) -> None:
    """Start tracing if a collector is configured; otherwise the library is not even loaded."""
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
    """Stop tracing, and send the remaining spans."""
    global tracer
    former, tracer = tracer, None
    if former is not None:
        await asyncio.to_thread(former.close)


def current() -> str | None:
    """Return the current span as a `traceparent`; None without tracing."""
    return None if tracer is None else tracer.current()


def call(vendor: str, verb: str) -> Span:
    """Begin the span of a generation vendor's verb."""
    return NOTHING if tracer is None else tracer.call(vendor, verb)


def job(job: Job, epoch: int) -> Span:
    """Begin the span of the work on a job under one claim."""
    return NOTHING if tracer is None else tracer.job(job, epoch)


def tell_end(span: Span, job: Job) -> None:
    """Record the end of a job in its span."""
    span.tell({"penstock.job.status": job.state.value})
    if job.error is not None:
        span.fail(str(job.error["code"]))


def tell_reply(span: Span, body: bytes) -> None:
    """Return id, model and finish reasons of a whole answer; a long answer is not parsed again for them."""
    if len(body) > MAX_READ:
        return
    try:
        reply = _reply.decode(body)
    except msgspec.DecodeError:
        return
    _tell_answer(span, reply.model, [choice.finish_reason for choice in reply.choices])


def tell_stream(span: Span, first: bytes, reasons: Mapping[int, str], seconds: float) -> None:
    """Return the attributes of a streamed answer: its first chunk, finish reasons, and time of the first chunk."""
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
    """Return the attributes of a chat answer's usage."""
    span.tell(
        {
            "gen_ai.usage.input_tokens": usage.prompt,
            "gen_ai.usage.output_tokens": usage.completion,
            "gen_ai.usage.cache_read.input_tokens": usage.cached,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_writes,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
            "penstock.usage.estimated": usage.estimated,
        }
    )
