"""What a chat request costs through the gateway, beside its peers in the same run.

python -m bench.chat.chat [--quick] [--peers penstock nginx ...] [--kinds plain streamed] [--connections 1 16 64 256]
                     [--rounds 3] [--beside PROGRAM]

plain: not streamed; streamed: 64 chunks, each a packet of its own. `penstock` runs with everything on: key check,
limits on requests and tokens per minute, budget, usage record, metrics and access log (into a file). What each peer
does is in the last table. `direct` is no proxy: latency is what a peer adds to it, and its rate is the most that this
load can ask; streams are written at a pace, so their rate says little unless a peer falls behind `direct`.
`--beside` measures another version's `penstock` in the same run, under the same limits.

The upstream and the load share one core, the proxies have another. CPU is that of a proxy's whole process tree. Rounds
go from peer to peer; figures are medians of the rounds. Peers are installed into bench/.cache at the first run.
"""

import argparse
import asyncio
import contextlib
import gc
import http.client
import itertools
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from bench.chat.peers import PEERS, Door, Missing, Peer, direct, free_port, make_penstock, penstock, serving
from bench.chat.upstream import CHUNKS, STREAM_HEAD, WRITES, render
from bench.harness.processes import cpu_seconds, memory_mb

__all__ = ["STREAM_HEAD", "free_port", "make_request", "penstock", "render"]

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
KINDS = ("plain", "streamed")
QUESTION = "Say something of medium length about penstocks and the turbines that they feed. " * 4
CHUNKS_PER_SECOND = 8_000  # of all streams together: more would starve the core of upstream and load
MOST_PLAIN, MOST_STREAMED = 20_000, 200
SLOW = 10  # seconds: a cell that takes longer is measured in the first round only
PATIENCE = 90  # seconds for what is under way when the time is over
SETTLE = 0.4  # seconds in which a proxy writes what it owes: its records count as the request's cost
WAITS = ("p50_ms", "p99_ms", "whole_p50_ms")
Figures = dict[str, Any]


# -- the load


def make_request(
    path: str, key: str, kind: str, *, model: str = "bench", headers: tuple[str, ...] = (), words: int = 0
) -> bytes:
    question = QUESTION + "Please. " * words
    body = {"model": model, "messages": [{"role": "user", "content": question}], "temperature": 0.7, "user": kind}
    if kind != "plain":
        body |= {"stream": True}
    raw = json.dumps(body, separators=(",", ":")).encode()
    head = (
        f"POST {path} HTTP/1.1",
        "host: bench",
        f"authorization: Bearer {key}",
        *("content-type: application/json", "accept: application/json", "user-agent: OpenAI/Python 3.49.0"),
        *("x-stainless-lang: python", "x-stainless-retry-count: 0"),
        *headers,
        f"content-length: {len(raw)}",
    )
    return "\r\n".join((*head, "", "")).encode() + raw


class Load:
    """Requests of one kind, asked by several connections: so many, or for so long."""

    def __init__(self, variants: list[bytes], requests: int, seconds: float) -> None:
        self._variants = itertools.cycle(variants)
        self.stream = b'"stream":true' in variants[0]
        self.reads = 0
        self.latencies: list[float] = []
        self.firsts: list[float] = []  # until the first event of a stream
        self.failure = ""
        self._left = requests
        self._end = time.perf_counter() + seconds

    def take(self) -> bytes | None:
        """What is to be asked next, if anything."""
        self._left -= 1
        goes_on = self._left >= 0 and not self.failure and time.perf_counter() < self._end
        return next(self._variants) if goes_on else None


