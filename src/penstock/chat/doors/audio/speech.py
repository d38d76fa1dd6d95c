"""The door of OpenAI's speech: a text in, a sound out."""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from penstock.chat.doors.one_shot import OneShotDoor
from penstock.chat.replies.sound import FORMATS, pass_sound
from penstock.chat.request import (
    missing_field,
    out_of_bounds,
    parse_field,
    read_model,
    split_fields,
    wrong_type,
)
from penstock.domain.chat import CHARACTERS_PER_TOKEN, Ask, Dialect, Usage
from penstock.errors import InvalidRequest

MAX_CHARACTERS: Final = 4096
"""Characters of one text, as OpenAI has it."""
MIN_SPEED, MAX_SPEED = 0.25, 4.0
STREAMS: Final = ("audio", "sse")


class SpeechDoor(OneShotDoor):
    """Implements `Door`."""

    dialect = Dialect.SPEECH
    task = "speech"

    def read(self, body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
        """Return the request in this body."""
        del headers  # none of them matter
        fields = split_fields(body)
        model = read_model(fields)
        text = _read_text(fields)
        _check_voice(fields)
        _check_choice(fields, "response_format", FORMATS)
        _check_choice(fields, "stream_format", STREAMS)
        _check_speed(fields)
        return Ask(
            model=model,
            fields=fields,
            dialect=Dialect.SPEECH,
            max_tokens=0,
            size=len(body),
            prompt=len(text.encode()) // CHARACTERS_PER_TOKEN + 1,
            characters=len(text),
        )

    def pass_whole(self, body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
        """Return the sound, its usage, and 0 characters."""
        del reply_id, created  # such replies have neither
        return pass_sound(body, ask)


def _read_text(fields: Mapping[str, msgspec.Raw]) -> str:
    if "input" not in fields:
        raise missing_field("input")
    text = parse_field("input", fields["input"])
    if not isinstance(text, str):
        raise wrong_type("input", "a string", text)
    if not text.strip():
        message = "Invalid 'input': empty string. Expected at least one character."
        raise InvalidRequest(message, param="input", code="empty_string")
    if len(text) > MAX_CHARACTERS:
        message = f"Invalid 'input': string too long. Expected at most {MAX_CHARACTERS} characters, got {len(text)}."
        suggestion = "Split the text, or send it as a job of a text_to_speech model."
        raise InvalidRequest(message, param="input", code="string_above_max_length", suggestion=suggestion)
    return text


def _check_voice(fields: Mapping[str, msgspec.Raw]) -> None:
    """Check that a voice is given, by name or as an object with its id."""
    if "voice" not in fields:
        raise missing_field("voice")
    voice: Any = parse_field("voice", fields["voice"])
    if isinstance(voice, dict):
        voice = cast("dict[str, Any]", voice).get("id")
    if not isinstance(voice, str) or not voice:
        raise wrong_type("voice", "a string, or an object with the string 'id'", voice)


def _check_choice(fields: Mapping[str, msgspec.Raw], name: str, allowed: tuple[str, ...]) -> None:
    if name in fields and (wanted := parse_field(name, fields[name])) not in allowed:
        known = ", ".join(f"'{value}'" for value in allowed)
        message = f"Invalid value: '{str(wanted)[:80]}'. Supported values are: {known}."
        raise InvalidRequest(message, param=name, code="invalid_value")


def _check_speed(fields: Mapping[str, msgspec.Raw]) -> None:
    if "speed" not in fields:
        return
    speed = parse_field("speed", fields["speed"])
    if isinstance(speed, bool) or not isinstance(speed, int | float):
        raise wrong_type("speed", "a number", speed)
    if speed < MIN_SPEED:
        raise out_of_bounds("speed", "decimal", "below", MIN_SPEED, speed)
    if speed > MAX_SPEED:
        raise out_of_bounds("speed", "decimal", "above", MAX_SPEED, speed)
