"""The door of OpenAI's transcriptions: a form with a sound in, a text out."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from penstock.chat.doors.audio.form import read_form
from penstock.chat.doors.one_shot import OneShotDoor
from penstock.chat.replies.transcripts import FORMATS, pass_transcript
from penstock.chat.request import missing_field, read_model
from penstock.domain.chat import Ask, AudioUpload, Dialect, Usage
from penstock.errors import BodyTooLarge, InvalidRequest

MAX_FILE_BYTES: Final = 25 << 20
"""Bytes of one file, as OpenAI has it."""
FLAGS: Final = {"true": True, "false": False, "1": True, "0": False}
_encode = msgspec.json.Encoder().encode


class TranscriptionsDoor(OneShotDoor):
    """Implements `Door`."""

    dialect = Dialect.TRANSCRIPTIONS
    task = "transcriptions"

    def read(self, body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
        """Return the request in this body, whose texts become JSON and whose file is kept beside them."""
        given, upload = read_form(body, headers.get(b"content-type", b""))
        fields = {name: msgspec.Raw(_encode(value)) for name, value in given.items()}
        model = read_model(fields)
        _check_file(upload)
        wanted = given.get("response_format", "json")
        if wanted not in FORMATS:
            known = ", ".join(f"'{name}'" for name in FORMATS)
            message = f"Invalid value: '{str(wanted)[:80]}'. Supported values are: {known}."
            raise InvalidRequest(message, param="response_format", code="invalid_value")
        if "stream" in fields:
            fields["stream"] = msgspec.Raw(_encode(_read_flag(given["stream"])))
        return Ask(model=model, fields=fields, dialect=Dialect.TRANSCRIPTIONS, size=len(body), prompt=1, upload=upload)

    def pass_whole(self, body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
        """Return the transcript, its usage and its number of characters."""
        del reply_id, created  # such replies have neither
        return pass_transcript(body, ask)


def _check_file(upload: AudioUpload | None) -> None:
    if upload is None:
        raise missing_field("file")
    if not upload.data:
        raise InvalidRequest("Invalid 'file': it is empty.", param="file", code="invalid_value")
    if len(upload.data) > MAX_FILE_BYTES:
        raise BodyTooLarge(
            f"The file is too large: at most {MAX_FILE_BYTES >> 20} MB are allowed.",
            param="file",
            suggestion="Split it, or send it as a job of a speech_to_text model.",
        )


def _read_flag(value: Any) -> bool:
    if not isinstance(value, str) or value.lower() not in FLAGS:
        raise InvalidRequest("Invalid 'stream': it is 'true' or 'false'.", param="stream", code="invalid_value")
    return FLAGS[value.lower()]