class Caller(asyncio.Protocol):
    """A connection that asks, reads the answer to its end, and asks again."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._done: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it for asking."""
        self._transport = transport
        self._place = transport.get_extra_info("peername")[:2]

    def connection_lost(self, exc: Exception | None) -> None:
        """In the middle of an answer this is a failure."""
        if self._done and not self._done.done():
            self._fail(f"it hung up: {exc}")

    async def begin(self, load: Load) -> None:
        """Ask until the load has no more; on a new connection where the other side has closed the idle one."""
        loop = asyncio.get_running_loop()
        if self._transport.is_closing():
            await loop.create_connection(lambda: self, *self._place)
        self._load, self._done = load, loop.create_future()
        self._ask()
        await self._done

    def close(self) -> None:
        """No more will be asked."""
        self._done = None
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        """A part of the answer."""
        self._load.reads += 1
        received = self._received
        received += data
        if not self._headed and not self._read_head():
            return
        if not self._first and b"data: " in data:
            self._first = time.perf_counter()
        if len(received) >= self._length if self._length else received.endswith(b"\r\n0\r\n\r\n"):
            self._finish()

    def _ask(self) -> None:
        request = self._load.take()
        if request is None:
            if self._done and not self._done.done():
                self._done.set_result(None)
            return
        self._received, self._headed, self._length, self._first = bytearray(), False, 0, 0.0
        self._asked = time.perf_counter()
        self._transport.write(request)

    def _read_head(self) -> bool:
        head, blank, _ = bytes(self._received).partition(b"\r\n\r\n")
        if blank:
            self._headed = True
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self._length = len(head) + 4 + int(length) if length else 0
        return self._headed

    def _finish(self) -> None:
        now, received, load = time.perf_counter(), self._received, self._load
        if not received.startswith(b"HTTP/1.1 200") or received.count(b" token") < CHUNKS:
            self._fail(f"a wrong answer: {bytes(received[:200])!r}")
            return
        load.latencies.append(now - self._asked)
        load.firsts.append(self._first - self._asked)
        self._ask()

    def _fail(self, reason: str) -> None:
        self._load.failure = self._load.failure or reason
        self._ask()


def make_door_requests(door: Door, kind: str) -> list[bytes]:
    """Of several lengths, as callers' requests are."""
    how = {"model": door.model, "headers": door.headers}
    return [make_request(door.path, door.key, kind, **how, words=words) for words in range(7)]


async def ask(callers: list[Caller], load: Load, seconds: float) -> None:
    asking = asyncio.gather(*(caller.begin(load) for caller in callers))
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asking, seconds + PATIENCE)
        if not load.failure:
            return
    raise Missing(load.failure or f"not finished after {seconds + PATIENCE:.0f} s")


@contextlib.asynccontextmanager
async def connected(port: int, connections: int) -> AsyncIterator[list[Caller]]:
    loop = asyncio.get_running_loop()
    callers = [(await loop.create_connection(Caller, "127.0.0.1", port))[1] for _ in range(connections)]
    try:
        yield callers
    finally:
        for caller in callers:
            caller.close()


# -- one peer, one kind, one number of connections


class Bench(NamedTuple):
    """What stays the same through a run."""

    upstream: int
    upstream_pid: int
    core: int
    folder: Path
    seconds: float


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def measure(bench: Bench, door: Door, kind: str, connections: int) -> Figures:
    """The connections are opened, and used once, before it counts."""
    most = max(MOST_PLAIN if kind == "plain" else MOST_STREAMED, connections)
    used = {
        "cpu": partial(cpu_seconds, door.pid) if door.pid else float,
        "load": lambda: time.process_time() + cpu_seconds(bench.upstream_pid),
    }
    async with connected(door.port, connections) as callers:
        await ask(callers, Load(make_door_requests(door, "plain"), connections, PATIENCE), PATIENCE)
        before = {name: read() for name, read in used.items()}
        load = Load(make_door_requests(door, kind), most, bench.seconds)
        begun = time.perf_counter()
        await ask(callers, load, bench.seconds)
        took = time.perf_counter() - begun
        busy = used["load"]() - before["load"]
        await asyncio.sleep(SETTLE if door.pid else 0)
    done = len(load.latencies)
    waits = load.firsts if load.stream else load.latencies
    return {
        "requests": done,
        "seconds": took,
        "per_second": done / took,
        "p50_ms": percentile(waits, 0.5) * 1e3,
        "p99_ms": percentile(waits, 0.99) * 1e3,
        "whole_p50_ms": percentile(load.latencies, 0.5) * 1e3,
        "reads": load.reads / done,
        "load_busy": busy / took,
        "cpu_us": (used["cpu"]() - before["cpu"]) / done * 1e6,
    }


