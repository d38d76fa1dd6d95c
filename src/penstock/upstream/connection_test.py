"""The test of a vendor's connection: one cheap call, with a timeout, to an address that is allowed."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import RateLimited
from penstock.safe_fetch.policy import Network
from penstock.vendor_api.chat import ChatVendor
from penstock.vendor_api.generation import Call, GenerationVendor, NotSent, ReplyLost, Unclear

if TYPE_CHECKING:
    from penstock.upstream.http_client import HttpClient

TEST_SECONDS: Final = 10.0
MAX_TESTS_PER_MINUTE: Final = 20
MAX_READ_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ConnectionOutcome:
    """The outcome of a test. The message quotes nothing of the vendor's reply."""

    ok: bool
    outcome: str
    message: str
    seconds: float


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

    async def run(
        self, name: str, vendor: GenerationVendor | ChatVendor, networks: Sequence[Network] | None
    ) -> ConnectionOutcome:
        """Make the vendor's cheapest call and return what it proves."""
        begun = self._steady()
        self._admit(begun)
        found: Any = vendor
        if getattr(found, "upstream", None) is not None or getattr(found, "server", None) is not None:
            return ConnectionOutcome(ok=True, outcome="inside", message="It runs on this machine.", seconds=0.0)
        probe: Call | None = found.probe() if hasattr(found, "probe") else None
        call = probe or Call("GET", vendor.options.base_url)
        client = await self._open_client(lambda: networks or ())
        try:
            ok, outcome, message = await self._ask(
                client, name, found, call, proves=probe is not None, guarded=networks is not None
            )
        finally:
            await client.close()
        return ConnectionOutcome(ok, outcome, message, round(self._steady() - begun, 3))

    async def _ask(
        self, client: "HttpClient", name: str, vendor: Any, call: Call, *, proves: bool, guarded: bool
    ) -> tuple[bool, str, str]:
        try:
            async with asyncio.timeout(TEST_SECONDS), client.request(name, vendor, call, guarded=guarded) as response:
                await response.content.read(MAX_READ_BYTES)
                return _judge(response.status, proves=proves)
        except Unclear:
            return (
                False,
                "not_allowed",
                "The address is in a private network that `fetch.allow_networks` does not include.",
            )
        except (NotSent, ReplyLost, TimeoutError):
            return (
                False,
                "unreachable",
                f"No answer within {TEST_SECONDS:.0f} s, or no connection. Check the address.",
            )

    def _admit(self, now: float) -> None:
        if len(self._begun) == MAX_TESTS_PER_MINUTE and now < self._begun[0] + 60:
            wait = self._begun[0] + 60 - now
            raise RateLimited(f"At most {MAX_TESTS_PER_MINUTE} connections are tested in a minute.", retry_after=wait)
        self._begun.append(now)


def _judge(status: int, *, proves: bool) -> tuple[bool, str, str]:
    """Return what an answer proves."""
    if status in (401, 403):
        return False, "key_refused", f"The vendor refuses the key (HTTP {status})."
    if not proves:
        return True, "reachable", "The vendor answers. Its key is checked by the first request."
    if 200 <= status < 300:
        return True, "ok", "The vendor answers and accepts the key."
    return False, "unexpected", f"The vendor answers with HTTP {status}. Check the address."
