"""Small previews of stored pictures, made in a confined child process."""

import asyncio
from io import FileIO
from typing import Final

from penstock.domain.files import CONTENT_TYPES, StoredAsset
from penstock.domain.job_errors import JobError
from penstock.inspection.previews import make_preview
from penstock.inspection.worker_pool import ProcessPool, WorkFailed
from penstock.storage.assets import Assets

MAX_PICTURE_BYTES: Final = 20 << 20
"""Larger pictures have no preview: reading them would take too much memory."""


class Previews:
    """Makes previews of jobs' outputs."""

    def __init__(self, assets: Assets, pool: ProcessPool) -> None:
        self._assets = assets
        self._pool = pool

    async def make(self, asset: StoredAsset) -> str | None:
        """Return a small JPEG as base64, or None if the output is no picture or cannot be shown."""
        if asset.content_type not in CONTENT_TYPES.values() or asset.bytes > MAX_PICTURE_BYTES:
            return None
        try:
            return await self._pool.do(asset.account_id, make_preview, await self.read(asset))
        except (JobError, WorkFailed):
            return None

    async def read(self, asset: StoredAsset) -> bytes:
        """Return the bytes of an output that is small."""
        body = await self._assets.open(asset, 0, asset.bytes)
        if not isinstance(body, FileIO):
            return b"".join([chunk async for chunk in body])
        with body:
            return await asyncio.to_thread(body.readall)
