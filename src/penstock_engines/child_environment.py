"""The environment of engines' child processes, without the vendors' keys that may be in it."""

import os
import re
from typing import Final

INHERITED: Final = re.compile(
    r"(?:PATH|HOME|LANG|TMPDIR|TEMP|TMP|SYSTEMROOT|USERPROFILE)$|PYTHON|LD_|DYLD_|LC_|GGML_", re.IGNORECASE
)


def inherit_environment(**more: str) -> dict[str, str]:
    """Return the variables that a child needs, plus the given ones."""
    return {name: value for name, value in os.environ.items() if INHERITED.match(name)} | more