def measure_cell(bench: Bench, door: Door, kind: str, connections: int) -> Figures:
    gc.collect()
    try:
        return uvloop.run(measure(bench, door, kind, connections))
    except (Missing, OSError) as error:
        return {"failed": str(error)}


def set_pause(bench: Bench, connections: int) -> None:
    """The more streams, the slower each: together they are as many chunks as the core can write one by one."""
    pause = max(4, round(connections / CHUNKS_PER_SECOND * 1000))
    asking = http.client.HTTPConnection("127.0.0.1", bench.upstream)
    asking.request("GET", f"/pause/{pause}")
    asking.getresponse().read()
    asking.close()


# -- the run


def await_first_answer(door: Door) -> float:
    """Seconds from the start of a peer's process to the first answer that is right."""

    async def once() -> None:
        async with connected(door.port, 1) as callers:
            await ask(callers, Load(make_door_requests(door, "plain"), 1, 30), 30)

    reason, end = "", time.perf_counter() + 30
    while time.perf_counter() < end:
        try:
            uvloop.run(once())
        except (Missing, OSError) as error:
            reason = str(error)
            time.sleep(0.01)
        else:
            return time.perf_counter() - door.begun
    raise Missing(reason)


def start(bench: Bench, stack: contextlib.ExitStack, peers: Mapping[str, Peer]) -> tuple[dict[str, Door], Figures]:
    """The peers that can be had, and what is known of each, also of those that cannot."""
    doors: dict[str, Door] = {}
    about: Figures = {}
    for name, peer in peers.items():
        about[name] = {"label": peer.label, "does": peer.does}
        try:
            peer.install()
            about[name]["version"] = peer.version()
            door = stack.enter_context(peer.start(bench.folder / name, bench.upstream, bench.core))
            about[name]["start_seconds"] = await_first_answer(door)
            time.sleep(SETTLE)
            if door.pid:
                about[name]["idle_mb"] = memory_mb(door.pid)
            doors[name] = door
        except (Missing, OSError) as error:
            about[name]["skipped"] = str(error)
            print(f"{peer.label} is skipped: {error}", file=sys.stderr)
    return doors, about


def run_rounds(options: argparse.Namespace, bench: Bench, doors: Mapping[str, Door]) -> Figures:
    """Every cell's figures of every round, with what is added to `direct` in the same round."""
    found: Figures = {kind: {str(number): {} for number in options.connections} for kind in options.kinds}
    for turn, kind, connections in itertools.product(range(options.rounds), options.kinds, options.connections):
        say(f"round {turn + 1} of {options.rounds}: {kind}, {connections} at a time")
        set_pause(bench, connections)
        cells = found[kind][str(connections)]
        base: Figures = {}
        for name, door in doors.items():
            rounds = cells.setdefault(name, [])
            if rounds and rounds[0].get("seconds", 0) > SLOW:
                continue
            cell = measure_cell(bench, door, kind, connections)
            base = base or cell
            rounds.append(cell | {f"added_{figure}": cell[figure] - base[figure] for figure in WAITS if figure in cell})
    return found


def warm_up(options: argparse.Namespace, bench: Bench, doors: Mapping[str, Door]) -> None:
    """What is compiled, loaded or fetched at first use is not a request's cost."""
    say("warming up")
    set_pause(bench, 16)
    for kind, door in itertools.product(options.kinds, doors.values()):
        measure_cell(bench._replace(seconds=0.7), door, kind, 16)


