"""A streamed chat answer on its way to the caller: pieces, heartbeats, timeouts and cuts."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.chat.attempt import RouteAttempt
from penstock.chat.faults import explain_fault
from penstock.chat.recorder import Recorder
from penstock.chat.replies.broken import Malformed
from penstock.chat.replies.sse import COMMENT, EventTooLarge
from penstock.chat.replies.stream import ResponseWriter, Stream
from penstock.chat.settlement import Settlement
from penstock.chat.timers import IdleTimer
from penstock.domain.usage import ChatOutcome
from penstock.errors import PenstockError, VendorFailed, VendorTimeout
from penstock.upstream.redaction import Redactor
from penstock.vendor_api.generation import ReplyLost

if TYPE_CHECKING:
    from penstock.upstream.chat_response import Incoming

LINGER_SECONDS: Final = 0.5
"""Time to wait for the end of a finished reply, so that its connection can be reused."""
MAX_LINGER_BYTES: Final = 64 << 10
"""Bytes that are read in that time. A vendor that sends more loses its connection."""


class Interrupted(Exception):
    """The vendor's reply ended before its answer was complete; the caller gets `event`."""

    def __init__(self, error: PenstockError, event: bytes, *, is_reported: bool) -> None:
        super().__init__(error.message)
        self.event = event
        self.is_reported = is_reported
        """The vendor itself reported the error; otherwise its reply broke off."""


class AnswerStream:
    """Pours a vendor's reply to the caller as it comes."""

    __slots__ = (
        "_attempt",
        "_heartbeat_seconds",
        "_idle_timer",
        "_recorder",
        "_redactor",
        "_settlement",
        "_stream",
        "_writer",
    )

    _idle_timer: IdleTimer
    _writer: ResponseWriter

    def __init__(
        self,
        attempt: RouteAttempt,
        stream: Stream,
        settlement: Settlement,
        recorder: Recorder | None,
        redactor: Redactor,
        heartbeat_seconds: float,
    ) -> None:
        self._attempt = attempt
        self._stream = stream
        self._settlement = settlement
        self._recorder = recorder
        self._redactor = redactor
        self._heartbeat_seconds = heartbeat_seconds

    async def pour(self, writer: ResponseWriter) -> None:
        """Send the answer as it comes, with heartbeats while the vendor is idle; raise `Interrupted` if it is cut."""
        stream, incoming, first = self._stream, self._attempt.incoming, self._attempt.first
        assert incoming is not None  # noqa: S101  open until `release`
        self._writer = writer
        idle_timer = self._idle_timer = self._start_timer(incoming)
        try:
            if first:
                self._pass(first)
            else:
                writer.write(COMMENT)
            while not (stream.ended or stream.broken or incoming.is_over):
                if writer.is_full:
                    idle_timer.waiting_since = None
                    await writer.drain()
                idle_timer.begin_wait()
                await incoming.pour(self._take)
            if not (stream.ended or stream.broken):
                self._pass(stream.end(), is_over=True)
        except EventTooLarge as error:
            raise self._interrupt(VendorFailed(f"The vendor's reply broke off: {error}.")) from error
        except ReplyLost as error:
            raise self._interrupt(_explain_cut(idle_timer)) from error
        finally:
            idle_timer.stop()
        self._conclude()

    async def linger(self) -> None:
        """Let the vendor end its side after a complete answer, so that the connection is kept."""
        incoming = self._attempt.incoming
        if self._settlement.outcome is ChatOutcome.OK and incoming is not None and not incoming.is_whole:
            try:
                async with asyncio.timeout(LINGER_SECONDS):
                    left = MAX_LINGER_BYTES
                    while left > 0 and (more := await incoming.read_some()):
                        left -= len(more)
            except (ReplyLost, TimeoutError):
                pass

    def fail(self, error: PenstockError) -> bytes:
        """Settle, and return the event that ends the stream with this error."""
        self._settlement.settle_failure(error)
        return self._stream.fail(error, self._settlement.request_id)

    def _take(self, data: bytes) -> bool:
        """Pass on some of the vendor's reply; return whether more is wanted now."""
        stream = self._stream
        quick = stream.quick
        if quick is not None and (out := quick(data)) is not None:
            if self._recorder is not None:
                self._recorder.add(out)
            idle_timer = self._idle_timer
            idle_timer.waiting_since = idle_timer.sent_at = idle_timer.now()
            return self._writer.write(out)  # as nearly always
        out = stream.feed(data)
        (self._idle_timer.record_output if out else self._idle_timer.begin_wait)()
        if stream.ended or stream.broken is not None or self._recorder is not None:
            self._pass(out + stream.end() if stream.ended else out)
            return not (stream.ended or self._writer.is_full or stream.broken)
        return self._writer.write(out)

    def _pass(self, piece: bytes, *, is_over: bool = False) -> None:
        """Send a piece; settle before the last one, so that it is charged even if the caller leaves."""
        stream = self._stream
        if (is_over or stream.ended) and stream.complete and stream.broken is None:
            self._settlement.outcome = ChatOutcome.OK
            self._settlement.settle()
        if self._recorder is not None:
            self._recorder.add(piece)
        self._writer.write(piece)

    def _conclude(self) -> None:
        """Raise `Interrupted` unless the answer is complete."""
        stream = self._stream
        if isinstance(stream.broken, Malformed):
            raise self._interrupt(VendorFailed(f"The vendor's reply broke off: {stream.broken}."))
        if stream.broken is not None:
            error = explain_fault(stream.broken.fault(self._attempt.vendor.fault), self._redactor)
            raise self._interrupt(error, event=stream.broken.event, is_reported=True)
        if not stream.complete:
            raise self._interrupt(VendorFailed("The vendor's reply broke off."))
        self._settlement.outcome = ChatOutcome.OK
        self._settlement.settle()
        if self._recorder is not None:
            self._recorder.finish()

    def _interrupt(self, error: PenstockError, *, event: bytes | None = None, is_reported: bool = False) -> Interrupted:
        self._settlement.outcome, self._settlement.error = ChatOutcome.CUT, error
        own = self.fail(error)
        return Interrupted(error, own if event is None else event, is_reported=is_reported)

    def _start_timer(self, incoming: "Incoming") -> IdleTimer:
        options = self._attempt.vendor.options
        return IdleTimer(
            incoming.close,
            partial(_send_heartbeat, self._writer),
            idle_seconds=options.idle_seconds,
            total_seconds=options.total_seconds - self._settlement.elapsed,
            heartbeat_seconds=self._heartbeat_seconds,
        )


def _explain_cut(idle_timer: IdleTimer) -> PenstockError:
    if idle_timer.expiry:
        return VendorTimeout(f"The vendor's reply broke off: {idle_timer.expiry}.")
    return VendorFailed("The vendor's reply broke off.")


def _send_heartbeat(writer: ResponseWriter) -> None:
    """Keep the caller's connection alive; a caller that reads nothing gets no more to read."""
    if not writer.is_full:
        writer.write(COMMENT)
