"""Planted faults: small changes of the gateway's code, each of which breaks one promise.

The tables beside this file name for each fault what it breaks, the file, the text to replace and its replacement.
`plant` changes the modules while they are imported, so that the sources stay as they are.
"""

import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

TABLES: Final = Path(__file__).parent


class DoesNotApply(Exception):
    """The code has changed: the text to replace is not there exactly once."""


@dataclass(frozen=True)
class Edit:
    """One replaced text."""

    file: str
    """Relative to the package `penstock`."""
    old: str
    new: str

    @property
    def module(self) -> str:
        """The name of the changed module."""
        parts = Path("penstock", self.file).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def apply(self, text: str) -> str:
        """Return the changed source."""
        if text.count(self.old) != 1:
            raise DoesNotApply(f"{self.file} has the text {text.count(self.old)} times: {self.old}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Mutation:
    """A planted fault."""

    name: str
    concept: str
    breaks: str
    edits: Sequence[Edit]
    store: str = "sqlite"
    """The kind of store on which it shows: `sqlite` or `postgresql`."""

    def changed(self) -> dict[str, str]:
        """Return the changed sources by module. Raise DoesNotApply if the code has moved away."""
        found: dict[str, str] = {}
        for edit in self.edits:
            text = found[edit.module] if edit.module in found else (source_folder() / edit.file).read_text()
            found[edit.module] = edit.apply(text)
        return found


def source_folder() -> Path:
    """Return the folder of the package `penstock`."""
    package = find_spec("penstock")
    if package is None or package.origin is None:
        raise DoesNotApply("penstock is not installed")
    return Path(package.origin).parent


def load() -> dict[str, Mutation]:
    """Return all planted faults by name."""
    found: dict[str, Mutation] = {}
    for path in sorted(TABLES.glob("*.toml")):
        for name, entry in tomllib.loads(path.read_text()).items():
            if name in found:
                raise ValueError(f"two planted faults are called {name}")
            found[name] = _read(name, path.stem, entry)
    return found


def _read(name: str, concept: str, entry: Mapping[str, Any]) -> Mutation:
    edits = [Edit(each["file"], each["old"], each["new"]) for each in (entry, *entry.get("also", ()))]
    return Mutation(name, concept, entry["breaks"], edits, entry.get("store", "sqlite"))


# -- importing changed modules


class _Changed(SourceFileLoader):
    """Loads a module from changed source, past all compiled files."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType | None:
        """Compile the changed source."""
        return compile(self._text, self.get_filename(fullname), "exec", dont_inherit=True)


class _Planter(MetaPathFinder):
    """Finds the changed modules before all others."""

    def __init__(self, changed: Mapping[str, str]) -> None:
        self._changed = changed

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a changed module, or None for all others."""
        if fullname not in self._changed:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Changed(fullname, spec.origin, self._changed[fullname])
        return spec


def plant(mutations: Iterable[Mutation]) -> None:
    """Change the modules that this process imports from now on."""
    changed: dict[str, str] = {}
    for mutation in mutations:
        changed |= mutation.changed()
    early = changed.keys() & sys.modules.keys()
    if early:
        raise RuntimeError(f"imported before they could be changed: {sorted(early)}")
    sys.meta_path.insert(0, _Planter(changed))
