"""Vendors whose reply to an order is its result: nothing can be asked again, so no order may be sent twice."""

import asyncio
import base64
import io
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.gemini_images import GeminiImagesDouble
from doubles.media import answer
from doubles.openai_images import LinkingDouble, OpenAIImagesDouble, OtherServerDouble, draw, trouble
from PIL import Image
from vendors.double import HttpDouble, drop, drop_after, raw, reply

from penstock.storage.assets import Assets
from penstock.storage.backend import StorageUnavailable

ORDER = ("POST", "/v1")


@asynccontextmanager
async def heard(double: Any) -> AsyncGenerator[Any]:
    await double.listen()
    try:
        yield double
    finally:
        await double.hide()


@pytest.fixture
async def openai() -> AsyncGenerator[OpenAIImagesDouble]:
    async with heard(OpenAIImagesDouble()) as double:
        yield double


@pytest.fixture
async def gemini() -> AsyncGenerator[GeminiImagesDouble]:
    async with heard(GeminiImagesDouble()) as double:
        yield double


@pytest.fixture
async def linking() -> AsyncGenerator[LinkingDouble]:
    async with heard(LinkingDouble()) as double:
        yield double


@pytest.fixture
def other() -> Callable[[str], Any]:
    return lambda errors: heard(OtherServerDouble(errors))


def data_uri(size: str = "64x48", background: str = "auto") -> dict[str, str]:
    return {"url": "data:image/png;base64," + base64.b64encode(draw(size, "png", background)).decode()}


async def open_outputs(server: Any, job: dict[str, Any]) -> list[Image.Image]:
    """The pictures of a job, opened by another reader than ours."""
    assert job["status"] == "succeeded", job["error"]
    assert all(output["role"] == "primary" and output["kind"] == "image" for output in job["outputs"])
    found = [Image.open(io.BytesIO((await server.client.get(one["url"])).content)) for one in job["outputs"]]
    for picture in found:
        picture.load()
    return found


def losses(job: dict[str, Any]) -> list[str]:
    return [warning for warning in job["warnings"] if not warning.startswith("The price of")]


# -- OpenAI


async def test_several_pictures_of_one_order(start, openai):
    server = await start(openai.settings())
    job = await server.generate("openai_image", prompt="a fox", size="1536x1024", n=3, output_format="webp")
    pictures = await open_outputs(server, job)
    assert [(one.size, one.format) for one in pictures] == [((1536, 1024), "WEBP")] * 3
    assert len({output["sha256"] for output in job["outputs"]}) == 3
    assert [output["content_type"] for output in job["outputs"]] == ["image/webp"] * 3
    assert losses(job) == []
    assert openai.billed == [
        {"model": "gpt-image-2", "prompt": "a fox", "n": 3, "size": "1536x1024", "output_format": "webp", "files": []}
    ]
    key = server.client.headers["authorization"].removeprefix("Bearer ")
    for secret in (openai.credential, openai.url, key):
        assert secret not in json.dumps(job)


async def test_pictures_and_a_mask_are_edited_in_the_callers_order(start, openai):
    server = await start(openai.settings())
    images, mask = [data_uri(), data_uri("32x32")], data_uri(background="transparent")
    job = await server.generate("openai_image_edit", prompt="a hat", images=images, mask=mask, quality="low")
    await open_outputs(server, job)
    assert [name for name, _ in openai.files] == ["image[]", "image[]", "mask"]
    assert [Image.open(io.BytesIO(data)).size for _, data in openai.files] == [(64, 48), (32, 32), (64, 48)]
    assert openai.billed[0]["quality"] == "low"
    assert openai.seen[-1].path == "/v1/images/edits"


async def test_a_picture_is_made_and_then_edited(start, openai):
    server = await start(openai.settings())
    first = await server.generate("openai_image", prompt="a fox", background="transparent")
    job = await server.generate("openai_image_edit", prompt="blue", images={"job": first["id"]})
    await open_outputs(server, job)
    ((name, data),) = openai.files
    assert name == "image"
    assert Image.open(io.BytesIO(data)).mode == "RGBA"


