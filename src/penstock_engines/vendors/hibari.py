"""`hibari`: text to speech on this machine, by one English voice."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final

import msgspec

from penstock.domain.chat import Ask, Fault
from penstock.domain.prices import FREE_TOKENS, TokenPrice
from penstock.errors import InvalidRequest
from penstock.vendor_api.audio import AudioOnly
from penstock.vendor_api.chat import AboutModel, ChatOptions, ChatServer
from penstock.vendor_api.dialects.openai_errors import read_fault
from penstock.vendor_api.generation import Call, Reply, VendorFolders
from penstock_engines.speech.model_facts import CLIENT_VOICES, VOICE_MODEL, VOICES
from penstock_engines.speech.speech_servers import VoiceServer
from penstock_engines.vendors.model_options import ModelOptions

DESCRIPTION: Final = "One English voice. Runs on this machine, about thirty times as fast as it speaks."
_encode = msgspec.json.Encoder().encode


class HibariOptions(ModelOptions):
    """`[vendors.hibari]`."""


class Hibari(AudioOnly):
    """A local server with OpenAI's speech endpoint, whose address is known once it runs."""

    options_type: ClassVar[type[ChatOptions]] = HibariOptions
    speech_models: Sequence[str] = (VOICE_MODEL,)
    price: TokenPrice | None = FREE_TOKENS
    about: Mapping[str, AboutModel] = MappingProxyType({VOICE_MODEL: AboutModel("Hibari, a voice", DESCRIPTION)})

    def __init__(self, options: HibariOptions, folders: VendorFolders) -> None:
        self.options = options
        server = VoiceServer(options.for_server(folders.weights))
        self.server: ChatServer | None = server
        self._headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {server.key}",
            "connection": "close",
        }

    def speak(self, ask: Ask, model: str) -> Call:
        """Return the text, its speed and its format; every voice of OpenAI's clients is the one of this model."""
        del model
        voice = ask.field("voice")
        if not isinstance(voice, str) or voice not in CLIENT_VOICES.union(VOICES):
            message = f"Invalid 'voice': this model has one, '{VOICES[0]}'. The names of OpenAI's voices mean it, too."
            raise InvalidRequest(message, param="voice", code="invalid_value")
        fields = {name: ask.fields[name] for name in ("input", "response_format", "speed") if name in ask.fields}
        left_out = tuple(name for name in ("instructions",) if name in ask.fields)
        return Call("POST", "/audio/speech", self._headers, body=_encode(fields), left_out=left_out)

    def fault(self, reply: Reply) -> Fault:
        """Return the reason in OpenAI's dialect."""
        return read_fault(reply)


VENDOR = Hibari
