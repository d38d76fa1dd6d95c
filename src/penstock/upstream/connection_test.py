"""The test of a vendor's connection: one cheap call, with a timeout, to an address that is allowed."""

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import RateLimited
from penstock.vendor_api.chat import ChatVendor
from penstock.vendor_api.generation import AddressRefused, Call, GenerationVendor, NotSent, ReplyLost, Unclear

if TYPE_CHECKING:
    from penstock.safe_fetch.policy import Network
    from penstock.upstream.http_client import HttpClient

TEST_SECONDS: Final = 10.0
MAX_TESTS_PER_MINUTE: Final = 20
MAX_READ_BYTES: Final = 1 << 20
MAX_MODELS: Final = 500
MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}")
"""Form of models' names. Nothing else of a vendor's reply is shown."""


@dataclass(frozen=True, slots=True)
class ConnectionOutcome:
    """The outcome of a test. It quotes nothing of the vendor's reply but names of models."""

    ok: bool
    outcome: str
    message: str
    seconds: float = 0.0
    models: Sequence[str] = ()
    """The models that the vendor lists, if it lists any."""


class ConnectionTests:
    """Tests connections, a bounded number each minute for all administrators together."""

    def __init__(
        self,
        open_client: "Callable[[Callable[[], Sequence[Network]]], Awaitable[HttpClient]]",
        steady: Callable[[], float],
    ) -> None:
        self._open_client = open_client
        self._steady = steady
        self._begun: deque[float] = deque(maxlen=MAX_TESTS_PER_MINUTE)

    async def run(self, name: str, vendor: GenerationVendor | ChatVendor) -> ConnectionOutcome:
        """Make the vendor's cheapest call and return what it proves."""
        begun = self._steady()
        self._admit(begun)
        found: Any = vendor
        if getattr(found, "upstream", None) is not None or getattr(found, "server", None) is not None:
            return ConnectionOutcome(ok=True, outcome="inside", message="It runs on this machine.")
        probe: Call | None = found.probe() if hasattr(found, "probe") else None
        call = probe or Call("GET", vendor.options.base_url)
        client = await self._open_client(tuple)
        try:
            outcome = await self._ask(client, name, found, call, proves=probe is not None)
        finally:
            await client.close()
        return replace(outcome, seconds=round(self._steady() - begun, 3))

    async def _ask(
        self, client: "HttpClient", name: str, vendor: Any, call: Call, *, proves: bool
    ) -> ConnectionOutcome:
        try:
            async with asyncio.timeout(TEST_SECONDS), client.request(name, vendor, call) as response:
                body = await _read(response.content)
                outcome = _judge(response.status, proves=proves)
                return replace(outcome, models=_list_models(vendor, body)) if outcome.outcome == "ok" else outcome
        except (AddressRefused, Unclear):
            return ConnectionOutcome(
                ok=False,
                outcome="not_allowed",
                message="The address leads to where vendors added at run time may not be.",
            )
        except (NotSent, ReplyLost, TimeoutError):
            return ConnectionOutcome(
                ok=False,
                outcome="unreachable",
                message=f"No answer within {TEST_SECONDS:.0f} s, or no connection. Check the address.",
            )

    def _admit(self, now: float) -> None:
        if len(self._begun) == MAX_TESTS_PER_MINUTE and now < self._begun[0] + 60:
            wait = self._begun[0] + 60 - now
            raise RateLimited(f"At most {MAX_TESTS_PER_MINUTE} connections are tested in a minute.", retry_after=wait)
        self._begun.append(now)


async def _read(content: Any) -> bytes:
    """Return a body; nothing of one that is too large."""
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > MAX_READ_BYTES:
            return b""
    return bytes(body)


def _list_models(vendor: Any, body: bytes) -> tuple[str, ...]:
    """Return the names of models in a vendor's reply; none of one that is not a list of them."""
    try:
        names = vendor.list_models(body) if hasattr(vendor, "list_models") else ()
    except (ValueError, RecursionError):
        return ()
    return tuple(dict.fromkeys(name for name in names if MODEL_NAME.fullmatch(name)))[:MAX_MODELS]


def _judge(status: int, *, proves: bool) -> ConnectionOutcome:
    """Return what an answer proves. A call that sends no key says nothing of it, also by a 401."""
    if not proves and status < 500:
        message = "The vendor answers. Its key is checked by the first request."
        return ConnectionOutcome(ok=True, outcome="reachable", message=message)
    if status in (401, 403):
        return ConnectionOutcome(
            ok=False, outcome="key_refused", message=f"The vendor refuses the key (HTTP {status})."
        )
    if 200 <= status < 300:
        return ConnectionOutcome(ok=True, outcome="ok", message="The vendor answers and accepts the key.")
    message = f"The vendor answers with HTTP {status}. Check the address."
    return ConnectionOutcome(ok=False, outcome="unexpected", message=message)
