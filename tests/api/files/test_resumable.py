"""Uploads in several requests over raw HTTP: offsets, cuts, limits, expiry, and who may continue them."""

import asyncio
import base64
import hashlib
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import small_media
from conftest import Server
from steps import refused
from test_files import stored

from penstock.clocks import Clocks
from penstock.storage.open_uploads import OpenUpload, UploadFolder

TUS = {"tus-resumable": "1.0.0"}
BODY = {**TUS, "content-type": "application/offset+octet-stream"}
FILES = "/api/v1/files/tus"


def metadata(**pairs: str) -> str:
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in pairs.items())


async def begin(client: httpx.AsyncClient, length: int, **pairs: str) -> str:
    headers = {**TUS, "upload-length": str(length), "upload-metadata": metadata(**pairs)}
    answer = await client.post(FILES, headers=headers)
    assert answer.status_code == 201, answer.text
    assert answer.headers["upload-offset"] == "0"
    return urlsplit(answer.headers["location"]).path


async def send(client: httpx.AsyncClient, path: str, offset: int, data: bytes) -> httpx.Response:
    return await client.patch(path, headers={**BODY, "upload-offset": str(offset)}, content=data)


async def offset_of(client: httpx.AsyncClient, path: str) -> int:
    answer = await client.head(path, headers=TUS)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    return int(answer.headers["upload-offset"])


def parts(server: Server) -> list[Path]:
    return list((server.gateway.settings.data / "assets" / "uploads").rglob("*.part"))


