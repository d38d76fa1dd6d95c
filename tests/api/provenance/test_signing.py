"""Signed results: pictures, films and 3D models say by whom and how they were made."""

import io
import json
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import av
import broken_work
import pytest
import trimesh
from conftest import MODEL, VIDEO, Server
from doubles import openai_images
from doubles.openai_images import OpenAIImagesDouble, draw
from PIL import Image, ImageChops
from reading_manifests import (
    SIGNED,
    assertion,
    download,
    primary,
    read_all,
    read_manifest,
    read_sidecar,
    verify,
)
from signers import make_signer, sign_file

from penstock.inspection import worker_pool
from penstock.jobs.files import signing

PICTURE = "sim_text_to_image"


@pytest.fixture
async def server(start) -> Server:
    return await start(SIGNED)


@pytest.fixture
async def openai() -> AsyncGenerator[OpenAIImagesDouble]:
    double = OpenAIImagesDouble()
    await double.listen()
    yield double
    await double.hide()


async def test_a_film_says_how_it_was_made(server):
    job = await server.generate(VIDEO, script={}, prompt="a secret prompt")
    data = await download(server, primary(job))
    assert primary(job)["provenance"] == "c2pa"
    manifest = read_manifest(server, "video/mp4", data)
    facts = assertion(manifest, "penstock.generation")
    assert facts["job_id"] == job["id"]
    assert (facts["model"], facts["vendor"]) == (VIDEO, "sim")
    assert facts["created_at"] >= job["started_at"]
    assert len(facts["params_sha256"]) == 64
    (action,) = assertion(manifest, "c2pa.actions.v2")["actions"]
    assert action["action"] == "c2pa.created"
    assert action["digitalSourceType"].endswith("/trainedAlgorithmicMedia")
    assert manifest["claim_generator_info"][0]["name"] == "Penstock"
    assert b"secret prompt" not in data
    with av.open(io.BytesIO(data)) as film:
        assert sum(1 for _ in film.decode(video=0)) > 0


async def test_a_model_says_so_inside_and_has_a_signed_sidecar(server):
    job = await server.generate(MODEL, script={}, model_seed=7)
    output = primary(job)
    data = await download(server, output)
    assert output["provenance"] == "sidecar"
    scene = trimesh.load(io.BytesIO(data), file_type="glb")
    assert sum(len(mesh.faces) for mesh in scene.geometry.values()) == output["faces"]
    length = int.from_bytes(data[12:16], "little")
    inside = json.loads(data[20 : 20 + length])["asset"]["extras"]["penstock"]
    signed = await server.client.get(urlsplit(output["sidecar_url"]).path)
    content, leaf = read_sidecar(signed.content)
    assert content == {"sha256": output["sha256"], "generation": inside}
    assert (inside["job_id"], inside["seed"]) == (job["id"], 7)
    assert leaf == server.gateway.credential.chain[0]


async def test_a_preview_is_signed_as_its_result_is(server):
    job = await server.generate(MODEL, script={})
    (preview,) = [each for each in job["outputs"] if each["role"] == "preview"]
    assert preview["provenance"] == "c2pa"
    manifest = read_manifest(server, preview["content_type"], await download(server, preview))
    assert assertion(manifest, "penstock.generation")["job_id"] == job["id"]


async def test_a_result_too_large_for_a_manifest_gets_a_sidecar(server, monkeypatch):
    monkeypatch.setattr(signing, "MAX_EMBEDDED_BYTES", 1000)
    job = await server.generate(VIDEO, script={}, prompt="a boat")
    output = primary(job)
    assert output["provenance"] == "sidecar"
    data = await download(server, output)
    sidecar = (await server.client.get(urlsplit(output["sidecar_url"]).path)).content
    assert read_sidecar(sidecar)[0]["sha256"] == output["sha256"]
    assert (await verify(server, data, sidecar=sidecar))["verdict"] == "signed_here"
    assert (await verify(server, data))["verdict"] == "unsigned"
    named = (await server.client.post("/api/v1/verify", json={"job": job["id"]})).json()
    assert (named["verdict"], named["generation"]["job_id"]) == ("signed_here", job["id"])


async def test_whatever_is_put_behind_a_film_is_noticed(server):
    data = await download(server, primary(await server.generate(VIDEO, script={}, prompt="a boat")))
    for kind in (b"free", b"skip", b"mdat", b"uuid"):
        report = await verify(server, data + (40).to_bytes(4) + kind + bytes(32))
        assert (report["verdict"], report["is_trusted"]) == ("tampered", False), kind


