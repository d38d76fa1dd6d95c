"""What the docs tell a reader to run is run, against a real server."""

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path

import msgspec
import pytest
from conftest import SIMULATOR
from openai_double import KEY, OpenAIDouble
from openai_replies import GREETING, PROMPT_TOKENS

from penstock.chat import request
from penstock.chat.replies.chunks.writer import ChunkWriter
from penstock.chat.replies.translated import TranslatedStream, render_whole
from penstock.domain.chat import Blame
from penstock.domain.money import format_usd
from penstock.errors import InvalidRequest
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Done,
    Failed,
    Order,
    Refused,
    Reply,
    Running,
    Unclear,
    VendorFolders,
)

ROOT = Path(__file__).parents[2]
HOME = "http://127.0.0.1:8787"
JAVASCRIPT = ROOT / "tests" / "javascript"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


async def run(server, folder: Path, *command: str) -> str:
    """What the command prints; it sees the server and a key as a reader would."""
    key = await server.new_key()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "PENSTOCK_BASE_URL": server.url,
        "PENSTOCK_API_KEY": key,
        "no_proxy": "*",
    }
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
async def test_the_curl_lines_of_the_readme(start, tmp_path):
    """With the simulator in the place of the engines; tests/api/jobs/test_embedded.py has those out of the box."""
    server = await start(SIMULATOR)
    lines = [block for block in blocks("README.md", "sh") if "curl" in block and "fast-chat" not in block]
    assert len(lines) == 5
    script = "\n".join(["set -euo pipefail", *lines]).replace(HOME, server.url)
    out = await run(server, tmp_path, "bash", "-c", script)
    assert "event: job.succeeded" in out
    assert '"kind":"model"' in out
    assert '"finish_reason":' in out
    assert (tmp_path / "boat.mp4").read_bytes()[4:8] == b"ftyp"


async def test_the_commands_of_the_readme(server, tmp_path):
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    [block] = [block for block in blocks("README.md", "sh") if "penstock generate" in block]
    generate, chat = block.splitlines()
    assert chat == ".venv/bin/penstock chat"
    await run(server, tmp_path, "bash", "-c", generate)
    assert (tmp_path / "cat.glb").read_bytes().startswith(b"glTF")


async def test_the_python_of_the_readme(server, tmp_path):
    by_client, plain = blocks("README.md", "python")
    await run(server, tmp_path, sys.executable, "-c", by_client)
    assert (tmp_path / "lighthouse.mp4").read_bytes()[4:8] == b"ftyp"
    out = await run(server, tmp_path, sys.executable, "-c", plain.replace(HOME, server.url))
    assert out.startswith("succeeded http://127.0.0.1:")


# -- chat: the settings of the page, with a double in the place of the vendor


async def ask_vendor(start, page: str, folder: Path, *commands: tuple[str, ...]) -> list[str]:
    """What the page's programs print, each given as the words of a command."""
    settings = blocks(page, "toml")[0]
    async with OpenAIDouble() as double:
        known = {
            "env:OPENAI_API_KEY": KEY,
            "gpt-4o-mini": "plain",
            "[[models]]": f'base_url = "{double.url}"\n[[models]]',
        }
        for there, here in known.items():
            assert there in settings
            settings = settings.replace(there, here)
        server = await start(settings)
        return [await run(server, folder, *(word.replace(HOME, server.url) for word in words)) for words in commands]


@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="needs bash and curl")
@pytest.mark.parametrize(("page", "count"), [("README.md", 1), ("docs/chat.md", 2)])
async def test_the_curl_lines_of_chat(start, tmp_path, page, count):
    lines = [block for block in blocks(page, "sh") if "/llm/" in block and "smollm2" not in block]
    assert len(lines) == count
    whole, *streamed = await ask_vendor(start, page, tmp_path, *(("bash", "-c", line) for line in lines))
    assert json.loads(whole)["choices"][0]["message"]["content"] == GREETING
    for text in streamed:
        assert text.startswith("data: {")
        assert text.endswith("data: [DONE]\n\n")


