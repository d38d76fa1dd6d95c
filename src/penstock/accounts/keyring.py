"""Checks API keys: constant time, bounded caches, and a revocation that counts within a second.

While the store does not answer, keys that it has confirmed are known from memory, for a bounded time.
"""

import asyncio
import hashlib
import hmac
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

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
"""From then on what is known of a key in use is asked anew, while it still counts: nobody waits for the store."""
UNKNOWN_SECONDS = 30.0
MAX_REMEMBERED = 10_000
WATCH_SECONDS = 1.0
"""Seconds between two looks for keys or accounts that other processes changed."""
PROBE_SECONDS = 0.2
"""The pause between two such looks while the store is away."""
OVERLAP = 500
"""So many entries of the audit log are looked at again: who began earlier may commit later."""
MAX_ASKED_AGAIN = 500
"""So many keys of changed accounts are looked up again at once; the others when they are used."""
CHALLENGE = {"WWW-Authenticate": "Bearer"}

Known = tuple[float, ApiKey | None]
"""A key, or that there is none; and until when that counts."""

log = logging.getLogger(__name__)


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
        contact: StoreContact | None = None,
    ) -> None:
        self._contact = contact or StoreContact(database, monotonic=monotonic)
        self._signing_secret = signing_secret
        self._clock = clock
        self._monotonic = monotonic
        self._remembered: OrderedDict[str, Known] = OrderedDict()
        self._looking: dict[str, asyncio.Task[Known]] = {}
        self._changes = 0
        self._proven: OrderedDict[bytes, Proof] = OrderedDict()
        self._renewing: set[asyncio.Task[None]] = set()
        self._audited: set[int] | None = None
        """The latest entries of the audit log that were seen."""
        self._sure_at = -math.inf
        """When the log was last looked at: changes of before are known."""
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow what other processes change, so that no key is known from memory that they revoked in time."""
        self._watching = asyncio.create_task(self._watch(), name="keyring")

    async def stop(self) -> None:
        """Stop following."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    def forget(self) -> None:
        """Something was changed here: what is known of keys, or was asked before, no longer counts."""
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

        `without_store` is for requests that need nothing else of the store: in an outage a key in use is let in.
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

    # -- while the store does not answer

    def _recall(self, authorization: str) -> Proof | None:
        """Prove a key by what is remembered of it: a header may be new here, or forgotten for those of others."""
        scheme, _, text = authorization.partition(" ")
        parsed = parse(text.strip(), self._signing_secret) if scheme.lower() == "bearer" else None
        until, key = self._remembered.get(parsed[0], (0.0, None)) if parsed else (0.0, None)
        if parsed is None or key is None or not hmac.compare_digest(key.secret_hash, hash_secret(parsed[1])):
            return None
        return Proof(key, until)

    async def _is_known_from_memory(self, proof: Proof) -> bool:
        """Tell if the store does not answer, and what it said last lets this key in."""
        if not self._outlasts(proof):
            return False
        if not self._contact.is_away:
            await self._contact.wait_for(self._begin_look_up(proof.key.public_id))
        return self._contact.is_away and self._outlasts(proof)

    def _outlasts(self, proof: Proof) -> bool:
        """Tell if the key was good at the store's last word, and that was not too long ago."""
        until, key = self._remembered.get(proof.key.public_id, (0.0, None))
        if not proof.until or key is None or not _is_good(key) or _is_expired(key, self._clock()):
            return False
        if not hmac.compare_digest(key.secret_hash, proof.key.secret_hash):
            return False
        if key != proof.key:
            proof.key = key
        confirmed_at = max(until - KNOWN_SECONDS, self._sure_at)
        return self._monotonic() < confirmed_at + self._contact.outage_seconds

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
        """Forget the keys of accounts that were changed since the last look."""
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
        """Forget the keys of these accounts, or of all, and what is being asked. Return which of them were good."""
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
        """Learn what became of keys in use: an outage may begin before their callers come again."""
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
        return await asyncio.shield(self._begin_look_up(public_id))

    def _begin_look_up(self, public_id: str) -> "asyncio.Task[Known]":
        looking = self._looking.get(public_id)
        if looking is None:  # many requests at once cost one look-up
            looking = asyncio.create_task(self._look_up_once(public_id))
            looking.add_done_callback(_forgive)
            self._looking[public_id] = looking
        return looking

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
            return asked, key  # for who asked, and for nobody after the change
        known = asked + (KNOWN_SECONDS if key else UNKNOWN_SECONDS), key
        self._keep(public_id, known)
        return known

    def _keep(self, public_id: str, known: Known) -> None:
        self._remembered[public_id] = known
        self._remembered.move_to_end(public_id)
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)


def _forgive(looking: "asyncio.Task[Known]") -> None:
    """Mark a failure as seen: in an outage nobody may wait for it any more."""
    if not looking.cancelled():
        looking.exception()
