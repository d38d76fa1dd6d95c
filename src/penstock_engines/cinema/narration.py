"""The narration of a clip: what its prompt has someone say, read aloud over the sound of the place."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock_engines.cinema.noises import RATE
from penstock_engines.speech.voice import SAMPLE_RATE, Voice

SPEECH: Final = 10 ** (-20 / 20)
"""Loudness of the voice, by its mean square. The place is at -28 dB."""
LOUDEST: Final = 10 ** (-3 / 20)
UNDER: Final = 10 ** (-8 / 20)
"""How soft the place is while the voice speaks."""
LEAD, RAMP = 0.4, 0.25
"""Seconds before the first word, and in which the place gets softer and louder."""
FASTEST: Final = 1.4
MAX_CHARACTERS: Final = 800
_TELLER: Final = (
    r"(?:\b(?:with |by )?(?:an? |the )?(?:(?!no |without )[a-z]+ )?(?<!no )(?<!without )"
    r"(?:narrat(?:or|ion)|voice ?-?over|voice)\b)"
)
"""Who is heard and not seen."""
_SPEAKING: Final = (
    r"(?:\b(?:say(?:s|ing)?|speak(?:s|ing)?|tell(?:s|ing)?|read(?:s|ing)? (?:aloud|out)|whisper(?:s|ing)?"
    r"|shout(?:s|ing)?|call(?:s|ing)? out|announc(?:es?|ing)|narrat(?:es?|ing))\b)"
)
_SAID: Final = rf'[^"“”.!?\n]{{0,40}}["“](?P<text>[^"“”]{{1,{MAX_CHARACTERS}}})["”]'
_QUOTED: Final = re.compile(rf"(?i)(?:{_TELLER}|(?P<seen>{_SPEAKING})){_SAID}")
_LINE: Final = re.compile(rf"(?im){_TELLER} ?:[ \t]*(?P<text>[^\n]{{1,{MAX_CHARACTERS}}})$")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A prompt without what is said in it, and that."""

    prompt: str
    text: str


def split_prompt(prompt: str) -> Spoken:
    """Take what someone says out of a prompt, so that it is heard and not drawn."""
    said = list[str]()

    def take(found: re.Match[str]) -> str:
        said.append(found["text"].strip())
        return found.groupdict().get("seen") or ""

    rest = _LINE.sub(take, _QUOTED.sub(take, prompt))
    return Spoken(rest, "\n".join(said)) if said else Spoken(prompt, "")


def narrate(text: str, place: NDArray[np.float32]) -> tuple[NDArray[np.float32], Sequence[str]]:
    """Return the sound of a place with the text spoken over it, and warnings for the prompt's author."""
    try:
        voice = Voice()
    except ImportError:
        return place, ("The narration was left out: the voice is not installed.",)
    room = len(place) / RATE - LEAD
    spoken = _speak(voice, text, 1.0)
    if len(spoken) > room * RATE:
        spoken = _speak(voice, text, min(FASTEST, len(spoken) / RATE / max(room, 0.1)))
    if not len(spoken):
        return place, ("The narration was left out: it has no words that the English voice can say.",)
    warnings = list[str]()
    if len(spoken) > (most := max(0, round(room * RATE))):
        needed = LEAD + len(spoken) / RATE
        warnings.append(f"The narration was cut: it takes {needed:.1f} seconds, and the clip {len(place) / RATE:g}.")
        spoken = spoken[:most]
        fade = min(len(spoken), round(0.1 * RATE))
        spoken[len(spoken) - fade :] *= np.linspace(1, 0, fade, dtype=np.float32)
    return _mix(spoken, place), warnings


def _speak(voice: Voice, text: str, speed: float) -> NDArray[np.float32]:
    """Return the spoken text, at the rate of a clip's sound."""
    pieces = list(voice.speak(text, speed))
    if not pieces:
        return np.zeros(0, np.float32)
    slow = np.concatenate(pieces)
    times = np.arange(round(len(slow) * RATE / SAMPLE_RATE)) * (SAMPLE_RATE / RATE)
    spoken = np.interp(times, np.arange(len(slow)), slow).astype(np.float32)
    heard = spoken[np.abs(spoken) > 0.01 * np.abs(spoken).max(initial=1e-9)]
    spoken *= np.float32(SPEECH / (np.sqrt(np.mean(heard**2)) + 1e-9)) if len(heard) else np.float32(0)
    return np.tanh(spoken / np.float32(LOUDEST)) * np.float32(LOUDEST)


def _mix(spoken: NDArray[np.float32], place: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return both sounds together; the place is softer while the voice speaks."""
    start = round(LEAD * RATE)
    softness = np.ones(len(place), np.float32)
    softness[start : start + len(spoken)] = UNDER
    ramp = round(RAMP * RATE)
    softness = np.convolve(np.pad(softness, ramp, mode="edge"), np.full(2 * ramp + 1, 1 / (2 * ramp + 1)), "valid")
    mixed = place * softness.astype(np.float32)[:, None]
    mixed[start : start + len(spoken)] += spoken[: len(place) - start, None]
    return np.clip(mixed, -1, 1)
