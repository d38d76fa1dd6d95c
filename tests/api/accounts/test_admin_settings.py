"""Run-time settings over HTTP: changed, refused, followed by every server, restored, and without a secret in clear."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from admin_steps import WITH_ADMIN, administer, call, changes
from conftest import Server, Start
from ports import free_port
from steps import refused

SECRET = "sk-of-the-vendor-0123456789"
SIM = {"type": "sim", "api_key": SECRET}
MODEL = {"vendor": "late", "model": "video-large"}
VIDEO = "vendorb_video_31"


async def change(admin: httpx.AsyncClient, base: int, status: int = 200, **parts: Any) -> Any:
    return await call(admin, "PATCH", "/settings", {"base_version": base, **parts}, status)


async def models_of(server: Server) -> set[str]:
    found = (await server.client.get("/api/v1/models")).json()["data"]
    return {model["id"] for model in found}


async def test_a_vendor_is_added_used_disabled_and_removed(start: Start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    before = await models_of(server)
    await change(admin, 0, vendors={"late": SIM}, models={VIDEO: MODEL})
    job = await server.generate(VIDEO, prompt="A boat")
    assert job["status"] == "succeeded"
    found = await call(admin, "GET", "/settings")
    assert found["version"] == 1
    origins = {each["name"]: each["origin"] for each in found["vendors"]}
    assert origins == {"sim": "file", "late": "run_time"}
    assert [each["version"] for each in found["processes"]] == [1]
    await change(admin, 1, vendors={"late": {**SIM, "enabled": False}})
    assert await models_of(server) == before - {VIDEO}
    await change(admin, 2, vendors={"late": None}, models={VIDEO: None})
    assert await models_of(server) == before
    assert (await server.client.get("/readyz")).json()["settings_version"] == 3


async def test_wrong_changes_name_the_field_and_change_nothing(start: Start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await change(admin, 0, vendors={"late": SIM}, models={"mine": MODEL | {"vendor": "late"}, VIDEO: MODEL}, status=400)
    await change(admin, 0, vendors={"late": SIM}, models={VIDEO: MODEL})
    for parts, field in [
        ({"vendors": {"late": {**SIM, "api_kee": "x"}}}, "vendors.late.api_kee"),
        ({"vendors": {"late": {"type": "nothing"}}}, "vendors.late.type"),
        ({"vendors": {"late": None}}, f"models.{VIDEO}.vendor"),
        ({"models": {VIDEO: {"vendor": "nobody"}}}, f"models.{VIDEO}.vendor"),
        ({"models": {VIDEO: {}}}, f"models.{VIDEO}.routes"),
        (
            {"vendors": {"near": {"type": "openai_compatible", "base_url": "http://169.254.169.254"}}},
            "vendors.near.base_url",
        ),
    ]:
        answer = await change(admin, 1, **parts, status=400)
        assert answer["error"]["details"][0]["loc"] == field
        assert SECRET not in str(answer)
    answer = await change(admin, 1, vendors={"sim": SIM}, status=409)
    assert answer["error"]["code"] == "setting_from_file"
    answer = await call(admin, "PATCH", "/settings", {"vendors": {}}, 400)
    assert answer["error"]["param"] == "base_version"
    assert (await call(admin, "GET", "/settings"))["version"] == 1


async def test_of_two_administrators_one_gets_a_conflict(start: Start):
    admin = await administer(await start(WITH_ADMIN))
    wanted = [admin.patch("/admin/v1/settings", json={"base_version": 0, "vendors": {f"v{n}": SIM}}) for n in range(4)]
    answers = await asyncio.gather(*wanted)
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    [lost] = {answer.json()["error"]["code"] for answer in answers if answer.status_code == 409}
    assert lost == "settings_conflict"
    stale = await admin.patch("/admin/v1/settings", headers={"if-match": '"0"'}, json={"vendors": {}})
    refused(stale, 409, "settings_conflict")
    fresh = await admin.patch("/admin/v1/settings", headers={"if-match": '"1"'}, json={"models": {}})
    assert fresh.status_code == 200


async def test_a_restore_is_shown_before_it_is_made(start: Start):
    admin = await administer(await start(WITH_ADMIN))
    await change(admin, 0, vendors={"late": SIM})
    await change(admin, 1, vendors={"late": {**SIM, "api_key": "sk-another-key-98765"}})
    shown = await call(admin, "POST", "/settings/versions/1/restore", {"base_version": 2, "dry_run": True})
    secret = {"path": "vendors.late.api_key", "change": "changed", "before": "(secret)", "after": "(secret)"}
    assert (shown["dry_run"], shown["version"], shown["changes"]) == (True, 2, [secret])
    assert (await call(admin, "GET", "/settings"))["version"] == 2
    made = await call(admin, "POST", "/settings/versions/1/restore", {"base_version": 2})
    assert (made["dry_run"], made["version"], made["changes"]) == (False, 3, [secret])


async def test_a_version_comes_back_exactly(start: Start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await change(admin, 0, vendors={"late": SIM}, models={VIDEO: MODEL}, note="first")
    await change(admin, 1, vendors={"late": {**SIM, "api_key": "sk-another-key-98765"}})
    await call(admin, "PUT", "/settings", {"base_version": 2, "vendors": {}, "models": {}})
    made = await call(admin, "POST", "/settings/versions/1/restore", {"base_version": 3, "note": "back"})
    assert made["version"] == 4
    first, last = [await call(admin, "GET", f"/settings/versions/{number}") for number in (1, 4)]
    assert {part: first[part] for part in ("vendors", "models")} == {part: last[part] for part in ("vendors", "models")}
    assert (last["restored"], last["note"]) == (1, "back")
    assert (await server.generate(VIDEO, prompt="A boat"))["status"] == "succeeded"
    listed = await admin.get("/admin/v1/settings/versions", params={"limit": 3})
    assert [each["version"] for each in listed.json()["data"]] == [4, 3, 2]
    rest = await admin.get("/admin/v1/settings/versions", params={"cursor": listed.json()["next_cursor"]})
    assert [each["version"] for each in rest.json()["data"]] == [1]
    refused(await admin.get("/admin/v1/settings/versions/99"), 404, "setting_not_found")
    log = await changes(admin, action="settings.restored")
    assert log[0]["detail"]["restored"] == 1
    everything = str(log) + str(await changes(admin)) + str(first) + str(last)
    assert SECRET not in everything
    assert {"path": "vendors.late.api_key", "change": "added", "after": "(secret)"} in first["changes"]


async def test_a_dry_run_stores_nothing(start: Start):
    admin = await administer(await start(WITH_ADMIN))
    found = await change(admin, 0, vendors={"late": SIM}, dry_run=True)
    assert (found["version"], found["dry_run"], len(found["changes"])) == (0, True, 3)
    assert (await call(admin, "GET", "/settings"))["version"] == 0


async def test_no_secret_is_in_clear_and_a_restart_loses_nothing(start: Start, tmp_path: Path):
    folder = tmp_path / "kept"
    server = await start(WITH_ADMIN, data=folder)
    admin = await administer(server)
    await change(admin, 0, vendors={"late": SIM}, models={VIDEO: MODEL})
    for path in folder.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    again = await start(WITH_ADMIN, data=folder)
    assert (await again.client.get("/readyz")).json()["settings_version"] == 1
    found = await call(await administer(again), "GET", "/settings")
    assert [each["name"] for each in found["vendors"] if each["origin"] == "run_time"] == ["late"]


async def test_another_server_follows(start: Start, tmp_path: Path):
    folder = tmp_path / "shared"
    first, second = await start(WITH_ADMIN, data=folder), await start(WITH_ADMIN, data=folder)
    await change(await administer(first), 0, vendors={"late": SIM}, models={VIDEO: MODEL})
    async with asyncio.timeout(60):
        while (await second.client.get("/readyz")).json()["settings_version"] != 1:  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.01)


async def test_a_connection_is_tested(start: Start):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        status = b"200 OK" if SECRET.encode() in head else b"401 Unauthorized"
        writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    vendor = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = vendor.sockets[0].getsockname()[1]
    admin = await administer(await start(WITH_ADMIN))
    table = {"type": "openai_compatible", "base_url": f"http://127.0.0.1:{port}/v1", "api_key": SECRET}

    async def test(status: int = 200, **options: Any) -> Any:
        return await call(admin, "POST", "/settings/vendors/late/test", {"options": {**table, **options}}, status)

    assert (await test())["outcome"] == "ok"
    assert (await test(api_key="sk-wrong"))["outcome"] == "key_refused"
    assert (await test(base_url=f"http://127.0.0.1:{free_port()}"))["outcome"] == "unreachable"
    assert (await test(type="sim", base_url=""))["outcome"] == "inside"
    assert (await test(400, base_url="http://[fd00:ec2::254]"))["error"]["param"] == "vendors.late.base_url"
    await change(admin, 0, vendors={"late": table})
    assert (await call(admin, "POST", "/settings/vendors/late/test"))["ok"] is True
    assert (await call(admin, "POST", "/settings/vendors/sim/test"))["outcome"] == "inside"
    await call(admin, "POST", "/settings/vendors/nobody/test", status=404)
    for _ in range(40):
        answered = await admin.post("/admin/v1/settings/vendors/sim/test")
    refused(answered, 429, "rate_limited")
    vendor.close()


@pytest.mark.parametrize("path", ["/settings", "/settings/versions"])
async def test_callers_see_no_settings(start: Start, path: str):
    server = await start(WITH_ADMIN)
    answer = await server.client.get(f"/admin/v1{path}")
    refused(answer, 403, "scope_not_allowed")
    await call(await administer(server), "GET", path)
