"""The contract of speech: methods that a chat vendor may have besides those of chat."""

from collections.abc import Sequence
from typing import NoReturn, Protocol, runtime_checkable
from uuid import uuid4

from penstock.domain.chat import Ask, AudioUpload
from penstock.errors import InvalidRequest
from penstock.vendor_api.chat import RemoteChat, Translator
from penstock.vendor_api.generation import Call


@runtime_checkable
class Speaker(Protocol):
    """A chat vendor that reads texts aloud too, or only does that."""

    speech_models: Sequence[str]
    """Its models for that. They are offered where the configuration lists no models, and need no `kind` there."""

    def speak(self, ask: Ask, model: str) -> Call:
        """Return the call for a request in OpenAI's shape; raise `InvalidRequest` for what the vendor cannot do.

        The reply's body is the sound in the format asked for.
        """
        ...


@runtime_checkable
class Transcriber(Protocol):
    """A chat vendor that writes down speech too, or only does that."""

    transcription_models: Sequence[str]
    """Its models for that. They are offered where the configuration lists no models, and need no `kind` there."""

    def transcribe(self, ask: Ask, model: str) -> Call:
        """Return the call for a request in OpenAI's shape; raise `InvalidRequest` for what the vendor cannot do.

        The reply's body is the transcript in the format asked for.
        """
        ...


class AudioOnly(RemoteChat):
    """Defaults of a vendor that speaks or listens, and does not chat."""

    def complete(self, ask: Ask, model: str) -> NoReturn:
        """Refuse: it does not chat."""
        del ask
        raise InvalidRequest(f"`{model}` does not chat.", param="model", code="unsupported_value")

    def translator(self, ask: Ask) -> Translator | None:
        """Return None: it does not chat."""
        del ask
        return None


def write_form(fields: Sequence[tuple[str, str]], upload: AudioUpload) -> tuple[str, bytes]:
    """Return the content type and the body of a form with these fields and the file, as OpenAI takes it."""
    border = uuid4().hex
    parts = [
        f'--{border}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields
    ]
    name = "".join(letter for letter in upload.name if letter.isprintable() and letter not in '"\\') or "audio"
    head = f'--{border}\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n'
    parts.append(f"{head}content-type: {upload.content_type}\r\n\r\n".encode())
    return f"multipart/form-data; boundary={border}", b"".join([*parts, upload.data, f"\r\n--{border}--\r\n".encode()])
