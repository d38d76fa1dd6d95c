"""The request as guardrails see it, and their findings. Nothing in a request is ever changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import Any, Final, Literal, NamedTuple, TypeAlias

MAX_NOTES: Final = 2_000
"""Bytes of the notes in a header. Longer ones are only named."""
Kind: TypeAlias = Literal["chat", "generation"]
Verdict: TypeAlias = Literal["allow", "refuse", "unavailable"]


class InspectedText(NamedTuple):
    """One text of a request, with the role of its message or the name of its field."""

    role: str
    text: str


Media: TypeAlias = Mapping[str, Any]
"""The facts of a file in a request: `kind`, and `sha256` if its bytes are here. Never its URL."""


@dataclass(frozen=True, slots=True)
class Content:
    """The inspected part of a request."""

    texts: Sequence[InspectedText]
    media: Sequence[Media] = ()

    @property
    def characters(self) -> int:
        """Return the number of characters of all texts."""
        return sum(len(each.text) for each in self.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One request to inspect."""

    type: Kind
    account_id: str
    account: str
    """The account's name."""
    key_id: str
    model: str
    endpoint: str
    """The dialect of a chat request, `generation` or `pipeline`."""
    request_id: str
    content: Content


@dataclass(frozen=True, slots=True)
class GuardrailFinding:
    """The result of one guardrail."""

    name: str
    verdict: Verdict
    reason: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_note(self) -> bool:
        """Return whether a request that is allowed has a reason or annotations."""
        return self.verdict == "allow" and bool(self.reason or self.annotations)

    def describe(self) -> dict[str, Any]:
        """Return the finding as records show it."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "reason": self.reason,
            "annotations": dict(self.annotations),
        }


def write_findings(findings: Sequence[GuardrailFinding]) -> str:
    """Return findings as JSON in ASCII, for a usage record."""
    return dumps([finding.describe() for finding in findings], separators=(",", ":"))


def write_notes(findings: Sequence[GuardrailFinding]) -> bytes:
    """Return the notes among the findings as JSON in ASCII, for a header. Empty if there are none."""
    notes = [finding.describe() for finding in findings if finding.is_note]
    if not notes:
        return b""
    written = dumps(notes, separators=(",", ":"))
    return (written if len(written) <= MAX_NOTES else dumps([{"name": note["name"]} for note in notes])).encode()
