"""MiniLM: a unit vector of 384 numbers for each text, so that texts of like meaning are close."""
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# onnxruntime ships no types

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock_engines.minilm.model_facts import MAX_TOKENS, MODEL, VOCABULARY
from penstock_engines.minilm.word_pieces import Tokenizer

MAX_CHARACTERS = 51_200
"""Characters of one text. It bounds the time of splitting a text that has few tokens, such as one of spaces."""
MAX_BATCH_TOKENS = 512
"""Tokens of one batch, with padding. Larger ones take longer and more memory, and are not faster."""


class TooLong(ValueError):
    """A text is longer than the network can read."""


class Encoder:
    """Turns texts into vectors. The network runs one batch at a time."""

    def __init__(self, weights: Path, threads: int) -> None:
        import onnxruntime  # noqa: PLC0415  slow to import, and tests of batches do not need it

        self._tokenizer = Tokenizer(weights / VOCABULARY)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other work needs the cores
        self._session = onnxruntime.InferenceSession(weights / MODEL, options, providers=["CPUExecutionProvider"])

    def split(self, text: str) -> list[int]:
        """Return the token ids of a text, with markers; raise `TooLong`."""
        if len(text) > MAX_CHARACTERS:
            raise TooLong(f"the text has {len(text)} characters, at most {MAX_CHARACTERS} are allowed")
        tokens = self._tokenizer.numbers(text, MAX_TOKENS + 1)
        if len(tokens) > MAX_TOKENS:
            raise TooLong(f"the text has more than {MAX_TOKENS} tokens, the most that this model reads")
        return tokens

    def encode(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return a unit vector for each text of a batch, given by its tokens."""
        shape = (len(batch), max(map(len, batch)))
        tokens, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, text in enumerate(batch):
            tokens[row, : len(text)], mask[row, : len(text)] = text, 1
        inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        hidden = np.asarray(self._session.run(None, inputs)[0], np.float32)
        sums = (hidden * mask[:, :, None].astype(np.float32)).sum(axis=1)
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)  # the norm removes the division of the mean


def plan_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the texts of each batch, by index. Texts of like length are together, so that few tokens are padding."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > MAX_BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
