"""One file per vendor. A file that declares `VENDOR` is found by its name; other packages by an entry point."""

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points

from penstock.contract import GenerationVendor

ENTRY_POINT_GROUP = "penstock.vendors"


@cache
def known_vendors() -> dict[str, type[GenerationVendor]]:
    """Every vendor type there is, by the name that `type = "…"` takes."""
    found: dict[str, type[GenerationVendor]] = {}
    for module in pkgutil.iter_modules(__path__):
        found[module.name] = importlib.import_module(f"{__name__}.{module.name}").VENDOR
    for point in entry_points(group=ENTRY_POINT_GROUP):
        found[point.name] = point.load()
    return found
