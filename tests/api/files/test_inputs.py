"""Inputs of any kind: by bytes, token and URL, alone or in lists, and as outputs of earlier jobs."""

import asyncio
import base64
import hashlib
import struct
from typing import Any

import httpx
import small_media
from conftest import MODEL, VIDEO, Server
from steps import FAILS, GENERATION, NEVER, body_of, count_jobs, look, refused

PICTURES = "sim_text_to_image"
PARAMS = "input.0.params"


def inline(data: bytes) -> dict[str, str]:
    return {"data": base64.b64encode(data).decode()}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def submit(client: httpx.AsyncClient, model: str = VIDEO, **params: Any) -> httpx.Response:
    return await client.post(GENERATION, json=body_of({"script": {"latency": 0.05}, **params}, model=model))


async def upload(client: httpx.AsyncClient, data: bytes, name: str) -> dict[str, Any]:
    answer = await client.post("/api/v1/files", files={"file": (name, data)})
    assert answer.status_code == 201, answer.text
    return answer.json()


def problem(answer: httpx.Response, status: int = 400, code: str = "invalid_params") -> tuple[str, str]:
    """Return the path of the only problem below the params, and its message."""
    (detail,) = refused(answer, status, code)["details"]
    assert detail["code"] == code
    return detail["loc"].removeprefix(f"{PARAMS}."), detail["message"]


# -- files of any kind


async def test_files_of_every_kind_lie_on_the_job_by_path(server):
    red, blue, film, sound = (
        small_media.picture(),
        small_media.picture(colour="blue"),
        small_media.film(),
        small_media.sound(),
    )
    token = (await upload(server.client, film, "clip.mp4"))["file_token"]
    uri = f"data:audio/wav;base64,{base64.b64encode(sound).decode()}"
    answer = await submit(
        server.client,
        frame_images=[inline(red), {**inline(blue), "role": "last_frame", "type": "png"}],
        input_references=inline(red),
        video={"file_token": token},
        audio={"url": uri, "type": "wav"},
        mesh=inline(small_media.model()),
    )
    assert answer.status_code == 202, answer.text
    job = await server.finish(answer.json()["id"])
    given = job["input"]
    assert (job["status"], job["parents"]) == ("succeeded", [])
    assert [(each["sha256"], each["role"]) for each in given["frame_images"]] == [
        (digest(red), "first_frame"),
        (digest(blue), "last_frame"),
    ]
    assert [each["sha256"] for each in given["input_references"]] == [digest(red)], "one file is a list of one"
    assert (given["video"]["content_type"], given["video"]["duration_seconds"]) == ("video/mp4", 1.0)
    assert (given["video"]["width"], given["video"]["name"]) == (64, "clip.mp4")
    assert (given["audio"]["content_type"], given["audio"]["duration_seconds"]) == ("audio/wav", 0.25)
    assert "width" not in given["audio"]
    assert (given["mesh"]["content_type"], given["mesh"]["bytes"]) == ("model/gltf-binary", len(small_media.model()))
    for file, data in ((given["frame_images"][1], blue), (given["video"], film), (given["audio"], sound)):
        assert (await server.client.get(file["preview_url"])).content == data
        assert {"data", "url"}.isdisjoint(file)


async def test_an_upload_of_any_kind_is_described(server):
    expected = {
        "sound.wav": (small_media.sound(), "audio", "audio/wav", 0, 0.25),
        "film.mp4": (small_media.film(), "video", "video/mp4", 64, 1.0),
        "gem.glb": (small_media.model(), "3d", "model/gltf-binary", 0, None),
        "cat.webp": (small_media.picture("WEBP"), "image", "image/webp", 40, None),
    }
    for name, (data, *facts) in expected.items():
        record = await upload(server.client, data, name)
        assert [record[field] for field in ("kind", "content_type", "width", "duration_seconds")] == facts, name
        assert (await server.client.get(f"/api/v1/files/{record['file_token']}")).json() == record


async def test_a_film_may_be_larger_than_a_json_body(server):
    padding = 34 << 20
    film = small_media.film() + struct.pack(">I4s", padding + 8, b"free") + bytes(padding)
    record = await upload(server.client, film, "long.mp4")
    assert (record["bytes"], record["sha256"]) == (len(film), digest(film))
    answer = await server.client.post(GENERATION, content=bytes(33 << 20))
    assert answer.status_code == 413


