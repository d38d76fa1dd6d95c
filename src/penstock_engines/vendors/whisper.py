"""`whisper`: speech to text on this machine, by Whisper base."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final

from pydantic import Field

from penstock.domain.chat import Ask, Fault
from penstock.domain.prices import FREE_TOKENS, TokenPrice
from penstock.errors import InvalidRequest
from penstock.vendor_api.audio import AudioOnly
from penstock.vendor_api.chat import AboutModel, ChatOptions, ChatServer
from penstock.vendor_api.dialects.openai_errors import read_fault
from penstock.vendor_api.generation import Call, Reply, VendorFolders
from penstock_engines.speech.model_facts import OPTIONS_HEADER, TRANSCRIPT_FORMATS, WHISPER_MODEL
from penstock_engines.speech.speech_servers import WhisperServer
from penstock_engines.vendors.model_options import ModelOptions

DESCRIPTION: Final = "Writes down speech in 99 languages, with the times of phrases. Runs on this machine."
READ: Final = frozenset({"model", "language", "prompt", "response_format", "stream", "timestamp_granularities"})


class WhisperOptions(ModelOptions):
    """`[vendors.whisper]`."""

    total_seconds: float = Field(default=1800.0, gt=0, description="timeout of a whole reply")


class Whisper(AudioOnly):
    """A local server that takes a file and returns a transcript, whose address is known once it runs."""

    options_type: ClassVar[type[ChatOptions]] = WhisperOptions
    transcription_models: Sequence[str] = (WHISPER_MODEL,)
    price: TokenPrice | None = FREE_TOKENS
    about: Mapping[str, AboutModel] = MappingProxyType({WHISPER_MODEL: AboutModel("Whisper base", DESCRIPTION)})

    def __init__(self, options: WhisperOptions, folders: VendorFolders) -> None:
        self.options = options
        server = WhisperServer(options.for_server(folders.weights))
        self.server: ChatServer | None = server
        self._headers = {
            "content-type": "application/octet-stream",
            "authorization": f"Bearer {server.key}",
            "connection": "close",
        }

    def transcribe(self, ask: Ask, model: str) -> Call:
        """Return the file with the options in a header; refuse formats and times that it does not know."""
        del model
        wanted = ask.field("response_format") or "json"
        if wanted not in TRANSCRIPT_FORMATS:
            message = f"Invalid 'response_format': this model writes {', '.join(TRANSCRIPT_FORMATS)}."
            raise InvalidRequest(message, param="response_format", code="unsupported_value")
        if "word" in (ask.field("timestamp_granularities") or ()):
            message = "Invalid 'timestamp_granularities': this model knows the times of segments, not of words."
            raise InvalidRequest(message, param="timestamp_granularities", code="unsupported_value")
        options = {name: ask.field(name) for name in ("language", "prompt") if name in ask.fields}
        headers = self._headers | {OPTIONS_HEADER: json.dumps(options | {"response_format": wanted})}
        body = ask.upload.data if ask.upload else b""
        left_out = tuple(sorted(ask.fields.keys() - READ))
        return Call("POST", "/audio/transcriptions", headers, body=body, left_out=left_out)

    def fault(self, reply: Reply) -> Fault:
        """Return the reason in OpenAI's dialect."""
        return read_fault(reply)


VENDOR = Whisper
