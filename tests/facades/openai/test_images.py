"""OpenAI Images through OpenAI's own client for Python."""

import base64
import io
import json
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest
from conftest import Server, Start
from doubles.fal import FalDouble
from doubles.media import listening
from openai_media import IMAGE, QUICK, VIDEO, connect, draw, jobs_of, script
from PIL import Image

PATH = "/v1/images/generations"
FLUX = """
[[models]]
id = "own_flux"
kind = "image"
vendor = "fal"
model = "fal-ai/flux/dev"
output = "images"
"""


def opened(text: str | None) -> Image.Image:
    """Return the picture in a base64 text."""
    assert text is not None
    return Image.open(io.BytesIO(base64.b64decode(text, validate=True)))


async def refusal(promise: Any) -> openai.APIStatusError:
    """Return the error of a call."""
    with pytest.raises(openai.APIStatusError) as caught:
        await promise
    return caught.value


# -- pictures


@pytest.mark.parametrize("path", ["/v1", "/llm", "/llm/v1", "/v1/"])
async def test_pictures_come_in_base64(server: Server, path: str) -> None:
    client = await connect(server, path)

    answer = await client.images.generate(model=IMAGE, prompt="a fox", n=2, size="256x256", extra_body=QUICK)

    assert [opened(each.b64_json).size for each in answer.data or ()] == [(256, 256)] * 2
    assert (answer.size, answer.output_format) == ("256x256", "png")
    assert answer.usage is not None
    assert answer.usage.total_tokens == 0
    assert len(await jobs_of(server)) == 1


async def test_pictures_come_as_links(server: Server) -> None:
    client = await connect(server)

    answer = await client.images.generate(model=IMAGE, prompt="a fox", response_format="url", extra_body=QUICK)

    (picture,) = answer.data or ()
    assert picture.url is not None
    assert picture.b64_json is None
    response = await server.client.get(picture.url, headers={"authorization": ""})
    assert Image.open(io.BytesIO(response.content)).size == (512, 512)


async def test_the_answer_has_the_bytes_that_are_stored(server: Server) -> None:
    client = await connect(server)

    raw = await client.images.with_raw_response.generate(
        model=IMAGE, prompt="a fox", output_format="jpeg", extra_body=QUICK
    )

    (output,) = (await jobs_of(server))[0]["outputs"]
    stored = (await server.client.get(output["url"])).content
    assert base64.b64decode(json.loads(raw.content)["data"][0]["b64_json"]) == stored
    assert int(raw.headers["content-length"]) == len(raw.content)
    assert raw.headers["x-penstock-job"] == (await jobs_of(server))[0]["id"]


async def test_the_first_image_model_is_the_default(server: Server) -> None:
    client = await connect(server, models=frozenset({"sketch_1", VIDEO}))

    answer = await client.images.generate(prompt="a red house", size="64x64")

    assert opened((answer.data or [])[0].b64_json).size == (64, 64)
    assert (await jobs_of(server))[0]["model"] == "sketch_1"


async def test_hints_are_left_out_where_the_model_has_no_such_param(server: Server) -> None:
    client = await connect(server)

    raw = await client.images.with_raw_response.generate(
        model=IMAGE,
        prompt="a fox",
        quality="hd",
        style="vivid",
        moderation="low",
        background="auto",
        user="u1",
        extra_body=QUICK,
    )

    assert raw.headers["x-penstock-left-out"] == "moderation, style, user"
    assert (await jobs_of(server))[0]["input"]["quality"] == "high"


async def test_a_model_declared_without_params_gets_the_fields_as_they_are(start: Start) -> None:
    async with listening(FalDouble()) as double:
        server = await start(double.settings() + FLUX)
        client = await connect(server)

        await client.images.generate(model="own_flux", prompt="a fox", user="u1", extra_body={"num_images": 1})

        (order,) = double.orders.values()
        assert order.body == {"prompt": "a fox", "num_images": 1}
        error = await refusal(client.images.edit(model="own_flux", prompt="a fox", image=draw()))
        assert (error.code, error.param) == ("unsupported_value", "model")


