"""Aborts unfinished multipart uploads in a bucket, which obstore cannot list."""

import hashlib
import hmac
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, quote, urlsplit

SECONDS = 10.0
EMPTY = hashlib.sha256(b"").hexdigest()
UPLOAD = re.compile(r"<Upload>(.*?)</Upload>", re.DOTALL)
FIELD = re.compile(r"<(Key|UploadId|Initiated)>([^<]*)</")
NOT_THIS_WAY = ("AWS_SKIP_SIGNATURE", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST")


@dataclass(frozen=True, slots=True)
class BucketCredentials:
    """Credentials and endpoint of a bucket, from environment variables."""

    endpoint: SplitResult
    region: str
    key_id: str
    secret: str = field(repr=False)
    token: str = field(repr=False)


def find_account(endpoint: str, environ: Mapping[str, str]) -> BucketCredentials | None:
    """Return the account; None if credentials come from elsewhere, so that a lifecycle rule must do the work."""
    key_id, secret = environ.get("AWS_ACCESS_KEY_ID", ""), environ.get("AWS_SECRET_ACCESS_KEY", "")
    if not key_id or not secret or any(environ.get(name) for name in NOT_THIS_WAY):
        return None
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    address = urlsplit((endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/"))
    token = environ.get("AWS_SESSION_TOKEN") or environ.get("AWS_TOKEN") or ""
    return BucketCredentials(address, region, key_id, secret, token)


def end_stale(account: BucketCredentials, bucket: str, prefix: str, before: datetime) -> int:
    """Abort one page of uploads under a prefix that began before that moment; return their number."""
    ended = 0
    for upload in UPLOAD.findall(ask(account, "GET", f"/{bucket}", {"uploads": "", "prefix": prefix})):
        fields = {name: html.unescape(text) for name, text in FIELD.findall(upload)}
        if datetime.fromisoformat(fields["Initiated"]) < before:
            ask(account, "DELETE", f"/{bucket}/{fields['Key']}", {"uploadId": fields["UploadId"]})
            ended += 1
    return ended


def ask(account: BucketCredentials, method: str, path: str, query: Mapping[str, str]) -> str:
    """Send one signed request without a body; raise `OSError` if it fails."""
    path = quote(account.endpoint.path + path)
    search = "&".join(f"{quote(name, safe='')}={quote(query[name], safe='')}" for name in sorted(query))
    kind = HTTPSConnection if account.endpoint.scheme == "https" else HTTPConnection
    connection = kind(account.endpoint.netloc, timeout=SECONDS)
    try:
        headers = _sign(account, method, path, search, datetime.now(UTC))
        connection.request(method, f"{path}?{search}", headers=headers)
        response = connection.getresponse()
        body = response.read().decode("utf-8", "replace")
    except HTTPException as error:
        raise OSError(f"S3 does not speak HTTP: {error}") from error
    finally:
        connection.close()
    if response.status not in (200, 204, 404):
        raise OSError(f"S3 answered {method} {path} with status code: {response.status}")
    return body


def _sign(account: BucketCredentials, method: str, path: str, search: str, now: datetime) -> dict[str, str]:
    """Return the headers of an AWS signature, version 4."""
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": account.endpoint.netloc, "x-amz-content-sha256": EMPTY, "x-amz-date": moment}
    if account.token:
        headers["x-amz-security-token"] = account.token
    signed = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"{method}\n{path}\n{search}\n{lines}\n{signed}\n{EMPTY}"
    scope = f"{moment[:8]}/{account.region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = b"AWS4" + account.secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential={account.key_id}/{scope}, SignedHeaders={signed}, Signature={signature}"
    return {**headers, "authorization": f"AWS4-HMAC-SHA256 {credential}"}
