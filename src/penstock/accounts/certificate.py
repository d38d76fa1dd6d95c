"""The certificate that signs results: that of the settings, or our own."""

from functools import partial

from penstock.provenance.credential import Credential, make_own, read_credential
from penstock.store.database import Database
from penstock.store.queries.accounts import key_rows


async def open_credential(
    database: Database, certificate: str | None, private_key: str | None, now: float
) -> Credential:
    """Return the credential of these PEM texts. Without them, return our own, made once for all servers of a store."""
    if certificate is not None and private_key is not None:
        return read_credential(certificate.encode(), private_key.encode(), now)
    chain, key = await database.write(key_rows.signing_certificate, partial(make_own, now))
    return read_credential(chain, key, now, is_own=True)
