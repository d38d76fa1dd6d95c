"""The params of both mission models, row by row: what is taken, what it becomes, and what is refused where."""

import asyncio
import base64
import hashlib
import io
from typing import Any

import httpx
from conftest import MODEL, VIDEO, Server
from PIL import Image

GENERATION = "/model/v1/generation"
TEXT_TO_VIDEO = "vendorb_video_31"
IMAGE_TO_MODEL = "vendora_image_to_model"
IDLE = '[vendors.sim]\ntype = "sim"\nscript = {ending = "never"}\n'
URL = {"url": "https://example.com/a.png"}
PLACE = "input.0.params."


async def post(client: httpx.AsyncClient, model: str, *params: dict[str, Any], dry_run: bool = True) -> httpx.Response:
    body = {"model": model, "input": [{"params": each} for each in params], "dry_run": dry_run}
    return await client.post(GENERATION, json=body)


async def resolve(server: Server, model: str, params: dict[str, Any]) -> dict[str, Any]:
    """The params as the gateway would use them."""
    response = await post(server.client, model, params)
    assert response.status_code == 200, (params, response.text)
    return response.json()["input"][0]


async def refuse(server: Server, model: str, params: dict[str, Any], status: int = 400) -> dict[str, str]:
    """Every place that was refused, with its code."""
    response = await post(server.client, model, params)
    assert response.status_code == status, (str(params)[:200], response.text)
    error = response.json()["error"]
    assert error["param"] == error["details"][0]["loc"]
    return {detail["loc"].removeprefix(PLACE): detail["code"] for detail in error["details"]}


def picture(kind: str = "png", width: int = 64, height: int = 48) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(buffer, kind)
    return buffer.getvalue()


def data_uri(data: bytes, kind: str = "image/png") -> dict[str, str]:
    return {"url": f"data:{kind};base64,{base64.b64encode(data).decode()}"}


async def upload(client: httpx.AsyncClient, data: bytes) -> str:
    response = await client.post("/api/v1/files", files={"file": ("picture", data)})
    assert response.status_code == 201, response.text
    return response.json()["file_token"]


# -- text to video

VIDEO_DEFAULTS = {
    "prompt": "a boat",
    "durationSeconds": 8,
    "aspectRatio": "16:9",
    "resolution": "720p",
    "compressionQuality": "optimized",
    "personGeneration": "allow_adult",
}
VIDEO_ROWS: dict[str, tuple[list[Any], list[Any]]] = {
    "durationSeconds": ([4, 6, 8, 8.0, 4.0], [0, 5, 7, 9, -8, 8.5, "8", True, [8], {}, 1e300, 10**30]),
    "aspectRatio": (["16:9", "9:16"], ["1:1", "16x9", "", 16, True, ["16:9"], "16:9 "]),
    "resolution": (["720p", "1080p"], ["4k", "720", 720, "720P", "", True, {}]),
    "personGeneration": (["dont_allow", "allow_adult", "allow_all"], ["allow", "ALLOW_ALL", "", 1, True, []]),
}


async def test_video_defaults_are_filled(server):
    assert await resolve(server, TEXT_TO_VIDEO, {"prompt": "a boat"}) == VIDEO_DEFAULTS
    nulls = dict.fromkeys(VIDEO_DEFAULTS, None) | {"prompt": "a boat"}
    assert await resolve(server, TEXT_TO_VIDEO, nulls) == VIDEO_DEFAULTS


async def test_video_params_row_by_row(server):
    for name, (good, bad) in VIDEO_ROWS.items():
        for value in good:
            resolved = await resolve(server, TEXT_TO_VIDEO, {"prompt": "a boat", name: value})
            assert resolved == VIDEO_DEFAULTS | {name: value}
        for value in bad:
            assert await refuse(server, TEXT_TO_VIDEO, {"prompt": "x", name: value}) == {name: "invalid_params"}, value


async def test_compression_quality_is_taken_in_any_case(server):
    for given in ("optimized", "OPTIMIZED", "Lossless", "lossLESS"):
        resolved = await resolve(server, TEXT_TO_VIDEO, {"prompt": "x", "compressionQuality": given})
        assert resolved["compressionQuality"] == given.lower()
    for given in ("best", "", " lossless", 1, True, ["lossless"]):
        refused = await refuse(server, TEXT_TO_VIDEO, {"prompt": "x", "compressionQuality": given})
        assert refused == {"compressionQuality": "invalid_params"}


