"""`POST /api/v1/verify`: who signed a file, and whether it was changed since."""

import io
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import MODEL, VIDEO, Server
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from reading_manifests import SIGNED, download, primary, verify
from signers import make_signer, sign_file
from small_media import model, picture

PICTURE = "sim_text_to_image"


@pytest.fixture
async def server(start) -> Server:
    return await start(SIGNED)


async def sidecar_of(server: Server, job: dict[str, Any]) -> bytes:
    return (await server.client.get(urlsplit(primary(job)["sidecar_url"]).path)).content


def codes(report: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in report["problems"]]


@pytest.mark.parametrize("model_id", [VIDEO, PICTURE])
async def test_a_result_is_known_again(server, model_id):
    job = await server.generate(model_id, script={}, prompt="a gem")
    report = await verify(server, await download(server, primary(job)))
    assert (report["verdict"], report["is_trusted"], report["made_by_ai"]) == ("signed_here", True, True)
    assert report["generation"]["job_id"] == job["id"]
    assert report["signer"]["name"] == "Penstock"
    assert report["sha256"] == primary(job)["sha256"]
    assert report["problems"] == report["parents"] == []


async def test_another_account_sees_what_is_in_the_file_and_no_more(server):
    job = await server.generate(PICTURE, script={}, prompt="a secret prompt")
    data = await download(server, primary(job))
    stranger = await server.sign_in("other")
    report = (await stranger.post("/api/v1/verify", files={"file": ("file", data)})).json()
    assert report["generation"]["job_id"] == job["id"]
    assert "secret" not in json.dumps(report)
    answer = await stranger.post("/api/v1/verify", json={"job": job["id"]})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "job")


async def test_a_file_may_be_sent_as_the_body_or_named(server):
    job = await server.generate(PICTURE, script={}, prompt="a gem")
    data = await download(server, primary(job))
    token = (await server.client.post("/api/v1/files", files={"file": ("a.png", data)})).json()["file_token"]
    whole = await server.client.post("/api/v1/verify", content=data, headers={"content-type": "image/png"})
    upload = await server.client.post("/api/v1/verify", json={"file_token": token})
    output = await server.client.post("/api/v1/verify", json={"job": job["id"], "output": 0})
    for answer in (whole, upload, output):
        assert answer.status_code == 200, answer.text
        assert (answer.json()["verdict"], answer.json()["generation"]["job_id"]) == ("signed_here", job["id"])


@pytest.mark.parametrize("model_id", [VIDEO, PICTURE])
async def test_one_changed_byte_is_noticed(server, model_id):
    data = bytearray(await download(server, primary(await server.generate(model_id, script={}, prompt="a gem"))))
    data[-40] ^= 1
    report = await verify(server, bytes(data))
    assert report["verdict"] == "tampered"
    assert codes(report)[0] in ("assertion.dataHash.mismatch", "assertion.bmffHash.mismatch")


async def test_a_changed_claim_is_noticed(server):
    job = await server.generate(PICTURE, script={}, prompt="a gem")
    data = await download(server, primary(job))
    changed = data.replace(job["id"].encode(), job["id"][:-1].encode() + b"0" if job["id"][-1] != "0" else b"1")
    report = await verify(server, changed)
    assert report["verdict"] == "tampered"
    assert report["problems"]


async def test_a_picture_saved_again_is_unsigned(server):
    data = await download(server, primary(await server.generate(PICTURE, script={}, prompt="a gem")))
    again = io.BytesIO()
    Image.open(io.BytesIO(data)).save(again, "PNG")
    report = await verify(server, again.getvalue())
    assert (report["verdict"], report["signer"], report["generation"]) == ("unsigned", None, None)


async def test_another_signer_is_named_and_trusted_only_if_the_operator_trusts_it(start, tmp_path):
    acme, data = make_signer("Acme Studio"), picture()
    signed = sign_file(acme, "image/png", data)
    report = await verify(await start(SIGNED), signed)
    assert (report["verdict"], report["is_trusted"]) == ("signed_elsewhere", False)
    assert (report["signer"]["name"], report["signer"]["organization"]) == ("Acme Studio", "Acme")
    (tmp_path / "roots.pem").write_text(acme.root)
    report = await verify(await start(SIGNED + 'trust = "roots.pem"\n'), signed)
    assert (report["verdict"], report["is_trusted"]) == ("signed_elsewhere", True)


