"""Facts about the chat models whose weights `penstock models pull` brings, by the name of their file."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Profile:
    """Settings under which a model answers well, and its texts for people."""

    title: str = ""
    description: str = ""
    pull: str = "penstock models pull"
    """The command that brings the weights."""
    repeat_penalty: float = 1.1
    """Small models repeat themselves without a penalty. Larger ones make mistakes with one."""
    system: str | None = None
    """The system prompt of conversations that have none."""
    extra_buffers: bool = True
    """Whether a copy of the weights is laid out for this processor. It is faster and takes more memory."""


USUAL = Profile()
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "smollm2-135m.gguf": Profile(
            "SmolLM2 135M, small demonstration model",
            "Small demonstration model: quick, fluent and often wrong.",
        ),
        "qwen2.5-coder-1.5b.gguf": Profile(
            "Qwen2.5-Coder 1.5B, small model",
            "Small model: slower, and right more often. `penstock models pull qwen2.5-coder-1.5b` brings it (1.1 GB).",
            pull="penstock models pull qwen2.5-coder-1.5b",
            repeat_penalty=1.0,
            system=(
                "You help with everyday questions. Answer in the language of the question, with correct facts, "
                "simple words and few sentences."
            ),
            extra_buffers=False,
        ),
    }
)


def find_profile(name: str) -> Profile:
    """Return the profile of a file of this name, or the usual one."""
    return PROFILES.get(name, USUAL)
