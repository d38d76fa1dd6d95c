"""Whisper: writes down what was said, 30 seconds at a time, with the moments at which phrases begin and end."""
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# onnxruntime ships no types

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penstock_engines.speech.mel import CHUNK_SAMPLES, CHUNK_SECONDS, SAMPLE_RATE, Floats, log_mel
from penstock_engines.speech.transcript import Segment, Transcript
from penstock_engines.speech.whisper_tokens import Vocabulary

ENCODER, DECODER = "encoder_model_quantized.onnx", "decoder_model_merged_quantized.onnx"
MAX_TOKENS = 224
MAX_PROMPT_TOKENS = 100
MAX_FIRST_STEPS = 50
"""Steps of 20 ms within which the first phrase of a stretch begins."""
SILENT, UNSURE = 0.6, -0.7
"""A stretch with more than this probability of silence and less than this confidence is not speech."""
LOOP_TOKENS, LOOPS = 12, 3
SHORTEST_SAMPLES = SAMPLE_RATE // 10

Between = Callable[[float], None]
"""Is called between stretches with the share that is done. It may raise to stop the work."""


@dataclass(slots=True)
class _Heard:
    """The tokens of one stretch."""

    tokens: list[int] = field(default_factory=list[int])
    log_probability: float = 0.0
    silence_probability: float = 0.0