async def test_references_go_to_the_endpoint_of_edits(start, openai):
    server = await start(openai.settings())
    await open_outputs(server, await server.generate("text_to_image", prompt="a fox", references=[data_uri()]))
    assert openai.billed[0]["files"] == ["image"]


@pytest.mark.parametrize(
    ("params", "sent", "words"),
    [
        ({}, None, []),
        ({"size": "1024x1536"}, "1024x1536", []),
        ({"size": "auto"}, None, []),
        ({"size": "1000x1000"}, "992x992", ["`size` 1000x1000 is not possible"]),
        ({"size": "256x256"}, "816x816", ["`size` 256x256 is not possible"]),
        ({"size": "4096x4096"}, "2880x2880", ["`size` 4096x4096 is not possible"]),
        ({"aspect_ratio": "16:9"}, "1088x608", []),
        ({"aspect_ratio": "16:9", "resolution": "2K"}, "2048x1152", []),
        ({"size": "4096x64"}, "1408x480", ["`size` 4096x64 is not possible"]),
        ({"resolution": "512"}, "816x816", ["`resolution` 512 is not possible"]),
    ],
)
async def test_sizes(start, openai, params, sent, words):
    server = await start(openai.settings())
    job = await server.generate("openai_image", prompt="a fox", **params)
    await open_outputs(server, job)
    assert openai.billed[0].get("size") == sent
    assert len(losses(job)) == len(words), losses(job)
    assert all(word in warning for word, warning in zip(words, losses(job), strict=True))


async def test_what_it_cannot_do_is_said(start, openai):
    server = await start(openai.settings())
    job = await server.generate("openai_image", prompt="a fox", seed=7, negative_prompt="snow")
    assert losses(job) == [
        "`negative_prompt` is not supported by OpenAI with this model and was ignored.",
        "`seed` is not supported by OpenAI with this model and was ignored.",
    ]


async def test_each_picture_has_its_price(start, openai):
    price = (
        '[[models]]\nid = "openai_image"\nvendor = "openai_images"\nprice = {per_job = "0.01", per_image = "0.05"}\n'
    )
    server = await start(openai.settings() + price)
    job = await server.generate("openai_image", prompt="a fox", n=4)
    assert (job["cost"]["estimated"], job["cost"]["final"]) == ("0.21", "0.21")


