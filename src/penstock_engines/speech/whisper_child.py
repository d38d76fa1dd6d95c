"""The process that holds Whisper: an HTTP server on the loopback that takes a sound file and returns a transcript."""

from pathlib import Path
from typing import cast

import msgspec

from penstock_engines.serving.child_side import begin, wait_and_exit
from penstock_engines.serving.loopback_http import LoopbackHandler, LoopbackServer, Unacceptable
from penstock_engines.speech.mel import SAMPLE_RATE
from penstock_engines.speech.model_facts import MAX_AUDIO_BYTES, MAX_AUDIO_SECONDS, OPTIONS_HEADER, WHISPER_WEIGHTS
from penstock_engines.speech.sound_child import decode
from penstock_engines.speech.sound_files import NotSound
from penstock_engines.speech.transcript import write_transcript
from penstock_engines.speech.whisper import Whisper


class TranscriptionOptions(msgspec.Struct):
    """The fields that are read. The vendor has checked them."""

    response_format: str = "json"
    language: str | None = None
    prompt: str = ""


class WhisperHttpServer(LoopbackServer):
    """Takes turns of one stretch of 30 seconds, so that a long file does not block a short one."""

    def __init__(self, whisper: Whisper, key: str) -> None:
        super().__init__(WhisperHandler, key)
        self.whisper = whisper


class WhisperHandler(LoopbackHandler):
    """Serves one request for a transcript."""

    path_served = "/v1/audio/transcriptions"
    max_body_bytes = MAX_AUDIO_BYTES

    def answer(self, body: bytes) -> tuple[str, bytes]:
        """Return the transcript of the file."""
        options = msgspec.json.decode(self.headers.get(OPTIONS_HEADER, "{}"), type=TranscriptionOptions)
        whisper = cast("WhisperHttpServer", self.server).whisper
        if options.language is not None and options.language not in whisper.languages:
            known = ", ".join(sorted(whisper.languages))
            message = f"Invalid 'language': '{options.language}'. It is a code of two or three letters among {known}."
            raise Unacceptable(message, "language")
        try:
            samples = decode(body, SAMPLE_RATE, MAX_AUDIO_SECONDS)
        except NotSound as error:
            raise Unacceptable(f"Invalid 'file': {error}.", "file") from None
        with self.turn():
            found = whisper.transcribe(samples, options.language, options.prompt, self.let_others)
        is_json = options.response_format in ("json", "verbose_json")
        content_type = "application/json" if is_json else "text/plain; charset=utf-8"
        return content_type, write_transcript(found, options.response_format)


def main() -> None:
    """Read the order, load, report the address, and serve until the gateway closes the pipe or dies."""
    order, report_address = begin()
    whisper = Whisper(Path(order["weights"]) / WHISPER_WEIGHTS, order["threads"])
    report_address(WhisperHttpServer(whisper, order["key"]).begin())
    wait_and_exit()


if __name__ == "__main__":
    main()