async def test_a_sidecar_needs_the_key_or_the_signed_link(server):
    job = await server.generate(MODEL, script={})
    link = urlsplit(primary(job)["sidecar_url"])
    stranger = await server.sign_in("other")
    assert (await stranger.get(link.path)).status_code == 404
    server.client.headers.pop("authorization")
    assert (await server.client.get(link.path)).status_code == 401
    assert (await server.client.get(f"{link.path}?{link.query}")).status_code == 200


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
async def test_a_picture_of_every_type_is_signed_and_looks_as_before(start, openai, kind):
    server = await start(openai.settings() + SIGNED)
    job = await server.generate("openai_image", prompt="a boat", output_format=kind, size="1024x1024")
    data = await download(server, primary(job))
    manifest = read_manifest(server, f"image/{kind}", data)
    assert assertion(manifest, "penstock.generation")["vendor"] == "openai_images"
    signed = Image.open(io.BytesIO(data))
    assert signed.format == kind.upper()
    original = Image.open(io.BytesIO(draw("1024x1024", kind)))
    assert ImageChops.difference(signed.convert("RGB"), original.convert("RGB")).getbbox() is None


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
async def test_a_vendors_own_manifest_is_kept_as_the_parent(start, openai, monkeypatch, kind):
    vendor = make_signer("Acme Studio")
    paint = partial(draw, background="auto")
    monkeypatch.setattr(openai_images, "draw", lambda *args: sign_file(vendor, f"image/{args[1]}", paint(*args[:2])))
    server = await start(openai.settings() + SIGNED)
    job = await server.generate("openai_image", prompt="a boat", output_format=kind, size="1024x1024")
    data = await download(server, primary(job))
    manifest = read_manifest(server, f"image/{kind}", data)
    (parent,) = manifest["ingredients"]
    assert parent["relationship"] == "parentOf"
    theirs = read_all(f"image/{kind}", data)["manifests"][parent["active_manifest"]]
    assert theirs["signature_info"]["common_name"] == "Acme Studio"
    (action,) = assertion(manifest, "c2pa.actions.v2")["actions"]
    assert action["action"] == "c2pa.opened"
    assert action["digitalSourceType"].endswith("/trainedAlgorithmicMedia")
    report = await verify(server, data)
    assert report["verdict"] == "signed_here"
    assert [each["signature"]["name"] for each in report["parents"]] == ["Acme Studio"]


async def test_a_long_manifest_of_a_jpeg_is_signed_although_it_is_cut_into_segments(start, openai, monkeypatch):
    vendor = make_signer("Acme Studio")

    def paint(size: str, kind: str, *_: Any) -> bytes:
        return sign_file(vendor, "image/jpeg", draw(size, kind), {"text": "long " * 40_000})

    monkeypatch.setattr(openai_images, "draw", paint)
    server = await start(openai.settings() + SIGNED)
    job = await server.generate("openai_image", prompt="a boat", output_format="jpeg", size="1024x1024")
    data = await download(server, primary(job))
    assert len(read_manifest(server, "image/jpeg", data)["ingredients"]) == 1


async def test_inputs_and_parents_are_named_by_their_digests(server):
    first = await server.generate(PICTURE, script={}, prompt="a gem")
    parent = primary(first)
    second = await server.generate(MODEL, script={}, file={"job": first["id"]})
    signed = await server.client.get(urlsplit(primary(second)["sidecar_url"]).path)
    (given,) = read_sidecar(signed.content)[0]["generation"]["inputs"]
    assert given["path"] == "file"
    assert (given["sha256"], given["job_id"], given["asset_id"]) == (parent["sha256"], first["id"], parent["id"])


async def test_equal_params_have_equal_digests(server):
    def digest(job: dict[str, Any], data: bytes) -> str:
        return assertion(read_manifest(server, "image/png", data), "penstock.generation")["params_sha256"]

    jobs = [await server.generate(PICTURE, script={}, prompt=prompt, seed=1) for prompt in ("one", "one", "two")]
    found = [digest(job, await download(server, primary(job))) for job in jobs]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    "fault", [broken_work.crash, broken_work.fail, broken_work.sign_another_thing, broken_work.lie]
)
async def test_a_result_that_cannot_be_signed_is_kept_with_a_warning(server, monkeypatch, fault):
    monkeypatch.setattr(signing, "draft_manifest", fault)
    job = await server.generate(PICTURE, script={}, prompt="a gem")
    assert primary(job)["provenance"] is None
    assert signing.UNSIGNED in job["warnings"]
    data = await download(server, primary(job))
    assert Image.open(io.BytesIO(data)).format == "PNG"
    assert (await verify(server, data))["verdict"] == "unsigned"


async def test_the_key_stays_out_of_the_process_that_opens_the_file(server, monkeypatch):
    sent: list[str] = []
    errand = worker_pool.Errand
    monkeypatch.setattr(worker_pool, "Errand", lambda **fields: sent.append(repr(fields)) or errand(**fields))
    job = await server.generate(PICTURE, script={}, prompt="a gem")
    assert primary(job)["provenance"] == "c2pa"
    private = server.gateway.credential.key.private_numbers().private_value
    (line,) = [each for each in sent if "draft_manifest" in each]
    assert "BEGIN CERTIFICATE" in line
    for secret in ("PRIVATE KEY", private.to_bytes(32).hex(), str(private)):
        assert secret not in line


async def test_a_crash_of_the_child_is_no_reason_to_leave_it_unsigned(server, monkeypatch):
    monkeypatch.setattr(signing, "draft_manifest", broken_work.crash_once)
    job = await server.generate(PICTURE, script={}, prompt="a gem")
    assert primary(job)["provenance"] == "c2pa"


async def test_results_stay_as_they_came_when_signing_is_off(start):
    server = await start(SIGNED, {"provenance.results": "unsigned"})
    job = await server.generate(MODEL, script={})
    assert primary(job)["provenance"] is primary(job)["sidecar_url"] is None
    assert b"penstock" not in (await download(server, primary(job)))[:4096]


async def test_servers_on_one_store_sign_with_one_certificate(start):
    first = await start(SIGNED)
    second = await start(SIGNED)
    assert first.gateway.credential.certificates == second.gateway.credential.certificates
    assert first.gateway.credential.is_own