async def test_a_prompt_is_trimmed_and_counted_in_characters(server):
    family = "👩‍👩‍👧‍👦"
    for given, used in [
        ("x", "x"),
        (" \t\n a  b \r\n", "a  b"),
        ("\u00a0\u3000wide\u2003", "wide"),
        ("😀" * 4000, "😀" * 4000),
        ("  " + "é" * 4000 + "\n", "é" * 4000),
        (family * 571, family * 571),
        ("nul\x00inside", "nul\x00inside"),
    ]:
        assert (await resolve(server, TEXT_TO_VIDEO, {"prompt": given}))["prompt"] == used
    for given in ("", " ", "\n\t\u2003", "x" * 4001, "😀" * 4001, 5, True, ["x"], {"text": "x"}):
        assert await refuse(server, TEXT_TO_VIDEO, {"prompt": given}) == {"prompt": "invalid_params"}
    for given in ({}, {"prompt": None}):
        assert await refuse(server, TEXT_TO_VIDEO, given) == {"prompt": "missing_required_parameter"}


async def test_all_video_problems_come_at_once_with_hints(server):
    given = {
        "durationSeconds": "8",
        "aspectRatio": "1:1",
        "resolution": 720,
        "aspect_ratio": "16:9",
        "zzz": None,
        "q": 1,
    }
    response = await post(server.client, TEXT_TO_VIDEO, given)
    told = {detail["loc"]: detail["message"] for detail in response.json()["error"]["details"]}
    names = ("prompt", "durationSeconds", "aspectRatio", "resolution", "aspect_ratio", "q")
    assert set(told) == {PLACE + name for name in names}
    assert "Did you mean `aspectRatio`?" in told[PLACE + "aspect_ratio"]
    assert "Did you mean" not in told[PLACE + "q"]
    assert "4, 6 or 8" in (await post(server.client, TEXT_TO_VIDEO, {"prompt": "x", "durationSeconds": 5})).text


# -- image to model

MODEL_DEFAULTS = {"model_version": "v3.1-20260211", "texture": True, "pbr": True, "file": URL}
VERSIONS = {
    "v3.1-20260211": 1_500_000,
    "v3.0-20250812": 1_000_000,
    "v2.5-20250123": 500_000,
    "v2.0-20240919": 2_000_000,
    "Turbo-v1.0-20250506": 2_000_000,
    "P1-20260311": 20_000,
    "P2-20260801": 20_000,
    "v1.4-20240625": 2_000_000,
}
MODEL_ROWS: dict[str, tuple[list[Any], list[Any]]] = {
    "model_version": (list(VERSIONS), ["v3.1", "V3.1-20260211", "", 3.1, True, ["v3.1-20260211"]]),
    "model_seed": ([0, 1, 2147483647, 7.0], [-1, 2147483648, 0.5, "7", True, [], 10**30]),
    "face_limit": ([48, 10_000, 1_500_000, 48.0], [47, 0, -1, 2_000_001, 48.5, "48", True, [], 1e300]),
    "texture": ([True], ["true", 1, 0, "false", [], {}]),
    "pbr": ([True, False], ["true", 1, 0, "false", [], {}]),
}


async def test_model_defaults_are_filled_and_a_seed_is_drawn(server):
    seeds = set()
    for given in ({"file": URL}, {"file": URL} | dict.fromkeys(MODEL_ROWS, None)):
        resolved = await resolve(server, IMAGE_TO_MODEL, given)
        seeds.add(seed := resolved.pop("model_seed"))
        assert 0 <= seed <= 2147483647
        assert resolved == MODEL_DEFAULTS
    assert len(seeds) == 2


async def test_model_params_row_by_row(server):
    for name, (good, bad) in MODEL_ROWS.items():
        for value in good:
            resolved = await resolve(server, IMAGE_TO_MODEL, {"file": URL, name: value})
            assert resolved == {"model_seed": resolved["model_seed"]} | MODEL_DEFAULTS | {name: value}
        for value in bad:
            refused = await refuse(server, IMAGE_TO_MODEL, {"file": URL, name: value})
            assert refused == {name: "invalid_params"}, value


async def test_each_version_has_its_own_face_limit(server):
    for version, most in VERSIONS.items():
        params = {"file": URL, "model_version": version}
        assert (await resolve(server, IMAGE_TO_MODEL, params | {"face_limit": most}))["face_limit"] == most
        response = await post(server.client, IMAGE_TO_MODEL, params | {"face_limit": float(most + 1)})
        assert response.status_code == 400
        (detail,) = response.json()["error"]["details"]
        assert detail["loc"] == PLACE + "face_limit"
        assert str(most) in detail["message"]


