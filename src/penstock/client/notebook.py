"""HTML of jobs, pipelines and outputs for notebooks. It is self-contained, holds no key and sends no request."""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from importlib.resources import files
from string import Template
from typing import Any, Final

from penstock.client.errors import MissingExtra, PenstockClientError
from penstock.client.records import Cost, JobRecord, OutputRecord, PipelineRecord, StepRecord

LARGEST: Final = 32 << 20
"""Maximum bytes shown in a notebook. Larger outputs are only described."""
COLORS: Final = {"succeeded": "#2e7d32", "failed": "#c62828", "expired": "#c62828", "canceled": "#757575"}
COLUMNS: Final = ("model", "status", "progress", "cost")
PAGE: Final = Template(
    "<!doctype html><meta charset='utf-8'><meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src blob: data:\">"
    "<style>html,body{margin:0;height:100%;background:#f4f4f2;font:14px sans-serif}canvas{width:100%;height:100%;"
    'display:block;cursor:grab;touch-action:none}</style><canvas></canvas><script>const GLB="$data";\n$viewer</script>'
)


@dataclass(frozen=True, slots=True)
class View:
    """HTML that a notebook shows as a cell's value."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.html


class Live:
    """Live table of jobs in a notebook. Pass it as `progress` when you wait for a job, a batch or a pipeline."""

    def __init__(self) -> None:
        try:
            self._display: Any = import_module("IPython.display")
        except ImportError:
            raise MissingExtra("IPython is not installed: `Live` works in notebooks only.") from None
        self._handle: Any = None

    def __call__(self, current: JobRecord | PipelineRecord | Sequence[JobRecord]) -> None:
        """Replace the table by one of the current records."""
        if isinstance(current, PipelineRecord):
            table = View(show_pipeline(current))
        else:
            table = View(show_jobs([current] if isinstance(current, JobRecord) else current))
        if self._handle is None:
            self._handle = self._display.display(table, display_id=True)
        else:
            self._handle.update(table)


def show_output(output: OutputRecord, load: Callable[[], bytes]) -> str:
    """Return HTML that shows an output: a 3D model, a video or an image."""
    try:
        return describe(output) if output.size > LARGEST else embed(output, load())
    except PenstockClientError as trouble:  # it may be deleted, and a cell should still show the rest
        return f"{describe(output)}<div>{escape(str(trouble))}</div>"


def describe(output: OutputRecord) -> str:
    """Return an output's file name, kind and size as HTML."""
    size = f"{output.size / 1e6:.1f} MB" if output.size >= 1e5 else f"{output.size / 1e3:.1f} kB"
    facts = [output.kind, output.content_type, size]
    facts += [f"{output.width} x {output.height}"] if output.width else []
    facts += [f"{output.duration_seconds:g} s"] if output.duration_seconds else []
    facts += [f"{output.faces:,} faces"] if output.faces else []
    return f"<div><code>{escape(output.filename)}</code>: {escape(', '.join(facts))}</div>"


def embed(output: OutputRecord, content: bytes) -> str:
    """Return HTML with the content inside. The 3D viewer runs in a sandboxed frame without network access."""
    data = base64.b64encode(content).decode()
    source = f"data:{escape(output.content_type)};base64,{data}"
    match output.kind:
        case "video":
            shown = f'<video controls loop style="max-width:100%;max-height:480px" src="{source}"></video>'
        case "image":
            shown = f'<img style="max-width:100%;max-height:480px" src="{source}">'
        case "model":
            page = PAGE.substitute(data=data, viewer=files("penstock.client").joinpath("viewer.js").read_text("utf-8"))
            frame = '<iframe sandbox="allow-scripts" style="width:100%;height:420px;border:0"'
            shown = f'{frame} srcdoc="{escape(page)}"></iframe>'
        case _:
            shown = ""
    return shown + describe(output)


def show_jobs(jobs: Sequence[JobRecord]) -> str:
    """Return an HTML table of jobs and their progress."""
    return _table("job", [_describe_job(job) for job in jobs])


def show_pipeline(pipeline: PipelineRecord) -> str:
    """Return an HTML table of a pipeline's steps and their progress, and of the whole."""
    state, progress, cost = pipeline.status, pipeline.progress, pipeline.cost
    total = _Line(name=pipeline.id, state=state, status=state, progress=progress, cost=cost)
    return _table("step", [*map(_describe_step, pipeline.steps.values()), total])


def _table(first: str, lines: "Iterable[_Line]") -> str:
    head = "".join(f"<th style='text-align:left'>{name}</th>" for name in (first, *COLUMNS))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(line.html() for line in lines)}</tbody></table>"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row of a table."""

    name: str
    model: str = ""
    state: str
    """The state, which gives the color."""
    status: str
    progress: float
    rest: str = ""
    cost: Cost | None
    troubles: Sequence[str] = ()

    def html(self) -> str:
        """Return the row."""
        color = COLORS.get(self.state, "#1565c0")
        share = round(self.progress * 100)
        bar = (
            f"<div style='width:12em;background:#ddd;border-radius:3px'><div style='width:{share}%;height:.8em;"
            f"background:{color};border-radius:3px'></div></div>"
        )
        cells = (
            f"<code>{escape(self.name)}</code>",
            escape(self.model),
            f"<span style='color:{color}'>{escape(self.status)}</span>"
            + "".join(f"<br>{escape(trouble)}" for trouble in self.troubles),
            f"{bar}{share}%{self.rest}",
            escape(format_cost(self.cost)),
        )
        return "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"


def _describe_job(job: JobRecord) -> _Line:
    return _Line(
        name=job.id,
        model=job.model,
        state=job.status,
        status=job.status if job.done else f"{job.status}: {job.phase}",
        progress=job.progress,
        rest="" if job.done or job.eta_seconds is None else f" {job.eta_seconds:.0f} s left",
        cost=job.cost,
        troubles=_troubles(job),
    )


def _describe_step(step: StepRecord) -> _Line:
    count = f" ({len(step.job_ids)} jobs)" if step.is_fan_out else ""
    return _Line(
        name=step.name,
        model=step.model,
        state=step.status,
        status=step.status + count,
        progress=step.progress,
        cost=step.jobs[0].cost if len(step.jobs) == 1 else None,
        troubles=_troubles(*step.jobs),
    )


def _troubles(*jobs: JobRecord) -> list[str]:
    return [job.error.message for job in jobs if job.error is not None]


def format_cost(cost: Cost | None) -> str:
    """Return the cost, or the maximum cost while it is not final. It is empty if unknown."""
    if cost is None:
        return ""
    if cost.final is not None:
        return f"{cost.final} {cost.currency}"
    if cost.estimated is None:
        return ""
    return f"up to {cost.estimated} {cost.currency}" if cost.estimated else "free"
