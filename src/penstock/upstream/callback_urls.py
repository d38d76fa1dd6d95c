"""Callback URLs for vendors: one for each order, with a tag that nobody else can guess."""

import hashlib
import hmac
from collections.abc import Callable

from penstock.vendor_api.generation import GenerationVendor, WebhookOptions

PATH = "/vendor/v1/{vendor}/{reference}/{tag}"


class CallbackUrls:
    """Makes callback URLs and recognises them."""

    def __init__(self, secret: bytes, public_url: Callable[[], str | None]) -> None:
        self._secret = secret
        self._public_url = public_url

    def address(self, name: str, vendor: GenerationVendor, reference: str) -> str | None:
        """Return the URL for one order; None if the vendor does not call back or we have no public URL."""
        base, options = self._public_url(), vendor.options
        if base is None or not isinstance(options, WebhookOptions) or not options.webhooks:
            return None
        return base + PATH.format(vendor=name, reference=reference, tag=self._tag(name, reference))

    def is_ours(self, name: str, reference: str, tag: str) -> bool:
        """Return whether this gateway made the URL with this tag."""
        return tag.isascii() and hmac.compare_digest(self._tag(name, reference), tag)

    def _tag(self, name: str, reference: str) -> str:
        message = f"vendor webhook\n{name}\n{reference}".encode()
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()[:32]
