"""The name and the bytes of an input: shown with its job, to its account or by a signed link, as long as it is kept."""

import io

import httpx
import pytest
from conftest import MODEL, client_of
from PIL import Image
from steps import FAILS, NEVER, refused


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (30, 30), "red").save(buffer, "PNG")
    return buffer.getvalue()


async def upload(client: httpx.AsyncClient, name: str) -> dict:
    answer = await client.post("/api/v1/files", files={"file": (name, picture())})
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("cat.png", "cat.png"),
        ("C:\\pictures\\Käse & Brot.png", "Käse & Brot.png"),
        ("../../etc/passwd", "passwd"),
        ("a\u202eb\u0081.png", "ab.png"),
        (f"{'n' * 300}.png", f"{'n' * 196}.png"),
        ("..", None),
    ],
)
async def test_an_upload_keeps_a_clean_name(server, given, kept):
    file = await upload(server.client, given)
    assert file["name"] == kept
    assert (await server.client.get(f"/api/v1/files/{file['file_token']}")).json() == file


async def test_a_job_shows_the_name_and_a_picture_of_its_input(server):
    token = (await upload(server.client, "cat.png"))["file_token"]
    job = await server.submit(MODEL, script=NEVER, file={"file_token": token})
    assert job["input"]["file"]["name"] == "cat.png"
    async with client_of(server.url, None) as anyone:
        shown = await anyone.get(job["input"]["file"]["preview_url"])
    assert (shown.status_code, shown.content) == (200, picture())
    assert shown.headers["content-type"] == "image/png"
    assert shown.headers["x-content-type-options"] == "nosniff"


async def test_a_job_that_uses_a_copy_has_its_name_too(server):
    token = (await upload(server.client, "cat.png"))["file_token"]
    first = await server.submit(MODEL, script=NEVER, file={"file_token": token})
    copy = first["input"]["file"]["copy_token"]
    assert (await server.client.delete(f"/api/v1/files/{token}")).status_code == 204
    second = await server.submit(MODEL, script=NEVER, file={"file_token": copy})
    assert second["input"]["file"]["name"] == "cat.png"


async def test_nobody_else_sees_an_input(server):
    token = (await upload(server.client, "cat.png"))["file_token"]
    job = await server.submit(MODEL, script=NEVER, file={"file_token": token})
    other = await server.sign_in("other")
    for each in (token, job["input"]["file"]["copy_token"]):
        path = f"/api/v1/files/{each}/content"
        assert (await server.client.get(path)).content == picture()
        refused(await other.get(path), 404, "file_not_found")
        async with client_of(server.url, None) as anyone:
            assert (await anyone.get(path)).status_code == 401
            link = httpx.URL(job["input"]["file"]["preview_url"])
            query = {**link.params, "signature": "A" * 32}
            assert (await anyone.get(path, params=query)).status_code == 401


async def test_a_link_works_for_its_own_file_only(server):
    first = await upload(server.client, "cat.png")
    second = await upload(server.client, "dog.png")
    job = await server.submit(MODEL, script=NEVER, file={"file_token": first["file_token"]})
    link = httpx.URL(job["input"]["file"]["preview_url"])
    async with client_of(server.url, None) as anyone:
        answer = await anyone.get(f"/api/v1/files/{second['file_token']}/content", params=link.params)
    assert answer.status_code == 401


async def test_an_input_goes_with_its_job(server):
    token = (await upload(server.client, "cat.png"))["file_token"]
    job = await server.generate(MODEL, script=FAILS, file={"file_token": token})
    assert (await server.client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
    refused(await server.client.get(job["input"]["file"]["preview_url"]), 404, "file_not_found")
