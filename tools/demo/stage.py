"""The machines of the demonstration: PostgreSQL, a gateway, two workers, a vendor and a TLS address."""

import asyncio
import json
import os
import signal
import ssl
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "crash"))

import aiohttp
import trustme
from aiohttp import web
from fleet_machines import Machine
from money_fleet import PENSTOCK
from ports import free_port
from postgres import PostgresServer

PRICE: Final = "0.05"
HOP_BY_HOP: Final = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
SETTINGS: Final = f"""
[server]
log_format = "json"
log_level = "warning"
[fetch]
allow_networks = ["127.0.0.0/8"]
[vendors.sim]
type = "sim"
base_url = "{{vendor}}"
poll_seconds = 0.2
[[prices]]
model = "sim_text_to_image"
price = {{{{per_job = "{PRICE}"}}}}
[[prices]]
model = "sim_text_to_video"
price = {{{{per_job = "{PRICE}"}}}}
"""


class Stage:
    """Everything that runs, started together and killed together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.postgres = PostgresServer()
        self._config = folder / "penstock.toml"
        self.gateway = self._make("gateway", "serve")
        self.workers = [self._make(f"worker-{number}", "worker") for number in (1, 2)]
        self._vendor: asyncio.subprocess.Process | None = None
        self._tls: web.AppRunner | None = None
        self.vendor_url = ""
        self.tls_host = ""
        self.authority = folder / "authority.pem"

    def _make(self, name: str, verb: str) -> Machine:
        return Machine(name, (verb, "--config", str(self._config)), self.folder / name, free_port(), self.environ())

    def environ(self) -> dict[str, str]:
        """Return the settings that all machines share, without those of whoever runs this."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        return own | {
            "PENSTOCK_DATABASE_URL": self.postgres.url(),
            "PENSTOCK_ASSETS_URL": (self.folder / "assets").as_uri(),
            "PENSTOCK_JOBS_RUN": "workers",
        }

    async def start(self) -> None:
        """Start the vendor and the store, then the gateway, then the workers."""
        self._vendor = await asyncio.create_subprocess_exec(
            sys.executable,
            Path(__file__).with_name("vendor.py"),
            self.folder / "vendor",
            stdout=asyncio.subprocess.PIPE,
        )
        said = self._vendor.stdout and await self._vendor.stdout.readline()
        self.vendor_url = (said or b"").decode().strip()
        self._config.write_text(SETTINGS.format(vendor=self.vendor_url))
        await asyncio.to_thread(self.postgres.start)
        await self.gateway.start()
        await asyncio.gather(*(worker.start() for worker in self.workers), self._open_tls())

    async def _open_tls(self) -> None:
        """Open an https address before the gateway, for clients that take no other."""
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.authority)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("localhost").configure_cert(context)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._tls = web.AppRunner(app, access_log=None)
        await self._tls.setup()
        await web.TCPSite(self._tls, "127.0.0.1", 0, ssl_context=context).start()
        self.tls_host = f"localhost:{self._tls.addresses[0][1]}"

    async def _pass_on(self, request: web.Request) -> web.Response:
        headers = {**request.headers, "x-forwarded-proto": "https"}
        async with aiohttp.request(
            request.method, f"{self.gateway.url}{request.path_qs}", headers=headers, data=await request.read()
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
            return web.Response(status=answer.status, headers=kept, body=await answer.read())

    async def command(self, *words: str) -> str:
        """Run a command of the operator's and return what it prints; raise if it fails."""
        process = await asyncio.create_subprocess_exec(
            PENSTOCK, *words, "--data", self.folder / "operator", "--config", self._config,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=self.environ(),
        )  # fmt: skip
        output, problem = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"penstock {' '.join(words)}: {output.decode()}{problem.decode()}")
        return output.decode()

    async def make_key(self, account: str, *options: str) -> str:
        """Return a new API key of an account."""
        return json.loads(await self.command("key", "create", "--account", account, "--json", *options))["key"]

    async def kill_store(self) -> None:
        """Crash PostgreSQL, and start it again two seconds later."""
        await asyncio.to_thread(self.postgres.stop, signal.SIGQUIT)
        await asyncio.sleep(2)
        await asyncio.to_thread(self.postgres.start)

    async def vendor_book(self) -> dict[str, int]:
        """Return the vendor's own count of orders, jobs and duplicates."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.vendor_url}/books") as answer:
            return await answer.json()

    async def end(self) -> None:
        """Leave nothing behind."""
        if self._tls is not None:
            await self._tls.cleanup()
        for machine in (self.gateway, *self.workers):
            await machine.kill()
        if self._vendor is not None and self._vendor.returncode is None:
            self._vendor.kill()
            await self._vendor.wait()
        await asyncio.to_thread(self.postgres.remove)

    def log_tail(self) -> dict[str, Any]:
        """Return the last lines of each machine's log, for a failure."""
        logs = (machine.log for machine in (self.gateway, *self.workers))
        return {log.stem: log.read_text()[-1500:] for log in logs if log.exists()}
