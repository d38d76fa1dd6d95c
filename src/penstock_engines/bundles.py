"""Weights of many small files: a package's matching members become one archive, byte for byte alike everywhere."""

import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["file", "pictures", "words", "model"]
"""The form of a weight: one file of a package, or an archive of many."""
MAX_MEMBER_BYTES = 64_000_000
MOMENT = (1980, 1, 1, 0, 0, 0)
MODEL_FILES = frozenset({"tokenizer.json", "generation_config.json"})
SYMBOLS_FROM = 0x2300
"""The first code point of a name that is kept. Below are letters, marks and arrows."""


def pack_members(archive: tarfile.TarFile, pattern: str, form: Form) -> bytes:
    """Return an archive without compression of the members that match a pattern. Raise KeyError if there is none.

    Nothing in it depends on the machine, the library's version or the order of the package.
    """
    found = dict(_read_members(archive, pattern))
    if not found:
        raise KeyError(pattern)
    entries = sorted(FORMS[form](found))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as target:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            target.writestr(entry, content)
    return buffer.getvalue()


def _read_members(archive: tarfile.TarFile, pattern: str) -> Iterator[tuple[str, bytes]]:
    for entry in archive:
        if entry.isfile() and entry.size <= MAX_MEMBER_BYTES and fnmatchcase(entry.name, pattern):
            stream = archive.extractfile(entry)
            if stream is not None:
                yield entry.name, stream.read()


def _keep_pictures(found: Mapping[str, bytes]) -> Iterable[tuple[str, bytes]]:
    """Yield the pictures by their file names."""
    for name, content in found.items():
        yield PurePosixPath(name).name, content


def _keep_model(found: Mapping[str, bytes]) -> Iterable[tuple[str, bytes]]:
    """Yield the networks and the two files that say how to use them."""
    for name, content in found.items():
        short = PurePosixPath(name).name
        if short.endswith(".onnx") or short in MODEL_FILES:
            yield short, content


def _boil_words(found: Mapping[str, bytes]) -> Iterable[tuple[str, bytes]]:
    """Yield a table for each language: a line with symbol, name and keywords, between tabs."""
    for name, content in found.items():
        language = PurePosixPath(name).parent.name
        lines = list(_list_words(json.loads(content)))
        if lines:
            yield f"{language}.tsv", "\n".join(lines).encode()


def _list_words(document: Mapping[str, Mapping[str, Mapping[str, Mapping[str, list[str]]]]]) -> Iterator[str]:
    """Yield a line for each picture symbol of a language."""
    about = next(iter(document.values()))
    for symbol, words in about.get("annotations", {}).items():
        if ord(symbol[0]) >= SYMBOLS_FROM:
            yield "\t".join((symbol, *words.get("tts", [""])[:1], *words.get("default", [])))


FORMS: Mapping[Form, Callable[[Mapping[str, bytes]], Iterable[tuple[str, bytes]]]] = MappingProxyType(
    {"pictures": _keep_pictures, "words": _boil_words, "model": _keep_model}
)
