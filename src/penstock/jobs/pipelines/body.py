"""The body of a pipeline request, and that of a stored template."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from pydantic import BeforeValidator, ConfigDict, Field, StrictBool
from pydantic_core import PydanticCustomError

from penstock.catalog.params import Integer, Number, Params, Text
from penstock.domain.api_keys import Reuse
from penstock.domain.events import PIPELINE_ENDINGS, EventType, PipelineEventType
from penstock.errors import Detail
from penstock.jobs.request import REUSE, ClientRef, Metadata, Retention

MAX_STEPS = 100
NAME = "^[a-z][a-z0-9_-]{0,63}$"
MAX_BYTES = 1 << 20
"""Of the steps and params together: they are in the pipeline's record and in its events."""
MAX_DEPTH = 32
OnErrorName = Literal["stop", "continue"]
StepName = Annotated[Text, Field(pattern=NAME)]


class PipelineStepBody(Params):
    """One step: a generation, or one for each element of a list."""

    name: StepName = Field(description="by which other steps refer to it")
    model: Text = Field(min_length=1, max_length=200, description="model id")
    params: dict[str, Any] = Field(default={}, description="the model's own params, with references")
    for_each: list[Any] | dict[str, Any] | None = Field(
        default=None, description='a list, `{"param": …}` with a list, or `{"step": …}` of a step with `for_each`'
    )
    on_error: OnErrorName | None = Field(default=None, description="default: that of the pipeline")


def _list_steps(value: Any) -> Any:
    """Return the steps as a list: callers may send an object of steps by name."""
    if not isinstance(value, Mapping):
        return value
    steps = cast("Mapping[str, Any]", value)
    return [_name(step, name) for name, step in steps.items()]


def _name(step: Any, name: str) -> Any:
    if not isinstance(step, dict):
        return step
    step = cast("dict[str, Any]", step)
    if step.get("name", name) != name:
        raise PydanticCustomError("name", "Step `{name}` should have this `name`, or none", {"name": name[:64]})
    return {**step, "name": name}


def _example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"additionalProperties": False, "example": fields})


EXAMPLE_STEPS = [
    {"name": "picture", "model": "sketch_1", "params": {"prompt": {"param": "prompt"}}},
    {"name": "film", "model": "still_film", "params": {"frame_images": [{"step": "picture"}]}},
]
EXAMPLE_PARAMS = {"prompt": "a red fox"}
Steps = Annotated[list[PipelineStepBody], BeforeValidator(_list_steps)]


class PipelineWebhook(Params):
    """The endpoint for the events of this pipeline."""

    url: Text = Field(min_length=1, max_length=2048)
    events: list[PipelineEventType | EventType] | None = Field(
        default=None, description="default: the three that end a pipeline; those of jobs may be named, too"
    )

    @property
    def pipeline_events(self) -> list[str]:
        """Return the events of the pipeline itself."""
        asked = PIPELINE_ENDINGS if self.events is None else self.events
        return [kind.value for kind in asked if isinstance(kind, PipelineEventType)]

    @property
    def job_events(self) -> list[str]:
        """Return the events of its jobs."""
        return [kind.value for kind in self.events or () if isinstance(kind, EventType)]


class PipelineBody(Params):
    """Steps or the name of a template, and optional fields."""

    model_config = _example(steps=EXAMPLE_STEPS, params=EXAMPLE_PARAMS)

    nested: ClassVar = {"steps": PipelineStepBody, "webhook": PipelineWebhook}

    steps: Steps | None = Field(
        default=None, min_length=1, max_length=MAX_STEPS, description="a list, or an object of steps by name"
    )
    template: StepName | None = Field(default=None, description="name of a stored pipeline, instead of `steps`")
    version: Integer | None = Field(default=None, ge=1, description="version of the template; default: the newest")
    params: dict[str, Any] | None = Field(default=None, description='values for `{"param": …}`')
    on_error: OnErrorName | None = Field(default=None, description="default: `stop`")
    webhook: PipelineWebhook | None = Field(default=None)
    client_ref: ClientRef | None = Field(default=None, description="yours; echoed, also by the jobs")
    metadata: Metadata | None = Field(default=None, max_length=16, description="yours; echoed, also by the jobs")
    start_timeout: Number | None = Field(
        default=None, gt=0, description="seconds until a job must have started, once its inputs are there"
    )
    run_timeout: Number | None = Field(default=None, gt=0, description="seconds each job may run once started")
    retention: Retention | None = Field(default=None, description='seconds that it is kept once done, or "forever"')
    reuse: Reuse | None = Field(default=None, description=REUSE)
    dry_run: StrictBool | None = Field(default=None, description="validate and price, but create nothing")


class PipelineTemplateBody(Params):
    """A pipeline to store."""

    model_config = _example(steps=EXAMPLE_STEPS, params=EXAMPLE_PARAMS)

    nested: ClassVar = {"steps": PipelineStepBody}

    steps: Steps = Field(min_length=1, max_length=MAX_STEPS, description="a list, or an object of steps by name")
    on_error: OnErrorName | None = Field(default=None, description="default: `stop`")
    params: dict[str, Any] | None = Field(default=None, description="defaults of its own params")
    description: Annotated[Text, Field(max_length=500)] | None = Field(default=None)


def find_excess(steps: Sequence[PipelineStepBody], params: Mapping[str, Any]) -> Iterator[Detail]:
    """Yield where the steps or the pipeline's own params are too large or too deeply nested."""
    deep = [number for number, step in enumerate(steps) if _is_too_deep([step.params, step.for_each])]
    for number in deep:
        message = f"Step `{steps[number].name}`: its objects and lists are nested more than {MAX_DEPTH} deep."
        yield Detail(f"steps.{number}", message)
    if _is_too_deep(params):
        yield Detail("params", f"Objects and lists are nested more than {MAX_DEPTH} deep.")
    elif not deep:
        yield from _find_too_large(steps, params)


def _find_too_large(steps: Sequence[PipelineStepBody], params: Mapping[str, Any]) -> Iterator[Detail]:
    given = [step.model_dump(mode="json", exclude_none=True) for step in steps]
    size = len(msgspec.json.encode((given, params)))
    if size > MAX_BYTES:
        allowed = f"at most {MAX_BYTES} are allowed. Upload files with POST /api/v1/files"
        yield Detail("steps", f"The steps and params have {size} bytes as JSON; {allowed} and give their tokens.")


def _is_too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [each for outer in level for each in _children(outer)]
    return bool(level)


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


class PipelineRetryBody(Params):
    """The step from which to repeat a pipeline."""

    model_config = _example(**{"from": "film"})

    from_: StepName | None = Field(
        default=None, alias="from", description="repeat this step and all that need it; default: what did not succeed"
    )
    params: dict[str, Any] | None = Field(default=None, description="replaces some of the pipeline's own params")
