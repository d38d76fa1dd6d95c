"""Of the servers on one folder one leads, also after its disk was full."""

import errno
import os
from pathlib import Path

import pytest

from penstock.dispatch.leadership import Leadership


def test_a_full_disk_costs_nobody_the_lead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(_file: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    first, second = Leadership(tmp_path), Leadership(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse)
        assert first.take()
    assert first.take()
    assert not second.take()
    first.release()
    assert second.take()
    second.release()
