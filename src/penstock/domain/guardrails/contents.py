"""Find the texts and the media of requests, in any nesting of messages, parts and params."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, Final, cast

import msgspec

from penstock.domain.chat import Ask, AudioUpload, Dialect
from penstock.domain.files import StoredFile
from penstock.domain.guardrails.inquiry import Content, InspectedText, Media

FIRST: Final = ("system", "instructions")
"""Fields that stand before the conversation, whatever their place in the body."""
CONVERSATION: Final = ("messages", "input")
WITHOUT_TEXT: Final = frozenset(
    {
        *(
            "background",
            "betas",
            "cache_control",
            "container",
            "conversation",
            "dimensions",
            "encoding_format",
            "include",
        ),
        *("inference_geo", "language", "metadata", "modalities", "model", "moderation", "parallel_tool_calls"),
        *("previous_response_id", "prompt_cache_key", "prompt_cache_retention", "reasoning", "reasoning_effort"),
        *("safety_identifier", "service_tier", "speed", "stop", "stop_sequences", "store", "stream", "stream_format"),
        *("stream_options", "thinking", "timestamp_granularities", "tool_choice", "truncation", "user", "verbosity"),
        *("voice",),
    }
)
"""Top-level fields of chat requests that no model reads as text."""
NAMES_AND_IDS: Final = frozenset(
    {
        *("call_id", "detail", "encrypted_content", "file_id", "format", "id", "media_type", "mime_type", "role"),
        *("signature", "status", "tool_call_id", "tool_use_id", "type"),
    }
)
"""Fields of parts whose strings are names and ids. Strings in all other fields are texts."""
CREDENTIALS: Final = frozenset({"api_key", "authorization", "authorization_token", "headers"})
"""Fields of tools and of MCP servers, which are sent to no hook."""
MEDIA: Final[Mapping[str, str]] = {
    "audio_url": "audio",
    "file": "file",
    "file_data": "file",
    "file_url": "file",
    "image_url": "image",
    "input_audio": "audio",
    "source": "file",
    "video_url": "video",
}
"""Fields that hold a file, with its kind if nothing better is known."""
MEDIA_ROOTS: Final = ("audio", "image", "video")
ARGUMENTS: Final = ("arguments", "input")
"""Fields of tool calls: an object, or the JSON of one, where escapes would hide words."""
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S*")
MAX_ROLE_CHARACTERS: Final = 64
MAX_TYPE_CHARACTERS: Final = 100


class ValueForm(Enum):
    """The form of a value, which decides what its strings are."""

    PARTS = "parts"  # messages and their parts: some strings are names, some objects are files
    SCHEMA = "schema"  # tools and the like: some strings are names
    PLAIN = "plain"  # arguments and params: every string is a text


def read_chat(ask: Ask) -> Content:
    """Return the texts and media of a chat request, in the order in which a model reads them."""
    collector, fields = _Collector(), ask.fields
    for name in (*FIRST, *CONVERSATION):
        if name in fields:
            collector.walk(decode_field(fields[name]), name, ValueForm.PARTS)
    for name, raw in fields.items():
        if name not in WITHOUT_TEXT and name not in FIRST and name not in CONVERSATION:
            collector.walk(decode_field(raw), name, ValueForm.SCHEMA)
    if ask.upload is not None:
        collector.media.append(digest_upload(ask.upload))
    if ask.dialect is Dialect.EMBEDDINGS and not collector.texts:
        collector.media.append({"kind": "tokens"})  # numbers instead of texts
    return Content(collector.texts, collector.media)


def read_params(
    params: Mapping[str, Any], files: Mapping[str, StoredFile], given: Collection[int], pending: Iterable[str] = ()
) -> Content:
    """Return the texts and media of a generation.

    `given` has the identities of the params' file entries, which hold no text; `pending` the paths of files that are
    not here yet.
    """
    collector = _Collector(given)
    for name, value in params.items():
        collector.walk(value, name, ValueForm.PLAIN)
    for path, file in files.items():
        facts = {"kind": file.kind, "param": path, "content_type": file.content_type}
        collector.media.append({**facts, "sha256": file.sha256, "bytes": file.bytes})
    collector.media.extend({"kind": "file", "param": path} for path in pending if path not in files)
    return Content(collector.texts, collector.media)


def read_value(value: Any, role: str) -> Content:
    """Return the texts and media of a message or of a part, in any nesting."""
    collector = _Collector()
    collector.walk(value, role, ValueForm.PARTS)
    return Content(collector.texts, collector.media)


def read_schema(value: Any, role: str) -> Content:
    """Return the texts and media of a field beside the conversation, such as `tools`."""
    collector = _Collector()
    collector.walk(value, role, ValueForm.SCHEMA)
    return Content(collector.texts, collector.media)


def digest_upload(upload: AudioUpload) -> Media:
    """Return the facts of a sound that a caller sent."""
    facts = {"kind": "audio", "content_type": upload.content_type[:MAX_TYPE_CHARACTERS]}
    return facts | _digest(upload.data)


class _Collector:
    """Collects texts and media without recursion: a hostile body may be nested deeply."""

    def __init__(self, skipped: Collection[int] = ()) -> None:
        self._skipped = skipped
        self.texts: list[InspectedText] = []
        self.media: list[Media] = []

    def walk(self, value: Any, role: str, form: ValueForm) -> None:
        """Collect from one field of a request. `role` is that of texts outside of messages."""
        stack: list[tuple[Any, str, ValueForm]] = [(value, role, form)]
        while stack:
            found, role, form = stack.pop()
            if isinstance(found, str):
                self._add(found, role)
            elif isinstance(found, list):
                stack.extend((item, role, form) for item in reversed(cast("list[Any]", found)))
            elif isinstance(found, Mapping) and id(cast("Any", found)) not in self._skipped:
                stack.extend(reversed(self._open(_as_object(found), role, form)))

    def _add(self, text: str, role: str) -> None:
        """Add a text, unless it is a file in a `data:` URI."""
        kind = _type_of(text)
        data = None if kind is None or kind.startswith("text/") else _read_base64(text, is_plain=False)
        if data is not None:
            self.media.append({"kind": _kind_of("", kind or "") or "file", "content_type": kind, **_digest(data)})
        elif text:
            self.texts.append(InspectedText(role, text))

    def _open(self, found: Mapping[str, Any], role: str, form: ValueForm) -> list[tuple[Any, str, ValueForm]]:
        """Return the values of an object that are yet to be walked."""
        own = found.get("role")
        if form is ValueForm.PARTS and isinstance(own, str) and own:
            role = own[:MAX_ROLE_CHARACTERS]
        left: list[tuple[Any, str, ValueForm]] = []
        for name, value in found.items():
            if form is not ValueForm.PLAIN and _has_no_text(name, value):
                continue
            if form is ValueForm.PARTS and name in MEDIA and (facts := _read_media(name, value, found)) is not None:
                self.media.append(facts)
                left.extend((text, role, form) for text in _texts_beside(value))
            elif form is ValueForm.PARTS and name in ARGUMENTS:
                left.append((decode_arguments(value), role, ValueForm.PLAIN))
            else:
                left.append((value, role, form))
        return left


def _has_no_text(name: str, value: Any) -> bool:
    return name in CREDENTIALS or (name in NAMES_AND_IDS and isinstance(value, str))


def _as_object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def decode_field(raw: msgspec.Raw) -> Any:
    """Return a field's value. A vendor may read what our parser does not, such as `1e999` or more brackets."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    text = bytes(raw).decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def decode_arguments(value: Any) -> Any:
    """Return the value of arguments in JSON, or their text if they are none."""
    return decode_field(msgspec.Raw(value.encode("utf-8", "replace"))) if isinstance(value, str) else value


