"""Orders of speech: a text becomes a sound file, and a sound file a transcript."""

from pathlib import Path
from typing import Any

from penstock_engines.processors import count_processors
from penstock_engines.product import Product, ReportProgress, Unable
from penstock_engines.speech.mel import SAMPLE_RATE
from penstock_engines.speech.model_facts import WHISPER_MODEL, WHISPER_WEIGHTS
from penstock_engines.speech.sound_files import NotSound, read_sound, to_floats
from penstock_engines.speech.speaking import NothingToSay, speak_file
from penstock_engines.speech.transcript import write_transcript
from penstock_engines.speech.voice import Voice
from penstock_engines.speech.whisper import Whisper

MAX_SOUND_SECONDS = 7200
SUFFIXES = {"json": ".json", "verbose_json": ".json", "text": ".txt", "srt": ".srt", "vtt": ".vtt"}


def make_speech(wish: dict[str, Any], folder: Path, report: ReportProgress) -> Product:
    """Write the spoken text. Raise `Unable` for a text without words."""
    wanted = wish["output_format"]
    try:
        found = speak_file(Voice(), wish["text"], wish["speed"], wanted, report)
    except NothingToSay as error:
        raise Unable(f"The text cannot be spoken: {error}.") from error
    path = folder / f"speech.{wanted}"
    path.write_bytes(found)
    return Product(path, None, seed=0)


def make_transcript(wish: dict[str, Any], sound: Path, folder: Path, weights: Path, report: ReportProgress) -> Product:
    """Write down what is said. Raise `Unable` for a file without sound, or an unknown language."""
    if not (weights / WHISPER_WEIGHTS).is_file():
        raise Unable(f"The weights `{WHISPER_WEIGHTS}` are missing: run `penstock models pull {WHISPER_MODEL}`.")
    whisper = Whisper(weights / WHISPER_WEIGHTS, count_processors())
    language = wish.get("language")
    if language is not None and language not in whisper.languages:
        raise Unable(f"The language `{language}` is not known: use a code such as `en`, or leave it out.")
    try:
        with sound.open("rb") as file:
            samples = read_sound(file, SAMPLE_RATE, MAX_SOUND_SECONDS)
    except NotSound as error:
        raise Unable(f"The sound cannot be read: {error}.") from error
    found = whisper.transcribe(to_floats(samples), language, wish.get("prompt") or "", report)
    path = folder / f"transcript{SUFFIXES[wish['response_format']]}"
    path.write_bytes(write_transcript(found, wish["response_format"]))
    return Product(path, None, seed=0)