# -- streams


async def test_a_stream_ends_with_the_picture(server: Server) -> None:
    client = await connect(server)

    stream = await client.images.generate(
        model=IMAGE, prompt="a fox", n=2, stream=True, partial_images=1, size="128x128", extra_body=QUICK
    )
    events = [event async for event in stream]

    assert [event.type for event in events] == ["image_generation.completed"] * 2
    assert [opened(event.b64_json).size for event in events] == [(128, 128)] * 2
    assert (events[0].size, events[0].quality, events[0].usage.total_tokens) == ("128x128", "auto", 0)  # type: ignore[union-attr]


async def test_a_stream_of_an_edit(server: Server) -> None:
    client = await connect(server)

    stream = await client.images.edit(model=IMAGE, prompt="a fox", image=draw(), stream=True, extra_body=QUICK)

    assert [event.type async for event in stream] == ["image_edit.completed"]


async def test_a_stream_that_fails_says_why(server: Server) -> None:
    client = await connect(server)

    stream = await client.images.generate(
        model=IMAGE, prompt="a fox", stream=True, extra_body=script(ending="filtered")
    )
    with pytest.raises(openai.APIError) as caught:
        [event async for event in stream]

    assert caught.value.code == "moderation_blocked"


# -- edits


async def test_pictures_are_sent_in_a_form(server: Server) -> None:
    client = await connect(server)
    pictures = [("one.png", draw()), ("two.jpg", draw(80, "jpeg")), ("three.png", draw(90))]

    answer = await client.images.edit(model=IMAGE, prompt="join them", image=pictures, extra_body=QUICK)

    assert opened((answer.data or [])[0].b64_json).size == (512, 512)
    (job,) = await jobs_of(server)
    assert [each["width"] for each in job["input"]["references"]] == [64, 80, 90]
    async with server.client.stream("GET", job["input"]["references"][1]["preview_url"]) as response:
        assert response.status_code == 200, "the job has a copy of its own"
    tokens = [each["file_token"] for each in job["input"]["references"]]
    assert (await server.client.get(f"/api/v1/files/{tokens[0]}")).status_code == 404, "no upload is left"


async def test_pictures_are_sent_as_json(server: Server) -> None:
    upload = (await server.client.post("/api/v1/files", files={"file": draw(70)})).json()
    uri = f"data:image/png;base64,{base64.b64encode(draw()).decode()}"
    body = {"model": IMAGE, "prompt": "a fox", "images": [{"image_url": uri}, {"file_id": upload["file_token"]}]}

    response = await server.client.post("/v1/images/edits", json={**body, **QUICK})

    assert response.status_code == 200, response.text
    (job,) = await jobs_of(server)
    assert [each["width"] for each in job["input"]["references"]] == [64, 70]


@pytest.mark.parametrize(
    ("files", "param"),
    [
        ({"image": b"no picture"}, "image"),
        ({"portrait": draw()}, "portrait"),
        ([("mask", draw())] * 2, "mask"),
        ({}, "image"),
    ],
)
async def test_what_is_wrong_with_a_form_is_named(server: Server, files: Any, param: str) -> None:
    parts = [*(files.items() if isinstance(files, dict) else files)]
    form = [("prompt", (None, b"a fox")), *((name, (f"{name}.png", data)) for name, data in parts)]

    response = await server.client.post("/v1/images/edits", files=form)

    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == param
    assert await jobs_of(server) == []


