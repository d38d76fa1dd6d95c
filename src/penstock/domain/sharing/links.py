"""Share links: their record, their bounds, and the tokens in their addresses."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

from penstock.domain.ids import encode

MIN_LIFE_SECONDS: Final = 60.0
MAX_LIFE_SECONDS: Final = 90 * 86_400.0
DEFAULT_LIFE_SECONDS: Final = 7 * 86_400.0
MAX_LIVE_LINKS: Final = 1000
"""Links of one account that work at a time."""
REVOKED_RETENTION_SECONDS: Final = 86_400.0
"""Time for which a revoked link is remembered, so that revoking it again succeeds."""
BODY_LENGTH, TAG_LENGTH = 26, 7
TOKEN: Final = re.compile(rf"[0-9a-z]{{{BODY_LENGTH + TAG_LENGTH}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareLink:
    """A public link to the outputs of one job. Its token is not part of it: only a hash is stored."""

    id: str
    account_id: str
    job_id: str
    include_input: bool
    """Whether the page shows the prompt or the input picture."""
    created_at: float
    expires_at: float


class ShareTokens:
    """Makes and recognises the tokens of share links.

    A token has 128 random bits and a tag that only this installation can make. Invented tokens are rejected without
    a lookup, so guessing does not reach the store.
    """

    def __init__(self, signing_secret: bytes) -> None:
        self._secret = signing_secret

    def make(self) -> str:
        """Return a new token."""
        body = encode(int.from_bytes(secrets.token_bytes(16), "big"), BODY_LENGTH)
        return body + self._tag(body)

    def is_ours(self, token: str) -> bool:
        """Return whether this installation has made the token. Its link may have ended since."""
        if not TOKEN.fullmatch(token):
            return False
        return hmac.compare_digest(token[BODY_LENGTH:], self._tag(token[:BODY_LENGTH]))

    def _tag(self, body: str) -> str:
        digest = hmac.digest(self._secret, b"share:" + body.encode(), "sha256")
        return encode(int.from_bytes(digest[:4], "big"), TAG_LENGTH)


def hash_token(token: str) -> str:
    """Return what is stored of a token. The token is random, so that a plain hash suffices."""
    return hashlib.sha256(token.encode()).hexdigest()
