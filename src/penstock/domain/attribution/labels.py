"""Attribution: the tags, end user and session that a request was made for, with the rules for their texts."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

MAX_TAG_CHARACTERS: Final = 64
MAX_TAGS: Final = 8
"""Tags that one request may name."""
MAX_KEY_TAGS: Final = 8
"""Fixed tags of a key. They count beside those of the request."""
MAX_NAME_CHARACTERS: Final = 128
"""Characters of an end user or a session."""
MAX_READ_CHARACTERS: Final = 4_096
"""Characters of a foreign text that are looked at. The rest counts only in the digest of a cut text."""
DIGEST_CHARACTERS: Final = 16
_PACKED: Final = re.compile(r"user_([^_]*)_account_([^_]*)_session_(.+)", re.DOTALL)
"""The form in which Claude Code packed user, account and session into one text."""


class Attribution(msgspec.Struct, frozen=True):
    """The purposes of a request. Empty texts are unknown."""

    tags: tuple[str, ...] = ()
    end_user: str = ""
    session: str = ""

    def with_tags(self, first: tuple[str, ...]) -> "Attribution":
        """Return it with these tags of the key before its own."""
        return Attribution(tuple(dict.fromkeys((*first, *self.tags))), self.end_user, self.session) if first else self

    def describe(self) -> dict[str, Any]:
        """Return it as records show it."""
        return {"tags": list(self.tags), "end_user": self.end_user or None, "session": self.session or None}


NOBODY: Final = Attribution()
"""The attribution of a request that says nothing."""


# -- our own headers and fields: refused if malformed


def read_tag(text: str) -> str:
    """Validate a tag. Raise ValueError with what is allowed."""
    tag = unicodedata.normalize("NFC", text.strip())
    if not 0 < len(tag) <= MAX_TAG_CHARACTERS or not tag.isprintable() or "," in tag:
        raise ValueError(f"should be 1 to {MAX_TAG_CHARACTERS} printable characters without a comma")
    return tag


def read_tags(texts: Iterable[str], most: int = MAX_TAGS) -> tuple[str, ...]:
    """Validate several tags. Each counts once. Raise ValueError with what is allowed."""
    tags = tuple(dict.fromkeys(read_tag(text) for text in texts))
    if len(tags) > most:
        raise ValueError(f"should be at most {most} tags, got {len(tags)}")
    return tags


def split_tags(text: str) -> list[str]:
    """Return the parts of a text with commas between tags."""
    return [part for part in text.split(",") if part.strip()]


def read_name(text: str) -> str:
    """Validate an end user or a session. Raise ValueError with what is allowed."""
    name = unicodedata.normalize("NFC", text.strip())
    if not 0 < len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise ValueError(f"should be 1 to {MAX_NAME_CHARACTERS} printable characters")
    return name


# -- fields that others defined: never refused, but cut


def clean(value: Any, longest: int = MAX_NAME_CHARACTERS) -> str:
    """Return a foreign text as it is stored; empty for anything but a text.

    One that is too long or not printable is cut, and ends in a digest so that different texts stay different.
    """
    if not isinstance(value, str):
        return ""
    text = unicodedata.normalize("NFC", value[:MAX_READ_CHARACTERS].strip())
    if len(text) <= longest and len(value) <= MAX_READ_CHARACTERS and text.isprintable():
        return text
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]
    kept = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return f"{kept[: longest - DIGEST_CHARACTERS - 1]}~{digest}"


def clean_tags(value: Any) -> tuple[str, ...]:
    """Return the tags in a foreign field: a list, or one text with commas. Those beyond MAX_TAGS are left out."""
    parts = split_tags(value[: 2 * MAX_READ_CHARACTERS]) if isinstance(value, str) else value
    if not isinstance(parts, list):
        return ()
    texts = [clean(part, MAX_TAG_CHARACTERS).replace(",", ";") for part in cast("list[Any]", parts)[: 4 * MAX_TAGS]]
    return tuple(dict.fromkeys(text for text in texts if text))[:MAX_TAGS]


class _Packed(msgspec.Struct):
    """The newer form, which is JSON in a text."""

    device_id: Any = None
    account_uuid: Any = None
    session_id: Any = None


_packed = msgspec.json.Decoder(_Packed)


def unpack_user(value: Any) -> tuple[str, str]:
    """Return end user and session of Anthropic's `metadata.user_id`, into which Claude Code packs both."""
    if not isinstance(value, str):
        return "", ""
    if value.startswith("{") and len(value) <= MAX_READ_CHARACTERS:
        try:
            packed = _packed.decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return clean(value), ""
        return clean(packed.account_uuid) or clean(packed.device_id), clean(packed.session_id)
    found = _PACKED.fullmatch(value[:MAX_READ_CHARACTERS])
    return (clean(found[2] or found[1]), clean(found[3])) if found else (clean(value), "")
