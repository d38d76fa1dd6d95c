"""Identity of a result: a job of an equal input, made by the same vendor's model, has the same result to offer."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from penstock.catalog.file_input import SOURCES, with_file
from penstock.catalog.model import GenerationModel
from penstock.catalog.schema_params import MAX_EXACT
from penstock.domain.files import StoredFile
from penstock.domain.jobs import ResultMark


def mark_result(
    model: GenerationModel, route: tuple[str, str], params: Mapping[str, Any], files: Mapping[str, StoredFile]
) -> ResultMark | None:
    """Return the mark of a result by its route and resolved params. None: not all bytes of its input are known.

    Each file counts by its sha256. The seed is kept apart, as a request without one accepts any.
    """
    for slot in model.files:
        for path, given in slot.entries(params):
            if path not in files:
                return None
            rest = {name: value for name, value in given.items() if name not in SOURCES and name != "output"}
            params = with_file(params, path, rest | {"sha256": files[path].sha256})
    seed = _unify(params.get(model.seed_param)) if model.seed_param else None
    canonical = {name: _unify(value) for name, value in params.items() if name != model.seed_param}
    digest = hashlib.sha256(msgspec.json.encode((model.id, *route, canonical), order="sorted")).digest()
    return ResultMark(digest, None if seed is None else str(seed))


def _unify(value: Any) -> Any:
    """Return the value with 8.0 as 8, as JSON has only one kind of number."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= MAX_EXACT else value
    if isinstance(value, Mapping):
        return {name: _unify(each) for name, each in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_unify(each) for each in cast("Sequence[Any]", value)]
    return value
