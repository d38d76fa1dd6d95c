"""Errors of a server in the words of the command line, and the exit codes."""

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import typer

from penstock.cli.printing import print_json, shape_error

if TYPE_CHECKING:  # loaded inside the functions: `--help` answers at once
    from penstock.client import PenstockClientError
    from penstock.client.errors import DescribedError
    from penstock.client.records import Awaited

PARAM: Final = re.compile(r"^(input|steps)\.\d+\.(params\.)?(?P<name>[^:\s]+)(: )?")
"""Where a request has a param that the command line writes as `name=value`, or a field of a pipeline's step."""
OPTIONS: Final = {
    "status": "--status",
    "model": "MODEL",
    "client_ref": "--client-ref",
    "file": "--file",
    "template": "--template",
    "version": "--template-version",
    "from": "--from",
}
GIVEN_BELOW: Final = "Give it in the pipeline's own `params`."
"""The server's words for a missing param of a pipeline."""
ADVICE: Final = {
    "model_not_found": "`penstock models list` shows the models on offer.",
    "job_not_found": "`penstock jobs list` shows your jobs.",
    "share_not_found": "`penstock shares list` shows the links that work.",
    "too_many_shares": "`penstock shares revoke ID` ends one.",
    "pipeline_not_found": "`penstock pipeline list` shows your pipelines.",
    "pipeline_not_finished": "`penstock pipeline cancel ID` ends it.",
    "template_not_found": "`penstock pipeline templates list` shows your templates.",
    "too_many_templates": "`penstock pipeline templates delete NAME` removes one.",
    "webhook_not_found": "`penstock webhooks list` shows your webhooks.",
    "file_not_found": "Upload it again: --file PATH.",
}
"""What to do, by the error's code. The server's own suggestion names requests."""


class Code(IntEnum):
    """Exit codes, for scripts."""

    FAILED = 1
    """The job ended without a result."""
    USAGE = 2
    """An argument is wrong. Nothing was sent."""
    REFUSED = 3
    """The server refused the request (4xx)."""
    AWAY = 4
    """The server cannot be reached, or failed (5xx)."""
    LIMITED = 5
    """A budget or limit is exceeded."""
    TIMED_OUT = 6
    """The job was not done in time. It continues."""
    UNSAVED = 7
    """The job is done, but its result could not be saved."""
    INTERRUPTED = 130
    """Ctrl-C."""


def code_of(error: "PenstockClientError") -> Code:
    """Return the exit code of an error."""
    from penstock.client import (
        ApiError,
        BadInput,
        BudgetError,
        JobFailed,
        LimitError,
        PipelineFailed,
        ServerError,
        WaitTimeout,
    )

    kinds: Sequence[tuple[type[Exception], Code]] = (
        (JobFailed, Code.FAILED),
        (PipelineFailed, Code.FAILED),
        (BadInput, Code.USAGE),
        (BudgetError, Code.LIMITED),
        (LimitError, Code.LIMITED),
        (ServerError, Code.AWAY),
        (ApiError, Code.REFUSED),
        (WaitTimeout, Code.TIMED_OUT),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), Code.AWAY)


def print_error(error: "PenstockClientError", *, as_json: bool) -> None:
    """Print an error to stderr: message, invalid fields and suggestion. With `as_json`, also print it to stdout.

    The JSON is what the server sent. If the error is about a job or a pipeline, it is its record.
    """
    from penstock.client.errors import DescribedError

    if as_json:
        fields: Mapping[str, Any] = error.fields if isinstance(error, DescribedError) else {}
        of_side = {**shape_error(error.message), "type": _type_of(error)}
        record = _record_of(error)
        print_json({"error": {**of_side, **fields}} if record is None else record.raw)
    typer.secho(plain(_message(error.message)), err=True, fg=typer.colors.RED, bold=True)
    for name, value in _rest(error):
        typer.echo(f"  {typer.style(f'{name:<11}', dim=True)} {plain(value)}", err=True)


def _record_of(error: "PenstockClientError") -> "Awaited | None":
    """Return the job or pipeline that the error is about."""
    from penstock.client.errors import JobFailed, PipelineFailed, WaitTimeout

    match error:
        case JobFailed():
            return error.job
        case PipelineFailed():
            return error.pipeline
        case WaitTimeout():
            return error.record
        case _:
            return None


def plain(text: str) -> str:
    """Return foreign text without terminal control characters."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")


def _type_of(error: "PenstockClientError") -> str:
    """Return the error type when the server did not name one."""
    kinds = {Code.AWAY: "server_error", Code.LIMITED: "rate_limit_error"}
    return kinds.get(code_of(error), "invalid_request_error")


def _rest(error: "PenstockClientError") -> list[tuple[str, str]]:
    from penstock.client.errors import ConnectionFailed, DescribedError, PipelineFailed

    if isinstance(error, PipelineFailed):
        command = f"`penstock pipeline retry {error.pipeline.id}`"
        return [("code", error.code or ""), ("suggestion", f"{command} repeats what did not succeed.")]
    if isinstance(error, ConnectionFailed) and not error.sent:
        return [("suggestion", "Is it running? `penstock serve` starts one; PENSTOCK_BASE_URL names another.")]
    if not isinstance(error, DescribedError):
        return []
    details = error.details if len(error.details) > 1 else ()
    rows = [("code", error.code), ("param", _word(error.param))]
    rows += [("", _message(f"{detail.loc}: {detail.message}")) for detail in details]
    rows += [("suggestion", _advice(error)), ("request", error.request_id)]
    return [(name, value) for name, value in rows if value]


def _message(text: str) -> str:
    """Return a message that names a param as the command line does."""
    text = text.replace(GIVEN_BELOW, "Add --param NAME=VALUE.")
    found = PARAM.match(text)
    if found is None:
        return text
    rest = text[found.end() :]
    is_named = f"`{found['name']}`" in rest or f'"{found["name"]}"' in rest
    return rest if is_named else f"{found['name']}: {rest}"


def _word(param: str | None) -> str | None:
    """Return what the command line calls a field of the request."""
    found = PARAM.match(param or "")
    name = found["name"] if found else param
    return OPTIONS.get(name, name) if name else None


def _advice(error: "DescribedError") -> str | None:
    if error.code == "missing_required_parameter" and (name := _word(error.param)):
        return f"Add {name} PATH." if name.startswith("--") else f"Add {name}=VALUE."
    return ADVICE.get(error.code or "", error.suggestion)
