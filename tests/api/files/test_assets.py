"""Result bytes over HTTP: whole or in ranges, for their account's key or for whoever holds a signed link."""

import asyncio
import hashlib
import io
import re
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import av
import httpx
import pytest
import trimesh
from conftest import MODEL, VIDEO, Server, client_of


async def make(server: Server) -> dict[str, Any]:
    """The first output of a new model."""
    return (await server.generate(MODEL, script={}, model_seed=3))["outputs"][0]


def bare(url: str) -> str:
    """The path of a link, without its signature."""
    return urlsplit(url).path


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


# -- what is served


async def test_a_model_opens_and_is_what_the_record_says(server):
    job = await server.generate(MODEL, script={}, face_limit=100, model_seed=7)
    primary, preview = job["outputs"]
    assert (primary["kind"], primary["role"], primary["content_type"]) == ("model", "primary", "model/gltf-binary")
    assert (preview["kind"], preview["role"], preview["content_type"]) == ("image", "preview", "image/png")
    assert (preview["width"], preview["height"]) == (512, 512)
    assert job["seed"] == 7
    for output in (primary, preview):
        answer = await server.client.get(bare(output["url"]))
        assert answer.status_code == 200
        assert answer.headers["content-type"] == output["content_type"]
        assert answer.headers["etag"] == f'"{output["sha256"]}"'
        assert answer.headers["accept-ranges"] == "bytes"
        assert "private" in answer.headers["cache-control"]
        assert "public" not in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert int(answer.headers["content-length"]) == output["bytes"] == len(answer.content)
        assert hashlib.sha256(answer.content).hexdigest() == output["sha256"]
        assert re.search(r'filename="[a-z0-9.]+"', answer.headers["content-disposition"])
    glb = (await server.client.get(bare(primary["url"]))).content
    mesh = trimesh.load(io.BytesIO(glb), file_type="glb", force="mesh")
    assert len(mesh.faces) == primary["faces"] <= 100
    assert primary["vertices"] >= len(mesh.vertices) > 0


async def test_a_video_decodes_and_has_the_asked_size_and_length(server):
    job = await server.generate(VIDEO, script={}, durationSeconds=2, aspectRatio="9:16")
    [output] = job["outputs"]
    assert (output["kind"], output["role"], output["content_type"]) == ("video", "primary", "video/mp4")
    assert (output["width"], output["height"], output["duration_seconds"]) == (720, 1280, 2.0)
    data = (await server.client.get(bare(output["url"]))).content
    assert hashlib.sha256(data).hexdigest() == output["sha256"]
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(video=0))
        rate = container.streams.video[0].average_rate
    assert {(frame.width, frame.height) for frame in frames} == {(720, 1280)}
    assert len(frames) / rate == output["duration_seconds"]
    assert output["fps"] == rate


async def test_ranges(server):
    output = await make(server)
    path, size = bare(output["url"]), output["bytes"]
    whole = (await server.client.get(path)).content
    parts = {
        "bytes=0-0": (0, 1),
        "bytes=0-99": (0, 100),
        "bytes=100-199": (100, 200),
        "bytes=100-": (100, size),
        "bytes=-1": (size - 1, size),
        "bytes=-100": (size - 100, size),
        f"bytes=-{size * 2}": (0, size),
        f"bytes=0-{size * 2}": (0, size),
        f"bytes={size - 1}-": (size - 1, size),
        f"bytes={size - 1}-999999999999": (size - 1, size),
        "bytes= 5 - 9": (5, 10),
    }
    for asked, (begin, end) in parts.items():
        answer = await server.client.get(path, headers={"range": asked})
        assert answer.status_code == 206, asked
        assert answer.content == whole[begin:end], asked
        assert answer.headers["content-range"] == f"bytes {begin}-{end - 1}/{size}"
        assert answer.headers["content-length"] == str(end - begin)
    for asked in ("bytes=0-1", f"bytes={size}-"):
        head = await server.client.head(path, headers={"range": asked})
        assert (head.status_code, head.headers["content-length"]) == (200, str(size))
    for asked in (f"bytes={size}-", f"bytes={size}-{size + 5}", "bytes=99999999999-", "bytes=-0"):
        answer = await server.client.get(path, headers={"range": asked})
        assert code(answer) == (416, "range_not_satisfiable"), asked
        assert answer.headers["content-range"] == f"bytes */{size}"
    unread = ("bytes=0-1,5-9", "bytes=5-2", "bytes=-", "bytes=", "bytes=a-b", "items=0-5", "0-5", "bytes=1" + "0" * 30)
    for asked in unread:
        answer = await server.client.get(path, headers={"range": asked})
        assert (answer.status_code, len(answer.content)) == (200, size), asked
        assert "content-range" not in answer.headers


async def test_conditions_and_heads(server):
    output = await make(server)
    path, size, tag = bare(output["url"]), output["bytes"], f'"{output["sha256"]}"'
    first = {"range": "bytes=0-9"}
    for condition, status in ((tag, 206), ('"other"', 200), (f"W/{tag}", 200), ("Tue, 01 Jan 2030 00:00:00 GMT", 200)):
        answer = await server.client.get(path, headers=first | {"if-range": condition})
        assert answer.status_code == status, condition
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        for more in ({}, first):
            answer = await server.client.get(path, headers=more | {"if-none-match": known})
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag), known
    assert (await server.client.get(path, headers={"if-none-match": '"other"'})).status_code == 200
    head = await server.client.head(path)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(size))
    assert (head.headers["etag"], head.headers["content-type"]) == (tag, "model/gltf-binary")
    assert (await server.client.head(path, headers={"if-none-match": tag})).status_code == 304
    assert (await server.client.head(path + "x")).status_code == 404
    assert (await server.client.get(path)).status_code == 200, "the connection is still in step"


