"""Authenticated encryption of small and large secrets: AES-256-GCM, bound to the row that holds them."""

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.errors import SecretsUnavailable

VERSION: Final = b"\x01"
KEY_ID_BYTES: Final = 8
SALT_BYTES, NONCE_BYTES, TAG_BYTES = 16, 12, 16
KEY_BYTES: Final = 32
_SALT_AT: Final = len(VERSION) + KEY_ID_BYTES
_NONCE_AT: Final = _SALT_AT + SALT_BYTES
_DATA_AT: Final = _NONCE_AT + NONCE_BYTES
OVERHEAD_BYTES: Final = _DATA_AT + TAG_BYTES
"""Bytes by which a sealed secret is longer than its text."""


@dataclass(frozen=True, slots=True)
class SealingKey:
    """A key that seals, and the id by which a sealed text names it."""

    id: bytes
    secret: bytes = field(repr=False)


def seal_with(key: SealingKey, purpose: str, row_id: str, data: bytes) -> bytes:
    """Return the sealed data. It opens only for this purpose and row.

    Each text has a key of its own, derived from a random salt. So one sealing key serves any number of texts.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - slow to load; secrets are rare

    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    head = VERSION + key.id + salt
    return head + nonce + AESGCM(_derive(key, salt)).encrypt(nonce, data, _bind(head, purpose, row_id))


def open_with(key: SealingKey, purpose: str, row_id: str, sealed: bytes) -> bytes | None:
    """Return the data; None if it was changed, moved to another row or sealed by another key."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - see above

    salt, nonce = sealed[_SALT_AT:_NONCE_AT], sealed[_NONCE_AT:_DATA_AT]
    if len(sealed) < OVERHEAD_BYTES or sealed[:_SALT_AT] != VERSION + key.id:
        return None
    try:
        return AESGCM(_derive(key, salt)).decrypt(nonce, sealed[_DATA_AT:], _bind(sealed[:_NONCE_AT], purpose, row_id))
    except InvalidTag:
        return None


def _derive(key: SealingKey, salt: bytes) -> bytes:
    return hmac.digest(key.secret, b"penstock sealed text" + salt, hashlib.sha256)


def _bind(head: bytes, purpose: str, row_id: str) -> bytes:
    """Return the associated data. Lengths keep two names from running into each other."""
    names = [name.encode() for name in (purpose, row_id)]
    return head + b"".join(len(name).to_bytes(4, "big") + name for name in names)


class Sealer:
    """Seals and opens secrets in memory: no store, no waiting. `Vault.sealer` returns it."""

    def __init__(self, keys: Mapping[bytes, SealingKey], newest: SealingKey) -> None:
        self._keys = keys
        self._newest = newest

    def seal(self, purpose: str, row_id: str, data: bytes) -> bytes:
        """Return the sealed data. It opens only for this purpose and row."""
        return seal_with(self._newest, purpose, row_id, data)

    def open(self, purpose: str, row_id: str, sealed: bytes) -> bytes:
        """Return the data; raise `SecretsUnavailable` if it was changed or belongs to another row."""
        key = self._keys.get(sealed[len(VERSION) : _SALT_AT])
        data = None if key is None else open_with(key, purpose, row_id, sealed)
        if data is None:
            raise SecretsUnavailable(
                "A stored secret does not open: it was changed, or copied from another row or store.",
                suggestion="Restore the store from a backup, or enter that secret again.",
            )
        return data