def measure_idle(door: Door) -> float:
    """CPU milliseconds that a peer takes in a second in which nobody asks it."""
    before = cpu_seconds(door.pid or 0)
    time.sleep(1)
    return (cpu_seconds(door.pid or 0) - before) * 1e3


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def take_medians(rounds: list[Figures]) -> Figures:
    good = [figures for figures in rounds if "failed" not in figures]
    if not good:
        return rounds[0]
    return {figure: statistics.median(each[figure] for each in good if figure in each) for figure in good[0]}


def run(options: argparse.Namespace, folder: Path) -> Figures:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    peers = {"direct": Peer("direct", "no proxy", direct, str), **{name: PEERS[name] for name in options.peers}}
    if options.beside:
        peers["beside"] = make_penstock("beside", PEERS["penstock"].does, program=options.beside)
    upstream, began = free_port(), time.perf_counter()
    with contextlib.ExitStack() as stack:
        command = [sys.executable, HERE / "upstream.py", str(upstream)]
        vendor = stack.enter_context(serving(command, upstream, cores[-1], folder / "upstream.log"))
        bench = Bench(upstream, vendor.pid or 0, cores[0], folder, options.seconds)
        doors, about = start(bench, stack, peers)
        warm_up(options, bench, doors)
        proxies = {name: door for name, door in doors.items() if door.pid}
        for name, door in proxies.items():
            about[name]["idle_ms"] = measure_idle(door)
        rounds = run_rounds(options, bench, doors)
        for name, door in proxies.items():
            about[name]["after_mb"] = memory_mb(door.pid or 0)
    return {
        "measured": "chat requests through each proxy",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "took_seconds": round(time.perf_counter() - began),
        "machine": describe_machine(cores),
        "options": {name: getattr(options, name) for name in ("kinds", "connections", "rounds", "seconds")},
        "peers": about,
        "medians": map_cells(rounds, take_medians),
        "rounds": rounds,
    }


def map_cells(found: Figures, change: Callable[[list[Figures]], Figures]) -> Figures:
    return {
        kind: {number: {name: change(each) for name, each in cells.items()} for number, cells in by_number.items()}
        for kind, by_number in found.items()
    }


def describe_machine(cores: list[int]) -> Figures:
    told = subprocess.check_output(["lscpu"], text=True) if shutil.which("lscpu") else ""
    names = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("Model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "architecture": platform.machine(),
        "cores": len(cores),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "proxies_on_core": cores[0],
        "load_and_upstream_on_core": cores[-1],
    }


# -- what is told


def tell(figures: Figures) -> Iterator[str]:
    machine, about = figures["machine"], figures["peers"]
    yield (
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, {figures['date']}, "
        f"{figures['took_seconds']} s, medians of {figures['options']['rounds']} rounds"
    )
    for kind, by_number in figures["medians"].items():
        for number, cells in by_number.items():
            yield from tell_cells(kind, number, cells, about)
    yield ""
    yield f"{'':26} {'start s':>8} {'idle MB':>8} {'after MB':>8} {'idle ms/s':>9}  version; what it does"
    for peer in about.values():
        if "skipped" in peer:
            yield f"{peer['label']:26} skipped: {peer['skipped']}"
        elif "idle_mb" in peer:
            sizes = (
                f"{peer['start_seconds']:8.2f} {peer['idle_mb']:8.0f} {peer['after_mb']:8.0f} {peer['idle_ms']:9.1f}"
            )
            yield f"{peer['label']:26} {sizes}  {peer['version']}; {peer['does']}"