async def test_a_file_of_the_wrong_kind_or_type_is_refused(server):
    token = (await upload(server.client, small_media.sound(), "a.wav"))["file_token"]
    place, message = problem(await submit(server.client, video={"file_token": token}))
    assert (place, message) == ("video.file_token", "The file is a sound; allowed here: film.")
    place, _ = problem(await submit(server.client, audio=inline(small_media.film())), code="file_unreadable")
    assert place == "audio.data"
    place, message = problem(await submit(server.client, audio={"file_token": token, "type": "mp3"}))
    assert (place, message) == ("audio.type", '`type` says "mp3", but the bytes are audio/wav.')
    place, _ = problem(await submit(server.client, mesh=inline(b"no model")), code="file_unreadable")
    assert place == "mesh.data"
    assert await count_jobs(server) == 0


async def test_sources_lists_and_roles_are_checked(server):
    png = inline(small_media.picture())
    for params, place in (
        ({"video": {}}, "video"),
        ({"video": {**png, "url": "https://example.com/a.mp4"}}, "video"),
        ({"video": {**png, "output": 0}}, "video.output"),
        ({"video": {"job": "job_1", "output": 100}}, "video.output"),
        ({"video": {"job": "job_1", "output": "best"}}, "video.output"),
        ({"frame_images": [{**png, "role": "middle_frame"}]}, "frame_images.0.role"),
        ({"frame_images": [png, png, png]}, "frame_images"),
        ({"input_references": []}, "input_references"),
    ):
        assert problem(await submit(server.client, **params))[0] == place, params
    error = refused(await submit(server.client, input_references=[{"date": "…"}]), 400, "invalid_params")
    named = {detail["loc"].removeprefix(f"{PARAMS}."): detail["message"] for detail in error["details"]}
    assert list(named) == ["input_references.0.date", "input_references.0"]
    assert "Did you mean `data`?" in named["input_references.0.date"]


async def test_a_dry_run_checks_files_and_keeps_none(server):
    body = body_of({"audio": inline(small_media.sound()), "script": {}}, dry_run=True)
    answer = await server.client.post(GENERATION, json=body)
    assert (answer.status_code, answer.json()["valid"]) == (200, True)
    wrong = body_of({"audio": inline(small_media.picture()), "script": {}}, dry_run=True)
    assert problem(await server.client.post(GENERATION, json=wrong), code="file_unreadable")[0] == "audio.data"
    assert not (server.gateway.settings.data / "assets" / "files").exists()
    assert await count_jobs(server) == 0


# -- outputs of earlier jobs


async def make_pictures(server: Server, count: int = 1, **top: Any) -> dict[str, Any]:
    params = {"prompt": "A gem", "n": count, "seed": 1, "size": "128x96", "script": {"latency": 0.05}}
    answer = await server.client.post(GENERATION, json=body_of(params, model=PICTURES, **top))
    assert answer.status_code == 202, answer.text
    return await server.finish(answer.json()["id"])


async def test_outputs_become_inputs_where_they_lie(server):
    first = await make_pictures(server, 2)
    assert [output["role"] for output in first["outputs"]] == ["primary", "primary"]
    on_disk = sorted((server.gateway.settings.data / "assets").rglob("*"))
    frames = [{"job": first["id"], "output": 1}, {"job": first["id"], "output": "primary", "role": "last_frame"}]
    second = (await submit(server.client, frame_images=frames, input_references={"job": first["id"]})).json()
    assert sorted((server.gateway.settings.data / "assets").rglob("*")) == on_disk, "no byte was copied"
    second = await server.finish(second["id"])
    assert (second["status"], second["parents"]) == ("succeeded", [first["id"]])
    shas = [output["sha256"] for output in first["outputs"]]
    assert [file["sha256"] for file in second["input"]["frame_images"]] == shas[::-1]
    file = second["input"]["input_references"][0]
    assert (file["job"], file["width"], file["height"]) == (first["id"], 128, 96)
    assert "copy_token" not in file
    assert digest((await server.client.get(file["preview_url"])).content) == shas[0]


