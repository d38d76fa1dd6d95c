"""Removes our credentials and the vendors' addresses from everything that a vendor wrote."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import quote, unquote, urlsplit

MASK: Final = "…"
MAX_TEXT: Final = 300
MAX_READ: Final = 2_000
"""Characters of a text that are looked at. The rest would be cut anyway."""
MIN_SECRET: Final = 4
"""A shorter secret protects nothing, and hiding it would spoil ordinary words."""
MIN_PACKED: Final = 9
"""Shorter secrets are not looked for in Base64: what is left of them there could be any word."""
MIN_BEGUN, BEGINNING = 20, 12
"""Of a secret that has 20 characters or more, the first 12 are hidden too, with whatever masks the rest."""
MIN_NAME: Final = 8
"""A host name of fewer letters, and nothing but letters, is hidden only where it stands in an address."""

_ADDRESS: Final = re.compile(
    r"\b[a-z][a-z0-9+.-]{0,20}://\S+"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b\S*"
    r"|\[[0-9a-f]*:[0-9a-f:.]+\](?::\d+)?",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\S+")
_DOMAIN: Final = re.compile(
    r"[\w-]\.(?:com|net|org|ai|io|dev|cloud|run|app|media|delivery|internal|local|lan)\b", re.IGNORECASE
)
"""The end of a host name. One pattern for the whole name would take a time that grows with the square of its length."""
_TOKEN: Final = re.compile(
    r"\b(?:bearer|basic)\s+[\w+/=.~-]{8,}|\b(?:sk|pk|rk|psk|gsk|xai|hf|r8)[-_][\w-]{12,}|\bAIza[\w-]{12,}",
    re.IGNORECASE,
)
"""Credentials by their looks: a vendor may have others than ours at hand."""
_CODE: Final = re.compile(r"[A-Za-z0-9][\w.:-]{0,63}", re.ASCII)
_CODES: Final = re.compile(rf"{_CODE.pattern}(?:, {_CODE.pattern}){{0,9}}", re.ASCII)
"""One code or several: a media vendor may give a number for each thing that it disliked."""
_PARAM: Final = re.compile(r"[A-Za-z_$][\w.$\[\]-]{0,127}", re.ASCII)


class Redactor:
    """Knows what must not be shown; made once for each reading of the settings."""

    def __init__(self, secrets: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        self.secrets = frozenset(filter(None, secrets))
        self.hosts = frozenset(host.lower() for host in hosts if host)
        self._secret = _any_of(form for secret in self.secrets for form in _forms(secret))
        self._host = _any_of(map(_describe_host, self.hosts), re.IGNORECASE)

    def joined(self, secrets: Iterable[str], hosts: Iterable[str] = ()) -> "Redactor":
        """Return one that hides these too."""
        return Redactor(self.secrets.union(secrets), self.hosts.union(hosts))

    def text(self, said: Any, most: int = MAX_TEXT) -> str:
        """Return a text without secrets, addresses and hosts, cut at so many characters."""
        found = str(said)[:MAX_READ]
        for pattern in (self._secret, _TOKEN, _ADDRESS):  # secrets first, before an address in one is cut
            found = pattern.sub(MASK, found)
        return self._host.sub(MASK, _WORD.sub(_hide_domain, found))[:most]

    def code(self, said: Any) -> str | None:
        """Return an error's code if it looks like one and holds nothing to hide."""
        return self._keep(said, _CODE)

    def param(self, said: Any) -> str | None:
        """Return the name of a field if it looks like one and holds nothing to hide."""
        return self._keep(said, _PARAM)

    def upstream(
        self, said: Mapping[str, str | None] | None, shown: Iterable[str] = ()
    ) -> dict[str, str | None] | None:
        """Return a media vendor's `code`, `message` and `id` as callers may see them, without tokens it was `shown`."""
        if said is None:
            return None
        tokens = tuple(shown)
        return {name: self._clean(name, text, tokens) for name, text in said.items()}

    def _clean(self, name: str, text: str | None, shown: Iterable[str]) -> str | None:
        if text is None:
            return None
        for token in shown:
            text = text.replace(token, MASK)
        return self._keep(text, _CODES) if name == "code" else self.text(text)

    def _keep(self, said: Any, shape: re.Pattern[str]) -> str | None:
        if not isinstance(said, str) or not shape.fullmatch(said):
            return None
        return said if self.text(said) == said else None


def _hide_domain(found: re.Match[str]) -> str:
    """Mask a word from the beginning of its first host name on."""
    word = found[0]
    domain = _DOMAIN.search(word)
    if domain is None:
        return word
    start = 0
    for place in range(domain.start(), -1, -1):
        if not (word[place].isalnum() or word[place] in "_.-"):
            start = place + 1
            break
    return word[:start] + MASK


def find_hosts(value: Any) -> Iterator[str]:
    """Yield the host of every URL in a value of the settings, and the user and password that one holds."""
    if isinstance(value, str):
        yield from _hosts_of(value)
    elif isinstance(value, Mapping):
        for item in cast("Mapping[Any, Any]", value).values():
            yield from find_hosts(item)
    elif isinstance(value, list | tuple):
        for item in cast("Iterable[Any]", value):
            yield from find_hosts(item)


def _hosts_of(text: str) -> Iterator[str]:
    if "://" not in text:
        return
    try:
        parts = urlsplit(text)
        found = (parts.hostname, parts.username, parts.password)
    except ValueError:
        return
    yield from (unquote(each) for each in found if each)


def _any_of(patterns: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    """Return a pattern for any of these, the longest first, as one may contain another."""
    return re.compile("|".join(sorted(set(patterns), key=len, reverse=True)) or r"(?!)", flags)


def _forms(secret: str) -> Iterator[str]:
    """Yield patterns for a secret: as it is, inside JSON, a URL or Base64, whole or only its beginning."""
    if len(secret) < MIN_SECRET:
        return
    yield from map(re.escape, (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")))
    if len(secret) >= MIN_BEGUN:
        yield re.escape(secret[:BEGINNING]) + r"[\w*+/=.~…-]*"
        yield re.escape(quote(secret[:BEGINNING], safe="")) + r"[\w*+/=.~%…-]*"
    data = secret.encode("utf-8", "replace")
    if len(data) >= MIN_PACKED:
        for offset in range(3):  # wherever it begins among the bytes that are packed, as after a user's name
            packed = base64.b64encode(bytes(offset) + data).decode()
            own = packed[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
            own = own[:BEGINNING] if len(data) >= MIN_BEGUN else own
            for form in {own, own.translate({43: "-", 47: "_"})}:
                yield re.escape(form) + r"[\w+/=-]*"
    yield from _parts_of(secret)


def _parts_of(secret: str) -> Iterator[str]:
    """Yield the texts of a credential that is a JSON document, such as a service account's."""
    if not secret.lstrip().startswith("{"):
        return
    try:
        found = json.loads(secret)
    except (ValueError, RecursionError):
        return
    for value in cast("dict[str, Any]", found).values() if isinstance(found, dict) else ():
        if isinstance(value, str) and len(value) >= MIN_BEGUN:
            yield from map(re.escape, (value, json.dumps(value)[1:-1]))


def _describe_host(host: str) -> str:
    name = re.escape(host) + r"(?::\d+)?"
    if host.isalpha() and len(host) < MIN_NAME:  # may be an ordinary word, such as `model`
        return rf"(?<=[/@]){name}|(?<![\w-]){re.escape(host)}:\d+"
    return rf"(?<![\w-]){name}(?![\w-])"
