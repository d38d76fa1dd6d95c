"""Target of a job's result: a file, a folder or stdout. It is checked before anything is sent."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.printing import fail, print_json, release_stdout
from penstock.cli.remote.errors import Code, plain

if TYPE_CHECKING:
    from penstock.client import Job
    from penstock.client.records import Awaited

Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="PATH", help="Save the result to this file or folder; - writes it to stdout."
    ),
]


def check_output(output: str | None) -> None:
    """Fail if the target is not writable, before a job costs money."""
    if output == "-" and sys.stdout is None:
        fail("--output: stdout is closed.")
    if output is None or output == "-":
        return
    try:
        _try_place(output)
    except OSError as error:
        fail(f"--output: {output} cannot be written: {error.strerror or error}.")
    except RuntimeError as error:  # unknown home folder, or a circular link
        fail(f"--output: {output} leads nowhere: {str(error).rstrip('.')}.")


def _try_place(output: str) -> None:
    place = Path(output).expanduser().resolve()
    is_folder = place.is_dir() or output.endswith(("/", os.sep))
    if place.exists() and not place.is_file() and not is_folder:  # a device or pipe, which is not created
        if not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return
    folders = [place, *place.parents] if is_folder else place.parents
    with TemporaryFile(dir=next(folder for folder in folders if folder.exists())):
        pass  # permissions alone do not show whether a file can be written


def hand_over(job: "Job", output: str | None, *, as_json: bool) -> None:
    """Save the result and print its path or links. If saving fails, print how to get it."""
    with reported_unsaved(job, f"penstock jobs watch {job.id} -o PATH", as_json=as_json and output != "-"):
        saved = _save(job, output)
        if not as_json:
            for line in (each.url for each in job.outputs) if output is None else filter(None, [saved]):
                typer.echo(line)
        elif output != "-":
            print_json({**job.raw, "saved": saved})


@contextmanager
def reported_unsaved(record: "Awaited", remedy: str, *, as_json: bool) -> Generator[None]:
    """Report that a result could not be saved and which command does, and end the command."""
    from penstock.client import PenstockClientError

    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, PenstockClientError) as error:
        _print_unsaved(record, remedy, error, as_json=as_json)
        raise typer.Exit(Code.UNSAVED) from None


def _save(job: "Job", output: str | None) -> str | None:
    if output is None:
        return None
    if output == "-":
        sys.stdout.buffer.write(job.bytes())
        sys.stdout.buffer.flush()
        return None
    return str(job.save(output))


def _print_unsaved(record: "Awaited", remedy: str, error: Exception, *, as_json: bool) -> None:
    why = f"{error.filename or 'output'}: {error.strerror or error}." if isinstance(error, OSError) else str(error)
    typer.secho(plain(why), err=True, fg=typer.colors.RED, bold=True)
    typer.echo(f"{record.id} is done: `{remedy}` saves its result elsewhere.", err=True)
    try:
        if as_json:
            print_json({**record.raw, "saved": None})
        typer.echo(nl=False)
    except OSError:  # stdout is broken
        release_stdout()
