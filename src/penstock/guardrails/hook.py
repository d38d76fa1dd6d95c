"""Ask the operator's hooks about a request: signed like webhooks, bounded in time, size and number."""

import asyncio
import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from penstock.domain.guardrails.inquiry import GuardrailFinding, Inquiry, InspectedText
from penstock.domain.ids import new_id
from penstock.domain.webhooks import sign
from penstock.errors import GuardrailUnavailable
from penstock.fairness.fair_queue import FairQueue
from penstock.guardrails.breaker import Breaker

if TYPE_CHECKING:  # slow to load, as it reads the system's certificates; only a server with hooks needs it
    import aiohttp

MAX_CALLS: Final = 64
"""Requests that one hook gets at once from this process; further ones wait, accounts in turn."""
MAX_CALLS_PER_ACCOUNT: Final = 16
WAIT_FACTOR: Final = 2
"""A request waits for a place as long as this many timeouts."""
TOO_MANY: Final = "Too many requests of this account wait for a guardrail. Nothing was accepted; try again."
MAX_CHARACTERS: Final = 256 * 1024
"""Characters of texts that a hook gets. Of longer requests, it gets the end."""
MAX_TEXTS: Final = 10_000
MAX_MEDIA: Final = 1_000
MAX_ANSWER_BYTES: Final = 16 * 1024
MAX_ANNOTATION_BYTES: Final = 4 * 1024
MAX_ANNOTATION_DEPTH: Final = 16
MAX_REASON_CHARACTERS: Final = 500
VERDICTS: Final = ("allow", "refuse")

log = logging.getLogger(__name__)


class HookFailed(Exception):
    """The hook gave no usable answer."""

    def __init__(self, problem: str, *, is_provocable: bool = True) -> None:
        super().__init__(problem)
        self.is_provocable = is_provocable
        """Whether a request can provoke this failure."""


@dataclass(frozen=True, slots=True)
class HookOptions:
    """The operator's settings of one hook."""

    name: str
    url: str
    secret: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Letter:
    """The body of a hook's request, which all hooks get."""

    id: str
    body: bytes


def write_letter(inquiry: Inquiry) -> Letter:
    """Return the body for hooks, bounded in size."""
    content = inquiry.content
    texts, is_truncated = _bound(content.texts)
    letter_id = new_id("guard")
    message = {
        "id": letter_id,
        "type": inquiry.type,
        "account_id": inquiry.account_id,
        "account": inquiry.account,
        "key_id": inquiry.key_id,
        "request_id": inquiry.request_id,
        "model": inquiry.model,
        "endpoint": inquiry.endpoint,
        "texts": [{"role": each.role, "text": each.text} for each in texts],
        "truncated": is_truncated,
        "media": list(content.media[:MAX_MEDIA]),
    }
    return Letter(letter_id, msgspec.json.encode(message))


