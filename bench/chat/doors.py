"""Measure what a chat request costs at each door of the gateway, beside chat completions in the same run.

python -m bench.chat.doors [--quick] [--peers penstock tensorzero litellm] [--routes chat-openai ...]
                           [--kinds plain paced burst] [--rounds 12]

A route is a door and the dialect of the vendor behind it. plain: not streamed. paced: 64 chunks, each a packet of its
own. burst: 64 chunks as fast as the vendor writes them, so that several come in one read.

One gateway serves all routes, with everything on, for a key with a budget and limits. Its vendors are one process that
speaks every dialect. The routes are asked in turn, in small portions. Cost is the CPU time of a proxy's whole process
tree. Each portion is compared with the portion of `chat-openai` of the same round, and of these ratios the median
counts, with the quarter and the three-quarter mark beside it: what else runs on the machine slows both alike.
"""

import argparse
import contextlib
import http.client
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvloop

from bench.chat.chat import QUESTION, SETTLE, Load, ask, connected, say
from bench.chat.peers import (
    LIMITS,
    PEERS,
    PENSTOCK_PROGRAM,
    Door,
    Missing,
    free_port,
    litellm,
    penstock_door,
    serving,
    tensorzero,
)
from bench.harness import tables
from bench.harness.processes import cpu_seconds

BASE: Final = "chat-openai"
KINDS: Final = {"plain": 200, "paced": 48, "burst": 96}
"""Requests of a portion: less than a second of a gateway's time."""
PAUSES: Final = {"plain": 4, "paced": 4, "burst": 0}
"""Milliseconds between the chunks of a stream."""
CONNECTIONS: Final = 16
PATIENCE: Final = 60
FIRST_SECONDS: Final = 10
"""Time in which a route must answer rightly once its proxy listens."""
SLOW: Final = 8
"""The share of a portion that a slow peer is asked: one in so many."""


# -- the routes


class Route(NamedTuple):
    """A door and the dialect of a vendor."""

    door: str
    vendor: str

    @property
    def is_passed(self) -> bool:
        """Return whether the reply is in the caller's dialect already."""
        return self in PASSED


ROUTES: Final = {
    f"{door}-{vendor}": Route(door, vendor)
    for door in ("chat", "messages", "responses")
    for vendor in ("openai", "anthropic", "responses")
}
PASSED: Final = (Route("chat", "openai"), Route("messages", "anthropic"), Route("responses", "responses"))
PATHS: Final = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
HEADERS: Final = {"messages": ("anthropic-version: 2023-06-01",)}


def make_body(door: str, model: str, kind: str, words: int) -> dict[str, Any]:
    """Return a request in the dialect of a door."""
    question = QUESTION + "Please. " * words
    turns = [{"role": "user", "content": question}]
    rest: dict[str, Any] = {"temperature": 0.7} | ({} if kind == "plain" else {"stream": True})
    match door:
        case "messages":
            return {"model": model, "max_tokens": 1024, "messages": turns, "metadata": {"user_id": kind}, **rest}
        case "responses":
            return {"model": model, "max_output_tokens": 1024, "input": turns, "store": False, "user": kind, **rest}
        case _:
            return {"model": model, "max_tokens": 1024, "messages": turns, "user": kind, **rest}


def make_request(door: Door, name: str, kind: str, words: int) -> bytes:
    """Return a request as it goes over the wire."""
    raw = json.dumps(make_body(name, door.model, kind, words), separators=(",", ":")).encode()
    head = (
        f"POST {door.path} HTTP/1.1",
        "host: bench",
        f"authorization: Bearer {door.key}",
        *("content-type: application/json", "accept: application/json", "user-agent: bench"),
        *("x-stainless-lang: python", "x-stainless-retry-count: 0"),
        *HEADERS.get(name, ()),
        f"content-length: {len(raw)}",
    )
    return "\r\n".join((*head, "", "")).encode() + raw


# -- the gateway and its peers

