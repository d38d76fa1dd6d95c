"""Redaction of our credentials and the vendors' addresses from everything that a vendor wrote."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import quote, unquote, urlsplit

from penstock.vendor_api.generation import Reply

MASK: Final = "…"
MAX_TEXT: Final = 300
MAX_READ: Final = 2_000
"""Characters of a text that are searched. The rest would be cut anyway."""
MIN_SECRET: Final = 4
"""A shorter secret protects nothing, and hiding it would spoil ordinary words."""
MIN_PACKED: Final = 9
"""Minimum length of a secret to be searched in Base64: the rest of a shorter one could be any word."""
MIN_BEGUN, BEGINNING = 20, 12
"""Of a secret of at least 20 characters, the first 12 are hidden too, with any mask that follows."""
MIN_NAME: Final = 8
"""A shorter host name made of letters alone is hidden only inside an address."""

MAX_ERROR_BYTES: Final = 1 << 16
"""Bytes of a vendor's error that a caller of its dialect gets."""
PASSED_HEADERS: Final = ("anthropic-ratelimit-", "retry-after", "x-should-retry")
"""Beginnings of the names of headers that go with it."""

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
"""The end of a host name. A pattern for the whole name would take time quadratic in its length."""
_TOKEN: Final = re.compile(
    r"\b(?:bearer|basic)\s+[\w+/=.~-]{8,}|\b(?:sk|pk|rk|psk|gsk|xai|hf|r8)[-_][\w-]{12,}|\bAIza[\w-]{12,}",
    re.IGNORECASE,
)
"""Credentials by their form: a vendor may show others than ours."""
_CODE: Final = re.compile(r"[A-Za-z0-9][\w.:-]{0,63}", re.ASCII)
_CODES: Final = re.compile(rf"{_CODE.pattern}(?:, {_CODE.pattern}){{0,9}}", re.ASCII)
"""One code or several: a media vendor may give one for each problem."""
_PARAM: Final = re.compile(r"[A-Za-z_$][\w.$\[\]-]{0,127}", re.ASCII)


class Redactor:
    """Removes secrets and hosts from texts; made once for each load of the settings."""

    def __init__(self, secrets: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        self.secrets = frozenset(filter(None, secrets))
        self.hosts = frozenset(host.lower() for host in hosts if host)
        self._secret = _any_of(form for secret in self.secrets for form in _forms(secret))
        self._host = _any_of(map(_describe_host, self.hosts), re.IGNORECASE)

    def joined(self, secrets: Iterable[str], hosts: Iterable[str] = ()) -> "Redactor":
        """Return a redactor that hides these as well."""
        return Redactor(self.secrets.union(secrets), self.hosts.union(hosts))

    def text(self, value: Any, max_characters: int = MAX_TEXT) -> str:
        """Return a text without secrets, addresses and hosts, cut at `max_characters`."""
        found = str(value)[:MAX_READ]
        for pattern in (self._secret, _TOKEN, _ADDRESS):  # secrets first, as one may contain an address
            found = pattern.sub(MASK, found)
        return self._host.sub(MASK, _WORD.sub(_hide_domain, found))[:max_characters]

    def code(self, value: Any) -> str | None:
        """Return an error's code if it looks like one and holds nothing to hide."""
        return self._keep(value, _CODE)

    def param(self, value: Any) -> str | None:
        """Return the name of a field if it looks like one and holds nothing to hide."""
        return self._keep(value, _PARAM)

    def reply(self, reply: Reply) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of a vendor's error for a caller of its dialect: only secrets are masked."""
        body = self._secret.sub(MASK, reply.body[:MAX_ERROR_BYTES].decode("utf-8", "replace"))
        named = {name: value for name, value in reply.headers.items() if name.startswith(PASSED_HEADERS)}
        return reply.status, named, self._host.sub(MASK, body).encode()

    def upstream(
        self, texts: Mapping[str, str | None] | None, sent_tokens: Iterable[str] = ()
    ) -> dict[str, str | None] | None:
        """Return a media vendor's `code`, `message` and `id` without secrets and `sent_tokens`."""
        if texts is None:
            return None
        tokens = tuple(sent_tokens)
        return {name: self._clean(name, text, tokens) for name, text in texts.items()}

    def _clean(self, name: str, text: str | None, tokens: Iterable[str]) -> str | None:
        if text is None:
            return None
        for token in tokens:
            text = text.replace(token, MASK)
        return self._keep(text, _CODES) if name == "code" else self.text(text)

    def _keep(self, value: Any, shape: re.Pattern[str]) -> str | None:
        if not isinstance(value, str) or not shape.fullmatch(value):
            return None
        return value if self.text(value) == value else None


def _hide_domain(found: re.Match[str]) -> str:
    """Mask a word from the start of its first host name."""
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
    """Yield the host, user and password of every URL in a value of the settings."""
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
    """Return a pattern for any of these, the longest first, because one may contain another."""
    return re.compile("|".join(sorted(set(patterns), key=len, reverse=True)) or r"(?!)", flags)


def _forms(secret: str) -> Iterator[str]:
    """Yield patterns for a secret: plain, in JSON, in a URL or in Base64, whole or only its beginning."""
    if len(secret) < MIN_SECRET:
        return
    yield from map(re.escape, (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")))
    if len(secret) >= MIN_BEGUN:
        yield re.escape(secret[:BEGINNING]) + r"[\w*+/=.~…-]*"
        yield re.escape(quote(secret[:BEGINNING], safe="")) + r"[\w*+/=.~%…-]*"
    data = secret.encode("utf-8", "replace")
    if len(data) >= MIN_PACKED:
        for offset in range(3):  # at any offset of the encoded bytes, such as after a user name
            packed = base64.b64encode(bytes(offset) + data).decode()
            own = packed[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
            own = own[:BEGINNING] if len(data) >= MIN_BEGUN else own
            for form in {own, own.translate({43: "-", 47: "_"})}:
                yield re.escape(form) + r"[\w+/=-]*"
    yield from _parts_of(secret)


def _parts_of(secret: str) -> Iterator[str]:
    """Yield the strings of a credential that is a JSON document, such as a service account."""
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
    if host.isalpha() and len(host) < MIN_NAME:  # it may be an ordinary word, such as `model`
        return rf"(?<=[/@]){name}|(?<![\w-]){re.escape(host)}:\d+"
    return rf"(?<![\w-]){name}(?![\w-])"
