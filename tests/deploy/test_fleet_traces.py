"""What deploy/ starts, without containers: a gateway and a worker, each a process of its own, in one trace."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import yaml
from conftest import VIDEO
from known_names import DEPLOY
from otlp_receiver import OtlpReceiver
from plain import NO_TLS

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SERVICES = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


@contextmanager
def running(service: str, environ: dict[str, str], folder: Path) -> Generator[subprocess.Popen[str]]:
    """A service of the compose file, on any free port, with this in place of what containers would have."""
    ours = SERVICES[service]
    told = {name: value for name, value in ours["environment"].items() if "$" not in value and "AWS" not in name}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK_", "OTEL_"))}
    command = [sys.executable, "-m", "penstock", ours["command"][0], "--port", "0", "--data", str(folder)]
    process = subprocess.Popen(  # noqa: S603
        command, env=inherited | told | environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=300)


async def _address(process: subprocess.Popen[str], folder: Path) -> tuple[str, str]:
    """Where a gateway serves, and the key that it made and put away."""
    assert process.stdout is not None
    text = ""
    async with asyncio.timeout(300):
        while not (found := re.search(r"serves on (\S+)[\s\S]*?first API key is in", text)):
            text += await asyncio.to_thread(process.stdout.readline)
    return found[1], (folder / "first-key").read_text().strip()


async def test_a_job_is_one_trace_through_both(postgres_url, tmp_path):
    with OtlpReceiver() as collector, ExitStack() as stack:
        environ = {
            "PENSTOCK_CONFIG": str(DEPLOY / "config.toml"),
            "PENSTOCK_DATABASE_URL": postgres_url,
            "PENSTOCK_ASSETS_URL": (tmp_path / "assets").as_uri(),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        gateway = stack.enter_context(running("gateway-1", environ, tmp_path / "gateway"))
        url, key = await _address(gateway, tmp_path / "gateway")
        stack.enter_context(running("worker-1", environ, tmp_path / "worker"))
        headers = {"authorization": f"Bearer {key}", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        async with httpx.AsyncClient(
            base_url=url, headers=headers, timeout=300, trust_env=False, verify=NO_TLS
        ) as client:
            body = {"model": VIDEO, "input": [{"params": {"script": {"latency": 0.05}}}]}
            job = (await client.post("/model/v1/generation", json=body)).json()
            while not (done := (await client.get(f"/api/v1/jobs/{job['id']}", params={"wait": 40})).json())["done"]:
                pass
        assert done["status"] == "succeeded", done
        request = await collector.find("POST /model/v1/generation")
        work = await collector.find(f"generate_content {VIDEO}")
        submit = await collector.find("submit sim")
    assert request.trace == work.trace == submit.trace == TRACE
    assert (request.parent, work.parent, submit.parent) == ("00f067aa0ba902b7", request.id, work.id)
    assert request.resource["service.name"] == "penstock-gateway"
    assert work.resource["service.name"] == submit.resource["service.name"] == "penstock-worker"
