"""What the code really has: files of deploy/ may name nothing else."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from penstock.cli.main import app
from penstock.observability import metrics
from penstock.observability.traces import ENDPOINTS as TRACE_ENDPOINTS
from penstock.settings.sources import OTHER_VARIABLES
from penstock.settings.tables import VARIABLES
from penstock.storage.backend import ENDPOINTS as S3_ENDPOINTS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
OF_LIBRARIES = frozenset(
    {
        *S3_ENDPOINTS,
        *TRACE_ENDPOINTS,
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "OTEL_SERVICE_NAME"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PATH"),
    }
)
"""Read by Python, obstore and OpenTelemetry themselves."""
OF_PROMETHEUS = frozenset({"up"})


def check_variables(names: Iterable[str], config: str = "") -> None:
    """Each is a setting's, a library's, or named by the settings file as `env:NAME`."""
    known = VARIABLES.keys() | OTHER_VARIABLES | OF_LIBRARIES | set(re.findall(r"env:(\w+)", config))
    assert set(names) - known == set()


def check_command(words: Sequence[str]) -> None:
    """The `penstock` command has it, with these options."""
    command: Any = get_command(app)
    rest = list(words)
    context = typer.Context(command)
    while hasattr(command, "commands"):
        word = rest.pop(0)
        assert word in command.commands, f"there is no `penstock {word}`"
        command = command.commands[word]
        context = typer.Context(command, parent=context)
    known = {option for param in command.params for option in param.opts}
    assert {word for word in rest if word.startswith("-")} - known == set()


def metric_names() -> dict[str, set[str]]:
    """Every series that a scrape may show, and its labels; many have no sample before something happens."""
    found: dict[str, set[str]] = {}
    for collector in list(metrics.REGISTRY._collector_to_names):
        for family in collector.collect():
            told = getattr(collector, "_labelnames", None) or getattr(family, "_labelnames", None) or ()
            for ending in {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""]):
                labels = {"instance", "job", *told} | ({"le"} if ending == "_bucket" else set())
                found[family.name + ending] = labels
    return found
