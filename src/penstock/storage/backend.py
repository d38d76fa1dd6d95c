"""Storage backends: a folder, or an S3 bucket, named by `s3://bucket/prefix` and the usual AWS_* variables."""

import logging
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store

from penstock.domain.ids import new_id
from penstock.errors import StoreUnavailable
from penstock.observability import metrics
from penstock.storage.stale_uploads import end_stale, find_account

if TYPE_CHECKING:
    from obstore.store import ClientConfig

RETRY_AFTER = 5
READ_SECONDS = 20.0
"""Idle timeout of S3, also while it takes one part of an upload."""
QUICK_SECONDS = 4.0
"""Timeout of a reply with a short body."""
LONGEST = timedelta(hours=6)
"""Timeout of a whole transfer."""
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
REFUSED = re.compile(r"status code: 40[13]\b")
METADATA_SERVICE = "169.254.169.254"
"""The source of credentials on Amazon's machines if the environment has none."""

log = logging.getLogger(__name__)


class StorageUnavailable(StoreUnavailable):
    """The file storage does not answer. Nothing was lost; try again."""

    code = "store_unavailable"


@dataclass(frozen=True, slots=True)
class Storage:
    """A storage with two connections: `bulk` for bytes, `quick` for short replies. A folder has one for both."""

    name: str
    bulk: LocalStore | S3Store
    quick: LocalStore | S3Store

    @property
    def bucket(self) -> S3Store | None:
        """Return the bucket; None for a folder."""
        return self.quick if isinstance(self.quick, S3Store) else None

    @property
    def folder(self) -> Path | None:
        """Return the folder; None for a bucket."""
        return None if self.bucket else Path(self.name)

    def end_stale_uploads(self, before: datetime) -> int:
        """Abort unfinished uploads that began before that moment; return their number."""
        account = find_account(_endpoint(), os.environ)
        if self.bucket is None or account is None:
            return 0
        bucket, _, path = self.name.removeprefix("s3://").partition("/")
        prefix = f"{path.strip('/')}/".lstrip("/")
        return sum(end_stale(account, bucket, prefix + kind, before) for kind in ("assets/", "files/"))


def open_storage(url: str) -> Storage:
    """Return the storage that a URL names, without connecting to it."""
    parts = urlsplit(url)
    if parts.scheme == "s3":
        return Storage(
            url, _open_bucket(parts.netloc, parts.path, _BULK), _open_bucket(parts.netloc, parts.path, _QUICK)
        )
    folder = Path(unquote(parts.path))
    store = LocalStore(folder, mkdir=True, automatic_cleanup=True)  # removes the empty folders of deleted jobs
    return Storage(str(folder), store, store)


_BULK: "ClientConfig" = {"timeout": LONGEST, "read_timeout": timedelta(seconds=READ_SECONDS)}
_QUICK: "ClientConfig" = {"timeout": timedelta(seconds=QUICK_SECONDS)}


def _open_bucket(bucket: str, path: str, times: "ClientConfig") -> S3Store:
    return S3Store(
        bucket,
        prefix=path.strip("/") or None,
        client_options={
            "allow_http": _endpoint().lower().startswith("http:"),
            "connect_timeout": timedelta(seconds=2),
            **times,
        },
        retry_config={  # few retries here: jobs retry for as long as they may run
            "max_retries": 2,
            "retry_timeout": timedelta(seconds=3),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
        },
    )


def _endpoint() -> str:
    """Return the endpoint of S3, if it is not Amazon's."""
    return next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")


# -- errors


@contextmanager
def reached(*, makes: bool = False) -> Generator[None]:
    """Raise `StorageUnavailable` if the storage does not answer; pass its replies, such as a missing key.

    Where something is made, nothing can be missing but the place itself.
    """
    try:
        yield
    except FileNotFoundError as error:
        if not makes and "NoSuchBucket" not in str(error):
            raise
        raise _unavailable(error) from error
    except (BaseError, OSError) as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> StorageUnavailable:
    reason, _ = explain(error)
    metrics.STORAGE_FAILURES.inc()
    log.warning("the file storage cannot be used", extra={"fields": {"reason": reason}})
    return StorageUnavailable(retry_after=RETRY_AFTER)


def explain(error: Exception) -> tuple[str, str]:
    """Return what is wrong with the storage, and what to do."""
    text = str(error)
    if "NoSuchBucket" in text:
        return "there is no such bucket", "Make the bucket, or correct `assets_url`."
    if METADATA_SERVICE in text:
        return "there are no credentials", "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
    if REFUSED.search(text):
        rights = "and that they may read, write, list and delete in the bucket"
        return "the credentials are refused", f"Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, {rights}."
    reason = text.partition("\n")[0].strip()[:300] or type(error).__name__
    return reason, "Check `assets_url`, AWS_ENDPOINT_URL and AWS_REGION, and that the server there is up."


def probe(storage: Storage) -> None:
    """Write, read, list and remove a small object; raise the library's own errors."""
    key = f"probe/{new_id('probe')}"
    obstore.put(storage.quick, key, b"penstock", use_multipart=False)
    if bytes(obstore.get(storage.quick, key).bytes()) != b"penstock":
        raise OSError("what was written is not what is read")
    obstore.list_with_delimiter(storage.quick, "probe")  # pyright: ignore[reportUnknownMemberType] its Arrow form
    obstore.delete(storage.quick, key)
