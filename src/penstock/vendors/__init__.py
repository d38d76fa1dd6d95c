"""Vendors, one file each. A file that declares `VENDOR` is found by its name, other packages by an entry point."""

import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

from penstock.vendor_api.chat import ChatVendor
from penstock.vendor_api.generation import GenerationVendor

Vendor: TypeAlias = GenerationVendor | ChatVendor
ENTRY_POINT_GROUP = "penstock.vendors"


@cache
def _outside() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


@cache
def vendor_names() -> frozenset[str]:
    """Return the names that `type = "…"` takes."""
    return frozenset(module.name for module in pkgutil.iter_modules(__path__)) | _outside().keys()


@cache
def load_vendor(name: str) -> type[Vendor]:
    """Return the class of one of these names; only vendors in use are imported."""
    if name in _outside():
        return _outside()[name].load()
    return importlib.import_module(f"{__name__}.{name}").VENDOR
