"""The journal: whoever dies leaves it behind, whoever lives is left alone."""

import fcntl
import os
import threading
from pathlib import Path

from penstock.journal import Journal, find_remains
from penstock.usage_records import Begun

BEGUN = Begun(
    id="chat_1",
    request_id="req_1",
    account_id="acct_1",
    key_id="key_1",
    lineage="key_1",
    model="chat",
    vendor="vendor",
    upstream_model="chat",
    streamed=True,
    created_at=1.0,
    prompt=10,
    input_per_million=1_000_000,
    output_per_million=1_000_000,
    per_request=0,
)


def die(journal: Journal) -> None:
    """As the system ends a process: its files are closed, and nothing is removed."""
    os.close(journal._file)
    os.close(journal._lock)


def wait_for_opening(path: Path) -> None:
    """Until this process has the file open twice."""
    folder = Path("/proc/self/fd")
    while sum(os.path.realpath(link) == str(path) for link in folder.iterdir()) < 2:
        pass


def test_what_a_dead_process_began_is_found_once(tmp_path: Path):
    journal = Journal(tmp_path, "process_1")
    journal.begin(BEGUN)
    journal.progress([("chat_1", 40)])
    assert list(find_remains(tmp_path)) == []
    os.write(journal._file, b'B["chat_2",')  # cut in the middle of a line
    die(journal)
    [remains] = find_remains(tmp_path)
    assert (remains.process, remains.ended, remains.under_way) == ("process_1", [], [(BEGUN, 40)])
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_taken_for_dead_while_it_starts_is_still_found_later(tmp_path: Path):
    path = tmp_path.resolve() / "process_1.lock"
    taken = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(taken, fcntl.LOCK_EX)  # by one that looks for the dead, before the new process has locked its own file
    journals: list[Journal] = []
    starting = threading.Thread(target=lambda: journals.append(Journal(tmp_path, "process_1")))
    starting.start()
    wait_for_opening(path)
    path.unlink()
    os.close(taken)
    starting.join()
    journals[0].begin(BEGUN)
    assert list(find_remains(tmp_path)) == []
    die(journals[0])
    assert [remains.under_way for remains in find_remains(tmp_path)] == [[(BEGUN, 0)]]
