"""Signed links: they let anyone download one asset until they expire."""

import base64
import hmac

from penstock.errors import AssetExpired


class LinkSigner:
    """Signs links with the installation's own secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, asset_id: str, expires_at: int) -> str:
        """Return the signature of a link to the asset; `expires_at` is in seconds since the epoch."""
        message = f"asset:{asset_id}:{expires_at}".encode()
        digest = hmac.digest(self._secret, message, "sha256")
        return base64.urlsafe_b64encode(digest[:24]).decode()

    def check(self, asset_id: str, expires: str, signature: str, now: float) -> bool:
        """Return whether the signature is valid; raise `AssetExpired` for a valid link that has expired."""
        if not (expires.isascii() and expires.isdigit() and len(expires) < 14 and signature.isascii()):
            return False
        if not hmac.compare_digest(signature, self.sign(asset_id, int(expires))):
            return False
        if int(expires) <= now:
            raise AssetExpired("This link has expired. Get the job again for a new link.")
        return True
