"""Files that the asset storage opens."""

import asyncio
import threading
from collections.abc import AsyncIterator
from io import FileIO
from pathlib import Path

import pytest

from penstock.domain.files import StoredFile
from penstock.storage import assets
from penstock.storage.assets import BATCH, Assets
from penstock.storage.backend import open_storage
from penstock.storage.scratch import ScratchFolder


async def test_a_file_is_closed_whose_reader_left_while_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()
    opened: list[FileIO] = []

    class SlowFile(FileIO):
        def __init__(self, path: Path) -> None:
            begun.set()
            go_on.wait()
            super().__init__(path)
            opened.append(self)

        def close(self) -> None:
            super().close()
            closed.set()

    monkeypatch.setattr(assets, "FileIO", SlowFile)
    file = StoredFile("file_1", "acct_1", "0" * 64, 1, "image/png", 1, 1, 0.0, None, key="picture.png")
    (tmp_path / "picture.png").write_bytes(b"x")
    storage = Assets(open_storage(tmp_path.as_uri()), ScratchFolder(tmp_path / "scratch"))
    reader = asyncio.create_task(storage.open_file(file))
    await asyncio.to_thread(begun.wait)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    go_on.set()
    await asyncio.to_thread(closed.wait)
    assert reader.cancelled()
    assert opened[0].closed


class Piece(bytes):
    """A piece of a download. The class knows how many are in memory, and the most that ever were."""

    alive = most = 0

    def __init__(self, *_: object) -> None:
        Piece.alive += 1
        Piece.most = max(Piece.most, Piece.alive)

    def __del__(self) -> None:
        Piece.alive -= 1


async def test_a_download_is_on_the_disk_before_much_more_of_it_is_read(tmp_path: Path) -> None:
    size, count = BATCH // 4, 400

    async def send() -> AsyncIterator[bytes]:
        for number in range(count):
            yield Piece((number % 256).to_bytes() * size)

    storage = Assets(open_storage(tmp_path.as_uri()), ScratchFolder(tmp_path / "scratch"))
    async with storage.land(send()) as landed:
        assert landed.bytes == landed.path.stat().st_size == size * count
    assert 1 < Piece.most < count / 2, "each thread of the pool may hold a batch for a moment"