async def test_what_is_supported_is_told_without_a_key(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as anyone:
        answer = await anyone.options(FILES)
    assert (answer.status_code, answer.headers["tus-version"]) == (204, "1.0.0")
    assert answer.headers["tus-extension"] == "creation,termination,expiration"
    assert int(answer.headers["tus-max-size"]) == 200 << 20


async def test_bytes_in_pieces_become_a_file(server: Server) -> None:
    data, client = small_media.film(), server.client
    path = await begin(client, len(data), filename="a clip.mp4", filetype="video/mp4")
    half = len(data) // 2
    answer = await send(client, path, 0, data[:half])
    assert (answer.status_code, answer.headers["upload-offset"]) == (204, str(half))
    assert "x-penstock-file-token" not in answer.headers
    record = (await client.get(path)).json()
    assert (record["offset"], record["bytes"], record["done"]) == (half, len(data), False)
    assert await offset_of(client, path) == half
    answer = await send(client, path, half, data[half:])
    token = answer.headers["x-penstock-file-token"]
    file = (await client.get(f"/api/v1/files/{token}")).json()
    assert (file["name"], file["kind"], file["sha256"]) == ("a clip.mp4", "video", hashlib.sha256(data).hexdigest())
    record = (await client.get(path)).json()
    assert (record["done"], record["file_token"], record["name"]) == (True, token, "a clip.mp4")
    head = await client.head(path, headers=TUS)
    assert (head.headers["x-penstock-file-token"], head.headers["upload-offset"]) == (token, str(len(data)))
    assert (await send(client, path, len(data), b"")).headers["x-penstock-file-token"] == token
    assert parts(server) == []
    assert len(stored(server)) == 1


async def test_an_offset_that_is_not_the_next_is_refused(server: Server) -> None:
    data, client = small_media.picture(), server.client
    path = await begin(client, len(data))
    await send(client, path, 0, data[:10])
    for offset in (0, 9, 11):
        error = refused(await send(client, path, offset, data[offset:]), 409, "upload_offset_conflict")
        assert "must be 10" in error["message"]
    assert await offset_of(client, path) == 10


class Senders:
    """The parts that are open: a request would have to take the lock itself to find it taken."""

    def __init__(self, folder: UploadFolder) -> None:
        self._open_part = folder.open_part
        self._open: list[str] = []

    @contextmanager
    def open_part(self, upload: OpenUpload) -> Generator[int]:
        with self._open_part(upload) as part:
            self._open.append(upload.id)
            try:
                yield part
            finally:
                self._open.remove(upload.id)

    async def until_one(self) -> None:
        """Wait until a request has the lock."""
        async with asyncio.timeout(60):
            while not self._open:  # noqa: ASYNC110  told by nobody
                await asyncio.sleep(0.01)


@pytest.fixture
def senders(server: Server, monkeypatch: pytest.MonkeyPatch) -> Senders:
    folder = server.gateway.uploads._folder
    senders = Senders(folder)
    monkeypatch.setattr(folder, "open_part", senders.open_part)
    return senders


async def cut_off(server: Server, senders: Senders, path: str, data: bytes, length: int) -> None:
    """Send some bytes of a longer body, and break the connection when they are being received."""
    address = urlsplit(server.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    headers = {**BODY, "host": "x", "authorization": server.client.headers["authorization"]}
    headers |= {"upload-offset": "0", "content-length": str(length)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"PATCH {path} HTTP/1.1\r\n{lines}\r\n".encode() + data)
    await senders.until_one()
    writer.close()
    await writer.wait_closed()


async def until_there(client: httpx.AsyncClient, path: str, offset: int) -> None:
    async with asyncio.timeout(60):
        while await offset_of(client, path) != offset:  # noqa: ASYNC110  told by nobody
            await asyncio.sleep(0.01)


async def test_bytes_before_a_cut_are_kept(server: Server, senders: Senders) -> None:
    data, client = small_media.film(), server.client
    path = await begin(client, len(data))
    await cut_off(server, senders, path, data[:100], len(data))
    await until_there(client, path, 100)
    answer = await send(client, path, 100, data[100:])
    assert answer.headers["x-penstock-file-token"]


async def test_one_of_two_senders_wins(server: Server, senders: Senders) -> None:
    data, client = small_media.picture(), server.client
    path = await begin(client, len(data))
    go = asyncio.Event()

    async def slowly() -> Any:
        yield data[:20]
        await go.wait()
        yield data[20:]

    headers = {**BODY, "upload-offset": "0"}
    first = asyncio.create_task(client.patch(path, headers=headers, content=slowly()))
    await senders.until_one()
    refused(await send(client, path, 0, data), 423, "upload_locked")
    go.set()
    assert (await first).headers["x-penstock-file-token"]
    refused(await send(client, path, 0, data), 409, "upload_offset_conflict")


async def test_it_continues_at_another_gateway_and_after_a_restart(server: Server, start) -> None:
    data = small_media.film()
    path = await begin(server.client, len(data))
    await send(server.client, path, 0, data[:50])
    other = await start()
    assert await offset_of(other.client, path) == 50
    answer = await send(other.client, path, 50, data[50:])
    assert answer.headers["x-penstock-file-token"]
    assert (await server.client.get(path)).json()["file_token"] == answer.headers["x-penstock-file-token"]


async def test_a_file_that_a_crash_left_whole_is_stored_when_its_sender_asks(server: Server) -> None:
    data, client = small_media.picture(), server.client
    path = await begin(client, len(data))
    (part,) = parts(server)
    part.write_bytes(data)  # all bytes have come, and the gateway died before it opened them
    head = await client.head(path, headers=TUS)
    assert (await client.get(f"/api/v1/files/{head.headers['x-penstock-file-token']}")).status_code == 200
    assert parts(server) == []


async def test_a_file_that_cannot_be_opened_is_refused_and_removed(server: Server) -> None:
    client, data = server.client, b"\x89PNG\r\n\x1a\n" + bytes(100)
    path = await begin(client, len(data))
    error = refused(await send(client, path, 0, data), 400, "file_unreadable")
    assert error["param"] == "file"
    refused(await client.get(path), 404, "upload_not_found")
    assert parts(server) == []


class TestLimits:
    async def test_too_large_is_refused_as_soon_as_it_is_known(self, server: Server) -> None:
        client, most = server.client, 200 << 20
        for length, pairs in ((most + 1, {}), ((20 << 20) + 1, {"filetype": "image/png"})):
            headers = {**TUS, "upload-length": str(length), "upload-metadata": metadata(**pairs)}
            error = refused(await client.post(FILES, headers=headers), 413, "body_too_large")
            assert error["param"] == "Upload-Length"
        path = await begin(client, (20 << 20) + 1)
        refused(await send(client, path, 0, small_media.picture()), 413, "body_too_large")
        refused(await client.get(path), 404, "upload_not_found")

    async def test_more_bytes_than_announced_are_refused(self, server: Server) -> None:
        path = await begin(server.client, 10)
        refused(await send(server.client, path, 0, bytes(11)), 413, "body_too_large")
        assert await offset_of(server.client, path) == 0

    async def test_an_account_has_a_number_of_open_uploads(self, server: Server) -> None:
        paths = [await begin(server.client, 10) for _ in range(32)]
        headers = {**TUS, "upload-length": "10"}
        refused(await server.client.post(FILES, headers=headers), 429, "too_many_uploads")
        other = await server.sign_in("other")
        await begin(other, 10)
        assert (await server.client.delete(paths[0], headers=TUS)).status_code == 204
        await begin(server.client, 10)

    async def test_open_uploads_have_a_number_of_bytes(self, server: Server) -> None:
        for _ in range(20):
            await begin(server.client, 200 << 20)
        refused(
            await server.client.post(FILES, headers={**TUS, "upload-length": str(200 << 20)}), 429, "too_many_uploads"
        )


class TestRefusals:
    async def test_open_uploads_count_toward_the_quota(self, start) -> None:
        server = await start(overrides={"assets.quota_mb": 1})
        picture = small_media.picture()
        path = await begin(server.client, len(picture))
        assert (await send(server.client, path, 0, picture)).status_code == 204
        path, left = await begin(server.client, 600_000), (1 << 20) - len(picture)
        headers = {**TUS, "upload-length": "600000"}
        problem = refused(await server.client.post(FILES, headers=headers), 403, "storage_quota_exceeded")
        assert problem["param"] == "Upload-Length"
        assert f"1200000 bytes, but the quota has {left} left" in problem["message"]
        await server.client.delete(path, headers=TUS)
        await begin(server.client, left)

    async def test_headers_are_checked(self, server: Server) -> None:
        client = server.client
        refused(await client.post(FILES, headers={"upload-length": "1"}), 412, "tus_version_not_supported")
        for given in ({}, {"upload-length": "0"}, {"upload-length": "-1"}, {"upload-length": "1e3"}):
            code = "invalid_params" if given else "missing_required_parameter"
            error = refused(await client.post(FILES, headers={**TUS, **given}), 400, code)
            assert error["param"] == "Upload-Length"
        wrong = {**TUS, "upload-length": "1", "upload-metadata": "filename !!"}
        assert refused(await client.post(FILES, headers=wrong), 400, "invalid_params")["param"] == "Upload-Metadata"
        path = await begin(client, 10)
        refused(
            await client.patch(path, headers={**TUS, "upload-offset": "0"}, content=b"x"), 415, "unsupported_media_type"
        )
        refused(await client.patch(path, headers=BODY, content=b"x"), 400, "missing_required_parameter")
        refused(await client.patch(path, content=b"x"), 412, "tus_version_not_supported")

    async def test_an_upload_of_another_account_is_not_there(self, server: Server) -> None:
        path, other = await begin(server.client, 10), await server.sign_in("other")
        for answer in (await send(other, path, 0, b"x"), await other.get(path), await other.delete(path, headers=TUS)):
            refused(answer, 404, "upload_not_found")
        assert (await other.head(path, headers=TUS)).status_code == 404
        for name in ("upload_0", "..", "lock", "%2e%2e%2fx"):
            assert (await server.client.head(f"{FILES}/{name}", headers=TUS)).status_code in (404, 405)

    async def test_a_key_is_needed_that_may_generate(self, server: Server) -> None:
        async with httpx.AsyncClient(base_url=server.url) as anyone:
            refused(await anyone.post(FILES, headers={**TUS, "upload-length": "1"}), 401, "missing_api_key")
        reader = await server.sign_in(scopes=frozenset({"read"}))
        refused(await reader.post(FILES, headers={**TUS, "upload-length": "1"}), 403, "scope_not_allowed")

    async def test_an_ended_upload_is_gone(self, server: Server) -> None:
        path = await begin(server.client, 10)
        await send(server.client, path, 0, b"12345")
        assert (await server.client.delete(path, headers=TUS)).status_code == 204
        assert parts(server) == []
        refused(await send(server.client, path, 5, b"12345"), 404, "upload_not_found")


async def test_an_upload_expires(start) -> None:
    ahead = 0.0
    server = await start(clocks=Clocks(now=lambda: time.time() + ahead))
    path = await begin(server.client, 10)
    assert (await server.client.head(path, headers=TUS)).headers["upload-expires"].endswith("GMT")
    ahead = 86_401.0
    refused(await send(server.client, path, 0, b"x"), 410, "upload_expired")
    await server.gateway.uploads.sweep()
    assert parts(server) == []
    refused(await server.client.get(path), 410, "upload_expired")
    ahead = 3 * 86_400.0
    assert await server.gateway.uploads.sweep() == 1
    refused(await server.client.get(path), 404, "upload_not_found")


@pytest.mark.parametrize("name", ["tus-resumable", "upload-offset", "location", "x-penstock-file-token"])
async def test_pages_of_other_origins_may_read_its_headers(server: Server, name: str) -> None:
    answer = await server.client.options(FILES, headers={"origin": "https://example.com"})
    assert name in answer.headers["access-control-expose-headers"]


async def test_a_post_is_served_by_the_method_in_its_header(server: Server) -> None:
    data, client = small_media.picture(), server.client
    path = await begin(client, len(data))

    async def post(method: str, content: bytes = b"", **headers: str) -> httpx.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {**BODY, **names, "x-http-method-override": method}
        return await client.post(path, headers=given, content=content)

    answer = await post("PATCH", data[:10], upload_offset="0")
    assert (answer.status_code, answer.headers["upload-offset"]) == (204, "10")
    answer = await post("head")
    assert (answer.status_code, answer.headers["upload-offset"], answer.content) == (200, "10", b"")
    refused(await post("PATCH", data, upload_offset="0"), 409, "upload_offset_conflict")
    assert (await post("BREW")).status_code == 405
    assert (await client.post(path, headers=TUS)).status_code == 405
    assert (await post("DELETE")).status_code == 204
    refused(await post("HEAD"), 404, "upload_not_found")


async def test_the_header_counts_for_uploads_only(server: Server) -> None:
    file = await server.client.post("/api/v1/files", files={"file": ("cat.png", small_media.picture())})
    path = f"/api/v1/files/{file.json()['file_token']}"
    assert (await server.client.get(path, headers={"x-http-method-override": "DELETE"})).json()["object"] == "file"
    assert (await server.client.get(path)).status_code == 200
