"""The plan of a pipeline: its steps in order, its jobs, and their params with all references resolved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from penstock.catalog.params import unknown_name
from penstock.domain.ids import new_id
from penstock.errors import Detail
from penstock.jobs.pipelines.body import PipelineStepBody
from penstock.jobs.request import refuse

MAX_JOBS: Final = 100
"""Jobs of one pipeline, over all steps."""
FILE_FIELDS: Final = ("step", "output", "type", "role")
"""Fields of a reference to an output."""


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One job, whose files from other steps are `{"job": …}` with the ids that those will have."""

    id: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One step, with its place in the request."""

    body: PipelineStepBody
    place: str
    needs: tuple[str, ...]
    jobs: Sequence[PlannedJob] = ()
    reused: Sequence[str] = ()
    """Jobs of an earlier pipeline that need not be repeated."""

    @property
    def job_ids(self) -> tuple[str, ...]:
        """Return the ids of its jobs."""
        return tuple(self.reused) or tuple(job.id for job in self.jobs)


def make_plan(
    steps: Sequence[PipelineStepBody], params: Mapping[str, Any], reused: Mapping[str, Sequence[str]] | None = None
) -> list[PlannedStep]:
    """Return the steps with their jobs, each after those that it needs. Raise with all problems."""
    plan = _Plan(steps, params, reused or {})
    plan.read()
    if plan.details:
        raise refuse(plan.details)
    return [plan.planned[name] for name in plan.order]


@dataclass(slots=True)
class _Plan:
    """The state of planning."""

    steps: Sequence[PipelineStepBody]
    params: Mapping[str, Any]
    reused: Mapping[str, Sequence[str]]
    details: list[Detail] = field(default_factory=list[Detail])
    places: dict[str, str] = field(default_factory=dict[str, str])
    by_name: dict[str, PipelineStepBody] = field(default_factory=dict[str, PipelineStepBody])
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    items: dict[str, list[Any] | None] = field(default_factory=dict[str, "list[Any] | None"])
    """The elements of each step's list; None for a step without."""
    order: list[str] = field(default_factory=list[str])
    planned: dict[str, PlannedStep] = field(default_factory=dict[str, PlannedStep])

    def read(self) -> None:
        """Read all steps. Stop after the first kind of problem, as later ones would follow from it."""
        for read in (self._read_names, self._read_needs, self._sort, self._read_items, self._count, self._make_jobs):
            read()
            if self.details:
                return

    def _read_names(self) -> None:
        for number, step in enumerate(self.steps):
            place = f"steps.{number}"
            if step.name in self.by_name:
                self.details.append(Detail(f"{place}.name", f"`{step.name}` is the name of an earlier step, too."))
            self.by_name[step.name], self.places[step.name] = step, place

    def _read_needs(self) -> None:
        for step in self.steps:
            place = self.places[step.name]
            found = [*_find_steps(step.params, f"{place}.params")]
            if isinstance(step.for_each, dict) and "step" in step.for_each:
                found.append((step.for_each["step"], f"{place}.for_each"))
            for name, where in found:
                if not isinstance(name, str) or name not in self.by_name:
                    message = unknown_name("step", str(name), self.by_name)
                    self.details.append(Detail(where, f"Step `{step.name}`: {message}"))
            names = (name for name, _ in found if isinstance(name, str))
            self.needs[step.name] = tuple(dict.fromkeys(names))

    def _sort(self) -> None:
        """Put each step after those that it needs; among those, keep the caller's order."""
        left = dict.fromkeys(self.by_name)
        while left:
            ready = [name for name in left if not any(need in left for need in self.needs[name])]
            if not ready:
                cycle = " → ".join(self._find_cycle(list(left)))
                message = f"The steps need each other: {cycle}. A step may only take outputs of steps before it."
                self.details.append(Detail(self.places[next(iter(left))], message))
                return
            self.order.append(ready[0])
            del left[ready[0]]

    def _find_cycle(self, left: Sequence[str]) -> list[str]:
        path = [left[0]]
        while True:
            following = next(need for need in self.needs[path[-1]] if need in left)
            if following in path:
                return [*path[path.index(following) :], following]
            path.append(following)

    def _read_items(self) -> None:
        for name in self.order:
            place = f"{self.places[name]}.for_each"
            try:
                self.items[name] = self._items_of(self.by_name[name])
            except _Problem as problem:
                self.details.append(Detail(place, f"Step `{name}`: {problem}"))
                self.items[name] = []

    def _items_of(self, step: PipelineStepBody) -> list[Any] | None:
        given = step.for_each
        if given is None:
            return None
        if isinstance(given, dict) and set(given) == {"step"}:
            found = self.items.get(given["step"])
            if found is None:
                raise _Problem(f"`{given['step']}` has no `for_each`, so that it makes one output only.")
            return found
        value: Any = self._param(given) if isinstance(given, dict) and set(given) == {"param"} else given
        if not isinstance(value, list) or not value:
            raise _Problem('`for_each` is a list of at least one element, {"param": …} with one, or {"step": …}.')
        return cast("list[Any]", value)

    def _count(self) -> None:
        total = sum(1 if items is None else len(items) for items in self.items.values())
        if total > MAX_JOBS:
            message = f"The pipeline would have {total} jobs; at most {MAX_JOBS} are allowed. Send several pipelines."
            self.details.append(Detail("steps", message))

    def _make_jobs(self) -> None:
        for name in self.order:
            step, place = self.by_name[name], self.places[name]
            if not all(need in self.planned for need in self.needs[name]):
                continue  # its problems would follow from those that are reported
            if name in self.reused:
                self._check_reused(name)
                self.planned[name] = PlannedStep(
                    body=step, place=place, needs=self.needs[name], reused=self.reused[name]
                )
                continue
            items, jobs = self.items[name], list[PlannedJob]()
            for number in range(1 if items is None else len(items)):
                scope = _Scope(self, step, None if items is None else number)
                try:
                    params = cast("dict[str, Any]", scope.fill(step.params, f"{place}.params"))
                except _Problem as problem:
                    self.details.append(Detail(problem.place or place, f"Step `{name}`: {problem}"))
                    break
                jobs.append(PlannedJob(new_id("job"), params))
            else:
                self.planned[name] = PlannedStep(body=step, place=place, needs=self.needs[name], jobs=jobs)

    def _check_reused(self, name: str) -> None:
        items, reused = self.items[name], self.reused[name]
        if len(reused) != (1 if items is None else len(items)):
            message = f"Step `{name}`: its list has another length than before. Repeat it with `from`."
            self.details.append(Detail("params", message))

    def _param(self, reference: Mapping[str, Any]) -> Any:
        name = reference["param"]
        if not isinstance(name, str) or name not in self.params:
            raise _Problem(f"{unknown_name('param', str(name), self.params)} Give it in the pipeline's own `params`.")
        return self.params[name]

    def param(self, reference: Mapping[str, Any], place: str) -> Any:
        """Return the value of one of the pipeline's own params."""
        try:
            return self._param(reference)
        except _Problem as problem:
            raise _Problem(str(problem), place) from None


