"""Parts of a gateway that are slow to make and hold nothing of a test, kept for the next one.

Every gateway starts processes that open files, and every simulator encodes its video. Tests of other things share them.
"""

from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import IO

import pytest

from penstock.inspection import worker_pool
from penstock.inspection.worker_child import Errand
from penstock.simulator import samples

_spares: list["SpareChild"] = []
_make_card = lru_cache(maxsize=16)(samples.make_video)


class SpareChild(worker_pool._Child):
    """A process that opens files. When a pool closes, it waits for the next pool."""

    is_gone = False

    async def do(self, errands: Sequence[Errand], files: Sequence[IO[bytes]]) -> tuple[str, bytes]:
        status, answer = await super().do(errands, files)
        self.is_gone = status == "gone"
        return status, answer

    def end(self) -> None:
        if self.is_gone or self._socket is None:
            super().end()
        else:
            _spares.append(self)


def take_child() -> SpareChild:
    return _spares.pop() if _spares else SpareChild()


@pytest.fixture(scope="session")
def spares() -> Generator[None]:
    """End the processes that were kept, after all tests."""
    yield
    while _spares:
        worker_pool._Child.end(_spares.pop())


@pytest.fixture(scope="module", autouse=True)
def sharing(spares: None) -> Generator[None]:
    """Let gateways share what is slow to make."""
    del spares
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_pool, "_Child", take_child)
        patch.setattr(samples, "make_video", _make_card)
        yield