async def test_a_signer_that_only_has_our_name_is_not_us(server):
    signed = sign_file(make_signer("Penstock"), "image/png", picture())
    report = await verify(server, signed)
    assert (report["verdict"], report["is_trusted"]) == ("signed_elsewhere", False)


async def test_a_model_is_proved_by_its_sidecar(server):
    job = await server.generate(MODEL, script={})
    data, sidecar = await download(server, primary(job)), await sidecar_of(server, job)
    report = await verify(server, data, sidecar=sidecar)
    assert (report["verdict"], report["is_trusted"]) == ("signed_here", True)
    assert report["generation"]["job_id"] == job["id"]
    named = (await server.client.post("/api/v1/verify", json={"job": job["id"]})).json()
    assert named == report
    alone = await verify(server, data)
    assert (alone["verdict"], alone["generation"], codes(alone)) == ("unsigned", None, ["sidecar.missing"])
    assert (await verify(server, model()))["problems"] == []


async def test_a_sidecar_of_another_model_or_a_broken_one_is_noticed(server):
    job = await server.generate(MODEL, script={})
    sidecar = await sidecar_of(server, job)
    report = await verify(server, model(), sidecar=sidecar)
    assert (report["verdict"], codes(report)) == ("tampered", ["sidecar.hash.mismatch"])
    head, payload, signature = sidecar.decode().split(".")
    for broken in (
        f"{head}.{payload[:-4]}AAAA.{signature}",
        f"{head}.{payload}.{signature[:-8]}AAAAAAAA",
        "no sidecar",
        "a.b.c",
    ):
        report = await verify(server, model(), sidecar=broken)
        assert (report["verdict"], codes(report)) == ("tampered", ["sidecar.invalid"])


async def test_other_readers_can_get_our_root(server):
    answer = await server.client.get("/api/v1/verify/certificate")
    assert answer.text == server.gateway.credential.anchors
    assert answer.headers["content-type"] == "application/x-pem-file"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "file_token"),
        ({"file_token": "file_x", "job": "job_x"}, "file_token"),
        ({"file_token": "file_x"}, "file_token"),
        ({"job": "job_x"}, "job"),
        ({"file_token": "file_x", "output": 0}, "output"),
        ({"url": "https://example.com/a.png"}, "url"),
    ],
)
async def test_a_wrong_request_names_the_field(server, body, param):
    answer = await server.client.post("/api/v1/verify", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


async def test_an_empty_file_is_refused(server):
    answer = await server.client.post("/api/v1/verify", content=b"", headers={"content-type": "image/png"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")
    assert (
        await server.client.post("/api/v1/verify", content=b"x" * (21 << 20), headers={"content-type": "image/png"})
    ).status_code == 200
    large = await server.client.post(
        "/api/v1/verify", content=picture() + bytes(21 << 20), headers={"content-type": "image/png"}
    )
    assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_no_damaged_file_makes_the_server_fail(server, data):
    """Whatever is cut, changed or put in, the answer is a report or says that the file cannot be read."""
    if not hasattr(server, "originals"):
        given = {PICTURE: {"prompt": "a gem"}, VIDEO: {}, MODEL: {}}
        jobs = [await server.generate(name, script={}, **params) for name, params in given.items()]
        server.originals = [await download(server, primary(job)) for job in jobs]
        server.sidecar = await sidecar_of(server, jobs[2])
    file = bytearray(data.draw(st.sampled_from(server.originals)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, min(len(file) - 1, 14_000)))
        file[place : place + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    sidecar = bytearray(server.sidecar)
    sidecar[data.draw(st.integers(0, len(sidecar) - 1))] = data.draw(st.integers(0, 255))
    fields = data.draw(st.sampled_from([{}, {"sidecar": bytes(sidecar)}]))
    answer = await server.client.post("/api/v1/verify", files={"file": ("file", bytes(file))}, data=fields)
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        assert answer.json()["verdict"] in ("tampered", "unsigned", "signed_here")
