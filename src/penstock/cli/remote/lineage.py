"""`penstock jobs lineage`: the jobs that led to a job, and those made from its outputs, as a tree."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from penstock.cli.remote.errors import plain

if TYPE_CHECKING:
    from penstock.client import Lineage

Links = Sequence[tuple[str, str, str]]
"""Links as the nearer job, the param, and the farther job."""


def print_lineage(lineage: "Lineage") -> None:
    """Print a job, below it what it was made from and what was made from it."""
    typer.echo(_describe(lineage, lineage.job))
    parents = [(link.child, link.param, link.parent) for link in lineage.parents]
    children = [(link.parent, link.param, link.child) for link in lineage.children]
    for title, links in (("made from", parents), ("used by", children)):
        if links:
            typer.echo(title)
        for line in _draw(lineage, links, lineage.job, frozenset({lineage.job}), ""):
            typer.echo(plain(line))
    if lineage.truncated:
        typer.echo("More jobs are not shown.", err=True)


def _draw(lineage: "Lineage", links: Links, job_id: str, seen: frozenset[str], indent: str) -> Iterator[str]:
    """Yield the lines of all jobs beyond one. A job that is there twice is followed only once on each way."""
    beyond = [(param, other) for near, param, other in links if near == job_id]
    for number, (param, other) in enumerate(beyond, 1):
        corner, bar = ("└─", "   ") if number == len(beyond) else ("├─", "│  ")
        yield f"{indent}{corner} {param}: {_describe(lineage, other)}"
        if other not in seen:
            yield from _draw(lineage, links, other, seen | {other}, indent + bar)


def _describe(lineage: "Lineage", job_id: str) -> str:
    job = next((job for job in lineage.jobs if job.id == job_id), None)
    if job is None:
        return f"{job_id}  deleted"
    return f"{job.id}  {job.model}  {job.status}" + (f"  step {job.step} of {job.pipeline_id}" if job.step else "")
