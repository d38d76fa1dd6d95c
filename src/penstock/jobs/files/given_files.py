"""Files of a request: look up uploads and outputs of earlier jobs, and open the bytes that came with it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.domain.files import FileKind, StoredFile, contradiction
from penstock.domain.job_errors import FileUnreadable, UrlNotAllowed
from penstock.domain.jobs import Job, Parent, State
from penstock.domain.pipelines.rules import NoSuchOutput, describe_end, find_output, refer_to
from penstock.errors import FileNotFound, Gone, InputNotReady, JobNotFound
from penstock.jobs.files.inputs import NAMES, Inputs, decode_inline, is_data_uri
from penstock.store.database import Database
from penstock.store.queries.files import file_rows
from penstock.store.queries.jobs import job_rows


class FileProblem(Exception):
    """A problem with one field of a file that the caller gave."""

    def __init__(self, field: str, message: str, code: str = "invalid_params") -> None:
        super().__init__(message)
        self.field, self.message, self.code = field, message, code


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A place among the params where a file is given, and the kinds that are allowed there."""

    path: str
    kinds: tuple[FileKind, ...]
    account_id: str
    store: bool
    """Whether its bytes are to be stored; not on a dry run."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file of a request, as far as it is known before the job is accepted."""

    kept: Mapping[str, Any]
    """The fields to keep among the params."""
    file: StoredFile | None = None
    data: bytes | None = None
    is_remote: bool = False
    parent: Parent | None = None


class FileOpener:
    """Opens the files that callers give."""

    def __init__(
        self, database: Database, inputs: Inputs, check_url: Callable[[str], str], clock: Callable[[], float]
    ) -> None:
        self._database = database
        self._inputs = inputs
        self._check_url = check_url
        self._clock = clock

    async def open(self, given: Mapping[str, Any], wanted: WantedFile) -> OpenedFile:
        """Return the file. Raise `FileProblem` if it cannot be used there."""
        if "job" in given:
            return await self._open_output(given, wanted)
        if "file_token" in given:
            return OpenedFile(given, _check(await self._find_upload(given, wanted), given, wanted, "file_token"))
        if "data" in given or is_data_uri(given.get("url")):
            return await self._open_inline(given, wanted)
        if "url" in given:
            try:
                self._check_url(given["url"])
            except UrlNotAllowed as error:
                raise FileProblem("url", error.message, error.code) from error
            return OpenedFile(given, is_remote=True)
        return OpenedFile(given)

    async def _find_upload(self, given: Mapping[str, Any], wanted: WantedFile) -> StoredFile:
        try:
            return await self._database.read(
                file_rows.get_usable, wanted.account_id, given["file_token"], self._clock()
            )
        except FileNotFound as error:
            raise FileProblem("file_token", error.message, error.code) from error

    async def _open_inline(self, given: Mapping[str, Any], wanted: WantedFile) -> OpenedFile:
        """Open bytes that came with the request. Only their file is kept among the params."""
        field = "data" if "data" in given else "url"
        try:
            data = await asyncio.to_thread(decode_inline, given[field], wanted.kinds)
            file = await self._inputs.open(data, wanted.account_id, wanted.kinds)
        except FileUnreadable as error:
            raise FileProblem(field, error.message, error.code) from error
        kept = {name: value for name, value in given.items() if name != field}
        return OpenedFile(kept, _check(file, given, wanted, field), data if wanted.store else None)

    async def _open_output(self, given: Mapping[str, Any], wanted: WantedFile) -> OpenedFile:
        """Pin an output of one of the caller's own jobs. Its bytes stay where they are."""
        try:
            job = await self._database.read(job_rows.get, wanted.account_id, given["job"])
        except (JobNotFound, Gone) as error:
            raise FileProblem("job", error.message, error.code) from error
        if job.is_past(self._clock()):
            raise FileProblem("job", Gone().message, Gone.code)
        if job.state is not State.SUCCEEDED:
            raise FileProblem("job", _explain_state(job), InputNotReady.code)
        output = given.get("output", "primary")
        try:
            asset = find_output(job, output)
        except NoSuchOutput as problem:
            raise FileProblem("output", str(problem)) from problem
        file = _check(refer_to(job, asset), given, wanted, "output")
        return OpenedFile(given, file, parent=Parent(wanted.path, job.id, asset.id, output))


def _explain_state(job: Job) -> str:
    if job.done:
        return f"{job.id} {describe_end(job)} and has no outputs."
    return f"{job.id} is not finished: wait until it has succeeded, or send both steps as one pipeline."


def _check(file: StoredFile, given: Mapping[str, Any], wanted: WantedFile, field: str) -> StoredFile:
    """Return the file if it is of an allowed kind and of the declared type."""
    if file.kind not in wanted.kinds:
        allowed = " or ".join(NAMES[kind] for kind in wanted.kinds)
        raise FileProblem(field, f"The file is a {NAMES[file.kind]}; allowed here: {allowed}.")
    if problem := contradiction(file, given.get("type")):
        raise FileProblem("type", problem)
    return file
