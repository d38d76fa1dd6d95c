"""The page at /docs: complete, on its own, and safe whatever the texts in it are."""

import re
from typing import Any

from penstock.web.openapi.reference_page import draw


async def test_it_shows_every_endpoint_model_and_error(server):
    page = (await server.client.get("/docs")).text
    document = (await server.client.get("/openapi.json")).json()
    flat = page.replace("<wbr>", "")
    for path, methods in document["paths"].items():
        assert flat.count(f"<code>{path}</code>") >= len(methods)
    for model in server.gateway.offers.by_model:
        assert f"Body for <code>{model}</code>" in page
    for code in ("queue_full", "idempotency_key_mismatch", "job_deleted"):
        assert f"<code>{code}</code>" in page
    assert "integer 48 to 2000000" in page


async def test_it_asks_for_nothing_from_elsewhere(server):
    response = await server.client.get("/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    (nonce,) = set(re.findall(r"'nonce-([^']+)'", policy))
    assert set(re.findall(r'nonce="([^"]+)"', response.text)) == {nonce}
    assert not re.search(r"<(script|style|link|img|iframe)\b(?![^>]*nonce=)", response.text)
    assert not re.search(r'(src|href)="(?![/#])', response.text)
    assert not re.search(r"url\(|@import|style=|\son\w+=", response.text)


async def test_its_nonce_is_new_for_every_request(server):
    policies = {(await server.client.get("/docs")).headers["content-security-policy"] for _ in range(3)}
    assert len(policies) == 3


async def test_its_links_within_the_page_lead_somewhere(server):
    page = (await server.client.get("/docs")).text
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


async def test_its_commands_name_this_server(server):
    page = (await server.client.get("/docs")).text
    assert f"curl &quot;{server.url}/model/v1/generation&quot;" in page
    elsewhere = await server.client.get("/docs", headers={"host": 'x"><script>alert(1)</script>'})
    assert "<script>alert" not in elsewhere.text


def poison(value: Any) -> Any:
    """Every text of a document with markup in it, but those that are names."""
    if isinstance(value, dict):
        names = ("$ref", "type", "in", "operationId")
        return {key: item if key in names else poison(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if isinstance(item, str) and item.isidentifier() else poison(item) for item in value]
    return f"{value}<b onclick='x'>\"&" if isinstance(value, str) else value


async def test_every_text_in_it_is_escaped(server):
    document = (await server.client.get("/openapi.json")).json()
    page = draw(poison(document))
    assert "&lt;b onclick=" in page
    assert "<b onclick" not in page


async def test_new_offers_are_shown_without_a_restart(start):
    server = await start()
    assert "Body for <code>vendorb_video_31</code>" in (await server.client.get("/docs")).text
    only = {"vendors": {"sim": {"type": "sim"}}, "models": [{"id": "sim_text_to_video", "vendor": "sim"}]}
    settings = type(server.gateway.settings).model_validate({"data": server.gateway.settings.data, **only})
    await server.gateway.reload(settings)
    page = (await server.client.get("/docs")).text
    assert "Body for <code>sim_text_to_video</code>" in page
    assert "vendorb_video_31</code></summary>" not in page