HEAD = b'--x\r\ncontent-disposition: form-data; name="'
TAIL = b"\r\n--x--\r\n"
FORM = "multipart/form-data; boundary=x"
HOSTILE = [
    ("multipart/form-data", b"x"),
    (FORM, b"x"),
    (FORM, HEAD + b'prompt"\r\n\r\nno end'),
    (FORM, b"--x\r\ncontent-disposition: form-data\r\n\r\na" + TAIL),
    (FORM, HEAD + b'a"\r\n\r\n1\r\n' + HEAD + b'a"\r\n\r\n2' + TAIL),
    (FORM, HEAD + b'a[[b"\r\n\r\na' + TAIL),
    (FORM, HEAD + b'n"\r\n\r\n\xff' + TAIL),
    (FORM, HEAD + b"a" * 20_000 + b'"\r\n\r\na' + TAIL),
    (FORM, (HEAD + b'tags[]"\r\n\r\na\r\n') * 10_000 + b"--x--\r\n"),
    (FORM, (HEAD + b'image[]"; filename="a"\r\n\r\na\r\n') * 1000 + b"--x--\r\n"),
    (FORM, b"--x\r\nx-a: " + b"a" * 1_000_000 + b"\r\n\r\na" + TAIL),
    (FORM, b"--x\r\n" + b"x-a: b\r\n" * 100_000 + b"\r\na" + TAIL),
    (FORM, b"--y\r\n" + HEAD + b'prompt"\r\n\r\na' + TAIL),
    (FORM, HEAD + b'pro\0mpt"\r\n\r\na' + TAIL),
    (FORM, HEAD + b'n[a]"\r\n\r\n2' + TAIL),
    (FORM, HEAD + b'script"\r\n\r\n' + b"[" * 100_000 + TAIL),
    ("application/json", b"[1]"),
    ("application/json", b'{"prompt": "\\u0000", "model": 7}'),
    ("application/json", b'{"image": {"a": ' + b"[" * 3000 + b"]" * 3000 + b"}}"),
]


async def test_hostile_bodies_are_refused(server: Server, subtests: pytest.Subtests) -> None:
    for content_type, body in HOSTILE:
        with subtests.test(body[:60]):
            headers = {"content-type": content_type}
            response = await server.client.post("/v1/images/edits", content=body, headers=headers)

            assert response.status_code == 400, response.text
            assert response.json()["error"]["type"] == "invalid_request_error"


async def test_a_field_that_is_too_large_is_refused_as_it_comes(server: Server) -> None:
    async def drip() -> AsyncGenerator[bytes]:
        yield HEAD + b'style"\r\n\r\n'
        for _ in range(1000):
            yield b"a" * 100_000

    response = await server.client.post("/v1/images/edits", content=drip(), headers={"content-type": FORM})

    assert (response.status_code, response.json()["error"]["code"]) == (413, "body_too_large")


async def test_a_compressed_form_is_refused(server: Server) -> None:
    headers = {"content-type": FORM, "content-encoding": "gzip"}

    response = await server.client.post("/v1/images/edits", content=HEAD + b'prompt"\r\n\r\na' + TAIL, headers=headers)

    assert (response.status_code, response.json()["error"]["code"]) == (415, "unsupported_media_type")


PHONE = b"\0\0\0\x18ftypheic" + bytes(1000)


@pytest.mark.parametrize(
    ("data", "wrong"), [(PHONE, "JPEG, PNG or WebP"), (b"GIF89a", "JPEG, PNG or WebP"), (b"glTF", "a 3D model")]
)
async def test_a_file_that_is_no_picture_is_told_what_is_allowed(server: Server, data: bytes, wrong: str) -> None:
    client = await connect(server)

    error = await refusal(client.images.edit(model=IMAGE, prompt="a fox", image=("fox", data)))

    assert (error.status_code, error.code, error.param) == (400, "file_unreadable", "image")
    assert wrong in error.message


# -- errors


