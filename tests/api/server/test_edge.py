"""The edges of HTTP: headers sent twice, slashes too many, metrics for those who may read them, names of models."""

import asyncio
import json

import pytest
from admin_steps import ADMIN_KEY, WITH_ADMIN
from chat_steps import HELLO, chatting
from conftest import MODEL, SIMULATOR, VIDEO, client_of, create_key
from ports import free_port
from steps import GENERATION, refused

from penstock.gateway import Gateway
from penstock.observability.metrics import PAGES_PER_SECOND, RenderedPage
from penstock.settings.tables import load
from penstock.web.app import create_app
from penstock.web.server.serving import serve

CHAT = "/llm/chat/completions"


async def exchange(url: str, raw: bytes) -> tuple[int, bytes]:
    """Send bytes as they are; return the status and all that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
    writer.write(raw)
    told = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return int(told.split()[1]), told.partition(b"\r\n\r\n")[2]


# -- headers


@pytest.mark.parametrize(
    "name",
    ["authorization", "Host", "x-api-key", "content-length", "transfer-encoding", "content-type", "Idempotency-Key"],
)
async def test_a_header_that_may_be_sent_once_is_refused_when_sent_twice(server, name):
    key = await server.new_key()
    other = await server.new_key("other")
    usual = {"host": "x", "authorization": f"Bearer {key}"}
    values = {
        "authorization": (f"Bearer {key}", f"Bearer {other}"),
        "host": ("a", "b"),
        "content-length": ("2", "2"),
        "transfer-encoding": ("chunked", "chunked"),
    }.get(name.lower(), ("a", "b"))
    lines = [f"{each}: {value}" for each, value in usual.items() if each != name.lower()]
    lines += [f"{name}: {value}" for value in values]
    for method, path in (("GET", "/api/v1/jobs"), ("POST", CHAT), ("POST", GENERATION)):
        raw = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()
        status, body = await exchange(server.url, raw)
        error = json.loads(body)["error"]
        assert (status, error["code"]) == (400, "invalid_http")
        assert set(error) >= {"message", "type", "param", "request_id"}
        if name.lower() not in ("content-length", "transfer-encoding"):  # of these the parser itself knows
            assert name.lower() in error["message"]


async def test_headers_that_may_be_repeated_are_taken_and_trailers_are_no_headers(server):
    key = await server.new_key()
    head = "GET /api/v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\naccept: a/b\r\naccept: */*\r\n"
    status, _ = await exchange(server.url, f"{head}authorization: Bearer {key}\r\n\r\n".encode())
    assert status == 200
    chunks = f"transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\nauthorization: Bearer {key}\r\n\r\n"
    post = f"POST {GENERATION} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    status, body = await exchange(server.url, (post + chunks).encode())
    assert (status, json.loads(body)["error"]["code"]) == (401, "missing_api_key")


# -- slashes


async def test_a_slash_at_the_end_changes_nothing(start):
    async with chatting(start) as chat, client_of(chat.server.url, chat.key) as client:
        for path in ("/healthz", "/api/v1/jobs", "/api/v1/models", "/llm/models", "/api/v1/usage", "/docs"):
            for ending in ("/", "//"):
                plain, slashed = await client.get(path), await client.get(path + ending)
                assert (slashed.status_code, slashed.headers["content-type"]) == (
                    plain.status_code,
                    plain.headers["content-type"],
                ), path
                assert plain.status_code == 200
        body = {"model": "plain", "messages": HELLO}
        for path in (CHAT, "/v1/chat/completions", "/llm/v1/chat/completions"):
            assert (await client.post(f"{path}/", json=body)).status_code == 200
            refused(await client.get(f"{path}/"), 405, "method_not_allowed")
        refused(await client.get("/nowhere/"), 404, "not_found")
        refused(await client.put("/api/v1/jobs/"), 405, "method_not_allowed")
        assert (await client.head("/healthz/")).status_code == 200
        assert (await client.get("/llm/models/org/model-x/")).json()["id"] == "org/model-x"
        assert (await client.get("/")).status_code == 307


async def test_a_body_is_not_lost_on_the_way_past_a_slash(server):
    order = {"model": VIDEO, "input": [{"params": {}}]}
    for path in (f"{GENERATION}/", f"/api/v1/{VIDEO}/generate/"):
        assert (await server.client.post(path, json=order)).status_code == 202


# -- metrics


async def test_metrics_are_for_this_machine_and_for_keys(start):
    server = await start(WITH_ADMIN.replace("[server]", "[server]\nmetrics_key = 'a-key-for-metrics'"))
    async with client_of(server.url, None) as client:
        direct = await client.get("/metrics", headers={"origin": "https://elsewhere.example"})
        assert direct.status_code == 200
        assert "access-control-allow-origin" not in direct.headers
        for proxied in ({"x-forwarded-for": "192.0.2.1"}, {"forwarded": "for=192.0.2.1"}, {"x-real-ip": "192.0.2.1"}):
            refused(await client.get("/metrics", headers=proxied), 401, "missing_api_key")
            refused(await client.get("/metrics/", headers=proxied), 401, "missing_api_key")
            for key in ("a-key-for-metrics", ADMIN_KEY):
                allowed = await client.get("/metrics", headers=proxied | {"authorization": f"Bearer {key}"})
                assert allowed.status_code == 200
            for key in ("wrong", await server.new_key()):
                told = await client.get("/metrics", headers=proxied | {"authorization": f"Bearer {key}"})
                assert told.status_code == 401


async def test_metrics_may_have_a_port_of_their_own(tmp_path, weights):
    port = free_port()
    gateway = await Gateway.open(load(None, {}, {"data": tmp_path, "weights": weights, "server.metrics_port": port}))
    ready, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
    options = {"on_ready": ready.set_result, "stop": stop, "metrics_port": port, "drain_seconds": 1}
    serving = asyncio.create_task(serve(create_app(gateway), host="127.0.0.1", port=0, **options))
    main = await ready
    key = await create_key(gateway)
    async with (
        client_of(f"http://127.0.0.1:{port}", key) as inside,
        client_of(f"http://127.0.0.1:{main}", key) as outside,
    ):
        assert (await inside.get("/metrics", headers={"x-forwarded-for": "192.0.2.1"})).status_code == 200
        assert (await inside.get("/healthz")).status_code == 200
        assert (await inside.get("/api/v1/jobs")).status_code == 404
        assert (await outside.get("/api/v1/jobs")).status_code == 200
    stop.set()
    await serving
    await gateway.close()


def test_the_page_is_made_a_few_times_a_second_at_most():
    now = [100.0]
    page = RenderedPage(lambda: now[0])
    made = [page.read() for _ in range(PAGES_PER_SECOND)]
    assert len({id(each) for each in made}) == PAGES_PER_SECOND
    assert all(page.read() is made[-1] for _ in range(5))
    now[0] += 1
    assert page.read() is not made[-1]


# -- names of models


async def test_a_key_hears_only_of_models_that_it_may_use(start):
    server = await start(SIMULATOR)
    client = await server.sign_in("other", models=frozenset({VIDEO}))
    near = MODEL[:-1]
    other = {name for name in server.gateway.offers.by_model if name != VIDEO}
    answers = [
        await client.post(GENERATION, json={"model": near, "input": [{"params": {}}]}),
        await client.post(f"/api/v1/{near}/generate", json={"model": near, "input": [{"params": {}}]}),
        await client.get(f"/api/v1/models/{near}"),
        await client.get(f"/llm/models/{near}"),
        await client.post(CHAT, json={"model": near, "messages": HELLO}),
    ]
    for answer in answers:
        assert refused(answer, 404, "model_not_found")
    outer = await client.post(GENERATION, json={"model": MODEL, "inputs": [], "input": [{"params": {"fil": 1}}]})
    answers += [
        outer,
        await client.get("/api/v1/models"),
        await client.get("/llm/models"),
    ]
    for answer in answers:
        assert not {name for name in other if f'"{name}"' in answer.text}
        if not answer.is_success:
            assert not {name for name in other if name in answer.text.replace(near, "").replace(MODEL, "")}
    assert "face_limit" not in outer.text
    assert VIDEO in answers[0].text
    for caller, allowed in ((client, {VIDEO}), (server.client, {VIDEO, *other})):
        document = (await caller.get("/openapi.json")).json()["components"]["schemas"]
        assert document["GenerationRequest"]["discriminator"]["mapping"].keys() == allowed
