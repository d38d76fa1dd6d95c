"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Data folder; default: the platform's data folder."),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings file; default: config.toml in the data folder."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
