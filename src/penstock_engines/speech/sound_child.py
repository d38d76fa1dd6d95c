"""Decodes one hostile sound file in a confined process: a file on standard input, samples on standard output."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock_engines.child_environment import inherit_environment
from penstock_engines.speech.sound_files import NotSound, read_sound, to_floats
from penstock_sandbox import sandbox

DECODE_SECONDS: Final = 120
MEMORY_BYTES: Final = 1 << 30
NOT_SOUND: Final = 3
"""Exit code for a file that is no sound; the reason is in the output."""


def decode(data: bytes, sample_rate: int, max_seconds: float) -> NDArray[np.float32]:
    """Return the samples of a sound file, from -1 to 1, decoded in a process of its own. Raise `NotSound`."""
    words = [sys.executable, "-P", "-m", "penstock_engines.speech.sound_child", str(sample_rate), str(max_seconds)]
    try:
        done = subprocess.run(  # noqa: S603  our own module, by our own interpreter
            words,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=inherit_environment(OPENBLAS_NUM_THREADS="1"),
            timeout=DECODE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotSound("it takes too long to decode") from None
    if done.returncode == NOT_SOUND:
        raise NotSound(done.stdout.decode("utf-8", "replace"))
    if done.returncode != 0:
        raise NotSound("its decoder crashed")
    return to_floats(np.frombuffer(done.stdout, "<i2"))


def main() -> None:
    """Decode what comes, and end."""
    output = os.dup(1)
    os.dup2(2, 1)  # native code may print
    sandbox.end_with_parent()
    data = sys.stdin.buffer.read()
    limits = sandbox.Limits(cpu_seconds=DECODE_SECONDS, memory_bytes=MEMORY_BYTES)
    offered = sandbox.survey_forked()
    sandbox.limit(limits, threads=False)
    sandbox.confine(offered, readable=sandbox.library_folders(str(Path(__file__).parents[1])), threads=False)
    try:
        status, found = 0, read_sound(io.BytesIO(data), int(sys.argv[1]), float(sys.argv[2])).astype("<i2").tobytes()
    except NotSound as error:
        status, found = NOT_SOUND, str(error).encode()
    with os.fdopen(output, "wb") as file:
        file.write(found)
    os._exit(status)


if __name__ == "__main__":
    main()