def tell_cells(kind: str, number: str, cells: Figures, about: Figures) -> Iterator[str]:
    wait = "first event" if kind == "streamed" else "answer"
    yield ""
    yield f"{kind}, {number} connection{'s' * (number != '1')}"
    reads = "   reads" if kind == "streamed" else ""
    yield f"{'':26} {'CPU µs':>8} {'x penstock':>10} {'per s':>7}   {wait} later by p50, p99 ms{reads}"
    ours = cells.get("penstock", {}).get("cpu_us")
    for name, cell in cells.items():
        label = about[name]["label"]
        if "failed" in cell:
            yield f"{label:26} failed: {cell['failed']}"
        elif name == "direct":
            yield f"{label:26} {'':8} {'':10} {cell['per_second']:7.0f}   {tell_direct(kind, cell)}"
        else:
            ratio = f"{cell['cpu_us'] / ours:.2f}" if ours else ""
            told = f"{cell['cpu_us']:8.0f} {ratio:>10} {cell['per_second']:7.0f}"
            told += f" {cell['added_p50_ms']:12.2f} {cell['added_p99_ms']:12.2f}"
            yield f"{label:26} {told}" + (f" {cell['reads']:12.1f}" if kind == "streamed" else "")


def tell_direct(kind: str, cell: Figures) -> str:
    told = f"(itself p50 {cell['p50_ms']:.2f}, p99 {cell['p99_ms']:.2f} ms"
    if kind == "streamed":
        apart = cell["reads"] >= len(WRITES) * 0.95
        warning = "" if apart else " - CHUNKS CAME TOGETHER: streams look cheaper than they are"
        told += f"; {len(WRITES)} chunks came in {cell['reads']:.1f} reads{warning}"
    return told + f"; load's core {cell['load_busy']:.0%} busy)"


def draw(figures: Figures, path: Path) -> str:
    """The plot of CPU per request, at 64 connections if these were measured."""
    try:
        from bench.harness.plots import bars  # noqa: PLC0415  a bench without matplotlib still measures
    except ModuleNotFoundError:
        return "no plot: matplotlib is not installed (bench/requirements.lock)"
    numbers = figures["options"]["connections"]
    number = min(numbers, key=lambda one: abs(one - 64))
    titles = {"plain": "answer in one piece", "streamed": f"answer streamed in {CHUNKS} chunks"}
    panels = {
        titles[kind]: {
            figures["peers"][name]["label"]: cell["cpu_us"]
            for name, cell in by_number[str(number)].items()
            if cell.get("cpu_us") and name != "direct"
        }
        for kind, by_number in figures["medians"].items()
    }
    machine, peers, rounds = figures["machine"], figures["peers"], figures["options"]["rounds"]
    named = {peer["label"].partition(",")[0]: peer["version"] for peer in peers.values() if peer.get("version")}
    versions = [f"{label} {version}" for label, version in named.items()]
    missing = [f"{peer['label']} is skipped: {peer['skipped']}" for peer in peers.values() if "skipped" in peer]
    bars(
        path,
        panels,
        title="CPU time of a chat request through each proxy",
        subtitle=f"µs of one core, log scale, less is better; {number} connections, "
        f"median of {rounds} round{'s' * (rounds != 1)}. Under each name: what it does beside passing the request on.",
        note=f"{'; '.join((*versions, *missing))}. "
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, {figures['date'][:10]}.",
        highlight=PEERS["penstock"].label,
        about={peer["label"]: peer["does"] for peer in peers.values()},
        unit="µs",
    )
    return f"plots: {path.with_suffix('.png').name} and {path.with_suffix('.svg').name} in {path.parent.name}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", choices=tuple(PEERS), default=list(PEERS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--connections", nargs="+", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="the most that one cell may take; what is begun is finished")
    parser.add_argument("--quick", action="store_true", help="one round of 16 and 64 connections")
    parser.add_argument("--beside", help="another version's `penstock`, to be measured in the same run")
    options = parser.parse_args()
    quick = {"connections": [16, 64], "rounds": 1, "seconds": 1.0}
    usual = {"connections": [1, 16, 64, 256], "rounds": 3, "seconds": 1.5}
    for name, value in (quick if options.quick else usual).items():
        setattr(options, name, getattr(options, name) or value)
    return options


def main() -> None:
    options = parse()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        figures = run(options, Path(folder))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "chat.json").write_text(json.dumps(figures, indent=2))
    print("\n".join(tell(figures)))
    print(draw(figures, RESULTS / "chat"))


if __name__ == "__main__":
    main()
