"""Download of a price list by the fetcher of callers' URLs, with its checks and bounds."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.domain.job_errors import JobError
from penstock.price_lists.listed import PriceListUnreadable
from penstock.price_lists.reading import MAX_LIST_BYTES

if TYPE_CHECKING:
    from penstock.safe_fetch.fetcher import SafeFetcher


async def download_list(fetcher: "SafeFetcher", url: str) -> bytes:
    """Return the list at a URL."""
    try:
        return b"".join([chunk async for chunk in fetcher.fetch(url, max_bytes=MAX_LIST_BYTES)])
    except JobError as error:
        raise PriceListUnreadable(f"The list could not be downloaded. {error.message}") from None


def name_source(url: str) -> str:
    """Return a URL as the source of prices, without name, password and query, which may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{(parts.netloc.rpartition('@')[2])}{parts.path}"[:500]
