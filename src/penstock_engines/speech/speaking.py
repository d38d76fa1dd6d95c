"""A text as a sound file, as a request or an order wants it."""

from collections.abc import Callable

import numpy as np

from penstock_engines.speech.model_facts import AudioFormat
from penstock_engines.speech.sound_files import change_tempo, to_samples, write_sound
from penstock_engines.speech.voice import MAX_MODEL_SPEED, MIN_MODEL_SPEED, SAMPLE_RATE, Voice, split_text

MAX_SPOKEN_SECONDS = 900


class NothingToSay(ValueError):
    """The text has no words, or too many. The message may be shown to callers."""


def speak_file(voice: Voice, text: str, speed: float, wanted: AudioFormat, between: Callable[[float], None]) -> bytes:
    """Return the spoken text as a file. `between` is called with the share that is done, and may raise."""
    pieces = split_text(text)
    sounds, count = [np.zeros(0, np.float32)], 0
    for index, piece in enumerate(pieces):
        between(index / len(pieces))
        sounds += voice.speak(piece, speed)
        count = sum(map(len, sounds))
        if count > MAX_SPOKEN_SECONDS * SAMPLE_RATE:
            raise NothingToSay(f"it takes more than {MAX_SPOKEN_SECONDS} seconds to say it")
    if not count:
        raise NothingToSay("it has no words that the English voice can say")
    samples = to_samples(np.concatenate(sounds))
    rest = speed / min(MAX_MODEL_SPEED, max(MIN_MODEL_SPEED, speed))
    return write_sound(change_tempo(samples, SAMPLE_RATE, rest), SAMPLE_RATE, wanted)
