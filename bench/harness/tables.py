"""What every measurement ends with: a table, its figures as JSON beside the machine's description, and a plot."""

import contextlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

RESULTS = Path(__file__).parents[1] / "results"

Row: TypeAlias = Mapping[str, Any]
"""A line of a table: its columns by name. The first says what the line is of."""


def machine() -> dict[str, Any]:
    """What was measured on, and when."""
    return {
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }


def _processor() -> str:
    """The model's name, as `lscpu` tells it: not every kernel does."""
    with contextlib.suppress(OSError, StopIteration):
        said = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout.splitlines()
        return next(line for line in said if line.startswith("Model name:")).partition(":")[2].strip()
    return platform.machine()


def show(title: str, rows: Sequence[Row]) -> None:
    """Print a table; figures stand to the right."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([_tell(row.get(name)) for name in columns] for row in rows)]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
    print(f"\n{title}")
    for first, *others in lines:
        figures = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        print("  ".join([first.ljust(widths[0]), *figures]))


def _tell(value: Any) -> str:
    """Three digits that count are enough; None is a figure that there is not."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


def save(name: str, figures: Mapping[str, Any]) -> Path:
    """Write figures to `results`, with the machine that they are of."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **figures}, indent=2) + "\n")
    print(f"\nbench/results/{path.name}")
    return path


def load(name: str) -> dict[str, Any]:
    """What was saved under this name, if anything was."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def draw(kind: str, name: str, data: Mapping[str, Any], **options: Any) -> None:
    """A plot by `plots.py`, of bars or lines; without matplotlib there is none, and a line says so."""
    try:
        import plots  # noqa: PLC0415  figures are worth having without the library
    except ModuleNotFoundError:
        print("no plot: matplotlib is not installed (bench/requirements.lock)")
        return
    about = machine()
    note = f"{about['cpu']}, {about['cores']} cores, Python {about['python']}, {about['date'][:10]}."
    drawing: Callable[..., None] = getattr(plots, kind)
    drawing(RESULTS / name, data, note=note, **options)
    print(f"bench/results/{name}.png and .svg")


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which this part of all lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
