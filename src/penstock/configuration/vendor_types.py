"""Types of vendors with their options as JSON Schema and their models, from the vendors' own files."""

import importlib
import logging
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from penstock.configuration.document import is_secret
from penstock.settings.values import BUILT_IN
from penstock.vendor_api.chat import ChatOptions
from penstock.vendors import Vendor, load_vendor, vendor_names

USES: Final = {"embedding": "embed", "speech": "speak", "transcription": "transcribe"}
"""Kinds of models that a chat vendor may run besides, with the method that it has then."""
WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z])")

log = logging.getLogger(__name__)


@cache
def list_vendor_types() -> Sequence[dict[str, Any]]:
    """Return all types by name. It imports every vendor, which takes a moment, but leaves out those that fail."""
    return list(_describe_all())


def _describe_all() -> Iterator[dict[str, Any]]:
    for name in sorted(vendor_names()):
        try:
            kind = load_vendor(name)
        except Exception:
            log.exception("vendor cannot be imported; its type is not offered", extra={"fields": {"type": name}})
            continue
        yield _describe(name, kind)


def _describe(name: str, kind: type[Vendor]) -> dict[str, Any]:
    is_chat = issubclass(kind.options_type, ChatOptions)
    schema = kind.options_type.model_json_schema()
    options = {key: value for key, value in schema.get("properties", {}).items() if key != "type"}
    models = [] if is_chat else [served.model for served in getattr(kind, "models", ())]
    return {
        "object": "vendor_type",
        "type": name,
        "title": WORD_START.sub(" ", kind.options_type.__name__.removesuffix("Options")),
        "about": _about(kind),
        "kind": "chat" if is_chat else "media",
        "kinds": _chat_kinds(kind) if is_chat else sorted({model.kind for model in models}),
        "built_in": any(table["type"] == name for table in BUILT_IN.values()),
        "declares": not is_chat and bool(getattr(kind, "declares", False)),
        "secrets": [key for key in options if is_secret(key)],
        "models": [{"id": model.id, "kind": model.kind, "title": model.title} for model in models],
        "options": {
            **schema,
            "properties": options,
            "required": [each for each in schema.get("required", ()) if each != "type"],
        },
    }


def _about(kind: type[Vendor]) -> str:
    """Return the sentence with which the vendor's file begins, without its name."""
    text = (importlib.import_module(kind.__module__).__doc__ or "").strip().partition("\n")[0]
    return re.sub(r"^`\w+`: ", "", text)


def _chat_kinds(kind: type[Vendor]) -> list[str]:
    return ["chat", *(name for name, use in USES.items() if hasattr(kind, use))]
