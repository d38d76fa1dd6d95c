"""Words: the parts of a text by which it is found, in any script."""

import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from penstock.domain.files import StoredFile, clean_name

MAX_WORDS: Final = 200
"""The largest number of different words of one job by which it is found."""
MAX_WORD_LENGTH: Final = 40
"""Longer words are cut, in jobs and in queries."""
PROMPTS: Final = ("prompt", "text", "text_prompt")
"""The params with words of the caller."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Kana and Han."""
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IN_UNSPACED = re.compile(f"[{_UNSPACED}]")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case and without accents. Scripts without spaces give pairs of letters."""
    if text.isascii():
        return [word[:MAX_WORD_LENGTH] for word in _WORD.findall(text.lower())]
    words: list[str] = []
    for run in runs_of(text):
        words += [run[place : place + 2] for place in range(len(run))] if is_unspaced(run) else [run]
    return words


def is_unspaced(run: str) -> bool:
    """Return whether a run of letters is of a script without spaces."""
    return _IN_UNSPACED.match(run) is not None


def runs_of(text: str) -> list[str]:
    """Return the runs of letters, digits and marks of a text, each of scripts with or without spaces."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(sign for sign in folded if not unicodedata.combining(sign))
    bare = unicodedata.normalize("NFC", bare)
    spaced = "".join(sign if unicodedata.category(sign)[0] in "LNM" else " " for sign in bare)
    return [run[:MAX_WORD_LENGTH] for word in spaced.split() for run in _RUN.findall(word)]


def input_name(given: Mapping[str, Any], file: StoredFile | None) -> str | None:
    """Return the name of an input: that of its upload, or the last part of its address. None without either."""
    if file is not None and file.name is not None:
        return file.name
    url, stored = given.get("url"), given.get("object")
    if isinstance(url, str) and url[:5].lower() != "data:":
        with suppress(ValueError):  # it is refused elsewhere
            return clean_name(unquote(urlsplit(url).path))
    key = _as_object(stored).get("key", stored)
    return clean_name(key) if isinstance(key, str) else None


def _as_object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def job_words(params: Mapping[str, Any], files: Mapping[str, StoredFile], client_ref: str | None) -> set[str]:
    """Return the words by which a job is found: of its prompt, the names of its inputs and its client ref."""
    texts = [text for name in PROMPTS if isinstance(text := params.get(name), str)]
    names = [input_name(_as_object(params.get("file")), files.get("file"))]
    names += [file.name for path, file in files.items() if path != "file"]
    texts += [text for text in (*names, client_ref) if text]
    words = dict.fromkeys(word for text in reversed(texts) for word in words_of(text))  # a long prompt comes last
    return set(list(words)[:MAX_WORDS])