async def test_many_downloads_at_once_are_all_whole(server):
    output = await make(server)
    answers = await asyncio.gather(*(server.client.get(bare(output["url"])) for _ in range(30)))
    assert {hashlib.sha256(answer.content).hexdigest() for answer in answers} == {output["sha256"]}


# -- who may have it


async def test_a_signed_link_needs_no_key_and_cannot_be_changed(server):
    output = await make(server)
    other = await make(server)
    link = httpx.URL(output["url"])
    query = {name: values[0] for name, values in parse_qs(link.query.decode()).items()}
    expires, signature = query["expires"], query["signature"]
    assert datetime.fromisoformat(output["url_expires_at"]).timestamp() == int(expires)
    changed = signature[:-1] + ("A" if signature[-1] != "A" else "B")
    async with client_of(server.url, None) as nobody:
        answer = await nobody.get(link)
        assert hashlib.sha256(answer.content).hexdigest() == output["sha256"]
        assert (await nobody.head(link)).status_code == 200
        part = await nobody.get(link, headers={"range": "bytes=0-3"})
        assert (part.status_code, part.content) == (206, b"glTF")
        assert "signature" not in answer.headers["content-disposition"]
        refused = [
            await nobody.get(link.copy_set_param("signature", changed)),
            await nobody.get(link.copy_set_param("signature", "")),
            await nobody.get(link.copy_set_param("signature", "é" * 8)),
            await nobody.get(link.copy_set_param("expires", str(int(expires) + 1))),
            await nobody.get(link.copy_set_param("expires", "9999999999")),
            await nobody.get(link.copy_set_param("expires", "-1")),
            await nobody.get(link.copy_set_param("expires", "²")),
            await nobody.get(link.copy_remove_param("expires")),
            await nobody.get(bare(other["url"]), params=query),
        ]
        assert [code(answer) for answer in refused] == [(401, "invalid_api_key")] * len(refused)
        assert {answer.headers["www-authenticate"] for answer in refused} == {"Bearer"}
        assert code(await nobody.get(link.copy_remove_param("signature"))) == (401, "missing_api_key")
        assert code(await nobody.get(bare(output["url"]))) == (401, "missing_api_key")
        assert (await nobody.get(link.copy_set_param("signature", "x" * 500))).status_code in (400, 401)


async def test_a_link_ends_with_its_own_time(start):
    server = await start(overrides={"jobs.link_seconds": 1})
    output = await make(server)
    async with client_of(server.url, None) as nobody, asyncio.timeout(60):
        while (answer := await nobody.get(output["url"])).status_code == 200:  # noqa: ASYNC110  until the time is over
            await asyncio.sleep(0.05)
    assert code(answer) == (410, "asset_expired")
    assert (await server.client.get(bare(output["url"]))).status_code == 200


async def test_a_link_never_outlives_its_job(server):
    body = {"model": MODEL, "input": [{"params": {"script": {}}}], "retention": 600}
    job = await server.finish((await server.client.post("/model/v1/generation", json=body)).json()["id"])
    for output in job["outputs"]:
        assert datetime.fromisoformat(output["url_expires_at"]) <= datetime.fromisoformat(job["expires_at"])


async def test_a_key_opens_only_its_own_account(server):
    output = await make(server)
    path = bare(output["url"])
    other = await server.sign_in("other")
    assert code(await other.get(path)) == (404, "asset_not_found")
    assert (await other.head(path)).status_code == 404
    assert (await (await server.sign_in()).get(path)).status_code == 200
    chatter = await server.sign_in(scopes=frozenset({"chat"}))
    assert code(await chatter.get(path)) == (403, "scope_not_allowed")
    assert (await other.get(output["url"])).status_code == 200, "a link is for anyone"


@pytest.mark.parametrize("signed", [True, False])
async def test_no_name_but_its_own_leads_to_a_file(server, signed):
    output = await make(server)
    link = httpx.URL(output["url"]) if signed else httpx.URL(server.url + bare(output["url"]))
    folder, _, name = link.path.rpartition("/")
    names = (
        *(
            "other.glb",
            name.upper(),
            name + "%00",
            name + "%20",
            "..%2f" + name,
            "%2e%2e%2f%2e%2e%2fpenstock.db",
            "%2f",
        ),
        *("..%5c..%5cpenstock.db", "....//" + name, "%2e", "%2e%2e", "x" * 300, "%ff", "preview1.png"),
    )
    for wrong in names:
        raw = f"{folder}/{wrong}".encode() + (b"?" + link.query if link.query else b"")
        answer = await server.client.get(link.copy_with(raw_path=raw))
        assert answer.status_code in (400, 404), wrong
        assert answer.json()["error"]["request_id"] == answer.headers["x-request-id"]
    assert (await server.client.get(link)).status_code == 200
