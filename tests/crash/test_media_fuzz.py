"""The fuzzer of hostile files, for a short while."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_no_damaged_file_hangs_escapes_or_is_refused_without_a_word(tmp_path):
    script = Path(__file__).with_name("media_fuzz.py")
    command = [sys.executable, script, "--minutes", "0.5", "--keep", tmp_path]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert answer.returncode == 0, answer.stdout + answer.stderr