async def test_the_python_of_chat(start, tmp_path):
    (program,) = blocks("docs/chat.md", "python")
    (out,) = await ask_vendor(start, "docs/chat.md", tmp_path, (sys.executable, "-c", program))
    assert out.startswith(f"{GREETING}\n{GREETING}\n")
    assert int(out.split()[-2]) > PROMPT_TOKENS


async def test_the_javascript_of_chat(start):
    (program,) = blocks("docs/chat.md", "js")
    command = ("node", "--input-type=module", "--eval", program)
    assert await ask_vendor(start, "docs/chat.md", JAVASCRIPT, command) == [f"{GREETING}\n{GREETING}"]


@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="needs bash and curl")
async def test_the_examples_of_embeddings(start, tmp_path):
    server = await start("")
    (line,), (program,) = blocks("docs/embeddings.md", "sh"), blocks("docs/embeddings.md", "python")
    out = await run(server, tmp_path, "bash", "-c", line.replace(HOME, server.url))
    assert [len(item["embedding"]) for item in json.loads(out)["data"]] == [384, 384]
    out = await run(server, tmp_path, sys.executable, "-c", program.replace(HOME, server.url))
    found = re.fullmatch(r"384 dimensions: (0\.\d+) is closer than (-?0\.\d+)\n", out)
    assert found is not None
    assert float(found[1]) > float(found[2])


def test_json_examples_are_json():
    for page in ("docs/api.md", "docs/errors.md", "docs/simulator.md", "docs/vendors.md"):
        for block in blocks(page, "json"):
            assert isinstance(json.loads(block), dict)


async def test_the_request_bodies_of_the_docs_are_accepted(server):
    bodies = [json.loads(block) for page in ("docs/api.md", "docs/simulator.md") for block in blocks(page, "json")]
    requests = [body for body in bodies if "model" in body and "input" in body and "object" not in body]
    generations = [body for body in requests if "params" in body["input"][0] and "job_" not in json.dumps(body)]
    assert len(generations) == 2
    for body in generations:
        response = await server.client.post("/model/v1/generation", json=body)
        assert response.status_code == 202, response.text


# -- the vendors of the pages about them


def drive(flow, status: int = 200, body: object = None, headers: dict[str, str] | None = None):
    """Its call, and what it makes of a reply."""
    call = next(flow)
    try:
        flow.send(Reply(status, headers or {}, json.dumps(body).encode()))
    except StopIteration as end:
        return call, end.value
    raise AssertionError("it wants another call")


def load_example(page: str, position: int = 0) -> dict:
    """What the module holds that a block shows."""
    module: dict = {"__name__": "example"}
    exec(compile(blocks(page, "python")[position], "example.py", "exec"), module)  # noqa: S102  our own page
    return module


def make_vendor(page: str, folder: Path):
    vendor = load_example(page)["VENDOR"]
    return vendor(vendor.options_type(type="example", api_key="secret"), VendorFolders(folder, folder))


@pytest.fixture
def acme(tmp_path):
    return make_vendor("docs/howto/add-a-vendor.md", tmp_path)


@pytest.fixture
def parley(tmp_path):
    return make_vendor("docs/vendors.md", tmp_path)


ORDER = Order(
    "job_1-1",
    "video-1",
    {
        "prompt": "a boat",
        "durationSeconds": 8,
        "aspectRatio": "9:16",
        "resolution": "720p",
        "compressionQuality": "lossless",
        "personGeneration": "dont_allow",
    },
)
WARNING = "`compressionQuality` lossless is not supported by Acme and was ignored."


def test_the_example_vendor_places_orders(acme):
    assert [served.model.id for served in acme.models] == ["vendorb_video_31"]
    call, answer = drive(acme.submit(ORDER), 201, {"id": "v1", "status": "waiting"})
    assert (call.method, call.url, call.json["reference"]) == ("POST", "/v1/videos", "job_1-1")
    assert (call.json["size"], call.json["people"], call.json["quality"]) == ("720x1280", False, "high")
    assert call.headers["authorization"] == "Bearer secret"
    assert answer == Accepted("v1", {"id": "v1"}, (WARNING,))
    assert drive(acme.submit(ORDER), 429, headers={"retry-after": "3"})[1] == Refused(3.0)
    refused = drive(acme.submit(ORDER), 400, {"error": {"code": "bad", "message": "no"}})[1]
    assert isinstance(refused, Failed)
    assert refused.error.code == "upstream_rejected"
    assert refused.error.upstream == {"code": "bad", "message": "no", "id": None}
    with pytest.raises(Unclear):
        drive(acme.submit(ORDER), 500)


