"""Work for the workshop's children, good and bad; in a file of its own, as a child imports it."""

import os
import threading
import time
from typing import IO, Any

from penstock.domain.job_errors import BadOutput, UrlNotAllowed

MEMORY_BYTES = 2 * 1024**3


def fail(message: str) -> None:
    raise BadOutput(message)


def fail_otherwise(message: str) -> None:
    raise UrlNotAllowed(message)


def raise_timeout() -> None:
    raise TimeoutError("the work's own")


def crash() -> None:
    os._exit(3)


def end_well() -> None:
    os._exit(0)  # without an answer


def fault() -> None:
    address = __import__("ctypes").c_char_p(1)
    print(address.value)  # noqa: T201  reads what is not there


def spin() -> None:
    while True:
        pass


def hoard() -> int:
    return len(bytearray(MEMORY_BYTES))


def chatter(lines: int) -> str:
    for _ in range(lines):
        os.write(1, b"done 3\n" * 100)
        os.write(2, b"noise\n" * 100)
    return "done"


def answer_much() -> str:
    return "x" * 1_000_000


def lie() -> int:
    return "many"  # type: ignore[return-value]


def read_all(file: IO[bytes], *args: Any) -> list[Any]:
    return [file.read().decode(), *args]


def list_descriptors() -> list[int]:
    found: list[int] = []
    for number in range(64):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return found


def tell_environment() -> dict[str, str]:
    return dict(os.environ)


def keep_in_memory(word: str) -> list[str]:
    kept: list[str] = globals().setdefault("KEPT", [])
    kept.append(word)
    return kept


def start_thread() -> str:
    done = threading.Event()
    threading.Thread(target=done.set).start()
    return "ran" if done.wait(30) else "hung"


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds
