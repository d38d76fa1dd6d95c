"""Share links over HTTP: made by an account, opened by anybody, and ended by time, by hand or with their job."""

import logging
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from conftest import MODEL, VIDEO, Server, client_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from reading_manifests import SIGNED, verify
from steps import order, refused
from test_retention import upload

from penstock.clocks import Clocks
from penstock.domain.ids import ALPHABET
from penstock.domain.sharing import links
from penstock.store.queries.files import share_rows

DAY = 86_400
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
RECORD = {"id", "object", "job_id", "include_input", "created_at", "expires_at"}
WRONG = (
    ({"expires_in": 59}, "expires_in"),
    ({"expires_in": 90 * DAY + 1}, "expires_in"),
    ({"expires_in": "7d"}, "expires_in"),
    ({"expires_in": True}, "expires_in"),
    ({"expires_at": "tomorrow"}, "expires_at"),
    ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ({"expires_at": "9999-12-31T00:00:00Z"}, "expires_at"),
    ({"expires_at": "2026-13-45T00:00:00Z"}, "expires_at"),
    ({"include_input": "yes"}, "include_input"),
)


@dataclass
class Shifted:
    """A clock that a test moves."""

    ahead: float = 0.0

    def now(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def clock() -> Shifted:
    return Shifted()


@pytest.fixture
async def server(start, clock) -> Server:
    return await start(clocks=Clocks(clock.now))


@pytest.fixture
async def anyone(server) -> AsyncGenerator[httpx.AsyncClient]:
    async with client_of(server.url, None) as client:
        yield client


async def make_film(server: Server, **top: Any) -> str:
    job = await order(server.client, {}, model=VIDEO, **top)
    assert (await server.finish(job["id"]))["status"] == "succeeded"
    return job["id"]


async def share(client: httpx.AsyncClient, job_id: str, **body: Any) -> dict[str, Any]:
    response = await client.post(f"/api/v1/jobs/{job_id}/shares", json=body)
    assert response.status_code == 201, response.text
    assert response.headers["cache-control"] == "no-store"
    return response.json()


async def listed(client: httpx.AsyncClient, **query: Any) -> list[str]:
    response = await client.get("/api/v1/shares", params=query)
    assert response.status_code == 200, response.text
    return [each["id"] for each in response.json()["data"]]


async def is_gone(anyone: httpx.AsyncClient, url: str) -> bool:
    """Whether a link answers as every link that does not work, or else opens."""
    answers = [await anyone.get(url), await anyone.get(url, headers=BROWSER), await anyone.get(f"{url}/video.mp4")]
    if all(answer.status_code == 200 for answer in answers):
        return False
    for answer in (answers[0], answers[2]):
        assert refused(answer, 404, "share_not_found")["message"] == (
            "There is no such share link, or it has expired or was revoked."
        )
    assert answers[1].status_code == 404
    assert "This link does not work" in answers[1].text
    return True


# -- opening


async def test_anyone_with_the_link_sees_the_film_and_nothing_else(server, anyone):
    job_id = await make_film(server, client_ref="order-17", metadata={"customer": "ACME"})
    job = await server.finish(job_id)
    link = await share(server.client, job_id)
    assert set(link) == RECORD | {"url"}
    assert link["url"].startswith(f"{server.url}/share/")
    seen = (await anyone.get(link["url"])).json()
    assert (seen["model"], seen["prompt"], seen["input_url"]) == (VIDEO, None, None)
    (output,) = [each for each in seen["outputs"] if each["role"] == "primary"]
    assert (output["kind"], output["content_type"]) == ("video", "video/mp4")
    bytes_seen = (await anyone.get(output["url"])).content
    assert len(bytes_seen) == output["bytes"] == job["outputs"][0]["bytes"]
    page = await anyone.get(link["url"], headers=BROWSER)
    for text in (page.text, str(seen)):
        hidden = (job_id, job["outputs"][0]["id"], "order-17", "ACME", "default", "acct_", "psk_", '"sim"', link["id"])
        assert not [word for word in hidden if word in text]


async def test_the_page_is_strict_and_not_indexed(server, anyone):
    link = await share(server.client, await make_film(server))
    page = await anyone.get(link["url"], headers=BROWSER)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<video" in page.text
    assert "Download" in page.text
    assert "This link works until" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    ended = await anyone.get(f"{server.url}/share/nothing", headers=BROWSER)
    for answer in (page, ended):
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "noindex" in answer.headers["x-robots-tag"]
        assert '<meta name="robots" content="noindex' in answer.text
    assert "noindex" in (await anyone.get(f"{link['url']}/video.mp4")).headers["x-robots-tag"]


async def test_a_part_of_the_film_can_be_asked_for(server, anyone):
    link = await share(server.client, await make_film(server))
    url = f"{link['url']}/video.mp4"
    whole = await anyone.get(url)
    assert whole.headers["cache-control"] == "private, no-cache"
    part = await anyone.get(url, headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole.content[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(whole.content)}"
    known = await anyone.get(url, headers={"if-none-match": whole.headers["etag"]})
    assert known.status_code == 304
    assert (await anyone.head(url)).headers["content-length"] == str(len(whole.content))
    refused(await anyone.get(f"{link['url']}/other.mp4"), 404, "asset_not_found")
    refused(await anyone.get(url, headers={"range": "bytes=99999999-"}), 416, "range_not_satisfiable")


async def test_the_prompt_is_shown_only_if_it_is_included(server, anyone):
    prompt = "A <b>paper</b> boat"
    body = {"model": "vendorb_video_31", "input": [{"params": {"prompt": prompt}}]}
    job = (await server.client.post("/model/v1/generation", json=body)).json()
    await server.finish(job["id"])
    without = await share(server.client, job["id"])
    included = await share(server.client, job["id"], include_input=True)
    assert "boat" not in (await anyone.get(without["url"], headers=BROWSER)).text
    page = (await anyone.get(included["url"], headers=BROWSER)).text
    assert "A &lt;b&gt;paper&lt;/b&gt; boat" in page
    assert (await anyone.get(included["url"])).json()["prompt"] == prompt


async def test_the_input_picture_is_served_only_if_it_is_included(server, anyone):
    token = await upload(server)
    body = {"model": "vendora_image_to_model", "input": [{"params": {"file": {"file_token": token}}}]}
    job = (await server.client.post("/model/v1/generation", json=body)).json()
    assert (await server.finish(job["id"]))["status"] == "succeeded"
    without = await share(server.client, job["id"])
    included = await share(server.client, job["id"], include_input=True)
    refused(await anyone.get(f"{without['url']}/input"), 404, "asset_not_found")
    picture = await anyone.get((await anyone.get(included["url"])).json()["input_url"])
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert "a.png" not in (await anyone.get(included["url"], headers=BROWSER)).text


# -- life


@pytest.mark.parametrize("seconds", [60, 3600, DAY, 7 * DAY, 30 * DAY, 90 * DAY])
async def test_a_link_ends_when_its_time_is_over(server, anyone, clock, seconds):
    job_id = await make_film(server, retention="forever")
    link = await share(server.client, job_id, expires_in=seconds)
    assert not await is_gone(anyone, link["url"])
    clock.ahead += seconds - 30
    assert not await is_gone(anyone, link["url"])
    clock.ahead += 31
    assert await is_gone(anyone, link["url"])
    assert await listed(server.client) == []
    await server.gateway.upkeep.sweep()
    refused(await server.client.delete(f"/api/v1/shares/{link['id']}"), 404, "share_not_found")


async def test_a_link_lives_for_a_week_unless_told_otherwise(server):
    job_id = await make_film(server, retention="forever")
    response = await server.client.post(f"/api/v1/jobs/{job_id}/shares")
    made = await server.gateway.database.read(share_rows.page, await account_id(server), None, time.time(), None, 10)
    assert response.status_code == 201
    assert made[0].expires_at - made[0].created_at == 7 * DAY


async def account_id(server: Server) -> str:
    keyring = server.gateway.keyring
    return (await keyring.check(server.client.headers["authorization"])).account_id


async def test_a_link_ends_at_a_moment(server, anyone, clock):
    job_id = await make_film(server, retention="forever")
    wanted = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clock.now() + 3600))
    link = await share(server.client, job_id, expires_at=wanted)
    assert link["expires_at"] == wanted.replace("Z", ".000Z")
    clock.ahead += 3601
    assert await is_gone(anyone, link["url"])