def test_the_example_vendor_follows_orders(acme):
    assert drive(acme.find(ORDER), 200, {"videos": []})[1] == Absent()
    listed = {"videos": [{"id": "v1", "status": "waiting"}]}
    assert drive(acme.find(ORDER), 200, listed)[1] == Accepted("v1", {"id": "v1"}, (WARNING,))
    operation = {"id": "v1"}
    assert drive(acme.poll(operation), 200, {"id": "v1", "status": "busy", "percent": 40})[1] == Running(progress=0.4)
    told = {"id": "v1", "status": "done", "url": "https://cdn.acme.example/1.mp4"}
    done = drive(acme.poll(operation), 200, told)[1]
    assert isinstance(done, Done)
    assert (done.outputs[0].download.url, done.outputs[0].download.headers) == (told["url"], {})
    blocked = drive(acme.poll(operation), 200, {"id": "v1", "status": "blocked", "error": {"message": "no"}})[1]
    assert blocked.error.code == "content_filtered"
    assert drive(acme.cancel(operation), 204)[1] is True


def test_the_example_of_a_vendors_own_model():
    served = load_example("docs/howto/add-a-vendor.md", 1)["SERVED"]
    params, problems = served.model.read(served.model.example, "params")
    assert problems == []
    assert params["seconds"] == 5
    assert (served.name, format_usd(served.price.of({"seconds": 10}))) == ("cartoon-2", "0.60")
    assert served.model.expect(params).seconds == 5
    _, (problem,) = served.model.read({"seconds": 5}, "params")
    assert (problem.loc, problem.code) == ("params.file", "missing_required_parameter")


def ask(**fields: object):
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], **fields}
    return request.read(json.dumps(body).encode())


def test_the_example_chat_vendor_asks(parley):
    call = parley.complete(ask(max_tokens=9, tools=[]), "parley-large")
    body = json.loads(msgspec.json.encode(call.json))
    turns = [{"role": "user", "content": "Hello"}]
    assert (call.method, call.url, call.headers) == ("POST", "/talk", {"authorization": "Bearer secret"})
    assert body == {"model": "parley-large", "turns": turns, "limit": 9, "stream": False, "mood": "calm"}
    with pytest.raises(InvalidRequest, match="tools"):
        parley.complete(ask(tools=[{"type": "function"}]), "parley-large")


def test_the_example_chat_vendor_is_read(parley):
    told = {"talk": "t1", "model": "parley-2", "text": "Good day", "used": {"in": 5, "out": 2}, "cut": False}
    whole, usage, _ = render_whole(
        parley.translator(ask()).whole(json.dumps(told).encode()), ask(), ChunkWriter(ask(), "id", 0)
    )
    (choice,) = json.loads(whole)["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Good day", "stop")
    assert usage is not None
    assert (usage.prompt, usage.completion) == (5, 2)
    streamed = ask(stream=True)
    stream = TranslatedStream(streamed, parley.translator(streamed), ChunkWriter(streamed, "id", 0))
    out = (
        stream.feed(
            b"".join(
                b"data: %b\n\n" % json.dumps({name: value for name, value in told.items() if name in part}).encode()
                for part in (("talk", "model"), ("text",), ("used", "cut"))
            )
        )
        + stream.end()
    )
    assert b"Good day" in out
    assert (stream.complete, stream.ended, stream.malformed) == (True, True, 0)
    assert out.endswith(b"data: [DONE]\n\n")


def test_the_example_chat_vendor_tells_faults(parley):
    refused = parley.fault(Reply(429, {"retry-after": "3"}, b'{"error": "slow down"}'))
    assert (refused.blame, refused.message, refused.retry_after) == (Blame.LIMIT, "slow down", 3.0)
    assert parley.fault(Reply(502, {}, b"<html>")).blame is Blame.VENDOR