NO_MONEY = trouble("You exceeded your current quota", "insufficient_quota", "insufficient_quota")
REFUSALS = {
    "401": (401, trouble("no", "invalid_api_key"), "upstream_auth"),
    "403": (403, trouble("Your organization must be verified to use the model."), "upstream_auth"),
    "404": (404, trouble("no", "model_not_found"), "upstream_rejected"),
    "quota": (429, NO_MONEY, "upstream_unavailable"),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_refusals(start, openai, name):
    status, body, code = REFUSALS[name]
    openai.fault(reply(status, json.dumps(body).encode()), *ORDER)
    server = await start(openai.settings())
    job = await server.generate("openai_image", prompt="a fox")
    assert (job["status"], job["error"]["code"], job["charged"]) == ("failed", code, False)
    assert openai.count(*ORDER) == 1


async def test_a_blocked_prompt(start, openai):
    server = await start(openai.settings())
    job = await server.generate("openai_image", prompt="a FORBIDDEN fox")
    error = job["error"]
    assert (error["code"], error["stage"], error["retryable"]) == ("content_filtered", "generating", False)
    assert error["upstream"]["code"] == "moderation_blocked"
    assert openai.count(*ORDER) == 1


async def test_a_rate_limit_is_waited_for(start, openai):
    openai.fault(reply(429, b"{}", retry_after="0"), *ORDER, times=2)
    server = await start(openai.settings())
    await open_outputs(server, await server.generate("openai_image", prompt="a fox"))
    assert len(openai.billed) == 1


async def take(double: HttpDouble, request: Any) -> Any:
    """Make the pictures, and answer like a broken proxy."""
    await double.play(request)
    return answer(502, "Bad Gateway")


LOST = {
    "closed": drop,
    "closed after the order": drop_after,
    "502 after the order": take,
    "500": reply(500, b"{}"),
    "cut off": raw(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"),
    "half a body": reply(200, b'{"data": [{"b64_js'),
    "another shape": reply(200, b"[]"),
}


@pytest.mark.parametrize("way", LOST)
async def test_an_order_whose_reply_is_lost_is_not_repeated(start, openai, way):
    openai.fault(LOST[way], *ORDER)
    server = await start(openai.settings())
    job = await server.generate("openai_image", prompt="a fox")
    assert (job["status"], job["error"]["code"], job["charged"]) == ("failed", "upstream_outcome_unknown", None)
    assert openai.count(*ORDER) == 1


async def test_a_reply_that_takes_too_long_is_lost(start, openai):
    async def late(double: HttpDouble, request: Any) -> Any:
        response = await double.play(request)
        await double.leaving.wait()
        return response

    openai.fault(late, *ORDER)
    server = await start(openai.settings(reply_seconds=0.3))
    job = await server.generate("openai_image", prompt="a fox")
    assert job["error"]["code"] == "upstream_outcome_unknown"
    assert len(openai.billed) == openai.count(*ORDER) == 1


@pytest.mark.parametrize(("text", "count"), [("not Base64!", 1), (base64.b64encode(b"no picture" * 9).decode(), 1)])
async def test_a_reply_that_is_no_picture(start, openai, text, count):
    openai.fault(reply(200, json.dumps({"data": [{"b64_json": text}]}).encode()), *ORDER)
    server = await start(openai.settings())
    job = await server.generate("openai_image", prompt="a fox")
    assert (job["status"], job["error"]["code"]) == ("failed", "bad_output")
    assert openai.count(*ORDER) == count


async def test_a_picture_of_another_kind_is_kept_with_a_warning(start, openai):
    picture = base64.b64encode(draw("1024x768", "jpeg")).decode()
    openai.fault(reply(200, json.dumps({"data": [{"b64_json": picture}]}).encode()), *ORDER)
    server = await start(openai.settings())
    job = await server.generate("openai_image", prompt="a fox", size="1024x1024")
    (found,) = await open_outputs(server, job)
    assert (found.format, found.size, job["outputs"][0]["content_type"]) == ("JPEG", (1024, 768), "image/jpeg")
    assert losses(job) == [
        "The picture is 1024 x 768; 1024 x 1024 was asked for.",
        "The picture is jpeg; png was asked for.",
    ]


async def test_a_cancel_that_comes_while_it_works_keeps_the_result(start, openai):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(double: HttpDouble, request: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await double.play(request)

    openai.fault(slow, *ORDER)
    server = await start(openai.settings())
    job = await server.submit("openai_image", prompt="a fox")
    await begun.wait()
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    go_on.set()
    job = await server.finish(job["id"])
    assert any("cannot stop" in warning for warning in job["warnings"])
    await open_outputs(server, job)


# -- the stored reply


def reply_files(server: Any, job: dict[str, Any]) -> list[str]:
    folder = server.gateway.settings.data
    return sorted(path.name for path in folder.rglob(f"*{job['id']}*/reply-*"))


async def test_the_reply_is_removed_once_its_pictures_are_stored(start, openai):
    server = await start(openai.settings())
    job = await server.generate("openai_image", prompt="a fox", n=2)
    await open_outputs(server, job)
    async with asyncio.timeout(60):
        while reply_files(server, job):  # noqa: ASYNC110  the job ends first
            await asyncio.sleep(0.02)
    assert reply_files(server, job) == []


async def test_the_reply_waits_for_a_storage_that_is_away(start, openai, monkeypatch):
    keep, failures = Assets.keep_reply, [StorageUnavailable(), StorageUnavailable()]

    async def fail_first(*args: Any) -> str:
        if failures:
            raise failures.pop()
        return await keep(*args)

    monkeypatch.setattr(Assets, "keep_reply", fail_first)
    server = await start(openai.settings())
    await open_outputs(server, await server.generate("openai_image", prompt="a fox"))
    assert len(openai.billed) == 1


async def test_after_a_crash_a_stored_reply_is_delivered(start, openai, monkeypatch):
    """The first collection dies; the next run starts over from the row, and asks nobody."""
    deaths = [OSError("died")]
    open_reply = Assets.open_reply

    async def die_first(*args: Any) -> Any:
        if deaths:
            raise deaths.pop()
        return await open_reply(*args)

    monkeypatch.setattr(Assets, "open_reply", die_first)
    server = await start(openai.settings())
    await open_outputs(server, await server.generate("openai_image", prompt="a fox", n=2))
    assert (len(openai.billed), openai.count(*ORDER)) == (1, 1)
    assert deaths == []


# -- self-hosted servers


async def test_another_server_gets_what_it_takes(start, other):
    async with other("object") as double:
        server = await start(double.settings(server="sglang"))
        params = {"seed": 7, "negative_prompt": "snow", "quality": "high", "size": "200x100"}
        job = await server.generate("text_to_image", prompt="a fox", **params)
        (picture,) = await open_outputs(server, job)
        assert picture.size == (200, 100)
        assert losses(job) == []
        assert double.billed[0] == {
            "model": "gpt-image-2",
            "prompt": "a fox",
            "n": 1,
            "output_format": "png",
            "response_format": "b64_json",
            "files": [],
            **params,
        }


async def test_the_settings_name_what_a_server_takes(start, other):
    async with other("object") as double:
        server = await start(double.settings(server="other", takes=["seed"], edits=False))
        job = await server.generate("text_to_image", prompt="a fox", seed=7, quality="low")
        assert losses(job) == ["`quality` low is not supported by this server with this model and was ignored."]
        assert double.billed[0]["seed"] == 7
        job = await server.generate("edit_image", prompt="a hat", images=[data_uri()])
        assert (job["error"]["code"], job["error"]["stage"]) == ("upstream_rejected", "dispatching")
        assert "`images`: this server takes no pictures" in job["error"]["message"]
        assert len(double.billed) == 1


async def test_a_mask_whose_polarity_is_not_known_is_refused(start, other):
    async with other("object") as double:
        server = await start(double.settings(server="vllm_omni"))
        job = await server.generate("edit_image", prompt="a hat", images=[data_uri()], mask=data_uri())
        assert (job["error"]["code"], double.seen) == ("upstream_rejected", [])
        assert "`mask`: this server takes no mask" in job["error"]["message"]


@pytest.mark.parametrize("errors", ["object", "string", "detail"])
async def test_each_shape_of_errors_is_read(start, other, errors):
    async with other(errors) as double:
        server = await start(double.settings(server="sd_cpp"))
        error = (await server.generate("text_to_image", prompt="a FORBIDDEN fox"))["error"]
        assert (error["code"], error["upstream"]["message"]) == ("upstream_rejected", "no")


async def test_a_server_that_loads_its_model_is_waited_for(start, other):
    async with other("object") as double:
        double.fault(reply(503, b'{"detail": "loading"}', retry_after="0"), *ORDER, times=2)
        server = await start(double.settings(server="vllm_omni"))
        await open_outputs(server, await server.generate("text_to_image", prompt="a fox"))
        assert len(double.billed) == 1


async def test_links_are_downloaded(start, linking):
    server = await start(linking.settings(server="localai"))
    job = await server.generate("text_to_image", prompt="a fox", n=2)
    assert len(await open_outputs(server, job)) == 2
    assert linking.count("POST") == 1


# -- Gemini


async def test_geminis_picture_is_the_one_that_is_no_thought(start, gemini):
    server = await start(gemini.settings())
    job = await server.generate("gemini_image", prompt="a fox", aspect_ratio="16:9", resolution="2K", seed=7)
    (picture,) = await open_outputs(server, job)
    assert picture.size == (2752, 1536)
    assert picture.getpixel((0, 0))[2] == 0, "the thought has another shade"
    assert losses(job) == []
    assert gemini.billed[0]["generationConfig"] == {
        "responseModalities": ["IMAGE"],
        "seed": 7,
        "imageConfig": {"aspectRatio": "16:9", "imageSize": "2K"},
    }


async def test_gemini_edits_pictures_that_come_with_the_prompt(start, gemini):
    server = await start(gemini.settings())
    job = await server.generate("gemini_image_edit", prompt="a hat", images=[data_uri(), data_uri("32x32")])
    await open_outputs(server, job)
    text, *pictures = gemini.billed[0]["contents"][0]["parts"]
    assert text == {"text": "a hat"}
    sizes = [Image.open(io.BytesIO(base64.b64decode(one["inlineData"]["data"]))).size for one in pictures]
    assert sizes == [(64, 48), (32, 32)]
    assert {one["inlineData"]["mimeType"] for one in pictures} == {"image/png"}


async def test_gemini_makes_one_picture_and_says_so(start, gemini):
    server = await start(gemini.settings())
    job = await server.generate("gemini_image", prompt="jpeg", n=3, size="1000x640", background="transparent")
    assert len(await open_outputs(server, job)) == len(gemini.billed) == 1
    assert [warning.split(" ", 1)[0] for warning in losses(job)] == ["`n`", "`background`", "`size`", "The"]
    assert gemini.billed[0]["generationConfig"]["imageConfig"] == {"aspectRatio": "3:2", "imageSize": "1K"}


GEMINI_ENDINGS = {
    "blocked": ("content_filtered", "dispatching", "SAFETY"),
    "IMAGE_SAFETY": ("content_filtered", "generating", "IMAGE_SAFETY"),
    "PROHIBITED_CONTENT": ("content_filtered", "generating", "PROHIBITED_CONTENT"),
    "IMAGE_RECITATION": ("content_filtered", "generating", "IMAGE_RECITATION"),
    "NO_IMAGE": ("upstream_error", "generating", "NO_IMAGE"),
    "MAX_TOKENS": ("upstream_error", "generating", "MAX_TOKENS"),
    "text only": ("upstream_error", "generating", "STOP"),
}


@pytest.mark.parametrize("prompt", GEMINI_ENDINGS)
async def test_geminis_refusals_have_status_200(start, gemini, prompt):
    server = await start(gemini.settings())
    job = await server.generate("gemini_image", prompt=prompt)
    error = job["error"]
    assert (error["code"], error["stage"], error["upstream"]["code"]) == GEMINI_ENDINGS[prompt]
    assert gemini.url not in json.dumps(job)
    assert len(gemini.billed) == 1


async def test_an_order_that_gemini_did_not_answer_is_not_repeated(start, gemini):
    gemini.fault(drop_after, *ORDER)
    server = await start(gemini.settings())
    job = await server.generate("gemini_image", prompt="a fox")
    assert (job["error"]["code"], len(gemini.billed)) == ("upstream_outcome_unknown", 1)


async def test_a_route_that_cannot_take_a_mask_is_passed_over(start, gemini, openai):
    routes = 'routes = [{vendor = "gemini_images"}, {vendor = "openai_images", order = 2}]'
    tables = gemini.settings() + openai.settings() + f'[[models]]\nid = "edit_image"\n{routes}\n'
    server = await start(tables)
    job = await server.generate("edit_image", prompt="a hat", images=[data_uri()], mask=data_uri())
    assert (job["vendor"], gemini.seen, openai.billed[0]["files"]) == ("openai_images", [], ["image", "mask"])
