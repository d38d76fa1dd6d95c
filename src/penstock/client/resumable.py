"""Uploads of large files in pieces, by tus 1.0: after a cut, only what the server does not have is sent again."""

import base64
from dataclasses import replace
from typing import Final

from penstock.client.config import path_to
from penstock.client.errors import ApiError, ConnectionFailed, NotFoundError
from penstock.client.transport.retries import Policy, backoff_seconds, send
from penstock.client.transport.steps import Flow, Pause, Reply, Request, Upload

UPLOADS: Final = "/api/v1/files/tus"
LARGE_BYTES: Final = 32 << 20
"""Larger files are sent in pieces."""
PIECE_BYTES: Final = 8 << 20
VERSION: Final = {"tus-resumable": "1.0.0"}
TOKEN: Final = "x-penstock-file-token"  # noqa: S105  a header
RETRIED: Final = frozenset({408, 409, 423, 429, 500, 502, 503, 504})
"""Statuses after which the offset is asked for again."""


def upload_in_pieces(upload: Upload, policy: Policy) -> Flow[str | None]:
    """Send a file and return its token; None if the server, or the one that got a later piece, does not have it."""
    metadata = f"filename {base64.b64encode(upload.name.encode()).decode()}"
    headers = {**VERSION, "upload-length": str(len(upload.content)), "upload-metadata": metadata}
    try:
        begun = yield from send(Request(method="POST", path=UPLOADS, headers=headers, repeatable=True), policy)
        path = path_to(UPLOADS, begun.headers["location"].rsplit("/", 1)[-1])
        return (yield from _send_pieces(path, upload.content, policy))
    except NotFoundError:
        return None
    except ApiError as error:
        if error.status == 405:  # an earlier version
            return None
        raise


def _send_pieces(path: str, content: bytes, policy: Policy) -> Flow[str]:
    once, offset, failures = replace(policy, retries=0), 0, 0
    while True:
        try:
            reply = yield from send(_piece(path, content, offset), once)
            failures = 0
        except (ConnectionFailed, ApiError) as error:
            if failures >= policy.retries or (isinstance(error, ApiError) and error.status not in RETRIED):
                raise
            failures += 1
            yield Pause(backoff_seconds(failures))
            reply: Reply = yield from send(Request(method="HEAD", path=path, headers=VERSION), policy)
        if TOKEN in reply.headers:
            return reply.headers[TOKEN]
        offset = int(reply.headers["upload-offset"])


def _piece(path: str, content: bytes, offset: int) -> Request:
    headers = {**VERSION, "upload-offset": str(offset), "content-type": "application/offset+octet-stream"}
    return Request(method="PATCH", path=path, headers=headers, content=content[offset : offset + PIECE_BYTES])