def _read_media(name: str, value: Any, part: Mapping[str, Any]) -> Media | None:
    """Return the facts of a file; None if the field holds none, so that its strings are texts."""
    given = _as_object(value)
    if given.get("type") in ("text", "content"):  # a document of Anthropic's dialect that is written out
        return None
    source = value if isinstance(value, str) else next(filter(_is_text, map(given.get, _SOURCES)), None)
    is_plain = name == "file_data" or (bool(given) and not _is_text(given.get("url")))
    data = None if source is None else _read_base64(source, is_plain=is_plain)
    if data is None and not (_is_url(source) or (source is None and _is_text(given.get("file_id")))):
        return None
    content_type = str(given.get("media_type") or _type_of(source) or "")[:MAX_TYPE_CHARACTERS]
    facts: dict[str, Any] = {"kind": _kind_of(str(part.get("type", "")), content_type) or MEDIA[name]}
    if content_type:
        facts["content_type"] = content_type
    return facts if data is None else facts | _digest(data)


_SOURCES: Final = ("url", "data", "file_data", "file_url")


def _texts_beside(value: Any) -> list[str]:
    """Return the texts in a file's object: a file's name is one, since models read it."""
    known = (*_SOURCES, *NAMES_AND_IDS)
    return [text for key, text in _as_object(value).items() if key not in known and _is_text(text)]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_url(source: str | None) -> bool:
    return source is not None and _URL.fullmatch(source) is not None


def _type_of(source: str | None) -> str | None:
    """Return the content type in a `data:` URI."""
    if source is None or not source.startswith("data:"):
        return None
    return source[5:200].partition(",")[0].partition(";")[0]


def _kind_of(part_type: str, content_type: str) -> str | None:
    """Return the kind of a file by its content type, or else by the type of its part."""
    root = content_type.partition("/")[0]
    if root in MEDIA_ROOTS:
        return root
    return next((known for known in MEDIA_ROOTS if known in part_type), None)


def _read_base64(source: str, *, is_plain: bool) -> bytes | None:
    """Return the bytes of a `data:` URI in Base64, or of plain Base64; None if the source is neither."""
    if source.startswith("data:"):
        head, _, source = source.partition(",")
        if not head.endswith(";base64"):
            return None
    elif not is_plain:
        return None
    try:
        return base64.b64decode(source, validate=True)
    except (binascii.Error, ValueError):
        return None


def _digest(data: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