class _Problem(Exception):
    """A reference that cannot be resolved."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True)
class _Scope:
    """One job while its references are resolved. `number` is that of its element; None without a list."""

    plan: _Plan
    step: PipelineStepBody
    number: int | None

    def fill(self, value: Any, place: str) -> Any:
        """Return the value with all references in it resolved."""
        if isinstance(value, list):
            return list(self._fill_list(cast("list[Any]", value), place))
        if not isinstance(value, dict):
            return value
        given = cast("dict[str, Any]", value)
        if set(given) == {"param"}:
            return self.plan.param(given, place)
        if set(given) == {"item"}:
            return self._item(given["item"], place)
        if _is_file(given):
            return self._files(given)
        return {name: self.fill(each, f"{place}.{name}") for name, each in given.items()}

    def _fill_list(self, values: Sequence[Any], place: str) -> Iterator[Any]:
        for number, value in enumerate(values):
            filled = self.fill(value, f"{place}.{number}")
            if _is_file(value) and isinstance(filled, list):  # all outputs of a step, among others
                yield from cast("list[Any]", filled)
            else:
                yield filled

    def _item(self, name: Any, place: str) -> Any:
        items = self.plan.items[self.step.name]
        if items is None or self.number is None:
            raise _Problem('{"item": …} needs `for_each`, which this step does not have.', place)
        item = items[self.number]
        if name is True:
            return item
        if not isinstance(name, str) or not isinstance(item, Mapping) or name not in item:
            raise _Problem(f"Element {self.number} of `for_each` has no field {name!r}.", place)
        return cast("Mapping[str, Any]", item)[name]

    def _files(self, given: Mapping[str, Any]) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the file that a reference means, or those of all elements of a step."""
        source = given["step"]
        job_ids = self.plan.planned[source].job_ids
        kept = {name: value for name, value in given.items() if name != "step"}
        if self.plan.items[source] is None:
            return {"job": job_ids[0], **kept}
        for_each = self.step.for_each
        if isinstance(for_each, dict) and for_each.get("step") == source and self.number is not None:
            return {"job": job_ids[self.number], **kept}
        return [{"job": job_id, **kept} for job_id in job_ids]


def _is_file(value: Any) -> bool:
    """Return whether this refers to an output of a step."""
    return isinstance(value, dict) and "step" in value and set(cast("dict[str, Any]", value)) <= set(FILE_FIELDS)


def _find_steps(value: Any, place: str) -> Iterator[tuple[Any, str]]:
    """Yield the name of each step that is referred to, and where."""
    if _is_file(value):
        yield value["step"], place
    elif isinstance(value, dict):
        for name, each in cast("dict[str, Any]", value).items():
            yield from _find_steps(each, f"{place}.{name}")
    elif isinstance(value, list):
        for number, each in enumerate(cast("list[Any]", value)):
            yield from _find_steps(each, f"{place}.{number}")


def find_jobs(value: Any, job_ids: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths among a job's params at which a file of one of these jobs is given."""
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        job_id = given.get("job")
        if isinstance(job_id, str) and job_id in job_ids:
            yield path
            return
        for name, each in given.items():
            yield from find_jobs(each, job_ids, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, each in enumerate(cast("list[Any]", value)):
            yield from find_jobs(each, job_ids, f"{path}.{number}")
