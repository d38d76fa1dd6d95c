"""What everyone used and how the vendors do, over the admin API: numbers and health, never an address or a secret."""

import json

import httpx
from admin_steps import WITH_ADMIN, administer, call
from chat_steps import HELLO, KEY, chatting
from conftest import MODEL, VIDEO
from steps import order, refused

CHAT = {"model": "status:500", "messages": HELLO}


async def test_usage_of_every_account_and_of_one(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    other = await server.sign_in("other")
    await server.generate(MODEL, face_limit=100, script={})
    job = await order(other, {"ending": "failed"})
    await other.get(f"/api/v1/jobs/{job['id']}", params={"wait": 20})
    whole = await call(admin, "GET", "/usage?by=account")
    assert whole["object"] == "usage"
    assert {line["account"]: line["jobs"] for line in whole["data"]} == {"default": 1, "other": 1}
    one = await call(admin, "GET", "/usage?by=model&account=other")
    assert [(line["model"], line["jobs"], line["failed"]) for line in one["data"]] == [(MODEL, 1, 1)]
    refused(await admin.get("/admin/v1/usage?account=nobody"), 400, "invalid_params")
    refused(await admin.get("/admin/v1/usage?by=colour"), 400, "invalid_params")
    refused(await other.get("/admin/v1/usage"), 403, "scope_not_allowed")


async def test_media_vendors_are_told_with_their_jobs_and_last_error(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await server.generate(MODEL, face_limit=100, script={"ending": "failed"})
    waiting = await server.submit(VIDEO, script={"ending": "never"})
    await server.client.get(f"/api/v1/jobs/{waiting['id']}")
    vendors = {vendor["name"]: vendor for vendor in (await call(admin, "GET", "/vendors"))["data"]}
    sim = vendors["sim"]
    assert (sim["object"], sim["type"], sim["kind"], sim["max_concurrent"]) == ("vendor", "sim", "media", 100)
    assert {MODEL, VIDEO} <= set(sim["models"])
    assert sim["jobs_queued"] + sim["jobs_running"] == 1
    assert sim["last_error"]["model"] == MODEL
    assert sim["last_error"]["code"] == "upstream_error"
    assert {route["model"] for route in sim["routes"]} == set(sim["models"])
    assert all(route["health"] is None for route in sim["routes"])


async def test_chat_vendors_are_told_with_the_health_of_their_routes(start):
    async with chatting(start, WITH_ADMIN, scenarios=["plain", "status:500"]) as chat:
        admin = await administer(chat.server)

        async def routes() -> dict[str, dict[str, object]]:
            vendors = {vendor["name"]: vendor for vendor in (await call(admin, "GET", "/vendors"))["data"]}
            assert vendors["upstream"]["kind"] == "chat"
            return {route["model"]: route["health"] for route in vendors["upstream"]["routes"]}

        healthy = {"state": "open", "failures": 0, "rests_seconds": 0.0, "last_error": None}
        assert (await routes())["status:500"] == healthy
        answers = [await chat.server.client.post("/llm/chat/completions", json=CHAT) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [502] * 3
        failed = (await routes())["status:500"]
        assert (failed["state"], failed["failures"]) == ("resting", 3)
        assert 0 < failed["rests_seconds"] <= 1
        assert failed["last_error"]["code"] == "upstream_error"
        assert (await routes())["plain"] == healthy
        told = json.dumps(await call(admin, "GET", "/vendors"))
        assert KEY not in told
        assert httpx.URL(chat.double.url).host not in told
        assert "http" not in told
