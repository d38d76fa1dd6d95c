"""A caller's input files: what is accepted, and what is known of one that was stored."""

from dataclasses import dataclass

MAX_FILE_BYTES = 20 * 1024 * 1024
MIN_SIDE, MAX_SIDE = 20, 6000

CONTENT_TYPES = {"jpeg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
"""The image kinds accepted, by sniffed name."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What opening an image told."""

    content_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in our store. `token` is how a caller names it, `sha256` what it is."""

    token: str
    account_id: str
    sha256: str
    bytes: int
    content_type: str
    width: int
    height: int
    created_at: float
    expires_at: float | None
    job_id: str | None = None


def sniff(head: bytes) -> str | None:
    """The image kind that the first bytes tell: jpeg, png, webp, or None."""
    if head.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    return None
