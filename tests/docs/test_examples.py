"""What the docs tell a reader to run is run, against a real server."""

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from penstock.contract import Absent, Accepted, Done, Failed, Order, Refused, Reply, Running, Unclear

ROOT = Path(__file__).parents[2]
HOME = "http://127.0.0.1:8787"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


async def run(server, folder: Path, *command: str) -> str:
    """What the command prints; it sees the server and a key as a reader would."""
    key = await server.new_key()
    environment = {"PATH": os.environ["PATH"], "PENSTOCK_API_KEY": key, "no_proxy": "*"}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


def test_the_readme_has_the_two_commands_of_the_project():
    commands = blocks("README.md", "sh")
    assert commands[0] == "make run\n"
    assert commands[1] == "make test\n"


@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="needs bash and curl")
async def test_the_curl_lines_of_the_readme(server, tmp_path):
    lines = [block for block in blocks("README.md", "sh") if "curl" in block]
    assert len(lines) == 4
    script = "\n".join(["set -euo pipefail", *lines]).replace(HOME, server.url)
    out = await run(server, tmp_path, "bash", "-c", script)
    assert '"status":"queued"' in out
    assert "event: job.succeeded" in out
    assert (tmp_path / "boat.mp4").read_bytes()[4:8] == b"ftyp"


async def test_the_python_of_the_readme(server, tmp_path):
    (program,) = blocks("README.md", "python")
    out = await run(server, tmp_path, sys.executable, "-c", program.replace(HOME, server.url))
    assert out.startswith("succeeded http://127.0.0.1:")


def test_json_examples_are_json():
    for page in ("docs/api.md", "docs/errors.md", "docs/simulator.md"):
        for block in blocks(page, "json"):
            assert isinstance(json.loads(block), dict)


async def test_the_request_bodies_of_the_docs_are_accepted(server):
    bodies = [json.loads(block) for page in ("docs/api.md", "docs/simulator.md") for block in blocks(page, "json")]
    requests = [body for body in bodies if "model" in body and "input" in body and "object" not in body]
    assert len(requests) == 2
    for body in requests:
        response = await server.client.post("/model/v1/generation", json=body)
        assert response.status_code == 202, response.text


# -- the vendor of docs/vendors.md


def drive(flow, status: int = 200, body: object = None, headers: dict[str, str] | None = None):
    """Its call, and what it makes of a reply."""
    call = next(flow)
    try:
        flow.send(Reply(status, headers or {}, json.dumps(body).encode()))
    except StopIteration as end:
        return call, end.value
    raise AssertionError("it wants another call")


@pytest.fixture
def acme(tmp_path):
    (source,) = blocks("docs/vendors.md", "python")
    module: dict = {"__name__": "acme"}
    exec(compile(source, "acme.py", "exec"), module)  # noqa: S102  our own page
    vendor = module["VENDOR"]
    return vendor(vendor.options_type(type="acme", api_key="secret"), tmp_path)


ORDER = Order("job_1-1", "acme-large", {"prompt": "a boat", "durationSeconds": 8})


def test_the_example_vendor_places_orders(acme):
    assert acme.serves("vendorb_video_31")
    call, answer = drive(acme.submit(ORDER), 200, {"id": "t1"})
    assert (call.method, call.url, call.json["ref"]) == ("POST", "/tasks", "job_1-1")
    assert call.headers["authorization"] == "Bearer secret"
    assert answer == Accepted("t1", {"id": "t1"})
    assert drive(acme.submit(ORDER), 429, headers={"retry-after": "3"})[1] == Refused(3.0)
    refused = drive(acme.submit(ORDER), 400, {"error": {"code": "bad", "message": "no", "id": None}})[1]
    assert isinstance(refused, Failed)
    assert refused.error.code == "upstream_rejected"
    with pytest.raises(Unclear):
        drive(acme.submit(ORDER), 500)


def test_the_example_vendor_follows_orders(acme):
    assert drive(acme.find(ORDER), 200, {"tasks": []})[1] == Absent()
    assert drive(acme.find(ORDER), 200, {"tasks": [{"id": "t1"}]})[1] == Accepted("t1", {"id": "t1"})
    assert drive(acme.poll({"id": "t1"}), 200, {"status": "busy", "percent": 40})[1] == Running(progress=0.4)
    done = drive(acme.poll({"id": "t1"}), 200, {"status": "done", "url": "https://cdn.acme.example/1.mp4"})[1]
    assert isinstance(done, Done)
    assert done.outputs[0].download.url == "https://cdn.acme.example/1.mp4"
    blocked = drive(acme.poll({"id": "t1"}), 200, {"status": "blocked", "error": {"message": "no"}})[1]
    assert blocked.error.code == "content_filtered"
    assert drive(acme.cancel({"id": "t1"}), 204)[1] is True