PENSTOCK_VENDORS: Final = {
    "openai": 'type = "openai_compatible"\nbase_url = "http://127.0.0.1:{upstream}/v1"',
    "anthropic": 'type = "anthropic"\nbase_url = "http://127.0.0.1:{upstream}"',
    "responses": 'type = "openai_compatible"\nbase_url = "http://127.0.0.1:{upstream}/v1"\nresponses = true',
}
PENSTOCK_MODEL: Final = """
[vendors.{vendor}]
api_key = "sk-bench"
{options}
[[models]]
id = "{vendor}"
kind = "chat"
vendor = "{vendor}"
price = {{{{input_per_million = "0.15", output_per_million = "0.60"}}}}
"""
LITELLM_MODEL: Final = """
  - model_name: {vendor}
    litellm_params:
      model: {vendor}/bench
      api_base: http://127.0.0.1:{{upstream}}{base}
      api_key: sk-bench
"""
LITELLM_REST: Final = """
general_settings:
  master_key: {key}
litellm_settings:
  telemetry: false
  set_verbose: false
"""
TENSORZERO_CONFIG: Final = """
[gateway]
observability.enabled = false
disable_pseudonymous_usage_analytics = true
[models.openai]
routing = ["up"]
[models.openai.providers.up]
type = "openai"
model_name = "bench"
api_base = "http://127.0.0.1:{upstream}/v1/"
api_key_location = "env::BENCH_UPSTREAM_KEY"
[models.anthropic]
routing = ["up"]
[models.anthropic.providers.up]
type = "anthropic"
model_name = "bench"
api_base = "http://127.0.0.1:{upstream}/v1/"
api_key_location = "env::BENCH_UPSTREAM_KEY"
"""


@dataclass(frozen=True)
class DoorPeer:
    """A proxy, the routes that it can serve, and a divisor of its portions."""

    routes: Sequence[str]
    share: int = 1


DOOR_PEERS: Final = {
    "penstock": DoorPeer(tuple(ROUTES)),
    "tensorzero": DoorPeer(("chat-openai", "chat-anthropic")),
    "litellm": DoorPeer(("chat-openai", "messages-anthropic", "messages-openai"), SLOW),
}


def start(peer: str, routes: Sequence[str], folder: Path, upstream: int, core: int) -> AbstractContextManager[Door]:
    """Start a proxy with a model for each vendor, which is named as its vendor."""
    match peer:
        case "penstock":
            vendors = {ROUTES[name].vendor for name in routes}
            models = (PENSTOCK_MODEL.format(vendor=name, options=PENSTOCK_VENDORS[name]) for name in sorted(vendors))
            config = "".join(models)
            return penstock_door(folder, upstream, core, program=PENSTOCK_PROGRAM, limits=LIMITS, config=config)
        case "litellm":
            bases = {"openai": "/v1", "anthropic": ""}
            models = (LITELLM_MODEL.format(vendor=name, base=base) for name, base in bases.items())
            return litellm(folder, upstream, core, config=f"model_list:{''.join(models)}{LITELLM_REST}")
        case _:
            return tensorzero(folder, upstream, core, config=TENSORZERO_CONFIG)


def find_door(peer: str, door: Door, route: Route) -> Door:
    """Return where a route of a started proxy is asked."""
    if peer == "tensorzero":
        return replace(door, model=f"tensorzero::model_name::{route.vendor}")
    return replace(door, path=PATHS[route.door], model=route.vendor)


# -- the load


class Cell(NamedTuple):
    """A route of a started proxy."""

    peer: str
    route: str
    door: Door


def set_pause(upstream: int, milliseconds: int) -> None:
    """Set the pace of the streams that begin from now on."""
    asking = http.client.HTTPConnection("127.0.0.1", upstream)
    asking.request("GET", f"/pause/{milliseconds}")
    asking.getresponse().read()
    asking.close()


def ask_portion(cell: Cell, kind: str, requests: int) -> float:
    """Ask some requests, and return the CPU seconds that each took, with what the proxy wrote after them."""
    door, pid = cell.door, cell.door.pid or 0
    variants = [make_request(door, ROUTES[cell.route].door, kind, words) for words in range(7)]

    async def run() -> None:
        async with connected(door.port, CONNECTIONS) as callers:
            await ask(callers, Load(variants, requests, PATIENCE), PATIENCE)

    before = cpu_seconds(pid)
    uvloop.run(run())
    time.sleep(SETTLE)
    return (cpu_seconds(pid) - before) / requests


def await_first(cell: Cell) -> None:
    """Wait until a route answers as it should."""
    end = time.monotonic() + FIRST_SECONDS
    while True:
        try:
            for kind in KINDS:
                ask_portion(cell, kind, CONNECTIONS)
        except (Missing, OSError) as error:
            if time.monotonic() > end:
                raise Missing(str(error)) from error
            time.sleep(0.5)
        else:
            return


# -- the run

Costs = dict[tuple[str, str, str], list[float]]


