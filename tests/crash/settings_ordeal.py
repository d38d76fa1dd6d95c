"""Settings change under load: gateways and workers on PostgreSQL, and half of the changes invalid.

Counts failed requests, measures how soon each process uses a new version, restarts processes, restores a version, and
searches the store, its dump and every log for secrets.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))  # run as a script

import httpx
from ports import free_port
from postgres import BINARIES, PostgresServer

ADMIN_KEY, MASTER_KEY = "ordeal-administrator", bytes(range(100, 132)).hex()
SECRET = "sk-ordeal-secret"
MODELS = ("from-file", "at-run-time")
REPLY = {
    "id": "reply",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


class Vendor(BaseHTTPRequestHandler):
    """A chat vendor that answers everyone who has a key."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        has_key = SECRET in self.headers.get("authorization", "")
        body = json.dumps(REPLY if has_key else {"error": {"message": "no key"}}).encode()
        self.send_response(200 if has_key else 401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@dataclass
class Report:
    """What was seen."""

    requests: int = 0
    failures: list[str] = field(default_factory=list)
    changes: int = 0
    refused: int = 0
    followed: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Ordeal:
    """Processes on one store, clients, and an administrator."""

    def __init__(self, folder: Path, gateways: int, workers: int, changes: int, seed: int) -> None:
        self.folder, self.changes, self.dice = folder, changes, random.Random(seed)  # noqa: S311  seeded dice
        self.kinds = ["serve"] * gateways + ["worker"] * workers
        self.ports = [free_port() for _ in self.kinds]
        self.processes: list[subprocess.Popen[bytes]] = []
        self.report = Report()
        self.at_rest = False
        self.key = ""

    @property
    def gateways(self) -> list[str]:
        return [self.url(at) for at, kind in enumerate(self.kinds) if kind == "serve"]

    def url(self, at: int) -> str:
        return f"http://127.0.0.1:{self.ports[at]}"

    async def run(self, database: str, vendor: str) -> Report:
        self._configure(database, vendor)
        for at in range(len(self.kinds)):
            self.processes.append(self._start(at))
        try:
            async with httpx.AsyncClient(timeout=60, headers={"authorization": f"Bearer {ADMIN_KEY}"}) as admin:
                await self._await_all(admin, 0)
                await self._make_key(admin)
                await self._change_under_load(admin, vendor)
                await self._restore_and_restart(admin)
        finally:
            for process in self.processes:
                process.send_signal(signal.SIGTERM)
            for process in self.processes:
                process.wait(60)
        return self.report

    def _configure(self, database: str, vendor: str) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "penstock.toml").write_text(
            f'database_url = "{database}"\n[server]\nadmin_key = "{ADMIN_KEY}"\n[jobs]\nrun = "workers"\n'
            f'[fetch]\nallow_networks = ["127.0.0.0/8"]\n[sealing]\nmaster_key = "{MASTER_KEY}"\n'
            f'[vendors.acme]\ntype = "openai_compatible"\nbase_url = "{vendor}"\napi_key = "{SECRET}-of-the-file"\n'
            '[[models]]\nid = "from-file"\nvendor = "acme"\nkind = "chat"\n'
        )

    def _start(self, at: int) -> subprocess.Popen[bytes]:
        data = self.folder / f"data-{at}"
        words = [sys.executable, "-m", "penstock", self.kinds[at], "--port", str(self.ports[at])]
        words += ["--data", str(data), "--config", str(self.folder / "penstock.toml")]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        environ["PENSTOCK_ASSETS_URL"] = (self.folder / "assets").as_uri()
        with (self.folder / f"log-{at}.txt").open("ab") as log:
            return subprocess.Popen(words, stdout=log, stderr=log, env=environ)  # noqa: S603

    async def _await_all(self, admin: httpx.AsyncClient, version: int) -> None:
        await asyncio.gather(*(self._await_version(admin, at, version) for at in range(len(self.kinds))))

    async def _await_version(self, admin: httpx.AsyncClient, at: int, version: int) -> float:
        """Return when a process used this version."""
        for _ in range(6000):
            try:
                found = (await admin.get(f"{self.url(at)}/readyz")).json()
                if found.get("settings_version") == version:
                    return time.monotonic()
            except (httpx.HTTPError, ValueError):
                pass
            await asyncio.sleep(0.02)
        raise AssertionError(f"process {at} never used version {version}")

    async def _make_key(self, admin: httpx.AsyncClient) -> None:
        body = {"account": "ordeal"}
        await admin.post(f"{self.gateways[0]}/admin/v1/accounts", json={"name": "ordeal"})
        made = await admin.post(f"{self.gateways[0]}/admin/v1/keys", json=body)
        self.key = made.json()["key"]

    async def _change_under_load(self, admin: httpx.AsyncClient, vendor: str) -> None:
        first = {
            "vendors": {"late": self._vendor(vendor, 0)},
            "models": {"at-run-time": {"vendor": "late", "kind": "chat"}},
        }
        made = await admin.patch(f"{self.gateways[0]}/admin/v1/settings", json={"base_version": 0, **first})
        if made.status_code != 200:
            raise AssertionError(made.text)
        await self._await_all(admin, 1)
        clients = [asyncio.create_task(self._ask(number)) for number in range(12)]
        version = 1
        for number in range(1, self.changes + 1):
            version = await self._change(admin, vendor, number, version)
        self.at_rest = True
        await asyncio.gather(*clients)

    def _vendor(self, vendor: str, number: int) -> dict[str, Any]:
        return {
            "type": "openai_compatible",
            "base_url": vendor,
            "api_key": f"{SECRET}-{number}",
            "max_concurrent": 1000 + number,
        }

    async def _change(self, admin: httpx.AsyncClient, vendor: str, number: int, version: int) -> int:
        """Make one change at any gateway. Every second is invalid."""
        table, model = self._vendor(vendor, number), {"vendor": "late", "kind": "chat"}
        if number % 2:
            wrong: list[dict[str, Any]] = [
                {"vendors": {"late": {**table, "api_kee": "x"}}},
                {"vendors": {"late": None}},
                {"models": {"at-run-time": {**model, "vendor": "nobody"}}},
                {"vendors": {"acme": table}},
                {"vendors": {"late": {**table, "base_url": "http://169.254.169.254"}}},
                {"vendors": {"late": table}, "base_version": version - 1},
            ]
            body = self.dice.choice(wrong)
        else:
            body = {"vendors": {"late": table}, "models": {"at-run-time": model, f"other-{number % 7}": model}}
        where = self.dice.choice(self.gateways)
        found = await admin.patch(f"{where}/admin/v1/settings", json={"base_version": version, **body})
        self.report.changes += 1
        if number % 2:
            self.report.refused += 1
            if found.status_code not in (400, 409) or SECRET in found.text:
                self.report.problems.append(f"an invalid change was answered {found.status_code}: {found.text[:200]}")
            return version
        if found.status_code != 200 or SECRET in found.text:
            self.report.problems.append(f"a valid change was answered {found.status_code}: {found.text[:200]}")
            return version
        begun = time.monotonic()
        seen = await asyncio.gather(*(self._await_version(admin, at, version + 1) for at in range(len(self.kinds))))
        self.report.followed += [each - begun for each in seen]
        return version + 1

    async def _ask(self, number: int) -> None:
        async with httpx.AsyncClient(timeout=60, headers={"authorization": f"Bearer {self.key}"}) as client:
            while not self.at_rest:
                model, where = self.dice.choice(MODELS), self.dice.choice(self.gateways)
                body = {"model": model, "messages": [{"role": "user", "content": f"Question {number}"}]}
                answer = await client.post(f"{where}/llm/chat/completions", json=body)
                self.report.requests += 1
                if answer.status_code != 200:
                    self.report.failures.append(f"{model}: {answer.status_code} {answer.text[:200]}")

    async def _restore_and_restart(self, admin: httpx.AsyncClient) -> None:
        where = self.gateways[-1]
        newest = (await admin.get(f"{where}/admin/v1/settings")).json()["version"]
        wanted = self.dice.randint(1, max(1, newest - 1))
        answer = await admin.post(f"{where}/admin/v1/settings/versions/{wanted}/restore", json={"base_version": newest})
        if answer.status_code != 200:
            self.report.problems.append(f"restoring was answered {answer.status_code}: {answer.text[:200]}")
            return
        await self._await_all(admin, newest + 1)
        before, after = [
            (await admin.get(f"{where}/admin/v1/settings/versions/{each}")).json() for each in (wanted, newest + 1)
        ]
        if any(before[part] != after[part] for part in ("vendors", "models")):
            self.report.problems.append("the restored version differs")
        for at, process in enumerate(self.processes):
            process.kill()
            process.wait(60)
            self.processes[at] = self._start(at)
        await self._await_all(admin, newest + 1)
        async with httpx.AsyncClient(timeout=60, headers={"authorization": f"Bearer {self.key}"}) as client:
            for url in self.gateways:
                body = {"model": "at-run-time", "messages": [{"role": "user", "content": "Still there?"}]}
                answer = await client.post(f"{url}/llm/chat/completions", json=body)
                if answer.status_code != 200:
                    self.report.problems.append(f"after the restart: {answer.status_code} {answer.text[:200]}")