WRONG: list[tuple[dict[str, Any], int, str, str]] = [
    ({"model": "nobody"}, 404, "model_not_found", "model"),
    ({"model": VIDEO}, 400, "unsupported_value", "model"),
    ({"model": "edit_image"}, 404, "model_not_found", "model"),
    ({"n": 11}, 400, "invalid_params", "n"),
    ({"n": True}, 400, "invalid_params", "n"),
    ({"size": "big"}, 400, "invalid_params", "size"),
    ({"response_format": "gif"}, 400, "invalid_params", "response_format"),
    ({"stream": "yes"}, 400, "invalid_params", "stream"),
    ({"prompt": None}, 400, "missing_required_parameter", "prompt"),
    ({"prompt": 5}, 400, "invalid_params", "prompt"),
    ({"colour": "red"}, 400, "unknown_param", "colour"),
    ({"output_format": "bmp"}, 400, "invalid_params", "output_format"),
]


async def test_what_is_wrong_with_a_request_is_named(server: Server, subtests: pytest.Subtests) -> None:
    for wrong, status, code, param in WRONG:
        with subtests.test(str(wrong)):
            response = await server.client.post(PATH, json={"model": IMAGE, "prompt": "a fox", **QUICK, **wrong})

            error = response.json()["error"]
            assert (response.status_code, error["code"], error["param"]) == (status, code, param), error
    assert await jobs_of(server) == []


@pytest.mark.parametrize(
    ("ending", "status", "code"),
    [("filtered", 400, "moderation_blocked"), ("failed", 502, "upstream_error"), ("corrupt", 502, "bad_output")],
)
async def test_a_job_that_fails_is_an_error_of_the_request(server: Server, ending: str, status: int, code: str) -> None:
    client = await connect(server, retries=2)

    error = await refusal(client.images.generate(model=IMAGE, prompt="a fox", extra_body=script(ending=ending)))

    (job,) = await jobs_of(server)
    assert (error.status_code, error.code) == (status, code)
    assert error.body["job_id"] == job["id"]  # type: ignore[index]
    assert error.body["charged"] is False  # type: ignore[index]


async def test_keys_without_scope_model_or_money_are_refused(server: Server) -> None:
    reader = await connect(server, scopes=frozenset({"read"}))
    narrow = await connect(server, models=frozenset({VIDEO}))
    nobody = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="psk_wrong", max_retries=0)

    async with nobody:
        errors = [await refusal(each.images.generate(model=IMAGE, prompt="a")) for each in (reader, narrow, nobody)]

    assert [error.status_code for error in errors] == [403, 403, 401]


async def test_a_key_without_money_is_refused(start: Start) -> None:
    priced = f'[[models]]\nid = "{IMAGE}"\nvendor = "sim"\nprice = {{per_job = "0.60"}}\n'
    server = await start(f'[vendors.sim]\ntype = "sim"\n{priced}')
    client = await connect(server, budgets={"total": "1.00"})
    await client.images.generate(model=IMAGE, prompt="a fox", extra_body=QUICK)

    error = await refusal(client.images.generate(model=IMAGE, prompt="a bear", extra_body=QUICK))

    assert (error.status_code, error.code, error.type) == (402, "insufficient_budget", "insufficient_quota")


async def test_a_canceled_job_is_no_reason_to_send_it_again(server: Server) -> None:
    client = await connect(server, retries=2)
    stream = await client.images.generate(model=IMAGE, prompt="a", stream=True, extra_body=script(ending="never"))
    (job,) = await jobs_of(server)
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    with pytest.raises(openai.APIError) as caught:
        [event async for event in stream]

    assert caught.value.code == "job_canceled"
    assert len(await jobs_of(server)) == 1


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
async def test_variations_are_gone(server: Server) -> None:
    client = await connect(server)

    error = await refusal(client.images.create_variation(image=draw()))

    assert error.status_code == 404
    assert "/v1/images/edits" in error.message


async def test_it_can_be_switched_off(start: Start) -> None:
    server = await start(overrides={"facades.off": ["images"]})

    assert (await server.client.post(PATH, json={"prompt": "a"})).status_code == 404
    assert (await server.client.get("/v1/videos")).status_code == 200
    models = (await server.client.get("/v1/models")).json()["data"]
    assert {model["kind"] for model in models if model["kind"] in ("image", "video")} == {"video"}
