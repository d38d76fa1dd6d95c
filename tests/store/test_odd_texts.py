"""Whatever text or number a caller sends, on either database: stored as it is, not found, or refused; never a 5xx."""

import json
from urllib.parse import quote

import httpx
import pytest
from admin_steps import WITH_ADMIN, administer

ODD = ["a\0b", "\ud800", "ü" * 128, "\u2028", "'; DROP TABLE jobs; --", "%s %(x)s ?", "\\"]
MASTER_KEY = bytes(range(32)).hex()
HUGE = [2**31, 2**63, 10**30]


@pytest.fixture
async def server(store_url, start):  # in this order: the gateway ends first
    sealing = f'[sealing]\nmaster_key = "{MASTER_KEY}"\n'
    return await start(WITH_ADMIN + sealing, {"database_url": store_url})


async def test_whatever_is_asked_for_is_answered(server):
    admin = await administer(server)
    body = {"model": "sim_text_to_video", "input": [{"params": {"script": {"latency": 0}}}]}
    for text in ODD:
        asked = [
            await _post(server.client, "/model/v1/generation", body | {"client_ref": text}),
            await _post(server.client, "/model/v1/generation", body | {"metadata": {"k": text}}),
            await _post(server.client, "/model/v1/generation", body | {"model": text}),
            await server.client.get("/api/v1/jobs", params={"client_ref": _sendable(text)}),
            await server.client.get("/api/v1/jobs", params={"model": _sendable(text), "batch_id": _sendable(text)}),
            await server.client.get(f"/api/v1/jobs/job_{_quoted(text)}"),
            await server.client.get(f"/assets/asset_{_quoted(text)}"),
            await server.client.get(f"/api/v1/files/file_{_quoted(text)}"),
            await _post(server.client, "/api/v1/webhooks", {"url": "https://a.test", "description": text}),
            await _post(admin, "/admin/v1/accounts", {"name": text}),
            await _post(admin, "/admin/v1/keys", {"account": "default", "name": text}),
            await admin.get(f"/admin/v1/accounts/{_quoted(text)}"),
            await admin.get("/admin/v1/ledger", params={"subject": _sendable(text)}),
            *[await _change_settings(admin, wish) for wish in _settings_with(text)],
        ]
        told = [(answer.request.method, answer.request.url.path, answer.status_code) for answer in asked]
        assert [each for each in told if each[2] >= 500] == [], text
        assert all("error" in answer.json() for answer in asked if answer.status_code >= 400)


@pytest.mark.parametrize("number", HUGE)
async def test_whatever_number_is_asked_for_is_answered(server, number):
    admin = await administer(server)
    asked = [
        await admin.post("/admin/v1/accounts", json={"name": "mill", "limits": {"requests_per_minute": number}}),
        await admin.post("/admin/v1/keys", json={"account": "default", "limits": {"concurrent_jobs": number}}),
        await admin.get("/admin/v1/audit", params={"before": number}),
        await server.client.get("/api/v1/jobs", params={"created_after": str(number)}),
        await server.client.post(
            "/model/v1/generation",
            json={"model": "sim_text_to_video", "input": [{"params": {"seed": number}}], "run_timeout": number},
        ),
    ]
    told = [(answer.request.method, answer.request.url.path, answer.status_code) for answer in asked]
    assert [each for each in told if each[2] >= 500] == []


def _settings_with(text: str) -> list[dict[str, object]]:
    """Changes of settings with a text in every place."""
    return [
        {"vendors": {text: {"type": "sim"}}},
        {"vendors": {"mine": {"type": text}}},
        {"vendors": {"mine": {"type": "sim", "api_key": text}}},
        {"vendors": {"mine": {"type": "sim", text: "x"}}},
        {"models": {"sim_text_to_video": {"vendor": "sim", "title": text}}},
        {"models": {"mine": {"vendor": "sim", "workflow": {text: {"a": [text]}}}}},
        {"limits": {text: 5}},
        {"limits": {"jobs.retention": text}},
        {"note": text, "limits": {}},
    ]


async def _change_settings(admin: httpx.AsyncClient, wish: dict[str, object]) -> httpx.Response:
    base = (await admin.get("/admin/v1/settings")).json()["version"]
    headers = {"content-type": "application/json"}
    content = json.dumps({"base_version": base, **wish}).encode()
    return await admin.patch("/admin/v1/settings", content=content, headers=headers)


async def _post(client: httpx.AsyncClient, path: str, body: object) -> httpx.Response:
    """With lone surrogates as they may be sent."""
    headers = {"content-type": "application/json"}
    return await client.post(path, content=json.dumps(body).encode(), headers=headers)


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _quoted(text: str) -> str:
    return quote(_sendable(text), safe="")
