"""What engines' child processes inherit of the environment: not the vendors' keys that may stand in it."""

import os
import re
from typing import Final

INHERITED: Final = re.compile(
    r"(?:PATH|HOME|LANG|TMPDIR|TEMP|TMP|SYSTEMROOT|USERPROFILE)$|PYTHON|LD_|DYLD_|LC_|GGML_", re.IGNORECASE
)


def inherit_environment(**more: str) -> dict[str, str]:
    """What a child needs to run, and whatever else is given."""
    return {name: value for name, value in os.environ.items() if INHERITED.match(name)} | more
