"""Uploads of fal's client for JavaScript over plain HTTP: signed addresses, parts, repeats, and what is refused."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest
from conftest import Server
from small_media import film, picture

from penstock.web.facades.fal import parts

INITIATE = "https://rest.fal.ai/storage/upload/initiate"
PART = 1 << 11


async def begin(server: Server, name: str = "cat.png", way: str = "") -> dict[str, str]:
    headers = {"x-fal-target-url": f"{INITIATE}{way}?storage_type=fal-cdn-v3"}
    response = await server.client.post("/fal/proxy", json={"file_name": name}, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def begin_parts(server: Server) -> Any:
    """The URL of the file, and the function by which the client makes the address of a part."""
    upload = await begin(server, "film.mp4", "-multipart")
    path, _, query = upload["upload_url"].partition("?")
    return upload["file_url"], lambda end: f"{path}/{end}?{query}"


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", PART)


def cut(data: bytes) -> list[bytes]:
    return [data[place : place + PART] for place in range(0, len(data), PART)]


async def test_of_several_puts_to_one_address_one_is_stored(server: Server) -> None:
    upload = await begin(server)
    pictures = [picture(width=100 + number) for number in range(6)]
    async with httpx.AsyncClient(trust_env=False) as browser:
        responses = await asyncio.gather(*(browser.put(upload["upload_url"], content=data) for data in pictures))
        kept = (await browser.get(upload["file_url"])).content

    assert {response.status_code for response in responses} == {200}
    assert kept in pictures
    assert len((await server.client.get("/replicate/v1/files")).json()["results"]) == 1


async def test_a_file_that_is_too_large_is_refused(server: Server) -> None:
    async def drip() -> Any:
        yield picture()
        for _ in range(60):
            yield bytes(1 << 20)

    upload = await begin(server)
    async with httpx.AsyncClient(trust_env=False) as browser:
        response = await browser.put(upload["upload_url"], content=drip())

    assert (response.status_code, response.json()["error_type"]) == (413, "body_too_large")


async def test_parts_become_a_file(server: Server, small_parts: None) -> None:
    url, address = await begin_parts(server)
    data = film()
    pieces = cut(data)
    assert len(pieces) > 2
    async with httpx.AsyncClient(trust_env=False) as browser:
        told = []
        for number, piece in enumerate(pieces, 1):
            for sent in (piece[:100], piece) if number == 2 else (piece,):  # a cut, and the client's repetition
                response = await browser.put(address(number), content=sent)
                assert response.status_code == 200, response.text
            told.append(response.json())
        for _ in range(2):
            response = await browser.post(address("complete"), json={"parts": told})
            assert response.status_code == 200, response.text
        assert (await browser.get(url)).content == data

    order = {"video_url": url, "script": {"ending": "never"}}
    response = await server.client.post("/fal/queue/penstock/sim_text_to_video", json=order)
    assert response.status_code == 200, response.text


async def test_wrong_parts_are_refused(server: Server, small_parts: None) -> None:
    _, address = await begin_parts(server)
    other, _ = await begin_parts(server)
    async with httpx.AsyncClient(trust_env=False) as browser:
        for put, status in (
            (browser.put(address(2), content=b"a"), 409),
            (browser.put(address(1), content=bytes(PART + 1)), 413),
            (browser.put(address(0), content=b"a"), 422),
            (browser.put(address(1).replace("/file_", "/file_0"), content=b"a"), 422),
            (browser.put(address(1).replace("signature=", "signature=0"), content=b"a"), 401),
            (browser.put(f"{other.partition('?')[0]}/parts/{address(1).partition('/parts/')[2]}", content=b"a"), 401),
            (browser.put(address(1), content=b"no film" * 20), 200),
            (browser.post(address("complete"), json={"parts": []}), 400),
            (browser.post(address("complete"), json={"parts": 7}), 400),
            (browser.post(address("complete"), json={"parts": [{"partNumber": 1, "etag": "a"}]}), 400),
            (browser.post(address("complete"), json={"parts": [{}]}), 404),
        ):
            response = await put
            assert response.status_code == status, (status, response.text)
            assert response.json().get("detail") or status == 200
    assert (await server.client.get("/replicate/v1/files")).json()["results"] == []


async def test_the_quota_of_the_account_holds_for_parts(server: Server, small_parts: None) -> None:
    server.gateway._rules = replace(server.gateway._rules, storage_quota=10)
    _, address = await begin_parts(server)
    data = picture()
    async with httpx.AsyncClient(trust_env=False) as browser:
        await browser.put(address(1), content=data)
        response = await browser.post(address("complete"), json={"parts": [{}]})

    assert response.status_code == 403