class HookSessions:
    """The connection pool of all hooks of a process."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> "aiohttp.ClientSession":
        """Return the pool; it is opened at first use."""
        import aiohttp  # noqa: PLC0415 - see above

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15, ttl_dns_cache=30),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class Hook:
    """One hook, with its places and its breaker."""

    def __init__(
        self, options: HookOptions, sessions: HookSessions, clock: Callable[[], float], steady: Callable[[], float]
    ) -> None:
        importlib.import_module("aiohttp")  # before the first call, which has a timeout
        self.options = options
        self._sessions = sessions
        self._clock = clock
        self._queue = FairQueue(MAX_CALLS, MAX_CALLS_PER_ACCOUNT)
        self._breaker = Breaker(steady)

    async def ask(self, inquiry: Inquiry, letter: Letter) -> GuardrailFinding:
        """Return the hook's finding: `unavailable` if it failed.

        Raise `GuardrailUnavailable` if the account sends more than the hook can take: else a flood would open it.
        """
        account_id, name, seconds = inquiry.account_id, self.options.name, self.options.seconds
        was_paused = self._breaker.is_paused(account_id)
        if not self._breaker.try_begin(account_id):
            return GuardrailFinding(name, "unavailable")
        outcome: GuardrailFinding | HookFailed | None = None
        try:
            async with AsyncExitStack() as place:
                async with asyncio.timeout(WAIT_FACTOR * seconds):
                    await place.enter_async_context(self._queue.place(account_id))
                if self._breaker.is_paused(account_id) and not was_paused:  # it failed while this one waited
                    return GuardrailFinding(name, "unavailable")
                outcome = await self._try(letter)
        except TimeoutError:
            raise GuardrailUnavailable(TOO_MANY, retry_after=1) from None
        finally:
            self._learn(account_id, outcome)
        return outcome if isinstance(outcome, GuardrailFinding) else GuardrailFinding(name, "unavailable")

    async def _try(self, letter: Letter) -> GuardrailFinding | HookFailed:
        try:
            async with asyncio.timeout(self.options.seconds):
                return await self._call(letter)
        except TimeoutError:
            return HookFailed(f"no answer in {self.options.seconds:g} s")
        except HookFailed as failed:
            return failed

    def _learn(self, account_id: str, outcome: GuardrailFinding | HookFailed | None) -> None:
        """Tell the breaker, and log failures. None: the caller has left, or the hook was not asked."""
        fields = {"guardrail": self.options.name, "account": account_id}
        if outcome is None:
            self._breaker.abstain(account_id)
        elif isinstance(outcome, GuardrailFinding):
            if self._breaker.succeed(account_id):
                log.info("a guardrail's hook works again", extra={"fields": fields})
        else:
            fields["problem"] = str(outcome)
            log.info("a guardrail's hook failed", extra={"fields": fields})
            if self._breaker.fail(account_id, is_provocable=outcome.is_provocable):
                log.warning("a guardrail's hook keeps failing; it is asked again soon", extra={"fields": fields})

    async def _call(self, letter: Letter) -> GuardrailFinding:
        """Send the letter; once more if an idle connection was closed meanwhile."""
        import aiohttp  # noqa: PLC0415 - see above

        try:
            try:
                return await self._send(letter)
            except aiohttp.ClientConnectorError:
                raise
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                return await self._send(letter)
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            raise HookFailed(f"no connection ({type(error).__name__})", is_provocable=False) from error
        except (aiohttp.ClientError, OSError) as error:
            raise HookFailed(f"the connection broke ({type(error).__name__})") from error

    async def _send(self, letter: Letter) -> GuardrailFinding:
        url, headers = self.options.url, self._headers(letter)
        async with self._sessions.open().post(
            url, data=letter.body, headers=headers, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise HookFailed(f"it answered {response.status}; only 200 counts")
            body = bytearray()
            async for piece in response.content.iter_chunked(MAX_ANSWER_BYTES):
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise HookFailed(f"its answer has more than {MAX_ANSWER_BYTES} bytes")
        return read_answer(self.options.name, bytes(body))

    def _headers(self, letter: Letter) -> dict[str, str]:
        moment, secret = int(self._clock()), self.options.secret
        headers = {
            "content-type": "application/json",
            "accept-encoding": "identity",
            "user-agent": "penstock",
            "webhook-id": letter.id,
            "webhook-timestamp": str(moment),
        }
        if secret is not None:
            headers["webhook-signature"] = sign([secret], letter.id, moment, letter.body)
        return headers


def read_answer(name: str, body: bytes) -> GuardrailFinding:
    """Return the finding in a hook's answer. Raise `HookFailed` if it is not an answer."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise HookFailed("its answer is not JSON") from None
    if not isinstance(found, dict):
        raise HookFailed("its answer is not a JSON object")
    answer = cast("dict[str, Any]", found)
    verdict, reason, annotations = answer.get("verdict"), answer.get("reason"), answer.get("annotations")
    if verdict not in VERDICTS:
        raise HookFailed('its `verdict` is neither "allow" nor "refuse"')
    if reason is not None and not isinstance(reason, str):
        raise HookFailed("its `reason` is not a text")
    return GuardrailFinding(name, verdict, _clean(reason), _read_annotations(annotations))


def _clean(reason: str | None) -> str | None:
    """Return a reason on one line, of bounded length."""
    shown = "".join(sign if sign.isprintable() else " " for sign in reason or "")
    return " ".join(shown.split())[:MAX_REASON_CHARACTERS] or None


def _read_annotations(found: Any) -> Mapping[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise HookFailed("its `annotations` are not an object")
    if len(msgspec.json.encode(found)) > MAX_ANNOTATION_BYTES:
        raise HookFailed(f"its `annotations` have more than {MAX_ANNOTATION_BYTES} bytes")
    if _is_deep(found):
        raise HookFailed(f"its `annotations` are nested more than {MAX_ANNOTATION_DEPTH} times")
    return cast("Mapping[str, Any]", found)


def _is_deep(found: Any, left: int = MAX_ANNOTATION_DEPTH) -> bool:
    """Return whether a value is nested too deeply to be part of a job's document."""
    if isinstance(found, dict):
        found = list(cast("dict[str, Any]", found).values())
    if not isinstance(found, list):
        return False
    return left == 0 or any(_is_deep(item, left - 1) for item in cast("list[Any]", found))


def _bound(texts: Sequence[InspectedText]) -> tuple[list[InspectedText], bool]:
    """Return the last texts that are not too long together, and whether something was left out."""
    kept: list[InspectedText] = []
    left = MAX_CHARACTERS
    for each in reversed(texts):
        if left <= 0 or len(kept) >= MAX_TEXTS:
            return kept[::-1], True
        kept.append(each if len(each.text) <= left else InspectedText(each.role, each.text[-left:]))
        left -= len(each.text)
    return kept[::-1], left < 0
