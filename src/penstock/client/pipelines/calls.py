"""API calls about pipelines and their templates, as flows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from penstock.client import file_inputs
from penstock.client.calls import Calls, GenerationOptions, given, hold_in_place
from penstock.client.config import path_to
from penstock.client.decoding import decode, read, read_page
from penstock.client.errors import BadInput, PipelineFailed
from penstock.client.records import PipelineQuote, PipelineRecord, Template
from penstock.client.transport.retries import send
from penstock.client.transport.steps import Flow, Request, Upload
from penstock.client.waiting import PIPELINES, Waiting, follow_pipeline

P = TypeVar("P", bound=PipelineRecord)

TEMPLATES: Final = f"{PIPELINES}/templates"
Steps: TypeAlias = Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]
"""Steps by name, or a list of steps with their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """A pipeline to run: steps or the name of a template, and its own params."""

    steps: Steps | None = None
    template: str | None = None
    version: int | None = None
    params: Mapping[str, Any] | None = None
    on_error: str | None = None


@dataclass(frozen=True, slots=True)
class PipelineCalls(Generic[P]):
    """API calls about pipelines, as flows. Pipelines are returned bound to their client."""

    calls: Calls[Any]
    bind: Callable[[Any], P]

    def run(self, request: PipelineRequest, options: GenerationOptions) -> Flow[P]:
        """Submit a pipeline. The server accepts all of its jobs or none."""
        body = {**(yield from self._body(request, self.calls.placement(options))), **options.body()}
        return (yield from self._submit(PIPELINES, body, options))

    def price(self, request: PipelineRequest) -> Flow[PipelineQuote]:
        """Return a price quote. Nothing is created or uploaded."""
        body = {**(yield from self._body(request, hold_in_place)), "dry_run": True}
        sent = Request(method="POST", path=PIPELINES, json=body, repeatable=True)
        return read(PipelineQuote, decode((yield from send(sent, self.calls.policy))))

    def retry(
        self, pipeline_id: str, from_step: str | None, params: Mapping[str, Any] | None, options: GenerationOptions
    ) -> Flow[P]:
        """Repeat a step, all that need it, and all that did not succeed, as a new pipeline."""
        body = given({"from": from_step})
        if params is not None:
            body["params"] = yield from file_inputs.fill_in(params, "params", self.calls.placement(options))
        return (yield from self._submit(path_to(PIPELINES, pipeline_id, "retry"), body, options))

    def _submit(self, path: str, body: Mapping[str, Any], options: GenerationOptions) -> Flow[P]:
        headers = {"idempotency-key": options.key()}
        request = Request(method="POST", path=path, json=body, headers=headers, repeatable=True)
        return self.bind(decode((yield from send(request, self.calls.policy))))

    def _body(self, request: PipelineRequest, place: file_inputs.Place) -> Flow[dict[str, Any]]:
        body = given({"template": request.template, "version": request.version, "on_error": request.on_error})
        if request.steps is not None:
            body["steps"] = yield from self._fill_steps(request.steps, place)
        if request.params is not None:
            body["params"] = yield from file_inputs.fill_in(request.params, "params", place)
        return body

    def _fill_steps(self, steps: Steps, place: file_inputs.Place) -> Flow[Sequence[Any]]:
        """Return the steps with their references and files as the API takes them. The server checks the rest."""
        filled: list[Any] = []
        for step in _list_steps(steps):
            sent = yield from file_inputs.fill_in({**step, "params": None}, "steps", place)
            params = step.get("params")
            if isinstance(params, Mapping):
                given_params = cast("Mapping[str, Any]", params)
                params = yield from self.calls.fill_params(str(step.get("model")), given_params, place)
            filled.append(given({**sent, "params": params}))
        return filled

    # -- one and all

    def get(self, pipeline_id: str) -> Flow[P]:
        """Return a pipeline with its jobs. Raise NotFoundError if this account has no such pipeline."""
        request = Request(method="GET", path=path_to(PIPELINES, pipeline_id))
        return self.bind(decode((yield from send(request, self.calls.policy))))

    def list(self, limit: int | None) -> Flow[None]:
        """Emit pipelines, newest first, without their jobs."""
        return self.calls.pages(PIPELINES, limit, {}, self.bind)

    def cancel(self, pipeline_id: str) -> Flow[P]:
        """Request cancellation of all open jobs and return the pipeline."""
        request = Request(method="POST", path=path_to(PIPELINES, pipeline_id, "cancel"), repeatable=True)
        return self.bind(decode((yield from send(request, self.calls.policy))))

    def delete(self, pipeline_id: str) -> Flow[None]:
        """Delete an ended pipeline with its own jobs."""
        yield from send(Request(method="DELETE", path=path_to(PIPELINES, pipeline_id)), self.calls.policy)

    def wait(self, pipeline: P, timeout: float | None, notify: Callable[[P], object] | None, *, check: bool) -> Flow[P]:
        """Return the pipeline once it is done. Raise PipelineFailed if it did not succeed, unless `check` is false."""
        waiting = Waiting(self.bind, self.calls.patient, self.calls.seats, PIPELINES)
        done = yield from waiting.for_one(pipeline, timeout, notify)
        if check and not done.succeeded:
            raise PipelineFailed(done)
        return done

    def events(self, pipeline_id: str, after: str | None) -> Flow[None]:
        """Emit the events of a pipeline and of its jobs until its end."""
        return follow_pipeline(pipeline_id, self.calls.patient, after)

    # -- templates

    def put_template(
        self, name: str, steps: Steps, on_error: str | None, params: Mapping[str, Any] | None, description: str | None
    ) -> Flow[Template]:
        """Store a pipeline as the next version of a template."""
        body = given({"on_error": on_error, "description": description})
        body["steps"] = yield from self._fill_steps(steps, _refuse_file)
        if params is not None:
            body["params"] = yield from file_inputs.fill_in(params, "params", _refuse_file)
        return (yield from self.calls.one(Template, "PUT", path_to(TEMPLATES, name), body))

    def template(self, name: str, version: int | None) -> Flow[Template]:
        """Return a version of a template, by default the newest."""
        return self.calls.one(Template, "GET", path_to(TEMPLATES, name), query=given({"version": version}))

    def templates(self) -> Flow[tuple[Template, ...]]:
        """Return the newest version of each template."""
        listed, _ = read_page((yield from send(Request(method="GET", path=TEMPLATES), self.calls.policy)))
        return tuple(read(Template, each) for each in listed)

    def delete_template(self, name: str) -> Flow[None]:
        """Delete all versions of a template."""
        yield from send(Request(method="DELETE", path=path_to(TEMPLATES, name)), self.calls.policy)


def _list_steps(steps: Steps) -> Iterator[Mapping[str, Any]]:
    if not isinstance(cast("Any", steps), Mapping | list | tuple):
        raise BadInput("`steps` should be a mapping of steps by name, or a list of them.")
    named = steps.items() if isinstance(steps, Mapping) else [(None, step) for step in steps]
    for name, given_step in named:
        step: Any = given_step
        if not isinstance(step, Mapping):
            raise BadInput(f"`steps`: {name or 'each of them'} should be a mapping with `model` and `params`.")
        yield cast("Mapping[str, Any]", step if name is None else {"name": name, **step})


def _refuse_file(upload: Upload) -> Flow[Mapping[str, Any]]:
    raise BadInput(f"A template cannot keep the local file {upload.name}: name a param there and give it at each run.")
    yield
