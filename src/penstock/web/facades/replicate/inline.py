"""Films as `data:` URIs, for a client that refuses to download from private hosts.

Vercel's AI SDK downloads a film only from a public address. Pictures it takes from the address that it is set to.
"""

import asyncio
import base64
import ipaddress
from typing import Any, Final
from urllib.parse import urlsplit

from penstock.domain.jobs import Asset, Job, State
from penstock.store.queries.files import asset_rows
from penstock.vendor_api.generation import Kind, Role
from penstock.web.auth import Caller, base_url
from penstock.web.server.asgi import CYCLE

CLIENT: Final = "ai-sdk/"
"""Stands in the `user-agent` of the client."""
MAX_BYTES: Final = 48 << 20
"""Bytes of the largest film that is written inline."""
PRIVATE_NAMES: Final = ("localhost", "local", "internal", "lan", "home.arpa", "test")


async def with_inline_film(caller: Caller, job: Job, prediction: dict[str, Any]) -> dict[str, Any]:
    """Return the prediction, with its film inline where the client would refuse the link."""
    if job.state is not State.SUCCEEDED or CLIENT not in caller.request.headers.get("user-agent", ""):
        return prediction
    films = [asset for asset in job.outputs if asset.role == Role.PRIMARY and asset.kind == Kind.VIDEO]
    if len(films) != 1 or films[0].bytes > MAX_BYTES or not _is_private(base_url(caller.request)):
        return prediction
    return {**prediction, "output": await _write_data_uri(caller, films[0])}


def _is_private(url: str) -> bool:
    """Return whether the host of a URL is one that only this network reaches, as far as its name tells."""
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(tuple(f".{name}" for name in PRIVATE_NAMES))


async def _write_data_uri(caller: Caller, film: Asset) -> str:
    """Return the film as a `data:` URI. Its memory counts for the caller until the answer is sent."""
    gateway, cycle = caller.gateway, caller.request.scope["extensions"][CYCLE]
    if cycle.hold is None:
        cycle.hold = await gateway.body_memory.take(caller.account_id, film.bytes)
    asset = await gateway.database.read(asset_rows.get, film.id, caller.account_id, gateway.clock())
    data = await gateway.assets.read(asset)
    return await asyncio.to_thread(_encode, film.content_type, data)


def _encode(content_type: str, data: bytes) -> str:
    return f"data:{content_type};base64,{base64.b64encode(data).decode()}"
