"""The option `--input`: files of any param, from the disk, the web, an upload or an earlier job."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.printing import fail

Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME[:ROLE]=FILE",
        help="A file of any param: a path, a URL, a file token or job:ID[:OUTPUT]. Repeat it for several.",
        show_default=False,
    ),
]


def read_inputs(given: Sequence[str]) -> dict[str, Any]:
    """Return params from options such as `images=a.png`. A param that is given several times becomes a list."""
    found: dict[str, list[Any]] = defaultdict(list)
    for option in given:
        place, is_pair, source = option.partition("=")
        if not (is_pair and place and source):
            fail(f"--input {option}: write NAME=FILE, such as images=cat.png or mesh=job:job_01.")
        name, _, role = place.partition(":")
        file = _read_source(source)
        found[name].append({"file": file, "role": role} if role else file)
    return {name: files if len(files) > 1 else files[0] for name, files in found.items()}


def _read_source(source: str) -> Any:
    if source.startswith("job:"):
        _, job_id, *output = source.split(":")
        return {"job": job_id, **({"output": _read_output(output[0])} if output else {})}
    if "://" in source or source.startswith("data:"):
        return {"url": source}
    if source.startswith("file_") and not Path(source).exists():
        return {"file_token": source}
    return Path(source)


def _read_output(name: str) -> int | str:
    return int(name) if name.isdecimal() else name
