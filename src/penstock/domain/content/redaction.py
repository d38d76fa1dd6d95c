"""Redaction of texts by pattern. Time is linear in the length of the text, whatever the pattern."""

import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, Protocol, cast

from penstock.domain.content.checksums import find_cards, find_ibans

OWN: Final = "pattern"
"""The name in the mark of what an operator's own pattern finds."""
MAX_FOUND: Final = 10_000
"""Redactions of one record. The rest of a text with more is left out."""
MARGIN_CHARACTERS: Final = 4_096
"""The end of a text that was cut and is left out: a secret may have been cut there."""
_MEMORY_BYTES: Final = 8 << 20

API_KEYS: Final = (
    r"\bps[ka]_[A-Za-z0-9]{12,64}(?:_[A-Za-z0-9]{8,64})?",
    r"\bsk-[A-Za-z0-9_\-]{16,256}",
    r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,256}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}|glpat-[A-Za-z0-9_\-]{16,64})",
    r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,255}",
    r"\bAIza[A-Za-z0-9_\-]{30,64}",
    r"\b(?:hf_|r8_|fal_|npm_|pypi-)[A-Za-z0-9_\-]{20,255}",
    r"\bwhsec_[A-Za-z0-9+/=]{16,128}",
    r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?",
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[A-Za-z0-9+/=\s\\:,]|-[A-Za-z0-9])*(?:-----END [A-Z ]{0,30}KEY-----)?",
)
"""Forms of keys: our own, those of vendors and clouds, JSON web tokens and private keys."""
_LABEL: Final = r"[A-Za-z0-9\x{80}-\x{10FFFF}\-]+"
"""A part of a domain, in any script."""
PATTERNS: Final = {
    "api_key": API_KEYS,
    "bearer": (r"(?i)\b(?:bearer|basic)[ \t]+[A-Za-z0-9._~+/\-]{8,}=*",),
    "email": (rf"""[^\s@<>"'(),;:\[\]{{}}|\\]+@{_LABEL}(?:\.{_LABEL})+""",),
    "phone": (r"\+[1-9][0-9](?:[ \-./()]{0,2}[0-9]){6,12}\b",),
}
CHECKED: Final[dict[str, Callable[[str], Iterator[tuple[int, int]]]]] = {"iban": find_ibans, "card": find_cards}
"""Numbers that prove themselves by check digits."""
NAMES: Final = ("api_key", "bearer", "email", "iban", "card", "phone")
"""All kinds, in the order in which they are redacted."""
DEFAULT: Final = NAMES[:-1]


class TooManyFound(Exception):
    """A text has more to redact than one record may have."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place
        """The place in the text from which on nothing was redacted."""


class Pattern(Protocol):
    """A compiled regular expression."""

    def finditer(self, text: str) -> Iterator[Any]:
        """Yield the matches, which do not overlap."""
        ...


@cache
def compile_redaction(pattern: str) -> Pattern:
    """Return a pattern in the syntax of RE2. Raise ValueError with the reason if it cannot be used."""
    engine: Any = importlib.import_module("re2")  # loaded where content is logged only
    options = engine.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        compiled = engine.compile(pattern, options)
    except engine.error as error:
        reason = error.args[0] if error.args else "it is not a pattern"
        raise ValueError(reason.decode() if isinstance(reason, bytes) else str(reason)) from None
    if compiled.search("") is not None:
        raise ValueError("it matches every text")
    return cast("Pattern", compiled)


class ContentRedactor:
    """Replaces what the patterns find by marks such as `[redacted:email]`."""

    def __init__(self, names: Sequence[str], own: Sequence[str] = ()) -> None:
        self._finders: list[tuple[str, Callable[[str], Iterator[tuple[int, int]]]]] = [
            (OWN, _finder(pattern)) for pattern in own
        ]
        for name in NAMES:
            if name in names and name in CHECKED:
                self._finders.append((name, CHECKED[name]))
            elif name in names:
                together = "|".join(f"(?:{pattern})" for pattern in PATTERNS[name])
                self._finders.append((name, _finder(together)))

    def redact(self, text: str, counts: Counter[str]) -> str:
        """Return the text with marks, and count them by name. Raise `TooManyFound` beyond the limit."""
        text = _clean(text)
        spans: list[tuple[int, int, str]] = []
        for name, find in self._finders:
            for start, end in find(text):
                if end > start:
                    spans.append((start, end, name))
                if len(spans) + counts.total() > MAX_FOUND:
                    raise TooManyFound(start)
        return _replace(text, _merge(spans), counts) if spans else text

    def redact_part(self, text: str, counts: Counter[str], most: int) -> tuple[str, bool]:
        """Return at most so many characters of a text after redaction, and whether something was left out."""
        whole, is_cut = text[: most + MARGIN_CHARACTERS], len(text) > most + MARGIN_CHARACTERS
        try:
            redacted = self.redact(whole, counts)
        except TooManyFound:
            return "", True
        if is_cut:
            redacted = redacted[:-MARGIN_CHARACTERS]
        return redacted[:most], is_cut or len(redacted) > most


def _finder(pattern: str) -> Callable[[str], Iterator[tuple[int, int]]]:
    compiled = compile_redaction(pattern)
    return lambda text: (match.span() for match in compiled.finditer(text))


def _clean(text: str) -> str:
    """Return a text that can be written as UTF-8: halves of surrogate pairs and NUL are replaced."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _merge(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return the spans without overlaps. Those that overlap become one, with the name of the first."""
    merged: list[tuple[int, int, str]] = []
    for start, end, name in sorted(spans):
        if merged and start < merged[-1][1]:
            first, last, known = merged[-1]
            merged[-1] = (first, max(last, end), known)
        else:
            merged.append((start, end, name))
    return merged


def _replace(text: str, spans: Sequence[tuple[int, int, str]], counts: Counter[str]) -> str:
    pieces: list[str] = []
    begin = 0
    for start, end, name in spans:
        pieces += (text[begin:start], f"[redacted:{name}]")
        counts[name] += 1
        begin = end
    pieces.append(text[begin:])
    return "".join(pieces)
