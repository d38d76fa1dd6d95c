"""Folders of half downloads: a process that lives keeps its own, however many start beside it."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.storage.scratch import ScratchFolder

PROCESS = """
import sys
from pathlib import Path
from penstock.storage.scratch import ScratchFolder
landing = ScratchFolder(Path(sys.argv[1]))
(landing.folder / "half").write_bytes(b"x")
print(landing.folder, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    here = ScratchFolder(tmp_path)
    (here.folder / "half").write_bytes(b"x")
    with subprocess.Popen(  # noqa: S603  our own
        [sys.executable, "-c", PROCESS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        half = Path(process.stdout.readline().strip()) / "half"
        here.clear()
        assert half.exists()
        process.kill()
    here.clear()
    assert not half.parent.exists()
    assert (here.folder / "half").exists()
    here.close()
    assert list(tmp_path.iterdir()) == []


def test_many_that_start_and_clear_at_once_leave_each_other_alone(tmp_path):
    def begin(_: int) -> ScratchFolder:
        scratch = ScratchFolder(tmp_path)
        scratch.clear()
        (scratch.folder / "half").write_bytes(b"x")
        return scratch

    with ThreadPoolExecutor(8) as threads:
        scratch_folders = list(threads.map(begin, range(100)))
    assert all((scratch.folder / "half").exists() for scratch in scratch_folders)
    for scratch in scratch_folders:
        scratch.close()
    assert list(tmp_path.iterdir()) == []
