"""Measure how long a healthy webhook waits beside receivers that hang.

python -m bench.tenants.webhooks [--scenarios alone host accounts own] [--seconds 30] [--per-second 2]

Each scenario has a server of its own on SQLite. A healthy account orders jobs at a steady pace, and its webhook
receives `job.queued` of each. Of every second message the first attempt is answered with 500, so it is retried once.

alone     nothing hangs
host      another webhook of the account hangs on the same host and port, under another path
accounts  50 receivers hang, on ports of their own: 25 of each of two other accounts
own       50 receivers of the healthy account itself hang, on ports of their own

Of 50, two thirds accept a connection and never answer. The rest never accept one: their queue of connections is full.
`first` is from the event to the first attempt, `retry` from the first attempt to the second: 5 to 6 s are planned.
"""

import argparse
import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import aiohttp
from aiohttp import web

from bench.harness import tables
from bench.jobs.jobs import wait_ready

PENSTOCK = Path(sys.executable).with_name("penstock")
DEAD = 50
MAX_REGISTERED = 19
"""An account may have 20 webhooks. The other receivers are named by jobs themselves."""
RETRY_SECONDS = 9.0
"""How long a retry is waited for after the last job, beyond what it takes to hang once."""
JOB = {"model": "sim_text_to_video", "input": [{"params": {"prompt": "bench", "script": {"latency": 3600}}}]}
SCENARIOS = ("alone", "host", "accounts", "own")


@dataclass
class Healthy:
    """A receiver that notes when each message came; under `/hang` it never answers."""

    first: dict[str, float] = field(default_factory=dict[str, float])
    delays: list[float] = field(default_factory=list[float])
    retries: dict[str, float] = field(default_factory=dict[str, float])
    hung: int = 0
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self, request: web.BaseRequest) -> web.Response:
        """Answer 500 to the first attempt of every second message."""
        now, body = time.time(), json.loads(await request.read())
        if request.path == "/hang":
            self.hung += 1
            await self.closing.wait()
            return web.Response()
        name = body["id"]
        if name in self.first:
            self.retries.setdefault(name, now - self.first[name])
            return web.Response()
        self.first[name] = now
        self.delays.append(now - datetime.fromisoformat(body["created_at"]).timestamp())
        return web.Response(status=500 if len(self.first) % 2 else 200)