async def test_a_link_ends_with_its_jobs_retention(server, anyone, clock):
    job_id = await make_film(server, retention=3600)
    link = await share(server.client, job_id, expires_in=DAY)
    assert link["expires_at"] == (await server.finish(job_id))["expires_at"]
    clock.ahead += 3601
    assert await is_gone(anyone, link["url"])
    refused(await server.client.post(f"/api/v1/jobs/{job_id}/shares", json={}), 410, "job_expired")


async def test_deleting_the_job_ends_its_links(server, anyone):
    job_id, other = await make_film(server), await make_film(server)
    link, kept = await share(server.client, job_id), await share(server.client, other)
    assert (await server.client.delete(f"/api/v1/jobs/{job_id}")).status_code == 204
    assert await is_gone(anyone, link["url"])
    assert not await is_gone(anyone, kept["url"])
    assert await listed(server.client) == [kept["id"]]
    refused(await server.client.post(f"/api/v1/jobs/{job_id}/shares", json={}), 410, "job_deleted")


async def test_revoking_ends_one_link_at_once_and_can_be_repeated(server, anyone):
    job_id = await make_film(server)
    link, kept = await share(server.client, job_id), await share(server.client, job_id)
    for _ in range(2):
        assert (await server.client.delete(f"/api/v1/shares/{link['id']}")).status_code == 204
        assert await is_gone(anyone, link["url"])
    assert not await is_gone(anyone, kept["url"])
    assert await listed(server.client) == [kept["id"]]


