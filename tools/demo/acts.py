"""The acts of the demonstration. Each adds its receipts."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from rich.console import Console
from stage import PRICE, Stage

ROOT: Final = Path(__file__).parents[2]
FOX: Final = ROOT / "docs" / "examples" / "red-fox.json"
PYTHON_CLIENTS: Final = ("openai", "anthropic", "replicate", "fal", "mcp")
NODE_CLIENTS: Final = ("openai", "replicate", "fal", "ai-sdk")
AT_ONCE: Final = 3
CLIENT_SECONDS: Final = 120.0
CROWD: Final = 60
IN_FRONT: Final = 24
"""Requests of the crowd that are under way at once."""
BUDGET: Final = "1.00"
COVERED: Final = 20
"""Jobs of that price that the budget covers."""
PAID_JOBS: Final = 20
"""Paid jobs that run while the machines die."""
AWAY: Final = (httpx.TransportError,)


@dataclass(slots=True)
class Receipts:
    """Statements, whether each is true, and the figure behind it."""

    lines: list[tuple[str, bool, str]] = field(default_factory=list[tuple[str, bool, str]])
    jobs: list[str] = field(default_factory=list[str])
    """Every job that was accepted for the account `demo`."""
    film: Path | None = None
    picture: Path | None = None

    def add(self, name: str, figure: str, *, is_true: bool) -> None:
        """Add one statement."""
        self.lines.append((name, is_true, figure))

    @property
    def are_true(self) -> bool:
        """Return whether there are receipts and none is false."""
        return bool(self.lines) and all(is_true for _, is_true, _ in self.lines)


# -- nine clients


async def call_clients(stage: Stage, key: str, receipts: Receipts, out: Console) -> None:
    """Let each official client do its work, with the one line changed that it needs."""
    places = asyncio.Semaphore(AT_ONCE)
    wanted = [*((sys.executable, Path(__file__).with_name("clients.py"), name) for name in PYTHON_CLIENTS)]
    wanted += [("node", ROOT / "tests" / "javascript" / "demo_clients.mjs", name) for name in NODE_CLIENTS]
    environ = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()}
    environ |= {
        "GATEWAY": stage.gateway.url,
        "KEY": key,
        "SECURE_HOST": stage.tls_host,
        "SSL_CERT_FILE": str(stage.authority),
        "NODE_NO_WARNINGS": "1",
        "AI_SDK_LOG_WARNINGS": "false",
    }

    async def call(words: tuple[Any, ...]) -> bool:
        async with places:
            process = await asyncio.create_subprocess_exec(
                *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environ
            )
            try:
                output, problem = await asyncio.wait_for(process.communicate(), CLIENT_SECONDS)
            except TimeoutError:
                process.kill()
                output, problem = b"", b"no answer in time"
        return _tell(words[2], output.decode(), problem.decode(), out)

    done = await asyncio.gather(*(call(words) for words in wanted))
    receipts.add("clients served unchanged", f"{sum(done)} of {len(done)}", is_true=all(done))


def _tell(name: str, output: str, problem: str, out: Console) -> bool:
    with suppress(ValueError, IndexError):
        said = json.loads(output.strip().splitlines()[-1])
        out.print(f"  [green]✓[/] {said['client']:<22} {said['did']:<44} [dim]{said['changed']}[/]", soft_wrap=True)
        return True
    out.print(f"  [red]✗[/] {name}: {problem[-600:] or output[-600:]}")
    return False


# -- a pipeline on dying machines


async def make_fox(stage: Stage, http: httpx.AsyncClient, receipts: Receipts, out: Console) -> None:
    """Run the pipeline and paid jobs, and meanwhile kill both workers and the store."""
    paid = await asyncio.gather(*(_order_paid(http, number) for number in range(PAID_JOBS)))
    plan = {name: value for name, value in json.loads(FOX.read_text()).items() if name != "description"}
    begun = await _send(http, "POST", "/api/v1/pipelines", json=plan, headers={"idempotency-key": "demo-fox"})
    killing = asyncio.create_task(_kill(stage, out))
    record = await _follow(http, f"/api/v1/pipelines/{begun['id']}")
    jobs = [await _follow(http, f"/api/v1/jobs/{job_id}") for job_id in paid]
    await killing
    receipts.jobs += [*paid, *(job_id for step in record["steps"] for job_id in step["job_ids"])]
    steps = {step["name"]: step["jobs"][0] for step in record["steps"]} if record["status"] == "succeeded" else {}
    receipts.add("pipeline finished", record["status"], is_true=record["status"] == "succeeded")
    ends = Counter(job["status"] for job in jobs)
    receipts.add("paid jobs finished", f"{ends['succeeded']} of {PAID_JOBS}", is_true=ends["succeeded"] == PAID_JOBS)
    for name, job in steps.items():
        output = job["outputs"][0]
        kept = stage.folder / f"fox-{name}.{output['url'].partition('?')[0].rpartition('.')[2]}"
        kept.write_bytes((await http.get(output["url"])).content)
        out.print(f"  [green]✓[/] {name:<8} {output['content_type']:<18} {kept.stat().st_size / 1e6:6.2f} MB")
        receipts.film = kept if name == "film" else receipts.film
        receipts.picture = kept if name == "picture" else receipts.picture


async def _order_paid(http: httpx.AsyncClient, number: int) -> str:
    params = {"prompt": f"boat {number}", "script": {"latency": 4}}
    body = {"model": "sim_text_to_video", "input": [{"params": params}]}
    headers = {"idempotency-key": f"demo-paid-{number}"}
    return (await _send(http, "POST", "/model/v1/generation", json=body, headers=headers))["id"]


async def _kill(stage: Stage, out: Console) -> None:
    """Kill -9 one worker, then the store, then the other worker; start each again."""
    for moment, what in ((1.5, stage.workers[0]), (1.5, None), (2.0, stage.workers[1])):
        await asyncio.sleep(moment)
        if what is None:
            out.print("  [red]kill[/] PostgreSQL, away for two seconds")
            await stage.kill_store()
        else:
            out.print(f"  [red]kill -9[/] {what.name}")
            await what.kill()
            await what.start(wait=False)
    await asyncio.gather(*(worker.await_ready() for worker in stage.workers))


async def _follow(http: httpx.AsyncClient, path: str) -> dict[str, Any]:
    """Return the record once it is done, whatever is away meanwhile."""
    while True:
        record = await _send(http, "GET", path)
        if record["done"]:
            return record
        await asyncio.sleep(0.3)


async def _send(http: httpx.AsyncClient, method: str, path: str, **options: Any) -> dict[str, Any]:
    """Send a request as a careful client does: again while the server cannot answer."""
    while True:
        with suppress(*AWAY):
            answer = await http.request(method, path, **options)
            if answer.status_code < 300:
                return answer.json()
            if answer.status_code not in (409, 429, 503):
                raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        await asyncio.sleep(0.3)


# -- a crowd against one dollar

Ask = Callable[[httpx.AsyncClient, str], Awaitable[httpx.Response]]


def _ask_native(http: httpx.AsyncClient, prompt: str) -> Awaitable[httpx.Response]:
    return http.post(
        "/model/v1/generation", json={"model": "sim_text_to_image", "input": [{"params": {"prompt": prompt}}]}
    )


def _ask_openai(http: httpx.AsyncClient, prompt: str) -> Awaitable[httpx.Response]:
    return http.post("/v1/images/generations", json={"model": "sim_text_to_image", "prompt": prompt})


def _ask_replicate(http: httpx.AsyncClient, prompt: str) -> Awaitable[httpx.Response]:
    return http.post("/replicate/v1/models/penstock/sim_text_to_image/predictions", json={"input": {"prompt": prompt}})


def _ask_fal(http: httpx.AsyncClient, prompt: str) -> Awaitable[httpx.Response]:
    return http.post("/fal/queue/penstock/sim_text_to_image", json={"prompt": prompt})


DIALECTS: Final[Mapping[str, Ask]] = {
    "native": _ask_native,
    "OpenAI": _ask_openai,
    "Replicate": _ask_replicate,
    "fal": _ask_fal,
}


async def ask_crowd(stage: Stage, receipts: Receipts, out: Console) -> None:
    """Let many ask at once for more than one dollar's worth, and see that exactly one dollar is spent."""
    key = await stage.make_key("crowd", "--budget", BUDGET)
    headers = {"authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=stage.gateway.url, timeout=120, headers=headers) as http:
        names = [list(DIALECTS)[number % len(DIALECTS)] for number in range(CROWD)]
        places = asyncio.Semaphore(IN_FRONT)

        async def ask(number: int, name: str) -> httpx.Response:
            async with places:
                return await DIALECTS[name](http, f"picture {number}")

        answers = await asyncio.gather(*(ask(number, name) for number, name in enumerate(names)))
        taken = Counter(name for name, answer in zip(names, answers, strict=True) if answer.is_success)
        refused = Counter(answer.status_code for answer in answers if not answer.is_success)
        page = await _send(http, "GET", "/api/v1/jobs?limit=100")
        jobs = [await _follow(http, f"/api/v1/jobs/{job['id']}") for job in page["data"]]
    said = ", ".join(f"{name} {taken[name]}" for name in DIALECTS)
    out.print(f"  {CROWD} asked for {PRICE} USD each; served: {said}; refused: {refused[402]} with 402", soft_wrap=True)
    spent = sum(int(job["cost"]["final"].replace(".", "")) for job in jobs if job["charged"])
    scale = 10 ** len(jobs[0]["cost"]["final"].partition(".")[2]) if jobs else 1
    is_exact = len(jobs) == COVERED and refused == {402: CROWD - COVERED} and spent == scale
    receipts.add("one dollar spent by the crowd", f"{spent / scale:.2f} USD by {len(jobs)} jobs", is_true=is_exact)


# -- origin


async def check_origin(stage: Stage, http: httpx.AsyncClient, receipts: Receipts, out: Console) -> None:
    """Verify results, then change one byte of each and verify again."""
    for kept in (receipts.picture, receipts.film):
        if kept is None:
            continue
        whole = await _verify(http, kept.read_bytes(), kept.name)
        changed = bytearray(kept.read_bytes())
        changed[len(changed) // 2] ^= 1
        forged = await _verify(http, bytes(changed), kept.name)
        out.print(f"  {kept.name}: {whole['verdict']}; with one bit changed: {forged['verdict']}")
        is_true = whole["verdict"] == "signed_here" and forged["verdict"] == "tampered"
        receipts.add(f"origin of {kept.name}", f"{whole['verdict']}, then {forged['verdict']}", is_true=is_true)
    del stage


async def _verify(http: httpx.AsyncClient, data: bytes, name: str) -> dict[str, Any]:
    answer = await http.post("/api/v1/verify", files={"file": (name, data)})
    return answer.json()


# -- the books


async def read_books(stage: Stage, http: httpx.AsyncClient, receipts: Receipts) -> None:
    """Compare our jobs, the vendor's own book and the ledger."""
    vendor = await stage.vendor_book()
    lost = [job_id for job_id in receipts.jobs if (await http.get(f"/api/v1/jobs/{job_id}")).status_code != 200]
    receipts.add("lost", f"{len(lost)} of {len(receipts.jobs)} jobs", is_true=not lost)
    receipts.add(
        "paid twice",
        f"{vendor['duplicates']} of {vendor['orders']} orders at the vendor",
        is_true=not vendor["duplicates"],
    )
    checked = await stage.command("ledger", "check")
    receipts.add("books", checked.strip().splitlines()[-1], is_true=True)
