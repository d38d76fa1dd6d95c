"""Callers' pictures: uploaded once and named by token, or fetched from a URL, and opened before they are believed."""

import asyncio
import hashlib
import io
import struct
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx
from aiohttp import web
from conftest import MODEL, Server, client_of
from PIL import Image

MEGABYTE = 1024 * 1024
LOOPBACK = '[fetch]\nallow_networks = ["127.0.0.0/8"]\n'
NEVER = {"ending": "never"}


def picture(kind: str = "PNG", width: int = 40, height: int = 30, colour: str = "red") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(buffer, kind)
    return buffer.getvalue()


def claim_size(width: int, height: int) -> bytes:
    """A PNG whose header claims a size that its few bytes would have to be blown up to."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(10 * MEGABYTE))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


async def upload(client: httpx.AsyncClient, data: bytes, name: str = "cat.png") -> httpx.Response:
    return await client.post("/api/v1/files", files={"file": (name, data)})


def stored(server: Server) -> list[Path]:
    """The callers' files on disk."""
    return [path for path in (server.gateway.settings.data / "assets" / "files").rglob("*") if path.is_file()]


def refusal(answer: httpx.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


# -- uploads


async def test_each_kind_is_taken_and_described(server):
    for kind, content_type in (("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp")):
        data = picture(kind, 6000, 20)
        answer = await upload(server.client, data, "../../odd name.gif")
        assert answer.status_code == 201
        record = answer.json()
        assert record["file_token"].startswith("file_")
        assert (record["content_type"], record["width"], record["height"]) == (content_type, 6000, 20)
        assert (record["bytes"], record["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        kept = datetime.fromisoformat(record["expires_at"]) - datetime.fromisoformat(record["created_at"])
        assert kept == timedelta(days=1)
        assert (await server.client.get(f"/api/v1/files/{record['file_token']}")).json() == record
    assert sorted(path.name for path in stored(server)) == sorted(
        hashlib.sha256(picture(kind, 6000, 20)).hexdigest() for kind in ("PNG", "JPEG", "WEBP")
    )


async def test_what_is_no_usable_picture_is_refused_and_not_kept(server):
    gif = io.BytesIO()
    Image.new("P", (30, 30)).save(gif, "GIF")
    whole = picture(width=200, height=200)
    wrong = {
        "nothing": b"",
        "a text": b"not a picture",
        "a GIF": gif.getvalue(),
        "an SVG": b"<svg xmlns='http://www.w3.org/2000/svg' width='30' height='30'/>",
        "a cut PNG": whole[: len(whole) // 2],
        "a PNG's head": whole[:8],
        "a changed PNG": whole[:60] + b"\0\0\0\0" + whole[64:],
        "a cut JPEG": picture("JPEG", 200, 200)[:400],
        "too narrow": picture(width=19),
        "too flat": picture(height=19),
        "too wide": picture(width=6001),
        "too high": picture(height=6001),
        "a bomb": claim_size(50_000, 50_000),
        "a bomb of allowed size": claim_size(6000, 6000),
    }
    for name, data in wrong.items():
        answer = await upload(server.client, data)
        assert refusal(answer) == (400, "file_unreadable", "file"), name
    assert stored(server) == []
    assert (await upload(server.client, whole)).status_code == 201


async def test_a_form_that_is_not_as_it_should_be_is_refused(server):
    client, png = server.client, picture()
    missing = (400, "missing_required_parameter", "file")
    assert refusal(await client.post("/api/v1/files", files={"picture": ("a.png", png)})) == missing
    assert refusal(await client.post("/api/v1/files", files={"file": (None, "text")})) == missing
    two = [("file", ("a.png", png)), ("file", ("b.png", png))]
    assert (await client.post("/api/v1/files", files=two)).status_code == 400
    one_more = [("file", ("a.png", png)), ("more", ("b.png", png))]
    assert (await client.post("/api/v1/files", files=one_more)).status_code == 400
    cut = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + png[:20]
    for content_type, body in (
        ("multipart/form-data", b"--x--"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"garbage without a boundary"),
        ("multipart/form-data; boundary=x", cut),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\nnameless\r\n--x--"),
        ("multipart/form-data; boundary=" + "x" * 300, b"--" + b"x" * 300 + b"--"),
    ):
        answer = await client.post("/api/v1/files", content=body, headers={"content-type": content_type})
        assert answer.status_code == 400, (content_type, body)
        assert answer.json()["error"]["type"] == "invalid_request_error"
    for content_type in ("application/json", "image/png", "application/x-www-form-urlencoded", ""):
        answer = await client.post("/api/v1/files", content=png, headers={"content-type": content_type})
        assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type"), content_type
    assert stored(server) == []


async def test_what_is_too_large_is_refused(server):
    over = await upload(server.client, picture() + bytes(20 * MEGABYTE))
    assert refusal(over)[:2] == (413, "body_too_large")
    far_over = await upload(server.client, bytes(202 * MEGABYTE))
    assert refusal(far_over)[:2] == (413, "body_too_large")
    assert stored(server) == []


async def test_equal_pictures_of_an_account_are_kept_once(server):
    data = picture()
    other = await server.sign_in("other")
    answers = await asyncio.gather(*(upload(server.client, data) for _ in range(4)))
    tokens = [answer.json()["file_token"] for answer in answers]
    assert len(set(tokens)) == 4
    assert len(stored(server)) == 1
    await upload(other, data)
    assert len(stored(server)) == 2
    for token in tokens[:-1]:
        assert (await server.client.delete(f"/api/v1/files/{token}")).status_code == 204
        assert refusal(await server.client.get(f"/api/v1/files/{token}")) == (404, "file_not_found", None)
        assert (await server.client.delete(f"/api/v1/files/{token}")).status_code == 404
    assert len(stored(server)) == 2
    last = tokens[-1]
    job = await server.submit(MODEL, script=NEVER, file={"file_token": last})
    assert job["input"]["file"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert (job["input"]["file"]["width"], job["input"]["file"]["file_token"]) == (40, last)
    assert (await server.client.delete(f"/api/v1/files/{last}")).status_code == 204
    assert len(stored(server)) == 2, "the job's own copy stays"


async def test_a_file_belongs_to_its_account(server):
    token = (await upload(server.client, picture())).json()["file_token"]
    other = await server.sign_in("other")
    path = f"/api/v1/files/{token}"
    for answer in (await other.get(path), await other.delete(path), await server.client.get("/api/v1/files/file_no")):
        assert refusal(answer)[:2] == (404, "file_not_found")
    body = {"model": MODEL, "input": [{"params": {"file": {"file_token": token}}}]}
    stolen = await other.post("/model/v1/generation", json=body)
    assert refusal(stolen) == (404, "file_not_found", "input.0.params.file.file_token")
    assert (await server.client.get(path)).status_code == 200
    reader = await server.sign_in(scopes=frozenset({"read"}))
    assert (await upload(reader, picture())).status_code == 403
    assert (await reader.delete(path)).status_code == 403
    async with client_of(server.url, None) as nobody:
        assert (await upload(nobody, picture())).status_code == 401
        assert (await nobody.get(path)).status_code == 401


async def test_a_type_that_contradicts_the_bytes_is_refused(server):
    token = (await upload(server.client, picture("JPEG"))).json()["file_token"]
    for declared, status in (("png", 400), ("webp", 400), ("jpg", 202), ("jpeg", 202), ("image", 202)):
        params = {"file": {"file_token": token, "type": declared}, "script": NEVER}
        body = {"model": MODEL, "input": [{"params": params}]}
        answer = await server.client.post("/model/v1/generation", json=body)
        assert answer.status_code == status, declared
        if status == 400:
            assert refusal(answer)[2] == "input.0.params.file.type"


# -- URLs


class Pictures:
    """A picture server whose pictures can change."""

    def __init__(self) -> None:
        self.bodies = {"/cat": picture(), "/text": b"no picture", "/jpeg": picture("JPEG")}
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if request.path == "/private":
            raise web.HTTPFound("http://10.0.0.1/cat")
        if request.path not in self.bodies:
            return web.Response(status=404)
        return web.Response(body=self.bodies[request.path], content_type="application/octet-stream")


@asynccontextmanager
async def serving(pictures: Pictures) -> AsyncGenerator[str]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", pictures.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_url_is_snapshotted_once_before_anything_is_paid(start):
    pictures = Pictures()
    server = await start(LOOPBACK)
    async with serving(pictures) as url:
        first = await server.generate(MODEL, script={}, file={"url": f"{url}/cat"})
        pictures.bodies["/cat"] = picture(colour="blue")
        second = await server.generate(MODEL, script={}, file={"url": f"{url}/cat", "type": "png"})
    assert (first["status"], second["status"]) == ("succeeded", "succeeded")
    assert pictures.asked == ["/cat", "/cat"]
    for job, colour in ((first, "red"), (second, "blue")):
        data = picture(colour=colour)
        told = (await server.client.get(f"/api/v1/jobs/{job['id']}")).json()["input"]["file"]
        assert (told["sha256"], told["bytes"]) == (hashlib.sha256(data).hexdigest(), len(data))
        assert (told["content_type"], told["width"], told["height"]) == ("image/png", 40, 30)
        assert any(path.read_bytes() == data for path in stored(server))


async def test_a_url_that_gives_no_picture_fails_the_job_unpaid(start):
    pictures = Pictures()
    server = await start(LOOPBACK)
    expected = {
        "/missing": ("file_fetch_failed", False),
        "/text": ("file_unreadable", False),
        "/private": ("url_not_allowed", False),
    }
    async with serving(pictures) as url:
        for path, (code, retryable) in expected.items():
            job = await server.generate(MODEL, script={}, file={"url": url + path})
            assert (job["status"], job["error"]["code"], job["error"]["stage"]) == ("failed", code, "fetching"), path
            assert job["error"]["retryable"] is retryable
            assert (job["charged"], job["attempts"]) == (False, [])
        job = await server.generate(MODEL, script={}, file={"url": f"{url}/jpeg", "type": "png"})
        assert (job["error"]["code"], job["error"]["stage"]) == ("file_unreadable", "fetching")
    dead = await server.generate(MODEL, script={}, file={"url": f"{url}/cat"})
    assert (dead["error"]["code"], dead["error"]["retryable"]) == ("file_fetch_failed", True)
    assert server.gateway.offers.vendors["sim"].upstream.counts()["orders"] == 0
    assert stored(server) == []


async def test_a_url_into_a_private_place_is_refused_at_once(server):
    urls = (
        *("http://127.0.0.1/cat.png", "http://10.1.2.3/cat.png", "http://[::1]/cat.png", "http://[::ffff:10.0.0.1]/"),
        *("http://169.254.169.254/latest/meta-data/", "http://2130706433/", "http://localhost/cat.png"),
        *("file:///etc/passwd", "ftp://example.com/cat.png", "http://user:pass@example.com/cat.png"),
    )
    for url in urls:
        body = {"model": MODEL, "input": [{"params": {"file": {"url": url}}}]}
        answer = await server.client.post("/model/v1/generation", json=body)
        assert refusal(answer) == (400, "url_not_allowed", "input.0.params.file.url"), url
        assert "pass" not in answer.json()["error"]["message"].replace("password", "")
    assert (await server.client.get("/api/v1/jobs")).json()["data"] == []