async def test_pbr_needs_a_texture(server):
    for texture, pbr, used in [
        (None, None, (True, True)),
        (True, None, (True, True)),
        (True, False, (True, False)),
        (None, True, (True, True)),
        (None, False, (True, False)),
        (False, None, (False, False)),
        (False, False, (False, False)),
    ]:
        resolved = await resolve(server, IMAGE_TO_MODEL, {"file": URL, "texture": texture, "pbr": pbr})
        assert (resolved["texture"], resolved["pbr"]) == used
    assert await refuse(server, IMAGE_TO_MODEL, {"file": URL, "texture": False, "pbr": True}) == {
        "pbr": "invalid_params"
    }


async def test_a_seed_is_echoed_and_random_where_none_is_given(start):
    server = await start(IDLE)
    given = (await post(server.client, IMAGE_TO_MODEL, {"file": URL, "model_seed": 0}, dry_run=False)).json()
    assert (given["seed"], given["input"]["model_seed"]) == (0, 0)
    batch = await post(server.client, IMAGE_TO_MODEL, *[{"file": URL}] * 8, dry_run=False)
    jobs = batch.json()["jobs"]
    assert all(job["seed"] == job["input"]["model_seed"] for job in jobs)
    assert len({job["seed"] for job in jobs}) == 8
    assert (await server.submit(VIDEO))["seed"] is None


# -- the file

FILE_PROBLEMS: list[tuple[Any, str, str]] = [
    ({}, "file", "invalid_params"),
    ({"type": "png"}, "file", "invalid_params"),
    ({"url": None}, "file", "invalid_params"),
    ("https://example.com/a.png", "file", "invalid_params"),
    ([URL], "file", "invalid_params"),
    ({**URL, "file_token": "file_x"}, "file", "invalid_params"),
    ({**URL, "object": "s3://a/b"}, "file", "invalid_params"),
    ({"file_token": "file_x", "object": {"bucket": "a", "key": "b"}}, "file", "invalid_params"),
    ({"url": ""}, "file.url", "invalid_params"),
    ({"url": 5}, "file.url", "invalid_params"),
    ({"file_token": ""}, "file.file_token", "invalid_params"),
    ({"file_token": True}, "file.file_token", "invalid_params"),
    ({"object": ""}, "file.object", "invalid_params"),
    ({"object": 5}, "file.object", "invalid_params"),
    ({"object": []}, "file.object", "invalid_params"),
    ({"object": {"bucket": "a"}}, "file.object.key", "missing_required_parameter"),
    ({"object": {"bucket": "", "key": "b"}}, "file.object.bucket", "invalid_params"),
    ({"object": {"bucket": "a", "key": "b", "kee": 1}}, "file.object.kee", "unknown_param"),
    ({**URL, "type": "gif"}, "file.type", "invalid_params"),
    ({**URL, "type": "PNG"}, "file.type", "invalid_params"),
    ({**URL, "typ": "png"}, "file.typ", "unknown_param"),
    ({"url": "ftp://example.com/a.png"}, "file.url", "url_not_allowed"),
    ({"url": "file:///etc/passwd"}, "file.url", "url_not_allowed"),
    ({"url": "http://127.0.0.1/a.png"}, "file.url", "url_not_allowed"),
    ({"url": "http://169.254.169.254/latest"}, "file.url", "url_not_allowed"),
    ({"url": "https://user:secret@example.com/a.png"}, "file.url", "url_not_allowed"),
    ({"url": "example.com/a.png"}, "file.url", "url_not_allowed"),
]


async def test_the_file_is_exactly_one_of_three(server):
    for file, loc, code in FILE_PROBLEMS:
        assert await refuse(server, IMAGE_TO_MODEL, {"file": file}) == {loc: code}, file
    assert await refuse(server, IMAGE_TO_MODEL, {}) == {"file": "missing_required_parameter"}
    for file in (URL, {"object": "s3://a/b"}, {"object": {"bucket": "a", "key": "b"}}, {**URL, "type": "image"}):
        assert (await resolve(server, IMAGE_TO_MODEL, {"file": file}))["file"] == file


async def test_a_data_uri_is_opened_and_not_echoed(start):
    server = await start(IDLE)
    for kind, name in (("png", "png"), ("jpeg", "jpg"), ("jpeg", "jpeg"), ("webp", "webp"), ("png", "image")):
        data = picture(kind)
        file = {**data_uri(data, "text/plain"), "type": name}
        job = (await post(server.client, IMAGE_TO_MODEL, {"file": file}, dry_run=False)).json()
        assert job["input"]["file"] == {
            "type": name,
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
            "content_type": f"image/{kind}",
            "width": 64,
            "height": 48,
            "copy_token": job["input"]["file"]["copy_token"],
            "preview_url": job["input"]["file"]["preview_url"],
        }


