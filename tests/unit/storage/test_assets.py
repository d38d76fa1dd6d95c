"""Files that the asset storage opens."""

import asyncio
import threading
from io import FileIO
from pathlib import Path

import pytest

from penstock.domain.files import StoredFile
from penstock.storage import assets
from penstock.storage.assets import Assets
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
