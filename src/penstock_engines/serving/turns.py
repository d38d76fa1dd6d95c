"""Turns: the threads of several requests run one after the other, in the order in which they come."""

import threading
from collections import deque
from types import TracebackType


class Turns:
    """A lock that is handed to whoever waits longest. A plain lock may be taken again at once by its last holder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    def hand_on(self) -> None:
        """Let whoever waits go first, and take the turn after."""
        self.__exit__(None, None, None)
        self.__enter__()

    def __enter__(self) -> None:
        mine = threading.Event()
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            self._waiting.append(mine)
        mine.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