async def test_a_model_s_preview_and_a_film_become_inputs(server):
    gem = await server.generate(MODEL, script={})
    film = await server.generate(VIDEO, script={})
    answer = await submit(
        server.client,
        input_references=[{"job": gem["id"], "output": "preview"}],
        mesh={"job": gem["id"], "type": "glb"},
        video={"job": film["id"], "type": "mp4"},
    )
    job = await server.finish(answer.json()["id"])
    assert sorted(job["parents"]) == sorted([gem["id"], film["id"]])
    assert job["input"]["video"]["sha256"] == film["outputs"][0]["sha256"]
    place, message = problem(await submit(server.client, video={"job": gem["id"]}))
    assert (place, message) == ("video.output", "The file is a 3D model; allowed here: film.")
    assert problem(await submit(server.client, mesh={"job": gem["id"], "type": "fbx"}))[0] == "mesh.type"
    place, message = problem(await submit(server.client, video={"job": film["id"], "output": 1}))
    assert (place, message) == ("video.output", f"{film['id']} has 1 outputs, numbered from 0.")
    assert problem(await submit(server.client, video={"job": film["id"], "output": "preview"}))[0] == "video.output"


async def test_a_job_that_gives_no_output_is_refused(server):
    still_open = await server.submit(MODEL, script=NEVER)
    failed = await server.generate(MODEL, script=FAILS)
    for job, word in ((still_open, "not finished"), (failed, "failed and has no outputs")):
        place, message = problem(await submit(server.client, mesh={"job": job["id"]}), code="input_not_ready")
        assert (place, word in message) == ("mesh.job", True)
    gem = await server.generate(MODEL, script={})
    other = await server.sign_in("other")
    for client, job_id in ((other, gem["id"]), (server.client, "job_unknown")):
        assert problem(await submit(client, mesh={"job": job_id}), 404, "job_not_found")[0] == "mesh.job"
    assert (await server.client.delete(f"/api/v1/jobs/{gem['id']}")).status_code == 204
    assert problem(await submit(server.client, mesh={"job": gem["id"]}), code="job_deleted")[0] == "mesh.job"


async def test_a_repeated_request_returns_its_job_though_the_parent_is_gone(server):
    parent = await make_pictures(server)
    body = body_of({"input_references": {"job": parent["id"]}, "script": {"latency": 0.05}})
    headers = {"idempotency-key": "chain-1"}
    first = await server.client.post(GENERATION, json=body, headers=headers)
    await server.finish(first.json()["id"])
    await server.client.delete(f"/api/v1/jobs/{parent['id']}")
    again = await server.client.post(GENERATION, json=body, headers=headers)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert (again.json()["id"], again.json()["parents"]) == (first.json()["id"], [parent["id"]])


async def test_an_open_child_keeps_the_bytes_of_a_removed_parent(server):
    server.gateway.upkeep.sweeps = False  # only the test sweeps
    deleted, expiring = await make_pictures(server), await make_pictures(server, retention=0.5)
    references = [{"job": deleted["id"]}, {"job": expiring["id"]}]
    answer = await submit(server.client, input_references=references, script=NEVER)
    child = answer.json()
    shas = [file["sha256"] for file in child["input"]["input_references"]]
    assert (await server.client.delete(f"/api/v1/jobs/{deleted['id']}")).status_code == 204
    async with asyncio.timeout(60):
        while (await server.client.get(f"/api/v1/jobs/{expiring['id']}")).status_code != 410:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await server.gateway.upkeep.sweep()
    kept = [path.name for path in (server.gateway.settings.data / "assets").rglob("*.png")]
    assert {name.partition("-")[0] for name in kept} == {sha[:16] for sha in shas}, "the open child needs them"
    await server.client.post(f"/api/v1/jobs/{child['id']}/cancel")
    await server.finish(child["id"])
    await server.gateway.upkeep.sweep()
    assert list((server.gateway.settings.data / "assets").rglob("*.png")) == []
    done = await look(server.client, child["id"])
    assert done["parents"] == [deleted["id"], expiring["id"]]
    assert [file["sha256"] for file in done["input"]["input_references"]] == shas
