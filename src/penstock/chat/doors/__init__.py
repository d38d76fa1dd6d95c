"""The doors of chat, one for each dialect that clients speak, and the paths at which they are found."""

import re
from collections.abc import Mapping
from typing import Final

from penstock.chat.doors.audio.speech import SpeechDoor
from penstock.chat.doors.audio.transcriptions import TranscriptionsDoor
from penstock.chat.doors.completions import CompletionsDoor
from penstock.chat.doors.door import Door
from penstock.chat.doors.embeddings import EmbeddingsDoor
from penstock.chat.doors.messages.door import MessagesDoor
from penstock.chat.doors.responses.door import ResponsesDoor
from penstock.domain.chat import Dialect

DOORS: Final[Mapping[Dialect, Door]] = {
    Dialect.CHAT: CompletionsDoor(),
    Dialect.EMBEDDINGS: EmbeddingsDoor(),
    Dialect.SPEECH: SpeechDoor(),
    Dialect.TRANSCRIPTIONS: TranscriptionsDoor(),
    Dialect.RESPONSES: ResponsesDoor(),
    Dialect.MESSAGES: MessagesDoor(),
}
PATHS: Final[Mapping[str, Door]] = {
    path: DOORS[dialect]
    for dialect, paths in {
        Dialect.CHAT: ("/llm/chat/completions", "/v1/chat/completions", "/llm/v1/chat/completions"),
        Dialect.EMBEDDINGS: ("/llm/embeddings", "/v1/embeddings", "/llm/v1/embeddings"),
        Dialect.SPEECH: ("/llm/audio/speech", "/v1/audio/speech", "/llm/v1/audio/speech"),
        Dialect.TRANSCRIPTIONS: (
            "/llm/audio/transcriptions",
            "/v1/audio/transcriptions",
            "/llm/v1/audio/transcriptions",
        ),
        Dialect.RESPONSES: ("/v1/responses", "/llm/v1/responses", "/llm/responses"),
        Dialect.MESSAGES: ("/v1/messages", "/llm/v1/messages", "/llm/messages"),
    }.items()
    for path in paths
}
COUNT_PATHS: Final = frozenset(
    f"{path}/count_tokens" for path, door in PATHS.items() if door.dialect is Dialect.MESSAGES
)
"""Where the tokens of a Messages request are counted."""
_MESSAGES: Final = re.compile("/+(?:llm/+)?(?:v1/+)?messages(?:/|$)")


def find_door(path: str) -> Door:
    """Return the door whose clients read an error at this path. Most dialects have OpenAI's error shape."""
    return DOORS[Dialect.MESSAGES if _MESSAGES.match(path) else Dialect.CHAT]
