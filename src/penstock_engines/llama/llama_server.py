"""The chat server: llama.cpp in its own process, with the weights of one GGUF file."""

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock_engines.llama.profiles import find_profile
from penstock_engines.processors import count_processors
from penstock_engines.serving.child_process import ChildProcess
from penstock_engines.serving.on_demand_server import OnDemandServer, ServerFailed

__all__ = ["LlamaOptions", "LlamaServer", "ServerFailed"]

LOGGED_ERROR = re.compile(r"[\d.]+ E [^:]*: (.*)")
PATH = re.compile(r"[\w.~:-]*[/\\][^\s'\"]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaOptions:
    """The weights, and the limits of threads, memory and time."""

    gguf: Path
    threads: int | None = None
    """None means one per processor."""
    context: int = 8192
    """Tokens of one conversation. Each slot has this many."""
    slots: int = 2
    """Number of parallel conversations."""
    memory_mb: int | None = None
    """Maximum allocation. The weights are mapped from their file and do not count."""
    repeat_penalty: float | None = None
    """Default for requests. None means that of the model's profile."""
    unload_seconds: float = 600
    start_seconds: float = 120


class LlamaServer(OnDemandServer):
    """A server of chat completions."""

    def __init__(self, options: LlamaOptions) -> None:
        super().__init__(LlamaPlan(options))


class LlamaPlan:
    """Starts llama.cpp with these options."""

    name = "chat server"
    module = "penstock_engines.llama.llama_child"

    def __init__(self, options: LlamaOptions) -> None:
        self._options = options
        self.unload_seconds = options.unload_seconds
        self.start_seconds = options.start_seconds

    def check(self) -> None:
        """Check the weights early, where the message is clearer than llama.cpp's."""
        _check(self._options.gguf)

    def order(self, key: str) -> dict[str, Any]:
        """Return the settings of the server."""
        options, profile = self._options, find_profile(self._options.gguf.name)
        penalty = options.repeat_penalty
        return {
            "gguf": str(options.gguf.absolute()),
            "alias": options.gguf.stem,
            "key": key,
            "threads": options.threads or count_processors(),
            "context": options.context,
            "slots": options.slots,
            "memory_mb": options.memory_mb,
            "repeat_penalty": profile.repeat_penalty if penalty is None else penalty,
            "extra_buffers": profile.extra_buffers,
        }

    def explain(self, child: ChildProcess, took: float) -> str:
        """Return the cause of a failed start, and what to do."""
        name, seconds = self._options.gguf.name, self.start_seconds
        if took >= seconds:
            return f"`{name}` was not loaded within {seconds:g} seconds; allow more, or use a smaller model"
        cause = _find_cause(child.last_lines())
        if child.status is not None and child.status < 0:
            return f"the chat server crashed (signal {-child.status}) while it loaded `{name}`: {cause}"
        pull = find_profile(name).pull
        return f"`{name}` cannot be loaded; it may be damaged (`{pull}`) or need more memory: {cause}"


def _check(gguf: Path) -> None:
    """Raise `ServerFailed` if the library or the file is missing, or the file is no GGUF file."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ServerFailed("the built-in chat server is not installed; run `pip install 'penstock[local]'`")
    pull = find_profile(gguf.name).pull
    try:
        with gguf.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise ServerFailed(f"the weights `{gguf.name}` are missing; run `{pull}`") from None
    except OSError as error:
        raise ServerFailed(f"the weights `{gguf.name}` cannot be read: {error.strerror}") from None
    if magic != b"GGUF":
        raise ServerFailed(f"`{gguf.name}` is not a GGUF file; name another, or run `{pull}`")


def _find_cause(lines: tuple[str, ...]) -> str:
    """Return the first error it logged, else its last line, without this machine's paths."""
    errors = (match[1] for line in lines if (match := LOGGED_ERROR.match(line)))
    return PATH.sub("…", next(errors, lines[-1].strip() if lines else "it logged nothing"))