def measure(options: argparse.Namespace, upstream: int, cells: Sequence[Cell]) -> Costs:
    """Return the costs of each kind, peer and route, a figure for each round; fewer rounds if the time is over."""
    taken: Costs = {}
    end = time.monotonic() + options.minutes * 60
    for turn in range(options.rounds + 1):
        if turn > 1 and time.monotonic() > end:
            say("the time is over")
            break
        say("warming up" if not turn else f"round {turn} of {options.rounds}")
        found = measure_round(options.kinds, upstream, cells)
        if turn:
            for place, cost in found.items():
                taken.setdefault(place, []).append(cost)
    return taken


def measure_round(kinds: Sequence[str], upstream: int, cells: Sequence[Cell]) -> dict[tuple[str, str, str], float]:
    """Return the cost of each kind, peer and route."""
    found: dict[tuple[str, str, str], float] = {}
    for kind in kinds:
        set_pause(upstream, PAUSES[kind])
        for cell in cells:
            requests = max(CONNECTIONS, KINDS[kind] // DOOR_PEERS[cell.peer].share)
            found[kind, cell.peer, cell.route] = ask_portion(cell, kind, requests)
    return found


@contextlib.contextmanager
def started(options: argparse.Namespace, folder: Path) -> Iterator[tuple[int, list[Cell], dict[str, str]]]:
    """Yield the vendor's port, the routes that answer, and why others do not."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    skipped: dict[str, str] = {}
    cells: list[Cell] = []
    with contextlib.ExitStack() as stack:
        upstream = free_port()
        command = [sys.executable, "-m", "bench.chat.dialects", str(upstream)]
        stack.enter_context(serving(command, upstream, cores[-1], folder / "upstream.log"))
        for peer in options.peers:
            routes = [name for name in DOOR_PEERS[peer].routes if name in options.routes]
            try:
                PEERS[peer].install()
                door = stack.enter_context(start(peer, routes, folder / peer, upstream, cores[0]))
            except (Missing, OSError) as error:
                skipped[peer] = str(error)
                continue
            for name in routes:
                cell = Cell(peer, name, find_door(peer, door, ROUTES[name]))
                try:
                    await_first(cell)
                    cells.append(cell)
                except Missing as error:
                    skipped[f"{peer} {name}"] = str(error)
        yield upstream, cells, skipped
    os.sched_setaffinity(0, cores)


def summarise(taken: Costs) -> list[dict[str, Any]]:
    """Return a row for each kind, peer and route."""
    rows: list[dict[str, Any]] = []
    for (kind, peer, route), costs in taken.items():
        row: dict[str, Any] = {"kind": kind, "peer": peer, "route": route, "cpu_us": statistics.median(costs) * 1e6}
        own = taken.get((kind, peer, BASE))
        ours = taken.get((kind, "penstock", BASE))
        if own:
            row["ratio"], row["low"], row["high"] = compare(costs, own)
        if ours:
            row["penstock_ratio"] = compare(costs, ours)[0]
        rows.append(row | {"rounds_us": [cost * 1e6 for cost in costs]})
    return rows


def compare(costs: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of the ratios of each round, and their quartiles."""
    ratios = [cost / other for cost, other in zip(costs, base, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return middle, low, high


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table for each kind of request."""
    for kind in dict.fromkeys(row["kind"] for row in rows):
        table = [
            {
                "": PEERS[row["peer"]].label,
                "door": ROUTES[row["route"]].door,
                "vendor": ROUTES[row["route"]].vendor,
                "reply is": "passed on" if ROUTES[row["route"]].is_passed else "translated",
                "CPU µs": row["cpu_us"],
                "x its chat-openai": row.get("ratio"),
                "quartiles": f"{row['low']:.2f} - {row['high']:.2f}" if "low" in row else None,
                "x Penstock's": row.get("penstock_ratio"),
            }
            for row in rows
            if row["kind"] == kind
        ]
        tables.show(f"{kind}, {CONNECTIONS} connections", table)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", choices=tuple(DOOR_PEERS), default=list(DOOR_PEERS))
    parser.add_argument("--routes", nargs="+", choices=tuple(ROUTES), default=list(ROUTES))
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS), default=list(KINDS))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--minutes", type=float, default=30, help="no round begins later")
    parser.add_argument("--quick", action="store_true", help="four rounds")
    options = parser.parse_args()
    options.rounds = options.rounds or (4 if options.quick else 12)
    return options


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as folder, started(options, Path(folder)) as (upstream, cells, skipped):
        taken = measure(options, upstream, cells)
    rows = summarise(taken)
    show(rows)
    for name, reason in skipped.items():
        print(f"{name} is skipped: {reason}")
    versions = {peer: PEERS[peer].version() for peer in options.peers if peer not in skipped}
    tables.save("doors", {"rounds": options.rounds, "versions": versions, "skipped": skipped, "rows": rows})


if __name__ == "__main__":
    main()
