"""Checks API keys: constant time, bounded caches, and a revocation that counts within a second."""

import asyncio
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable

from penstock import metrics
from penstock.errors import ExpiredApiKey, InvalidApiKey, MissingApiKey, PenstockError, RevokedApiKey
from penstock.keys import ApiKey, hash_secret, parse
from penstock.store import key_rows
from penstock.store.database import Database

KNOWN_SECONDS = 0.8
UNKNOWN_SECONDS = 30.0
MAX_REMEMBERED = 10_000
CHALLENGE = {"WWW-Authenticate": "Bearer"}


def _is_expired(key: ApiKey, now: float) -> bool:
    return key.expires_at is not None and key.expires_at <= now


class Keyring:
    """Who is calling. A store outage is told as such, never as a wrong key."""

    def __init__(
        self,
        database: Database,
        signing_secret: bytes,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._signing_secret = signing_secret
        self._clock = clock
        self._monotonic = monotonic
        self._remembered: OrderedDict[str, tuple[float, ApiKey | None]] = OrderedDict()
        self._looking: dict[str, asyncio.Task[ApiKey | None]] = {}
        self._proven: OrderedDict[bytes, tuple[float, ApiKey]] = OrderedDict()

    def forget(self) -> None:
        """Something was changed here: what is known of keys is asked anew."""
        self._remembered.clear()
        self._proven.clear()

    async def check(self, authorization: str | None) -> ApiKey:
        """The key behind an `Authorization` header."""
        digest = hashlib.sha256((authorization or "").encode()).digest()
        proven = self._proven.get(digest)
        if proven is not None and self._monotonic() < proven[0] and not _is_expired(proven[1], self._clock()):
            metrics.KEY_CHECKS.count("ok")
            return proven[1]
        try:
            key = await self._check(authorization)
        except PenstockError as error:
            metrics.KEY_CHECKS.count(error.code)
            raise
        metrics.KEY_CHECKS.count("ok")
        self._remember(digest, key)
        return key

    def _remember(self, digest: bytes, key: ApiKey) -> None:
        """The same header means the same key, for as long as what is known of the key counts."""
        self._proven[digest] = (self._remembered[key.public_id][0], key)
        self._proven.move_to_end(digest)
        while len(self._proven) > MAX_REMEMBERED:
            self._proven.popitem(last=False)

    async def _check(self, authorization: str | None) -> ApiKey:
        if not authorization:
            raise MissingApiKey(headers=CHALLENGE)
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise MissingApiKey("Use the Bearer scheme: `Authorization: Bearer psk_…`.", headers=CHALLENGE)
        parsed = parse(text.strip(), self._signing_secret)
        key = await self._look_up(parsed[0]) if parsed else None
        if parsed is None or key is None or not hmac.compare_digest(key.secret_hash, hash_secret(parsed[1])):
            raise InvalidApiKey(
                headers=CHALLENGE, suggestion="Check the key, or make a new one with `penstock key create`."
            )
        if key.revoked_at is not None or key.account_closed_at is not None:
            raise RevokedApiKey(headers=CHALLENGE)
        if _is_expired(key, self._clock()):
            raise ExpiredApiKey(headers=CHALLENGE)
        return key

    async def _look_up(self, public_id: str) -> ApiKey | None:
        remembered = self._remembered.get(public_id)
        if remembered is not None and self._monotonic() < remembered[0]:
            return remembered[1]
        looking = self._looking.get(public_id)
        if looking is None:  # many requests at once cost one look-up
            looking = asyncio.create_task(self._ask_store(public_id))
            self._looking[public_id] = looking
        return await asyncio.shield(looking)

    async def _ask_store(self, public_id: str) -> ApiKey | None:
        try:
            asked = self._monotonic()
            key = await self._database.read(key_rows.get, public_id)
            self._remembered[public_id] = (asked + (KNOWN_SECONDS if key else UNKNOWN_SECONDS), key)
            self._remembered.move_to_end(public_id)
            while len(self._remembered) > MAX_REMEMBERED:
                self._remembered.popitem(last=False)
            return key
        finally:
            del self._looking[public_id]
