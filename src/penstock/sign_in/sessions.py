"""Sessions by their cookies: looked up in the store, remembered for less than a second, in bounded number."""

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from penstock.domain.people.sign_in import SessionPolicy, SignedIn
from penstock.domain.people.sign_in_errors import SessionEnded
from penstock.errors import StoreUnavailable
from penstock.store.database import Database
from penstock.store.queries.accounts import session_rows

KNOWN_SECONDS: Final = 0.8
"""Time for which a lookup counts. Changes by other processes apply after it."""
MAX_REMEMBERED: Final = 10_000
TOUCH_SECONDS: Final = 60.0
"""Interval at which the time of the latest request is stored."""
TOKEN_BYTES: Final = 32
TAG_CHARACTERS: Final = 16
MAX_TOKEN_CHARACTERS: Final = 100

log = logging.getLogger(__name__)


def hash_token(token: str) -> bytes:
    """Hash a cookie's value with SHA-256, which is enough for 256 random bits."""
    return hashlib.sha256(token.encode()).digest()


class ConsoleSessions:
    """The sessions that this process has seen lately."""

    def __init__(
        self,
        database: Database,
        signing_secret: bytes,
        policy: Callable[[], SessionPolicy],
        clock: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._database = database
        self._signing_secret = signing_secret
        self._policy = policy
        self._clock = clock
        self._steady = steady
        self._remembered: OrderedDict[bytes, tuple[float, SignedIn | None]] = OrderedDict()
        self._changes = 0
        self._touching: set[asyncio.Task[Any]] = set()

    async def stop(self) -> None:
        """Finish the writes under way: the store is closed next."""
        await asyncio.gather(*self._touching, return_exceptions=True)

    def make_token(self) -> str:
        """Return a new value for a cookie. Its tag spares the store lookups of invented values."""
        body = secrets.token_urlsafe(TOKEN_BYTES)
        return f"{body}.{self._tag(body)}"

    def forget(self) -> None:
        """Forget all lookups, as something was changed here."""
        self._changes += 1
        self._remembered.clear()

    async def find(self, token: str, *, touches: bool = False) -> SignedIn | None:
        """Return the session of a cookie and its person, or None if it has ended.

        With `touches`, this counts as a request, from which the idle time is counted.
        """
        body, _, tag = token.partition(".")
        if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii() or not hmac.compare_digest(tag, self._tag(body)):
            return None
        digest = hash_token(token)
        found = await self._look_up(digest)
        now = self._clock()
        if found is None or found.session.is_over(self._policy(), now):
            return None
        if touches and now >= found.session.seen_at + min(TOUCH_SECONDS, self._policy().idle_seconds / 10):
            self._touch(digest, found, now)
        return found

    async def check(self, token: str, *, touches: bool = True) -> SignedIn:
        """Like `find`, but raise if the session has ended."""
        found = await self.find(token, touches=touches)
        if found is None:
            raise SessionEnded
        return found

    async def _look_up(self, digest: bytes) -> SignedIn | None:
        known = self._remembered.get(digest)
        if known is not None and self._steady() < known[0]:
            return known[1]
        changes, asked = self._changes, self._steady()
        found = await self._database.read(session_rows.find, digest)
        if changes == self._changes:
            self._keep(digest, asked + KNOWN_SECONDS, found)
        return found

    def _keep(self, digest: bytes, until: float, found: SignedIn | None) -> None:
        self._remembered[digest] = until, found
        self._remembered.move_to_end(digest)
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)

    def _touch(self, digest: bytes, found: SignedIn, now: float) -> None:
        """Store the time of this request in the background, once for many."""
        seen = replace(found, session=replace(found.session, seen_at=now))
        known = self._remembered.get(digest)
        if known is not None and known[1] is found:
            self._remembered[digest] = known[0], seen
        touching = asyncio.create_task(self._store_time(found.session.id, now), name="session")
        self._touching.add(touching)
        touching.add_done_callback(self._touching.discard)

    async def _store_time(self, session_id: str, now: float) -> None:
        try:
            await self._database.write(session_rows.touch, session_id, now)
        except StoreUnavailable:
            log.debug("the time of a session's latest request was not stored; the next request retries it")

    def _tag(self, body: str) -> str:
        return hmac.digest(self._signing_secret, b"session:" + body.encode(), "sha256").hex()[:TAG_CHARACTERS]
