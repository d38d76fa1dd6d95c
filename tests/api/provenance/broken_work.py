"""Work of child processes that goes wrong, in place of drafting a manifest."""

import base64
import os
from typing import IO, Any

from penstock.inspection import manifests
from penstock.inspection.manifests import Draft

LIBRARIES = {"crash_once": ("c2pa",), "sign_another_thing": ("c2pa",), "lie": ("c2pa",)}


def crash(*_: Any) -> Draft:
    """Die like a parser that was attacked."""
    os.abort()


def fail(*_: Any) -> Draft:
    """Raise what a library raises."""
    raise RuntimeError("no manifest today")


def sign_another_thing(*given: Any) -> Draft:
    """Ask for a signature of something that is no claim."""
    draft = manifests.draft_manifest(*given)
    return Draft(base64.b64encode(b"eyJhbGciOiJFUzI1NiJ9.e30").decode(), draft.offset, draft.chunk)


def lie(*given: Any) -> Draft:
    """Name a wrong place for the signature."""
    draft = manifests.draft_manifest(*given)
    return Draft(draft.to_sign, 8, draft.chunk)


def crash_once(source: IO[bytes], target: IO[bytes], *given: Any) -> Draft:
    """Die at the first try, which leaves a trace in the target."""
    if not target.read(1):
        target.write(b"x")
        target.flush()
        os.abort()
    return manifests.draft_manifest(source, target, *given)
