"""Health, readiness, metrics, and the one error shape for everything that is nowhere."""

from conftest import client_of


async def test_health_and_readiness(server):
    assert (await server.client.get("/healthz")).json()["status"] == "ok"
    ready = (await server.client.get("/readyz")).json()
    assert ready["status"] == "ready"
    assert ready["settings"] == server.gateway.settings.fingerprint
    for path in ("/healthz", "/readyz"):
        head = await server.client.head(path)
        assert (head.status_code, head.content) == (200, b""), path
        assert int(head.headers["content-length"]) == len((await server.client.get(path)).content)


async def test_draining_is_not_ready(server):
    server.gateway.drain()
    response = await server.client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["status"] == "draining"


async def test_metrics_count_jobs_and_requests(server):
    await server.generate(script={})
    text = (await server.client.get("/metrics")).text
    assert 'penstock_jobs_accepted_total{model="sim_text_to_video"}' in text
    assert 'route="/model/v1/generation"' in text


async def test_unknown_paths_and_methods_answer_in_the_error_shape(server):
    async with client_of(server.url, None) as client:
        nowhere = await client.get("/nowhere")
        wrong = await client.put("/api/v1/jobs")
    assert nowhere.status_code == 404
    assert nowhere.json()["error"]["code"] == "not_found"
    assert wrong.status_code == 405
    assert wrong.json()["error"]["code"] == "method_not_allowed"
    assert nowhere.headers["x-request-id"] == nowhere.json()["error"]["request_id"]
    for path in ("/healthz%0A", "/api/v1/jobs%0a", "/api/v1/models%0A%0A", "/%0A"):
        odd = await server.client.get(path)
        assert (odd.status_code, odd.json()["error"]["code"]) == (404, "not_found"), path


async def test_a_request_id_of_a_proxy_is_kept(server):
    response = await server.client.get("/healthz", headers={"x-request-id": "trace-12345678"})
    assert response.headers["x-request-id"] == "trace-12345678"
    odd = await server.client.get("/healthz", headers={"x-request-id": "a b"})
    assert odd.headers["x-request-id"].startswith("req_")
