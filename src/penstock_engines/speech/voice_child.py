"""The process that holds the voice: an HTTP server on the loopback with OpenAI's speech endpoint."""

from typing import Literal, cast

import msgspec

from penstock_engines.serving.child_side import begin, wait_and_exit
from penstock_engines.serving.loopback_http import LoopbackHandler, LoopbackServer, Unacceptable
from penstock_engines.speech.model_facts import CONTENT_TYPES
from penstock_engines.speech.speaking import NothingToSay, speak_file
from penstock_engines.speech.voice import Voice

MAX_BODY_BYTES = 1 << 20


class SpeechRequest(msgspec.Struct):
    """The fields that are read. The vendor has checked them."""

    input: str
    response_format: Literal["mp3", "wav", "flac", "opus", "aac", "pcm"] = "mp3"
    speed: float = 1.0


class VoiceHttpServer(LoopbackServer):
    """Takes turns of one sentence or a few, so that a long text does not block a short one."""

    def __init__(self, voice: Voice, key: str) -> None:
        super().__init__(VoiceHandler, key)
        self.voice = voice


class VoiceHandler(LoopbackHandler):
    """Serves one request for speech."""

    path_served = "/v1/audio/speech"
    max_body_bytes = MAX_BODY_BYTES

    def answer(self, body: bytes) -> tuple[str, bytes]:
        """Return the spoken text."""
        try:
            request = msgspec.json.decode(body, type=SpeechRequest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unacceptable(f"Invalid body: {error}.", "input") from None
        voice = cast("VoiceHttpServer", self.server).voice
        with self.turn():
            try:
                found = speak_file(voice, request.input, request.speed, request.response_format, self.let_others)
            except NothingToSay as error:
                raise Unacceptable(f"Invalid 'input': {error}.", "input") from None
        return CONTENT_TYPES[request.response_format], found


def main() -> None:
    """Read the order, load, report the address, and serve until the gateway closes the pipe or dies."""
    order, report_address = begin()
    report_address(VoiceHttpServer(Voice(), order["key"]).begin())
    wait_and_exit()


if __name__ == "__main__":
    main()