class Whisper:
    """One model in memory. It works for one caller at a time."""

    def __init__(self, weights: Path, threads: int) -> None:
        import onnxruntime  # noqa: PLC0415  slow to import, and tests of the tokens do not need it

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        options.enable_mem_pattern = False  # it would keep memory for every length of text
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other work needs the cores
        with zipfile.ZipFile(weights) as archive:
            self._vocabulary = Vocabulary(archive.read("tokenizer.json"), archive.read("generation_config.json"))
            sessions = [
                onnxruntime.InferenceSession(archive.read(name), options, providers=["CPUExecutionProvider"])
                for name in (ENCODER, DECODER)
            ]
        self._encoder, self._decoder = sessions
        self._outputs = [output.name for output in self._decoder.get_outputs()]
        self._caches = {entry.name: entry.shape for entry in self._decoder.get_inputs() if "past_" in entry.name}

    @property
    def languages(self) -> frozenset[str]:
        """The codes of the languages that it knows."""
        return frozenset(self._vocabulary.languages)

    def transcribe(self, samples: Floats, language: str | None, prompt: str, between: Between) -> Transcript:
        """Return what is said in the samples. Without a language, the beginning decides it."""
        words, segments, start = self._vocabulary, list[Segment](), 0
        context = words.encode(" " + prompt.strip())[-MAX_PROMPT_TOKENS:] if prompt.strip() else []
        while len(samples) - start >= SHORTEST_SAMPLES:
            between(start / len(samples))
            piece = samples[start : start + CHUNK_SAMPLES]
            sound = np.asarray(self._encoder.run(None, {"input_features": log_mel(piece)[None]})[0], np.float32)
            language = language or self._detect(sound)
            opening = [words.begin, words.languages[language], words.transcribe]
            heard = self._listen(sound, [words.after, *context] if context else [], opening)
            found, step = self._split(heard, start / SAMPLE_RATE, len(piece) / SAMPLE_RATE)
            segments += found
            start += max(SHORTEST_SAMPLES, round(step * SAMPLE_RATE))
        between(1.0)
        return Transcript(language or "en", len(samples) / SAMPLE_RATE, segments)

    def _detect(self, sound: Floats) -> str:
        """Return the most probable language."""
        logits, _ = self._step(sound, [self._vocabulary.begin], None)
        languages = self._vocabulary.languages
        return max(languages, key=lambda name: logits[-1, languages[name]])

    def _listen(self, sound: Floats, context: Sequence[int], opening: Sequence[int]) -> _Heard:
        """Return the most probable tokens of one stretch."""
        words, heard = self._vocabulary, _Heard()
        logits, caches = self._step(sound, [*context, *opening], None)
        heard.silence_probability = float(_softmax(logits[len(context)])[words.silence])
        total = 0.0
        while len(heard.tokens) < MAX_TOKENS:
            scores = _log_softmax(self._rule(logits[-1].copy(), heard.tokens))
            token = int(scores.argmax())
            total += float(scores[token])
            if token == words.end or _is_loop(heard.tokens):
                break
            heard.tokens.append(token)
            logits, caches = self._step(sound, [token], caches)
        heard.log_probability = total / (len(heard.tokens) + 1)
        return heard

    def _step(self, sound: Floats, tokens: Sequence[int], caches: dict[str, Any] | None) -> tuple[Floats, Any]:
        """Return the scores after each of the tokens, and the memory of all tokens so far."""
        empty = {name: np.zeros((1, shape[1], 0, shape[3]), np.float32) for name, shape in self._caches.items()}
        inputs = {
            "input_ids": np.asarray([tokens], np.int64),
            "encoder_hidden_states": sound,
            "use_cache_branch": np.asarray([caches is not None]),
            **(caches or empty),
        }
        found = dict(zip(self._outputs, self._decoder.run(None, inputs), strict=True))
        after = {name: found[name.replace("past_key_values", "present")] for name in self._caches}
        if caches is not None:  # the memory of the sound is only written with the first tokens
            after |= {name: caches[name] for name in after if ".encoder." in name}
        return np.asarray(found["logits"], np.float32)[0], after

    def _rule(self, scores: Floats, tokens: Sequence[int]) -> Floats:
        """Exclude what cannot follow: moments come in pairs, and time does not run backwards."""
        words, never = self._vocabulary, -np.inf
        moments = scores[words.first_moment :]
        scores[list(words.unwanted)] = never
        scores[[words.no_times, words.begin, words.transcribe]] = never
        if not tokens:
            scores[list(words.unwanted_first)] = never
            scores[: words.first_moment] = never
            moments[MAX_FIRST_STEPS + 1 :] = never
            return scores
        if tokens[-1] >= words.first_moment:
            if len(tokens) < 2 or tokens[-2] >= words.first_moment:
                moments[:] = never  # a phrase has begun, so its text comes
            else:
                scores[: words.end] = never  # a phrase has ended, so another begins, or nothing more
        past = [token for token in tokens if token >= words.first_moment]
        is_between = tokens[-1] >= words.first_moment
        moments[: past[-1] - words.first_moment + (not is_between)] = never
        if moments.max() > never:
            likely = float(np.logaddexp.reduce(moments))
            if likely > scores[: words.first_moment].max():
                scores[: words.first_moment] = never
        return scores

    def _split(self, heard: _Heard, begin: float, seconds: float) -> tuple[list[Segment], float]:
        """Return the phrases of a stretch, and its seconds that are done."""
        words = self._vocabulary
        if heard.silence_probability > SILENT and heard.log_probability < UNSURE:
            return [], seconds
        phrases, start, text = list[Segment](), 0.0, list[int]()
        for token in heard.tokens:
            moment = words.moment(token)
            if moment is None:
                text.append(token)
                continue
            if text:
                phrases.append(self._phrase(heard, begin, start, min(moment, seconds), text))
            start, text = moment, []
        is_cut = seconds >= CHUNK_SECONDS and self._ends_within(heard.tokens)
        if text and not (is_cut and phrases):
            phrases.append(self._phrase(heard, begin, start, seconds, text))
        done = phrases[-1].end - begin if is_cut and phrases else seconds
        return [phrase for phrase in phrases if phrase.text.strip()], done

    def _ends_within(self, tokens: Sequence[int]) -> bool:
        """Return whether a further phrase has begun, whose end is in the next stretch."""
        first = self._vocabulary.first_moment
        return not tokens or tokens[-1] < first or (len(tokens) > 1 and tokens[-2] >= first)

    def _phrase(self, heard: _Heard, begin: float, start: float, end: float, text: list[int]) -> Segment:
        return Segment(
            start=begin + start,
            end=begin + max(start, end),
            text=self._vocabulary.decode(text),
            tokens=tuple(text),
            log_probability=heard.log_probability,
            silence_probability=heard.silence_probability,
            seek=round(begin * 100),
        )


def _softmax(scores: Floats) -> Floats:
    return np.exp(_log_softmax(scores))


def _log_softmax(scores: Floats) -> Floats:
    highest = scores.max()
    return scores - highest - np.log(np.exp(scores - highest).sum())


def _is_loop(tokens: Sequence[int]) -> bool:
    """Return whether the last tokens repeat one another, as they do when nothing is understood."""
    last = tuple(tokens[-LOOP_TOKENS:])
    starts = range(len(tokens) - LOOP_TOKENS + 1)
    return len(last) == LOOP_TOKENS and sum(tuple(tokens[at : at + LOOP_TOKENS]) == last for at in starts) >= LOOPS
