"""The meaning of words: sentence embeddings by MiniLM, so that a prompt finds a scene it does not name."""
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# onnxruntime ships no types

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock_engines.minilm.model_facts import DIMENSIONS, MODEL, VOCABULARY
from penstock_engines.minilm.word_pieces import Tokenizer

PROTOTYPES = "minilm-prototypes.npz"
TOKENS_AT_MOST = 128


class Meaning:
    """Compares texts in meaning with many short phrases."""

    def __init__(self, weights: Path) -> None:
        import onnxruntime  # noqa: PLC0415  slow to import, and most prompts need only their words

        self._weights = weights
        self._tokenizer = Tokenizer(weights / VOCABULARY)
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other work needs the cores
        self._session = onnxruntime.InferenceSession(weights / MODEL, options, providers=["CPUExecutionProvider"])

    def closeness(self, texts: Sequence[str], phrases: Sequence[str]) -> NDArray[np.float32]:
        """Return the cosine between each text (a row) and each phrase (a column)."""
        return self._embed(texts) @ self._prototypes(phrases).T

    def compare(self, texts: Sequence[str], phrases: Sequence[str]) -> NDArray[np.float32]:
        """Like `closeness`, but for few phrases, which are not cached."""
        return self._embed(texts) @ self._embed(phrases).T

    def _prototypes(self, phrases: Sequence[str]) -> NDArray[np.float32]:
        """Return the phrases' vectors, cached beside the model because computing them takes a second."""
        path = self._weights / PROTOTYPES
        size = (self._weights / MODEL).stat().st_size
        digest = hashlib.sha256("\n".join((str(size), *phrases)).encode()).hexdigest()
        try:
            with np.load(path) as kept:
                if str(kept["digest"]) == digest:
                    return kept["vectors"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass  # none yet, or a broken one: compute it again
        vectors = self._embed(phrases)
        _keep(path, digest, vectors)
        return vectors

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector for each text. Texts of equal length go through the model together."""
        numbers = [self._tokenizer.numbers(text, TOKENS_AT_MOST) for text in texts]
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for length in sorted({len(row) for row in numbers}):
            rows = [index for index, row in enumerate(numbers) if len(row) == length]
            tokens = np.array([numbers[index] for index in rows], np.int64)
            mask = np.ones_like(tokens)
            inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
            hidden = np.asarray(self._session.run(None, inputs)[0], np.float32)
            vectors[rows] = hidden.mean(axis=1)  # without padding the mean needs no mask
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _keep(path: Path, digest: str, vectors: NDArray[np.float32]) -> None:
    """Write the file atomically, and ignore a folder that is not writable."""
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, digest=np.array(digest), vectors=vectors)
        Path(draft).replace(path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
