"""API key checks: constant time, bounded caches, and a revocation that takes effect within a second.

While the store is away, keys that it has confirmed are accepted from memory for a bounded time.
"""

import asyncio
import hashlib
import hmac
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from penstock.domain.api_keys import ApiKey, hash_secret, parse
from penstock.errors import (
    ExpiredApiKey,
    InvalidApiKey,
    MissingApiKey,
    PenstockError,
    RevokedApiKey,
    StoreUnavailable,
)
from penstock.observability import metrics
from penstock.store.contact import StoreContact
from penstock.store.database import Database
from penstock.store.queries.accounts import audit_rows, key_rows

KNOWN_SECONDS = 0.8
FRESH_SECONDS = 0.4
"""Age at which a key in use is looked up again in the background: no request waits for the store."""
UNKNOWN_SECONDS = 30.0
MAX_REMEMBERED = 10_000
WATCH_SECONDS = 1.0
"""Seconds between two polls for keys or accounts that other processes changed."""
PROBE_SECONDS = 0.2
"""Seconds between two polls while the store is away."""
OVERLAP = 500
"""The number of audit log entries that are read again: an earlier transaction may commit later."""
MAX_ASKED_AGAIN = 500
"""The number of keys of changed accounts that are looked up again at once. Others follow when they are used."""
CHALLENGE = {"WWW-Authenticate": "Bearer"}

Known = tuple[float, ApiKey | None]
"""The time until which a lookup counts, and the key, or None if there is none."""

log = logging.getLogger(__name__)


def _is_expired(key: ApiKey, now: float) -> bool:
    return key.expires_at is not None and key.expires_at <= now


def _is_good(key: ApiKey) -> bool:
    return key.revoked_at is None and key.account_closed_at is None and not key.is_abandoned


class Proof:
    """A checked `Authorization` header: the key, and how long it counts without another lookup."""

    __slots__ = ("fresh_until", "key", "until")

    def __init__(self, key: ApiKey, until: float) -> None:
        self.renew(key, until)

    def renew(self, key: ApiKey, until: float) -> None:
        """Extend it until this time."""
        self.key = key
        self.until = until
        self.fresh_until = until - KNOWN_SECONDS + FRESH_SECONDS

    def end(self) -> None:
        """Invalidate it."""
        self.until = self.fresh_until = 0.0