async def test_data_uris_that_are_taken(server):
    data = picture(width=20, height=6000)
    encoded = base64.b64encode(data).decode()
    quoted = "".join(f"%{byte:02x}" for byte in data)
    for url in (
        f"data:image/png;base64,{encoded}",
        f"DATA:IMAGE/PNG;BASE64,{encoded}",
        f"data:;base64,{encoded}",
        f"data:image/png;base64,{encoded[:80]}\n{encoded[80:]}",
        f"data:image/png,{quoted}",
    ):
        await resolve(server, IMAGE_TO_MODEL, {"file": {"url": url}})


async def test_data_uris_that_are_refused(server):
    good = data_uri(picture())["url"]
    urls = [
        *("data:", "data:image/png", "data:,", "data:image/png;base64,", "data:image/png;base64,@@@@", "data:,hello"),
        *(good[:-3] + "é==", good[: len(good) // 2], good.replace("base64", "base65"), "data:image/svg+xml,<svg/>"),
        *(data_uri(picture(width=19))["url"], data_uri(picture(height=19))["url"]),
        *(data_uri(picture(width=6001, height=20))["url"], data_uri(picture(width=20, height=6001))["url"]),
        *(data_uri(picture("gif"))["url"], data_uri(picture("bmp"))["url"], data_uri(b"\x89PNG\r\n\x1a\n")["url"]),
        data_uri(picture() + b"\x00" * (20 << 20))["url"],
    ]
    for url in urls:
        assert await refuse(server, IMAGE_TO_MODEL, {"file": {"url": url}}) == {"file.url": "file_unreadable"}, url[:80]


async def test_a_declared_type_may_not_contradict_the_bytes(server):
    uri, token = data_uri(picture()), {"file_token": await upload(server.client, picture("webp"))}
    for file, wrong in ((uri, "jpg"), (uri, "jpeg"), (uri, "webp"), (token, "png")):
        refused = await refuse(server, IMAGE_TO_MODEL, {"file": {**file, "type": wrong}})
        assert refused == {"file.type": "invalid_params"}
    await resolve(server, IMAGE_TO_MODEL, {"file": {**token, "type": "webp"}})


async def test_a_file_token_is_of_the_same_account(start):
    server = await start(IDLE)
    data = picture("jpeg")
    token = await upload(server.client, data)
    job = (await post(server.client, IMAGE_TO_MODEL, {"file": {"file_token": token}}, dry_run=False)).json()
    assert job["input"]["file"]["file_token"] == token
    assert job["input"]["file"]["sha256"] == hashlib.sha256(data).hexdigest()
    colleague, stranger = await server.sign_in(), await server.sign_in("other")
    assert (await post(colleague, IMAGE_TO_MODEL, {"file": {"file_token": token}})).status_code == 200
    response = await post(stranger, IMAGE_TO_MODEL, {"file": {"file_token": token}})
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "file_not_found"
    assert response.json()["error"]["param"] == f"{PLACE}file.file_token"
    assert (await server.client.delete(f"/api/v1/files/{token}")).status_code == 204
    assert (await post(server.client, IMAGE_TO_MODEL, {"file": {"file_token": token}})).status_code == 404


async def test_a_missing_file_is_told_with_all_other_problems(server):
    nowhere = {"file": {"file_token": "file_nowhere"}}
    response = await post(server.client, IMAGE_TO_MODEL, nowhere, {"file": URL, "face_limit": 1}, nowhere)
    assert response.status_code == 400
    assert [detail["loc"] for detail in response.json()["error"]["details"]] == [
        "input.0.params.file.file_token",
        "input.1.params.face_limit",
        "input.2.params.file.file_token",
    ]
    assert await refuse(server, IMAGE_TO_MODEL, nowhere, 404) == {"file.file_token": "file_not_found"}


async def test_a_file_token_expires(start):
    server = await start(overrides={"jobs.file_retention": 0.3})
    token = await upload(server.client, picture())
    params = {"file": {"file_token": token}}
    async with asyncio.timeout(60):
        while True:
            response = await post(server.client, IMAGE_TO_MODEL, params)
            if response.status_code != 200:
                break
            await asyncio.sleep(0.02)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "file_not_found")


# -- the simulator's own


async def test_a_script_is_checked_like_any_other_param(server):
    for model in (VIDEO, MODEL):
        for script, loc in [
            ({"latency": "1"}, "script.latency"),
            ({"latency": -1}, "script.latency"),
            ({"ending": "maybe"}, "script.ending"),
            ({"submission_times": 0}, "script.submission_times"),
            ({"findable": 1}, "script.findable"),
            ({"latencies": 1}, "script.latencies"),
            ("quick", "script"),
        ]:
            assert list(await refuse(server, model, {"script": script})) == [loc]
        await resolve(server, model, {"script": {"latency": 0, "ending": "failed"}})
