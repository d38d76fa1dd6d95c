"""Attribution of requests: read from their headers and bodies, with the fixed tags of the API key."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import structs
from starlette.requests import Request

from penstock.domain.api_keys import ApiKey
from penstock.domain.attribution import labels
from penstock.domain.attribution.labels import NOBODY, Attribution, clean, clean_tags, unpack_user
from penstock.domain.chat import Ask
from penstock.errors import InvalidRequest
from penstock.web.server.head_cache import Head

T = TypeVar("T")

TAGS: Final = b"x-penstock-tags"
END_USER: Final = b"x-penstock-user"
SESSION: Final = b"x-penstock-session"
OWN: Final = frozenset({TAGS, END_USER, SESSION})
AGENT_SESSIONS: Final = (
    b"x-claude-code-session-id",  # Claude Code
    b"session-id",  # Codex; earlier ones sent the next two
    b"session_id",
    b"conversation_id",
    b"x-opencode-session",  # OpenCode, and agents that imitate it
    b"x-session-id",
    b"x-session-affinity",
    b"x-qwen-code-session-id",  # Qwen Code
    b"mcp-session-id",
)
"""Headers by which agents name their session, the most specific first."""
_HEADERS: Final = frozenset({*OWN, *AGENT_SESSIONS})
_FIELDS: Final = ("metadata", "user", "safety_identifier")
ATTRIBUTION_PARAMETERS: Final[list[dict[str, Any]]] = [
    {"name": name.decode(), "in": "header", "schema": {"type": "string"}, "description": description}
    for name, description in (
        (TAGS, "up to 8 tags by which the cost is counted, separated by commas"),
        (END_USER, "the end user of the request"),
        (SESSION, "the session that the request belongs to"),
    )
]
"""Our own headers, for the OpenAPI document."""
MAX_METADATA_BYTES: Final = 1 << 16
"""Longer metadata is not read. No dialect allows so much."""


class _Metadata(msgspec.Struct):
    """The members of `metadata` that are read."""

    tags: Any = None
    user_id: Any = None
    session_id: Any = None


_metadata = msgspec.json.Decoder(_Metadata)
_value = msgspec.json.Decoder()


def attribute_chat(ask: Ask, head: Head, key: ApiKey) -> Ask:
    """Return a chat request with its attribution, if it has any."""
    given = head.attribution
    if given is None:
        given = head.attribution = read_headers(head.headers)
    if given is NOBODY and not key.tags and ask.fields.keys().isdisjoint(_FIELDS):
        return ask  # as nearly always
    found = _join(given, _read_fields(ask.fields), key)
    return ask if found == NOBODY else structs.replace(ask, attribution=found)


def attribute(
    request: Request, key: ApiKey, metadata: Any = None, *, user: Any = None, identifier: Any = None
) -> Attribution | None:
    """Return the attribution of any other request, None if it has none.

    `metadata`, `user` and `identifier` (`safety_identifier`) are fields of its body, whatever they are.
    """
    given = read_headers(request.headers.raw)
    body = NOBODY
    if metadata is not None or user is not None or identifier is not None:
        members = cast("Mapping[str, Any]", metadata) if isinstance(metadata, dict) else dict[str, Any]()
        body = _describe(members.get("tags"), None, members.get("session_id"), user, identifier)
    found = _join(given, body, key)
    return None if found == NOBODY else found


def read_headers(headers: Iterable[tuple[bytes, bytes]]) -> Attribution:
    """Return what the headers say. Raise for a malformed header of our own; those of agents are cut."""
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if name in _HEADERS:
            found.setdefault(name, []).append(value)
    if not found:
        return NOBODY
    tags: tuple[str, ...] = ()
    if TAGS in found:
        parts = [part for value in found[TAGS] for part in labels.split_tags(_decode(TAGS, value))]
        tags = _check(TAGS, labels.read_tags, parts)
    end_user, session = (
        _check(name, labels.read_name, _decode(name, found[name][-1])) if name in found else ""
        for name in (END_USER, SESSION)
    )
    if session:
        return Attribution(tags, end_user, session)
    sessions = (clean(found[name][-1].decode("utf-8", "replace")) for name in AGENT_SESSIONS if name in found)
    return Attribution(tags, end_user, next((session for session in sessions if session), ""))


def _check(name: bytes, read: Callable[[Any], T], value: Any) -> T:
    try:
        return read(value)
    except ValueError as error:
        raise _refuse(name, str(error)) from None


def _decode(name: bytes, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _refuse(name, "should be UTF-8") from None


def _refuse(name: bytes, reason: str) -> InvalidRequest:
    header = name.decode()
    return InvalidRequest(f"The header `{header}` {reason}.", param=header, code="invalid_value")


def _read_fields(fields: Mapping[str, msgspec.Raw]) -> Attribution:
    """Return what the fields of a chat request say. No value is refused: others defined these fields."""
    members = _read_metadata(fields.get("metadata"))
    user, identifier = (_read_text(fields.get(name)) for name in ("user", "safety_identifier"))
    return _describe(members.tags, members.user_id, members.session_id, user, identifier)


def _describe(tags: Any, packed: Any, session: Any, user: Any, identifier: Any) -> Attribution:
    packed_user, packed_session = unpack_user(packed)
    end_user = clean(identifier) or clean(user) or packed_user
    return Attribution(clean_tags(tags), end_user, packed_session or clean(session))


def _read_metadata(raw: msgspec.Raw | None) -> _Metadata:
    if raw is None or memoryview(raw).nbytes > MAX_METADATA_BYTES:
        return _Metadata()
    try:
        return _metadata.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Metadata()


def _read_text(raw: msgspec.Raw | None) -> Any:
    if raw is None:
        return None
    try:
        return _value.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _join(headers: Attribution, body: Attribution, key: ApiKey) -> Attribution:
    """Return what headers and body say together. Our own headers come first, and fixed tags always count."""
    tags = tuple(dict.fromkeys((*headers.tags, *body.tags)))[: labels.MAX_TAGS]
    joined = Attribution(tags, headers.end_user or body.end_user, headers.session or body.session)
    return joined.with_tags(key.tags)