class Keyring:
    """Authenticates callers. A store outage is reported as such, never as a wrong key."""

    def __init__(
        self,
        database: Database,
        signing_secret: bytes,
        clock: Callable[[], float],
        steady: Callable[[], float] = time.monotonic,
        contact: StoreContact | None = None,
    ) -> None:
        self._contact = contact or StoreContact(database, steady=steady)
        self._signing_secret = signing_secret
        self._clock = clock
        self._steady = steady
        self._remembered: OrderedDict[str, Known] = OrderedDict()
        self._looking: dict[str, asyncio.Task[Known]] = {}
        self._changes = 0
        self._proven: OrderedDict[bytes, Proof] = OrderedDict()
        self._asking: set[asyncio.Task[Any]] = set()
        """Lookups and renewals under way, also those that nobody waits for."""
        self._audited: set[int] | None = None
        """Positions of the latest audit log entries that were seen."""
        self._sure_at = -math.inf
        """The time of the latest audit log read: earlier changes are known."""
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch for changes by other processes, so that no key they revoked is accepted from memory."""
        self._watching = asyncio.create_task(self._watch(), name="keyring")

    async def stop(self) -> None:
        """Stop watching, and cancel all lookups: the store is closed next."""
        tasks = [*self._asking] if self._watching is None else [self._watching, *self._asking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def forget(self) -> None:
        """Forget all keys and pending lookups, as something was changed here."""
        self._changes += 1
        self._remembered.clear()
        self._looking.clear()
        for proof in self._proven.values():
            proof.end()
        self._proven.clear()

    async def check(self, authorization: str | None, *, without_store: bool = False) -> ApiKey:
        """Return the key behind an `Authorization` header."""
        return (await self.prove(authorization, without_store=without_store)).key

    async def prove(self, authorization: str | None, *, without_store: bool = False) -> Proof:
        """Like `check`, but return a reusable proof so that the next request skips the lookup.

        `without_store` is for requests that need nothing else from the store: an outage does not stop a key in use.
        """
        digest = hashlib.sha256((authorization or "").encode()).digest()
        proof = self._proven.get(digest)
        if proof is not None and self.holds(proof):
            return proof
        if without_store:
            known = proof or self._recall(authorization or "")
            if known is not None and await self._is_known_from_memory(known):
                metrics.SERVED_WITHOUT_STORE.count()
                metrics.KEY_CHECKS.count("ok")
                return known
        try:
            until, key = await self._check(authorization)
        except PenstockError as error:
            if proof is not None and not isinstance(error, StoreUnavailable):
                proof.end()
            metrics.KEY_CHECKS.count(error.code)
            raise
        metrics.KEY_CHECKS.count("ok")
        return self._remember(digest, key, until)

    async def check_hidden(self, public_id: str) -> ApiKey:
        """Return the hidden key that counts a person's requests from the console. It has no text to be checked."""
        _, key = await self._look_up(public_id)
        if key is None or not key.is_console or not _is_good(key):
            raise RevokedApiKey
        return key

    def holds(self, proof: Proof) -> bool:
        """Return whether a proof still counts. Renew it in the background if it ends soon."""
        now, key = self._steady(), proof.key
        if now >= proof.until or (key.expires_at is not None and key.expires_at <= self._clock()):
            return False
        if now >= proof.fresh_until:
            proof.fresh_until = proof.until  # renew it once only
            self._track(asyncio.create_task(self._renew(proof)))
        metrics.KEY_CHECKS.count("ok")
        return True

    # -- while the store is away

    def _recall(self, authorization: str) -> Proof | None:
        """Return a proof from the remembered key, for a header that is new here or was evicted."""
        scheme, _, text = authorization.partition(" ")
        parsed = parse(text.strip(), self._signing_secret) if scheme.lower() == "bearer" else None
        until, key = self._remembered.get(parsed[0], (0.0, None)) if parsed else (0.0, None)
        if parsed is None or key is None or not hmac.compare_digest(key.secret_hash, hash_secret(parsed[1])):
            return None
        return Proof(key, until)

    async def _is_known_from_memory(self, proof: Proof) -> bool:
        """Return whether the store is away and its last answer allows this key."""
        if not self._outlasts(proof):
            return False
        if not self._contact.is_away:
            await self._contact.wait_for(self._begin_lookup(proof.key.public_id))
        return self._contact.is_away and self._outlasts(proof)

    def _outlasts(self, proof: Proof) -> bool:
        """Return whether the store confirmed the key in its last answer, not too long ago."""
        until, key = self._remembered.get(proof.key.public_id, (0.0, None))
        if not proof.until or key is None or not _is_good(key) or _is_expired(key, self._clock()):
            return False
        if not hmac.compare_digest(key.secret_hash, proof.key.secret_hash):
            return False
        if key != proof.key:
            proof.key = key
        confirmed_at = max(until - KNOWN_SECONDS, self._sure_at)
        return self._steady() < confirmed_at + self._contact.outage_seconds

    async def _watch(self) -> None:
        while True:
            try:
                await self.learn_changes()
            except StoreUnavailable:
                await asyncio.sleep(PROBE_SECONDS)
            except Exception:
                log.exception("following changes of keys failed; retrying")
                await asyncio.sleep(WATCH_SECONDS)
            else:
                await asyncio.sleep(WATCH_SECONDS)

    async def learn_changes(self) -> None:
        """Forget the keys of accounts that changed since the last poll."""
        known = self._audited
        if known is None:
            _, top = await self._contact.ask(audit_rows.last_position)
        else:
            top = max(known, default=0)
            asked, found = await self._contact.ask(audit_rows.count_after, max(0, top - OVERLAP))
            if found == (len(known), top):
                self._sure_at = asked
                return
        asked, accounts = await self._contact.ask(audit_rows.accounts_after, max(0, top - OVERLAP))
        gone = self._forget_accounts(None if known is None else {accounts[each] for each in accounts.keys() - known})
        begin = max(accounts, default=0) - OVERLAP
        self._audited = {each for each in accounts if each > begin}
        self._sure_at = asked
        if gone:
            await self._ask_again(gone[-MAX_ASKED_AGAIN:])

    def _forget_accounts(self, changed: set[str | None] | None) -> list[str]:
        """Forget the keys of these accounts, or all, and pending lookups. Return the ids of those that existed."""
        if changed is None or None in changed:
            self.forget()
            return []
        if not changed:
            return []
        self._changes += 1
        self._looking.clear()
        gone = {name: key for name, (_, key) in self._remembered.items() if key is None or key.account_id in changed}
        for name in gone:
            del self._remembered[name]
        return [name for name, key in gone.items() if key is not None]

    async def _ask_again(self, names: Sequence[str]) -> None:
        """Look up keys in use again: an outage may begin before their callers return."""
        changes = self._changes
        asked, found = await self._contact.ask(key_rows.get_all, names)
        if changes == self._changes:
            for key in found:
                self._keep(key.public_id, (asked + KNOWN_SECONDS, key))

    # -- asking the store

    async def _renew(self, proof: Proof) -> None:
        try:
            until, key = await self._ask_store(proof.key.public_id)
        except StoreUnavailable:
            return  # raised to the caller that comes after the proof has ended
        if key is None or not _is_good(key) or key.secret_hash != proof.key.secret_hash:
            proof.end()
        elif proof.until:  # not ended meanwhile
            proof.renew(proof.key if key == proof.key else key, until)

    def _remember(self, digest: bytes, key: ApiKey, until: float) -> Proof:
        """Remember the proof of a header for as long as the key counts. Return it."""
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
        if remembered is not None and self._steady() < remembered[0]:
            return remembered
        return await asyncio.shield(self._begin_lookup(public_id))

    def _begin_lookup(self, public_id: str) -> "asyncio.Task[Known]":
        looking = self._looking.get(public_id)
        if looking is None:  # concurrent requests share one lookup
            looking = asyncio.create_task(self._look_up_once(public_id))
            looking.add_done_callback(_forgive)
            self._track(looking)
            self._looking[public_id] = looking
        return looking

    def _track(self, asking: "asyncio.Task[Any]") -> None:
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)

    async def _look_up_once(self, public_id: str) -> Known:
        try:
            return await self._ask_store(public_id)
        finally:
            if self._looking.get(public_id) is asyncio.current_task():
                del self._looking[public_id]

    async def _ask_store(self, public_id: str) -> Known:
        changes = self._changes
        asked, key = await self._contact.ask(key_rows.get, public_id)
        if changes != self._changes:
            return asked, key  # for this caller only: a change came meanwhile
        known = asked + (KNOWN_SECONDS if key else UNKNOWN_SECONDS), key
        self._keep(public_id, known)
        return known

    def _keep(self, public_id: str, known: Known) -> None:
        self._remembered[public_id] = known
        self._remembered.move_to_end(public_id)
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)


def _forgive(looking: "asyncio.Task[Known]") -> None:
    """Mark a failure as retrieved: in an outage, no caller may wait for the task any more."""
    if not looking.cancelled():
        looking.exception()