@contextlib.asynccontextmanager
async def healthy() -> AsyncGenerator[tuple[Healthy, str]]:
    """Serve the healthy receiver."""
    receiver = Healthy()
    runner = web.ServerRunner(web.Server(receiver.receive), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield receiver, f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        receiver.closing.set()
        await runner.cleanup()


@contextlib.contextmanager
def dead(number: int) -> Generator[list[str]]:
    """Open ports that hang: two thirds accept and are silent, the others do not even accept."""
    with contextlib.ExitStack() as stack:
        urls: list[str] = []
        for which in range(number):
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            listener.listen(0 if which % 3 == 2 else 4096)
            address = listener.getsockname()
            for _ in range(4 if which % 3 == 2 else 0):  # more than the queue takes
                filler = stack.enter_context(socket.socket())
                filler.settimeout(0)
                filler.connect_ex(address)
            urls.append(f"http://127.0.0.1:{address[1]}/dead")
        yield urls


@contextlib.asynccontextmanager
async def serving(accounts: Sequence[str]) -> AsyncGenerator[tuple[str, dict[str, str]]]:
    """Start a server; its address and a key of each account."""
    with tempfile.TemporaryDirectory() as data, socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        listener.close()
        keys = {name: _create_key(name, data) for name in accounts}
        environ = os.environ | {
            "PENSTOCK_JOBS_MAX_WAITING": "1000000",
            "PENSTOCK_JOBS_MAX_WAITING_TOTAL": "1000000",
            "PENSTOCK_SERVER_LOG_LEVEL": "error",
        }
        settings = Path(data) / "bench.toml"
        settings.write_text('[vendors.sim]\ntype = "sim"\n[fetch]\nallow_networks = ["127.0.0.0/8"]\n')
        command = [PENSTOCK, "serve", "--port", str(port), "--data", data, "--config", settings]
        server = await asyncio.to_thread(subprocess.Popen, command, env=environ, stdout=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"
            await wait_ready(url, server)
            yield url, keys
        finally:
            server.terminate()
            await asyncio.to_thread(server.wait, 60)


def _create_key(account: str, data: str) -> str:
    command = [PENSTOCK, "key", "create", "--account", account, "--json", "--data", data]
    return json.loads(subprocess.check_output(command))["key"]


class Account:
    """One account's requests."""

    def __init__(self, session: aiohttp.ClientSession, url: str, key: str) -> None:
        self._session = session
        self._url = url
        self._headers = {"authorization": f"Bearer {key}"}
        self._own: list[str] = []

    async def register(self, urls: Sequence[str]) -> None:
        """Make webhooks, as many as an account may have; jobs bring the others along."""
        for url in urls[:MAX_REGISTERED]:
            await self._post("/api/v1/webhooks", {"url": url, "events": ["job.queued"]})
        self._own = list(urls[MAX_REGISTERED:])

    async def order(self, number: int) -> None:
        """Order one job."""
        own = {"webhook": {"url": self._own[number % len(self._own)], "events": ["job.queued"]}} if self._own else {}
        await self._post("/model/v1/generation", JOB | own)

    async def _post(self, path: str, body: object) -> None:
        async with self._session.post(self._url + path, json=body, headers=self._headers) as response:
            if response.status >= 300:
                raise SystemExit(f"{path}: {response.status} {await response.text()}")


async def measure(scenario: str, seconds: float, per_second: float) -> dict[str, float | str]:
    """Run one scenario."""
    names = ["good", "slow-one", "slow-two"]
    with dead(DEAD if scenario in ("accounts", "own") else 0) as urls:
        async with healthy() as (receiver, good), serving(names) as (url, keys), aiohttp.ClientSession() as session:
            accounts = {name: Account(session, url, key) for name, key in keys.items()}
            theirs = {"good": [f"{good}/hook"]}
            if scenario == "host":
                theirs["good"].append(f"{good}/hang")
            elif scenario == "own":
                theirs["good"] += urls
            elif scenario == "accounts":
                theirs |= {"slow-one": urls[: DEAD // 2], "slow-two": urls[DEAD // 2 :]}
            for name, hooks in theirs.items():
                await accounts[name].register(hooks)
            for number in range(int(seconds * per_second)):
                begun = time.monotonic()
                for name in theirs:
                    await accounts[name].order(number)
                await asyncio.sleep(max(0.0, 1 / per_second - (time.monotonic() - begun)))
            await _wait_for_retries(receiver)
    orders = int(seconds * per_second)
    return {"scenario": scenario, "jobs": orders, **_figures("first", receiver.delays, orders)} | _figures(
        "retry", list(receiver.retries.values()), (len(receiver.first) + 1) // 2
    )


async def _wait_for_retries(receiver: Healthy) -> None:
    give_up_at = time.monotonic() + 15 + RETRY_SECONDS
    while time.monotonic() < give_up_at and len(receiver.retries) < (len(receiver.first) + 1) // 2:  # noqa: ASYNC110  counted elsewhere
        await asyncio.sleep(0.1)


def _figures(name: str, seconds: list[float], expected: int) -> dict[str, float | str]:
    if len(seconds) < 2:
        return {f"{name} p50 s": "none", f"{name} p99 s": "none", f"{name} missing": expected - len(seconds)}
    return {
        f"{name} p50 s": round(statistics.median(seconds), 3),
        f"{name} p99 s": round(statistics.quantiles(seconds, n=100, method="inclusive")[98], 3),
        f"{name} missing": expected - len(seconds),
    }


def main() -> None:
    """Measure the scenarios one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--per-second", type=float, default=2)
    arguments = parser.parse_args()
    rows: list[dict[str, float | str]] = []
    for each in arguments.scenarios:
        rows.append(asyncio.run(measure(each, arguments.seconds, arguments.per_second)))
        print(rows[-1], flush=True)
    tables.show("a healthy webhook beside receivers that hang", rows)
    tables.RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"machine": tables.machine(), "rows": rows}, indent=2)
    (tables.RESULTS / "webhooks.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