def find_secrets(folder: Path, dump: bytes, key: str) -> list[str]:
    """Return where a secret is in clear: the dump of the store, and all files but the settings' own."""
    words = [word.encode() for word in (SECRET, MASTER_KEY, ADMIN_KEY, key)]
    found = ["the dump of the store"] if any(word in dump for word in words) else []
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "penstock.toml"]
    return found + [str(path.relative_to(folder)) for path in files if any(word in path.read_bytes() for word in words)]


def run(gateways: int, workers: int, changes: int, seed: int) -> Report:
    """Run the ordeal on a PostgreSQL of its own."""
    port = free_port()
    vendor = ThreadingHTTPServer(("127.0.0.1", port), Vendor)
    Thread(target=vendor.serve_forever, daemon=True).start()
    server = PostgresServer()
    server.start()
    try:
        with TemporaryDirectory(prefix="penstock-settings-") as name, server.database() as url:
            ordeal = Ordeal(Path(name), gateways, workers, changes, seed)
            report = asyncio.run(ordeal.run(url, f"http://127.0.0.1:{port}/v1"))
            dump = subprocess.run((BINARIES / "pg_dump", url), check=True, capture_output=True).stdout  # noqa: S603
            report.problems += [
                f"a secret is in clear in {place}" for place in find_secrets(Path(name), dump, ordeal.key)
            ]
            return report
    finally:
        server.remove()
        vendor.shutdown()
        vendor.server_close()


def describe(report: Report) -> dict[str, Any]:
    """Return the figures."""
    times = sorted(report.followed)
    return {
        "requests": report.requests,
        "failed": len(report.failures),
        "changes": report.changes,
        "invalid": report.refused,
        "followed_seconds": {"p50": round(times[len(times) // 2], 3), "max": round(times[-1], 3)},
        "problems": [*report.problems[:10], *report.failures[:5]],
    }


def main() -> None:
    """Run it by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("gateways", 3), ("workers", 2), ("changes", 200), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    report = run(asked.gateways, asked.workers, asked.changes, asked.seed)
    found = describe(report)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    sys.exit(1 if found["problems"] or found["failed"] or found["followed_seconds"]["max"] > 2 else 0)


if __name__ == "__main__":
    main()
