"""The console's files: what is cached, what is refused, what any other path shows, and what stands in for a build."""

import gzip
import re
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from penstock.web import console
from penstock.web.router import HANDLERS

SCRIPT = b"export const gate = 'open';\n" * 100
PAGE = '<!doctype html><meta name="nonce" content="{{nonce}}"><title>Penstock</title>'


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "mark.svg").write_text("<svg/>")
    (folder / "assets" / "index-4f2a.js").write_bytes(SCRIPT)
    (folder / "assets" / "index-4f2a.js.gz").write_bytes(gzip.compress(SCRIPT))
    (tmp_path / "secret.txt").write_text("not for you")
    return folder


@asynccontextmanager
async def visit(folder: Path):
    app = FastAPI(exception_handlers=dict(HANDLERS))
    app.include_router(console.router)
    app.state.console = console.ConsoleFiles(folder)
    app.state.routes = console.router.routes

    async def numbered(scope, receive, send):
        scope["state"] = {"request_id": "req_1"}
        await app(scope, receive, send)

    transport = httpx.ASGITransport(numbered)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers={"accept-encoding": ""}
    ) as client:
        yield client


@pytest.mark.parametrize(
    "path", ["/console", "/console/", "/console/jobs/job_1", "/console/index.html", "/console/a.b"]
)
async def test_every_other_path_is_the_page_under_a_strict_policy(built, path):
    async with visit(built) as client:
        first, second = await client.get(path), await client.get(path)
    assert first.status_code == 200
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    assert first.headers["cache-control"] == "no-cache"
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.headers["referrer-policy"] == "no-referrer"
    nonce = first.text.partition('content="')[2].partition('"')[0]
    assert len(nonce) >= 20
    assert nonce not in second.text
    policy = dict(part.strip().split(" ", 1) for part in first.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["style-src"] == f"'self' 'nonce-{nonce}'"
    assert policy["connect-src"] == "'self' blob:"
    assert {policy[name] for name in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert not any(word in str(policy) for word in ("unsafe", "http", "*"))


async def test_what_has_a_digest_in_its_name_is_kept_forever_and_compressed(built):
    async with visit(built) as client:
        plain = await client.get("/console/assets/index-4f2a.js")
        packed = await client.get("/console/assets/index-4f2a.js", headers={"accept-encoding": "br, gzip;q=0.8"})
        mark = await client.get("/console/mark.svg")
        head = await client.head("/console/assets/index-4f2a.js")
    assert plain.content == packed.content == SCRIPT
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    for answer in (plain, packed, head):
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert mark.headers["cache-control"] == "no-cache"
    assert mark.headers["content-type"] == "image/svg+xml"


async def test_an_unknown_file_answers_in_the_error_shape(built):
    async with visit(built) as client:
        answer = await client.get("/console/assets/index-0000.js")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "assets/..%2f..%2fsecret.txt"]
)
async def test_no_path_leads_out_of_the_folder(built, path):
    async with visit(built) as client:
        answer = await client.get(f"/console/{path}")
    assert "not for you" not in answer.text


async def test_without_a_build_the_page_says_how_to_make_one_and_follows_it(built, tmp_path):
    async with visit(tmp_path / "later") as client:
        before = await client.get("/console/jobs")
        asset = await client.get("/console/assets/index-4f2a.js")
        built.rename(tmp_path / "later")
        after = await client.get("/console/jobs")
    assert before.status_code == 200
    assert "make console" in before.text
    assert "{{" not in before.text
    assert asset.status_code == 404
    assert "make console" not in after.text


async def test_the_bare_address_leads_to_the_console(server):
    answer = await server.client.get("/")
    assert answer.status_code == 307
    assert answer.headers["location"] == "/console"
    page = await server.client.get("/console")
    assert "content-security-policy" in page.headers
    assert page.headers["x-request-id"]


async def test_its_types_are_those_of_the_api(server):
    """`node tools/types.mjs` in console/ makes them anew."""
    document = (await server.client.get("/openapi.json")).json()
    written = (Path(__file__).parents[3] / "console" / "src" / "api" / "schema.d.ts").read_text()
    for name, schema in document["components"]["schemas"].items():
        if re.search(r"Params|Input$|^FrameImage$|^StoredObject$|^Script$|^GenerationRequest$", name):
            continue  # of models, whose forms are drawn from what the server says
        place = written.find(f"\n        {name}: ")
        assert place > 0, name
        block = written[place : written.find("\n        };", place)]
        for field in schema.get("properties", ()):
            assert re.search(rf"^            {field}\??: ", block, re.MULTILINE), f"{name}.{field}"
