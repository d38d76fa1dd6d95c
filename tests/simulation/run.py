"""Run worlds: `python -m simulation.run --seeds 1-500`, or `make simulate SEEDS=1-500`. A failure prints its replay."""

import os
import signal
import sys


def _fix_order_of_sets() -> None:
    """Start again with a fixed order of sets of strings, unless it is fixed already."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", "simulation.run", *sys.argv[1:]], environment)  # noqa: S606


if __name__ == "__main__":
    _fix_order_of_sets()
    from simulation.running.command import main  # after the restart: it imports the gateway, which takes a second

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # end the worlds and the server, like Ctrl-C
    sys.exit(main(sys.argv[1:], __doc__))