async def test_links_are_listed_by_pages_and_by_job(server):
    first, second = await make_film(server), await make_film(server)
    made = [(await share(server.client, job_id))["id"] for job_id in (first, second, first)]
    page = (await server.client.get("/api/v1/shares", params={"limit": 2})).json()
    assert ([each["id"] for each in page["data"]], page["has_more"]) == ([made[2], made[1]], True)
    assert all(set(each) == RECORD for each in page["data"])
    assert await listed(server.client, limit=2, cursor=page["next_cursor"]) == [made[0]]
    assert await listed(server.client, job=second) == [made[1]]
    refused(await server.client.get("/api/v1/shares", params={"cursor": "x"}), 400, "invalid_params")


# -- refusals


@pytest.mark.parametrize(("body", "param"), WRONG)
async def test_a_wrong_life_is_refused_by_name(server, body, param):
    response = await server.client.post("/api/v1/jobs/job_1/shares", json=body)
    assert refused(response, 400, "invalid_params")["param"] == param


async def test_two_lives_and_unknown_fields_are_refused(server):
    both = {"expires_in": 3600, "expires_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))}
    refused(await server.client.post("/api/v1/jobs/job_1/shares", json=both), 400, "invalid_params")
    error = refused(await server.client.post("/api/v1/jobs/job_1/shares", json={"expire_in": 60}), 400, "unknown_param")
    assert "expires_in" in error["message"]


async def test_only_a_job_that_succeeded_can_be_shared(server):
    job = await order(server.client, {"ending": "failed"}, model=VIDEO)
    await server.finish(job["id"])
    refused(await server.client.post(f"/api/v1/jobs/{job['id']}/shares", json={}), 409, "job_not_shareable")


async def test_another_account_can_neither_share_list_nor_revoke(server, anyone):
    job_id = await make_film(server)
    link = await share(server.client, job_id)
    other = await server.sign_in("other")
    refused(await other.post(f"/api/v1/jobs/{job_id}/shares", json={}), 404, "job_not_found")
    refused(await other.delete(f"/api/v1/shares/{link['id']}"), 404, "share_not_found")
    assert await listed(other) == []
    assert await listed(other, job=job_id) == []
    assert not await is_gone(anyone, link["url"])


async def test_a_key_that_only_reads_can_list_but_neither_share_nor_revoke(server, anyone):
    job_id = await make_film(server)
    link = await share(server.client, job_id)
    reader = await server.sign_in(scopes=frozenset({"read"}))
    assert await listed(reader) == [link["id"]]
    refused(await reader.post(f"/api/v1/jobs/{job_id}/shares", json={}), 403, "scope_not_allowed")
    refused(await reader.delete(f"/api/v1/shares/{link['id']}"), 403, "scope_not_allowed")
    for method, path in (("POST", f"/api/v1/jobs/{job_id}/shares"), ("GET", "/api/v1/shares")):
        refused(await anyone.request(method, path), 401, "missing_api_key")


async def test_an_account_has_a_bounded_number_of_links(server, monkeypatch):
    monkeypatch.setattr(share_rows, "MAX_LIVE_LINKS", 2)
    job_id = await make_film(server)
    first = await share(server.client, job_id)
    await share(server.client, job_id)
    error = refused(await server.client.post(f"/api/v1/jobs/{job_id}/shares", json={}), 409, "too_many_shares")
    assert "DELETE /api/v1/shares" in error["suggestion"]
    await server.client.delete(f"/api/v1/shares/{first['id']}")
    await share(server.client, job_id)


async def test_the_links_of_a_closed_account_do_not_work(server, anyone):
    job_id = await make_film(server)
    link = await share(server.client, job_id)

    def close(connection: Any) -> None:
        connection.exec_driver_sql("UPDATE accounts SET closed_at = 1")

    await server.gateway.database.write(close)
    assert await is_gone(anyone, link["url"])


# -- guessing and leaks


@pytest.fixture
async def reads(server, monkeypatch) -> list[str]:
    """The lookups of links in the store."""
    asked: list[str] = []
    real = share_rows.open_link

    def open_link(connection: Any, token_hash: str, now: float) -> share_rows.SharedJob:
        asked.append(token_hash)
        return real(connection, token_hash, now)

    monkeypatch.setattr(share_rows, "open_link", open_link)
    return asked


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(token=some.text(ALPHABET, min_size=33, max_size=33))
async def test_invented_tokens_are_refused_without_a_lookup(server, anyone, reads, token):
    refused(await anyone.get(f"/share/{token}"), 404, "share_not_found")
    refused(await anyone.get(f"/share/{token}/video.mp4"), 404, "share_not_found")
    assert reads == []


async def test_the_token_is_neither_stored_nor_logged(server, anyone, caplog, monkeypatch):
    monkeypatch.setattr("penstock.observability.logs._lines", None)  # a command that ran here before may have set it
    caplog.set_level(logging.INFO)
    link = await share(server.client, await make_film(server))
    token = link["url"].rpartition("/")[2]
    await anyone.get(link["url"], headers=BROWSER)
    await anyone.get(f"{link['url']}/video.mp4")
    await anyone.get(f"{link['url']}/a/b")
    ours = [str(vars(record)) for record in caplog.records if record.name.startswith("penstock")]
    assert len([line for line in ours if "'path': '/share/" in line]) == 3
    assert not [line for line in ours if token in line]

    def dump(connection: Any) -> str:
        return str(connection.exec_driver_sql("SELECT * FROM shares").all())

    stored = await server.gateway.database.read(dump)
    assert link["id"] in stored
    assert token not in stored
    assert links.hash_token(token) in stored


async def test_a_link_to_a_model_has_its_preview_and_its_viewer(server, anyone):
    job = await server.generate(MODEL, script={})
    link = await share(server.client, job["id"])
    page = (await anyone.get(link["url"], headers=BROWSER)).text
    assert 'data-model="/share/' in page
    assert "Preview of the 3D model" in page or not [each for each in job["outputs"] if each["role"] == "preview"]


async def test_a_link_to_a_signed_model_has_its_sidecar(start):
    server = await start(SIGNED)
    anyone = await server.clients.enter_async_context(client_of(server.url, None))
    job = await server.generate(MODEL, script={})
    link = await share(server.client, job["id"])
    [model, *others] = sorted(
        (await anyone.get(link["url"])).json()["outputs"], key=lambda each: each["role"] != "primary"
    )
    sidecar = await anyone.get(model["sidecar_url"])
    assert (sidecar.status_code, sidecar.headers["content-type"]) == (200, "application/jose")
    assert sidecar.headers["x-robots-tag"].startswith("noindex")
    report = await verify(server, (await anyone.get(model["url"])).content, sidecar=sidecar.content)
    assert (report["verdict"], report["generation"]["job_id"]) == ("signed_here", job["id"])
    assert "Signed sidecar" in (await anyone.get(link["url"], headers=BROWSER)).text
    assert [each["sidecar_url"] for each in others] == [None for _ in others]
    for each in others:
        assert (await anyone.get(f"{each['url']}.jws")).status_code == 404
    assert (await server.client.delete(f"/api/v1/shares/{link['id']}")).status_code == 204
    assert (await anyone.get(model["sidecar_url"])).status_code == 404
