"""Read the content of a request: of chat in any dialect, or of a generation."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from penstock.domain.chat import Ask, AudioUpload, Dialect
from penstock.domain.content.messages import (
    Message,
    Part,
    file_part,
    read_messages,
    read_parts,
    text_part,
    write_json,
)
from penstock.domain.files import StoredFile
from penstock.domain.guardrails.contents import (
    CONVERSATION,
    FIRST,
    WITHOUT_TEXT,
    decode_field,
    digest_upload,
    read_params,
    read_schema,
)

TOKENS: Final = {"kind": "tokens"}
"""Stands for numbers instead of texts."""


def read_request(
    dialect: Dialect, fields: Mapping[str, msgspec.Raw], upload: AudioUpload | None
) -> tuple[list[Part], list[Message]]:
    """Return the instructions and the messages of a chat request."""
    values = {name: decode_field(fields[name]) for name in (*FIRST, *CONVERSATION) if name in fields}
    instructions = [part for name in FIRST if name in values for part in read_parts(values[name], "system")]
    messages = [message for name in CONVERSATION if name in values for message in read_messages(values[name])]
    if dialect is Dialect.EMBEDDINGS and not messages:
        messages.append(Message("user", [file_part(TOKENS)]))
    messages += _read_others(fields)
    if upload is not None:
        messages.append(Message("user", [file_part(digest_upload(upload))]))
    return instructions, messages


def _read_others(fields: Mapping[str, msgspec.Raw]) -> Iterator[Message]:
    """Yield the texts of the other fields, such as `tools`, each field as one message."""
    for name, raw in fields.items():
        if name in WITHOUT_TEXT or name in FIRST or name in CONVERSATION:
            continue
        content = read_schema(decode_field(raw), name)
        texts = [text_part("\n".join(each.text for each in content.texts))] if content.texts else []
        if parts := [*texts, *map(file_part, content.media)]:
            yield Message(name, parts)


def copy_fields(ask: Ask) -> dict[str, msgspec.Raw]:
    """Return the fields for a later reading: the request forgets its messages once a vendor answers."""
    return dict(ask.fields)


def read_generation(
    params: Mapping[str, Any], files: Mapping[str, StoredFile], entries: set[int], pending: list[str]
) -> list[Message]:
    """Return the params of a generation: each text by its name, the rest as JSON, files by their hash."""
    content = read_params(params, files, entries, pending)
    messages = [Message(each.role, [text_part(each.text)]) for each in content.texts]
    plain = {name: value for name, value in params.items() if isinstance(value, bool | int | float)}
    if plain:
        messages.append(Message("params", [text_part(write_json(plain))]))
    if content.media:
        messages.append(Message("files", [file_part(facts) for facts in content.media]))
    return messages
