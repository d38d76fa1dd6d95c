"""Signed results: every picture, film and model says by whom and how it was made, and shows whether it was changed."""

import base64
import hashlib
import io
import json
from typing import Any
from urllib.parse import urlsplit

import av
import pytest
import trimesh
from c2pa import Context, Reader
from conftest import MODEL, SIMULATOR, VIDEO, Server
from PIL import Image
from steps import order, until

SIGNED = f'{SIMULATOR}[provenance]\nresults = "signed"\n'
"""Settings by which the simulator's results are signed."""


@pytest.fixture
async def server(start) -> Server:
    return await start(SIGNED)


async def download(server: Server, output: dict[str, Any]) -> bytes:
    answer = await server.client.get(urlsplit(output["url"]).path)
    assert answer.status_code == 200, answer.text
    assert hashlib.sha256(answer.content).hexdigest() == output["sha256"]
    assert len(answer.content) == output["bytes"]
    return answer.content


def read(server: Server, content_type: str, data: bytes) -> dict[str, Any]:
    """The manifest as c2pa's own reader sees it, which trusts our root only."""
    settings = {"trust": {"trust_anchors": server.gateway.credential.anchors}}
    with Reader(content_type, io.BytesIO(data), context=Context.from_dict(settings)) as reader:
        found = json.loads(reader.json())
    assert found["validation_state"] == "Trusted", found.get("validation_status")
    return found["manifests"][found["active_manifest"]]


def facts(manifest: dict[str, Any]) -> dict[str, Any]:
    return next(each["data"] for each in manifest["assertions"] if each["label"] == "penstock.generation")


async def test_a_film_carries_a_manifest(server):
    job = await server.generate(VIDEO, prompt="a red ball", model_seed=5) if False else await server.generate(VIDEO)
    (output,) = [each for each in job["outputs"] if each["role"] == "primary"]
    assert output["provenance"] == "c2pa"
    data = await download(server, output)
    manifest = read(server, "video/mp4", data)
    found = facts(manifest)
    print(found, len(data))
    with av.open(io.BytesIO(data)) as film:
        assert sum(1 for _ in film.decode(video=0)) > 0


async def test_a_model(server):
    job = await server.generate(MODEL, script={}, model_seed=7)
    print(json.dumps(job, indent=1)[:3000])
    output = job["outputs"][0]
    data = await download(server, output)
    scene = trimesh.load(io.BytesIO(data), file_type="glb")
    print(scene.metadata)
