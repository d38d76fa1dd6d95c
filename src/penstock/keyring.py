"""Checks API keys: constant time, bounded caches, and a revocation that counts within a second."""

import asyncio
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable

from penstock import metrics
from penstock.errors import (
    ExpiredApiKey,
    InvalidApiKey,
    MissingApiKey,
    PenstockError,
    RevokedApiKey,
    StoreUnavailable,
)
from penstock.keys import ApiKey, hash_secret, parse
from penstock.store import key_rows
from penstock.store.database import Database

KNOWN_SECONDS = 0.8
FRESH_SECONDS = 0.4
"""From then on what is known of a key in use is asked anew, while it still counts: nobody waits for the store."""
UNKNOWN_SECONDS = 30.0
MAX_REMEMBERED = 10_000
CHALLENGE = {"WWW-Authenticate": "Bearer"}

Known = tuple[float, ApiKey | None]
"""A key, or that there is none; and until when that counts."""


def _is_expired(key: ApiKey, now: float) -> bool:
    return key.expires_at is not None and key.expires_at <= now


def _is_good(key: ApiKey) -> bool:
    return key.revoked_at is None and key.account_closed_at is None


class Proof:
    """What an `Authorization` header is good for: the key, and how long that counts without asking again."""

    __slots__ = ("fresh_until", "key", "until")

    def __init__(self, key: ApiKey, until: float) -> None:
        self.renew(key, until)

    def renew(self, key: ApiKey, until: float) -> None:
        """It counts until then."""
        self.key = key
        self.until = until
        self.fresh_until = until - KNOWN_SECONDS + FRESH_SECONDS

    def end(self) -> None:
        """It counts no more."""
        self.until = self.fresh_until = 0.0


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
        self._remembered: OrderedDict[str, Known] = OrderedDict()
        self._looking: dict[str, asyncio.Task[Known]] = {}
        self._changes = 0
        self._proven: OrderedDict[bytes, Proof] = OrderedDict()
        self._renewing: set[asyncio.Task[None]] = set()

    def forget(self) -> None:
        """Something was changed here: what is known of keys, or was asked before, no longer counts."""
        self._changes += 1
        self._remembered.clear()
        self._looking.clear()
        for proof in self._proven.values():
            proof.end()
        self._proven.clear()

    async def check(self, authorization: str | None) -> ApiKey:
        """The key behind an `Authorization` header."""
        return (await self.prove(authorization)).key

    async def prove(self, authorization: str | None) -> Proof:
        """The same, with what spares the next request that says it the question."""
        digest = hashlib.sha256((authorization or "").encode()).digest()
        proof = self._proven.get(digest)
        if proof is not None and self.holds(proof):
            return proof
        try:
            until, key = await self._check(authorization)
        except PenstockError as error:
            metrics.KEY_CHECKS.count(error.code)
            raise
        metrics.KEY_CHECKS.count("ok")
        return self._remember(digest, key, until)

    def holds(self, proof: Proof) -> bool:
        """Whether it still counts; where that ends soon, it is looked at anew meanwhile."""
        now, key = self._monotonic(), proof.key
        if now >= proof.until or (key.expires_at is not None and key.expires_at <= self._clock()):
            return False
        if now >= proof.fresh_until:
            proof.fresh_until = proof.until  # once is enough
            renewing = asyncio.create_task(self._renew(proof))
            self._renewing.add(renewing)
            renewing.add_done_callback(self._renewing.discard)
        metrics.KEY_CHECKS.count("ok")
        return True

    async def _renew(self, proof: Proof) -> None:
        try:
            until, key = await self._ask_store(proof.key.public_id)
        except StoreUnavailable:
            return  # it is told to whoever asks when the proof has ended
        if key is None or not _is_good(key) or key.secret_hash != proof.key.secret_hash:
            proof.end()
        elif proof.until:  # not ended meanwhile
            proof.renew(proof.key if key == proof.key else key, until)

    def _remember(self, digest: bytes, key: ApiKey, until: float) -> Proof:
        """The same header means the same key, for as long as what is known of the key counts."""
        proof = self._proven.get(digest)
        if proof is None:
            proof = self._proven[digest] = Proof(key, until)
        else:
            proof.renew(key, until)
        self._proven.move_to_end(digest)
        while len(self._proven) > MAX_REMEMBERED:
            self._proven.popitem(last=False)[1].end()
        return proof

    async def _check(self, authorization: str | None) -> tuple[float, ApiKey]:
        if not authorization:
            raise MissingApiKey(headers=CHALLENGE)
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise MissingApiKey("Use the Bearer scheme: `Authorization: Bearer psk_…`.", headers=CHALLENGE)
        parsed = parse(text.strip(), self._signing_secret)
        until, key = await self._look_up(parsed[0]) if parsed else (0.0, None)
        if parsed is None or key is None or not hmac.compare_digest(key.secret_hash, hash_secret(parsed[1])):
            raise InvalidApiKey(
                headers=CHALLENGE, suggestion="Check the key, or make a new one with `penstock key create`."
            )
        if not _is_good(key):
            raise RevokedApiKey(headers=CHALLENGE)
        if _is_expired(key, self._clock()):
            raise ExpiredApiKey(headers=CHALLENGE)
        return until, key

    async def _look_up(self, public_id: str) -> Known:
        remembered = self._remembered.get(public_id)
        if remembered is not None and self._monotonic() < remembered[0]:
            return remembered
        looking = self._looking.get(public_id)
        if looking is None:  # many requests at once cost one look-up
            looking = asyncio.create_task(self._look_up_once(public_id))
            self._looking[public_id] = looking
        return await asyncio.shield(looking)

    async def _look_up_once(self, public_id: str) -> Known:
        try:
            return await self._ask_store(public_id)
        finally:
            if self._looking.get(public_id) is asyncio.current_task():
                del self._looking[public_id]

    async def _ask_store(self, public_id: str) -> Known:
        asked, changes = self._monotonic(), self._changes
        key = await self._database.look(key_rows.get, public_id)
        if changes != self._changes:
            return asked, key  # for who asked, and for nobody after the change
        known = asked + (KNOWN_SECONDS if key else UNKNOWN_SECONDS), key
        self._remembered[public_id] = known
        self._remembered.move_to_end(public_id)
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)
        return known
