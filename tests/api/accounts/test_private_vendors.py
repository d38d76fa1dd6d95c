"""Vendors in private networks, added at run time: tested, used, restarted; and the addresses that stay closed."""

import socket
from pathlib import Path
from typing import Any

import pytest
from admin_steps import WITH_ADMIN, administer, call
from conftest import Server, Start
from doubles.luma import LumaDouble
from doubles.media import listening
from steps import refused
from vendors.chat.openai_double import OpenAIDouble

PUBLIC_ONLY = f'{WITH_ADMIN}\n[run_time]\nvendor_addresses = "public"\n'
VIDEO, CHAT = "vendorb_video_31", "near-chat"
METADATA = ["169.254.169.254", "[fd00:ec2::254]", "169.254.1.1", "[fe80::1]", "0.0.0.0", "metadata.google.internal"]


def openai(base_url: str, **more: Any) -> dict[str, Any]:
    return {"type": "openai_compatible", "base_url": base_url, **more}


async def use_both(server: Server) -> None:
    """Make a film at the one vendor and ask the other a question."""
    job = await server.generate(VIDEO, prompt="A boat on a river")
    assert job["status"] == "succeeded", job
    assert (await server.client.get(job["outputs"][0]["url"])).status_code == 200
    body = {"model": CHAT, "messages": [{"role": "user", "content": "Hello"}]}
    answer = await server.client.post("/llm/chat/completions", json=body)
    assert answer.status_code == 200, answer.text


async def test_a_vendor_on_this_machine_is_tested_used_and_still_there_after_a_restart(start: Start, tmp_path: Path):
    folder = tmp_path / "kept"
    server = await start(WITH_ADMIN, data=folder)
    admin = await administer(server)
    async with listening(LumaDouble()) as luma, OpenAIDouble() as chat:
        near = luma.url.replace("127.0.0.1", "localhost") if _resolves() else luma.url
        vendors = {
            "luma": {"type": "luma", "base_url": luma.url, "api_key": luma.credential, "poll_seconds": 0.02},
            "near": openai(chat.url, api_key=chat.key),
        }
        for name, options in vendors.items():
            found = await call(admin, "POST", f"/settings/vendors/{name}/test", {"options": options})
            assert found["ok"], found
        named = {"options": {**vendors["luma"], "base_url": near}}
        assert (await call(admin, "POST", "/settings/vendors/far/test", named))["ok"]
        models = {VIDEO: {"vendor": "luma"}, CHAT: {"kind": "chat", "vendor": "near", "model": "echo"}}
        await call(admin, "PATCH", "/settings", {"base_version": 0, "vendors": vendors, "models": models})
        await use_both(server)
        assert luma.host.seen, "the result came from the vendor's own host"
        await use_both(await start(WITH_ADMIN, data=folder))


def _resolves() -> bool:
    """Return whether `localhost` is only an IPv4 address here: the doubles listen on no other."""
    return {family for family, *_ in socket.getaddrinfo("localhost", 80)} == {socket.AF_INET}


@pytest.mark.parametrize("host", METADATA)
async def test_metadata_and_link_local_addresses_stay_closed(start: Start, host: str):
    admin = await administer(await start(WITH_ADMIN))
    options = openai(f"http://{host}:8000/v1")
    for method, path, body in [
        ("PATCH", "/settings", {"base_version": 0, "vendors": {"near": options}}),
        ("POST", "/settings/vendors/near/test", {"options": options}),
    ]:
        answer = await call(admin, method, path, body, 400)
        assert answer["error"]["param"] == "vendors.near.base_url"
        assert "metadata" in answer["error"]["message"]


async def test_the_file_can_hold_run_time_vendors_to_public_addresses(start: Start):
    admin = await administer(await start(PUBLIC_ONLY))
    for base_url in ("http://127.0.0.1:11434/v1", "http://[::1]:8000", "http://10.0.0.7", "http://localhost:8000"):
        answer = await call(admin, "POST", "/settings/vendors/near/test", {"options": openai(base_url)}, 400)
        assert answer["error"]["param"] == "vendors.near.base_url"
    public = {"base_version": 0, "vendors": {"far": openai("https://models.example.com:8000/v1")}, "dry_run": True}
    await call(admin, "PATCH", "/settings", public)


async def test_callers_reach_nothing_private_because_a_vendor_may(start: Start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    async with OpenAIDouble() as chat:
        vendors = {"near": openai(chat.url, api_key=chat.key)}
        await call(admin, "PATCH", "/settings", {"base_version": 0, "vendors": vendors})
        webhook = await server.client.post("/api/v1/webhooks", json={"url": f"{chat.url}/hook"})
        refused(webhook, 400, "url_not_allowed")
        params = {"file": {"url": f"{chat.url}/picture.png"}}
        body = {"model": "sim_image_to_model", "input": [{"params": params}]}
        refused(await server.client.post("/model/v1/generation", json=body), 400, "url_not_allowed")
        assert not chat.requests
