"""Limits of the run-time settings, and the types of vendors, over HTTP."""

from typing import Any

import httpx
from admin_steps import WITH_ADMIN, administer, call
from conftest import Server, Start
from steps import refused

FROM_FILE = f"{WITH_ADMIN}\n[jobs]\nmax_waiting = 9\n"
LONG = {"latency": 3600}


async def limits(admin: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    found = await call(admin, "GET", "/settings")
    return {each["name"]: each for each in found["limits"]}


async def order(server: Server) -> httpx.Response:
    params = {"prompt": "A boat", "script": LONG}
    return await server.client.post(
        "/model/v1/generation", json={"model": "sim_text_to_video", "input": [{"params": params}]}
    )


async def test_a_limit_counts_at_once_and_comes_back_with_its_version(start: Start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    assert (await order(server)).status_code == 202
    wanted = {"jobs.max_waiting": 1, "jobs.retention": "2d", "jobs.file_retention": "forever"}
    made = await call(admin, "PATCH", "/settings", {"base_version": 0, "limits": wanted})
    assert {each["path"] for each in made["changes"]} == {f"limits.{name}" for name in wanted}
    refused(await order(server), 429, "queue_full")
    found = await limits(admin)
    assert (found["jobs.retention"]["value"], found["jobs.retention"]["origin"]) == (2 * 86_400, "run_time")
    assert (found["jobs.file_retention"]["value"], found["jobs.file_retention"]["default"]) == (None, 86_400)
    await call(admin, "PATCH", "/settings", {"base_version": 1, "limits": {"jobs.max_waiting": None}})
    assert (await order(server)).status_code == 202
    await call(admin, "POST", "/settings/versions/1/restore", {"base_version": 2})
    refused(await order(server), 429, "queue_full")
    assert (await call(admin, "GET", "/settings/versions/3"))["limits"] == wanted


async def test_wrong_limits_name_the_field(start: Start):
    admin = await administer(await start(WITH_ADMIN))
    for name, value in [
        ("jobs.max_waiting", 0),
        ("jobs.max_waiting", "many"),
        ("jobs.max_waiting", [1]),
        ("jobs.retention", "soon"),
        ("jobs.max_timeout", 1),
        ("server.admin_key", "a-new-administrator's-key"),
        ("server.port", 80),
        ("jobs", 1),
    ]:
        body = {"base_version": 0, "limits": {name: value}}
        answer = await call(admin, "PATCH", "/settings", body, 400)
        assert answer["error"]["details"][0]["loc"] == f"limits.{name}", answer
    assert (await call(admin, "GET", "/settings"))["version"] == 0


async def test_the_file_wins_and_shadows(start: Start, tmp_path: Any):
    folder = tmp_path / "kept"
    admin = await administer(await start(WITH_ADMIN, data=folder))
    await call(admin, "PATCH", "/settings", {"base_version": 0, "limits": {"jobs.max_waiting": 5}})
    admin = await administer(await start(FROM_FILE, data=folder))
    found = (await limits(admin))["jobs.max_waiting"]
    assert (found["value"], found["origin"], found["run_time"], found["shadowed"]) == (9, "file", 5, True)
    answer = await call(admin, "PATCH", "/settings", {"base_version": 1, "limits": {"jobs.max_waiting": 6}}, 409)
    assert answer["error"]["code"] == "setting_from_file"


async def test_types_of_vendors_have_forms_and_models(start: Start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    found = {each["type"]: each for each in (await call(admin, "GET", "/settings/vendor-types"))["data"]}
    assert {"openai_compatible", "comfyui", "luma", "tripo", "sim"} <= found.keys()
    chat, tripo = found["openai_compatible"], found["tripo"]
    assert (chat["kind"], chat["title"], chat["built_in"]) == ("chat", "OpenAI Compatible", False)
    assert chat["options"]["properties"]["base_url"]["default"] == "https://api.openai.com/v1"
    assert "type" not in chat["options"]["properties"]
    assert all("api_key" in each["secrets"] for each in found.values())
    assert {model["kind"] for model in tripo["models"]} == {"3d"}
    assert found["sim"]["built_in"]
    refused(await server.client.get("/admin/v1/settings/vendor-types"), 403, "scope_not_allowed")
