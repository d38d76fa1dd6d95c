"""HTML of jobs and outputs for notebooks. It is self-contained, holds no key and sends no request."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from importlib.resources import files
from string import Template
from typing import Any, Final

from penstock.client.errors import MissingExtra, PenstockClientError
from penstock.client.records import JobRecord, OutputRecord

LARGEST: Final = 32 << 20
"""Maximum bytes shown in a notebook. Larger outputs are only described."""
COLORS: Final = {"succeeded": "#2e7d32", "failed": "#c62828", "expired": "#c62828", "canceled": "#757575"}
COLUMNS: Final = ("job", "model", "status", "progress", "cost")
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
    """Live table of jobs in a notebook. Pass it as `progress` when you wait for a job or a batch."""

    def __init__(self) -> None:
        try:
            self._display: Any = import_module("IPython.display")
        except ImportError:
            raise MissingExtra("IPython is not installed: `Live` works in notebooks only.") from None
        self._handle: Any = None

    def __call__(self, jobs: JobRecord | Sequence[JobRecord]) -> None:
        """Replace the table by one of the current records."""
        table = View(show_jobs([jobs] if isinstance(jobs, JobRecord) else jobs))
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
    head = "".join(f"<th style='text-align:left'>{name}</th>" for name in COLUMNS)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, jobs))}</tbody></table>"


def _row(job: JobRecord) -> str:
    color = COLORS.get(job.status, "#1565c0")
    share = round(job.progress * 100)
    bar = (
        f"<div style='width:12em;background:#ddd;border-radius:3px'><div style='width:{share}%;height:.8em;"
        f"background:{color};border-radius:3px'></div></div>"
    )
    status = escape(job.status if job.done else f"{job.status}: {job.phase}")
    eta = "" if job.done or job.eta_seconds is None else f" {job.eta_seconds:.0f} s left"
    trouble = "" if job.error is None else f"<br>{escape(job.error.message)}"
    cells = (
        f"<code>{escape(job.id)}</code>",
        escape(job.model),
        f"<span style='color:{color}'>{status}</span>{trouble}",
        f"{bar}{share}%{eta}",
        escape(format_cost(job)),
    )
    return "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"


def format_cost(job: JobRecord) -> str:
    """Return the cost, or the maximum cost of an unfinished job. It is empty if unknown."""
    if job.cost is None:
        return ""
    if job.cost.final is not None:
        return f"{job.cost.final} {job.cost.currency}"
    return "" if job.cost.estimated is None else f"up to {job.cost.estimated} {job.cost.currency}"
