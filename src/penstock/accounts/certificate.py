"""The certificate that signs results: that of the settings, or our own."""

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from penstock.store.database import Database
from penstock.store.queries.accounts import key_rows

if TYPE_CHECKING:  # slow to load; it is needed with the first result
    from penstock.provenance.credential import Credential


async def open_credential(
    database: Database, certificate: str | None, private_key: str | None, now: float
) -> "Callable[[], Credential]":
    """Return a function that returns the credential of these PEM texts. They are read at once, as they may be wrong.

    Without them, it returns our own, made once for all servers of a store, and read when it is first needed.
    """
    if certificate is not None and private_key is not None:
        given = _read(certificate.encode(), private_key.encode(), now)
        return lambda: given
    chain, key = await database.write(key_rows.signing_certificate, partial(_make_own, now))
    return cache(partial(_read, chain, key, now, is_own=True))


def _read(chain: bytes, key: bytes, now: float, *, is_own: bool = False) -> "Credential":
    from penstock.provenance.credential import read_credential  # noqa: PLC0415 - see above

    return read_credential(chain, key, now, is_own=is_own)


def _make_own(now: float) -> tuple[bytes, bytes]:
    from penstock.provenance.credential import make_own  # noqa: PLC0415 - see above

    return make_own(now)
