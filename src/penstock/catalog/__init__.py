"""The catalogue: id, kind, params and checks of models; one file per model family, found by discovery."""

import importlib
import pkgutil
from functools import cache

from penstock.catalog.model import GenerationModel


@cache
def known_models() -> dict[str, GenerationModel]:
    """Return every model that a file of this package declares in `MODELS`, by id."""
    found: dict[str, GenerationModel] = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        for model in getattr(importlib.import_module(module.name), "MODELS", ()):
            found[model.id] = model
    return found
