"""The table of endpoints and roles: every route has a row, and every cell is as the server answers."""

import asyncio
import json
import re

import httpx
from conftest import Server, client_of
from people_steps import ADMIN_KEY, WITH_ADMIN, enroll

from penstock.domain.people.roles import PersonRole
from penstock.web.api.chat import COUNT_PATHS, PATHS
from penstock.web.permissions import OPERATOR, PARTIES, PERMISSIONS, SERVICE, TABLE
from penstock.web.routes import FACADES, PAGES

ACCOUNT_KEY_REFUSED = ("role_not_allowed", "scope_not_allowed")
"""Codes by which a credential that is known is refused for what it is."""


def routes() -> set[str]:
    pages = [*PAGES, *(page for found in FACADES.values() for page in found)]
    return {f"{method} {route.path}" for page in pages for route in page.router.routes for method in route.methods}


def test_every_route_has_one_row_and_every_row_a_route():
    served = routes()
    chat = {f"POST {path}" for path in (*PATHS, *COUNT_PATHS)}
    assert served - TABLE.keys() == set()
    assert TABLE.keys() - served - chat == set()
    listed = [endpoint for permission in PERMISSIONS for endpoint in permission.endpoints]
    assert len(listed) == len(set(listed)) == len(TABLE)


def address(endpoint: str) -> tuple[str, str]:
    """A method and a path of this endpoint, with ids of nothing."""
    method, _, path = endpoint.partition(" ")
    path = (
        path.replace("{period}", "day")
        .replace("{number:int}", "1")
        .replace("{version}", "1")
        .replace("{model_id:path}", "sim_text_to_video")
    )
    return method, re.sub(r"\{[^}]+\}", "nothing_0000", path)


async def ask(client: httpx.AsyncClient, endpoint: str) -> tuple[int, str | None]:
    """The status and the error code of a request that has no body."""
    method, path = address(endpoint)
    headers = {"content-type": "application/json", "tus-resumable": "1.0.0"}
    if path == "/fal/proxy":
        target = {"GET": "/a/requests/b/status", "PUT": "/a/requests/b/cancel", "POST": "/a"}[method]
        headers["x-fal-target-url"] = f"https://queue.fal.run{target}"
    async with client.stream(method, path, headers=headers, content=b"") as response:
        if response.status_code < 400:
            return response.status_code, None
        return response.status_code, read_code(await response.aread())


def read_code(body: bytes) -> str | None:
    """The code of an error in our shape; façades have shapes of their own."""
    try:
        return json.loads(body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None


def is_denied(status: int, code: str | None, endpoint: str) -> bool:
    is_ours = not endpoint.partition(" ")[2].startswith(("/replicate", "/fal", "/v1/messages", "/mcp"))
    if endpoint.startswith("HEAD") or not is_ours:
        return status == 403
    return (status == 403 and code in ACCOUNT_KEY_REFUSED) or (status == 401 and code == "invalid_api_key")


async def clients(server: Server) -> dict[str, httpx.AsyncClient]:
    """A client for each column of the table."""
    keys = {role: (await enroll(server, f"{role}@example.org", role))[1] for role in PersonRole}
    keys |= {OPERATOR: ADMIN_KEY, SERVICE: await server.new_key("mill")}
    return {name: await server.clients.enter_async_context(client_of(server.url, key)) for name, key in keys.items()}


async def test_every_cell_is_as_the_server_answers(start):
    server = await start(WITH_ADMIN)
    found = await clients(server)
    assert [*found] == [*PersonRole, OPERATOR, SERVICE]
    wrong: list[tuple[str, str, int, str | None]] = []
    cells = 0
    for endpoint, allowed in TABLE.items():
        if allowed is None:
            continue
        for party in PARTIES:
            status, code = await ask(found[party], endpoint)
            cells += 1
            refused = is_denied(status, code, endpoint) or (party == OPERATOR and status == 401)
            if refused is (party in allowed) or status >= 500:
                wrong.append((endpoint, party, status, code))
    assert wrong == []
    assert cells == 7 * sum(parties is not None for parties in TABLE.values()) > 1000


async def test_a_service_key_and_a_person_of_another_account_see_nothing_of_it(start):
    server = await start(WITH_ADMIN)
    _, mill = await enroll(server, "ada@example.org", PersonRole.OWNER)
    person, other = await enroll(server, "bob@example.org", PersonRole.OWNER, "weaver")
    async with client_of(server.url, mill) as ada, client_of(server.url, other) as bob:
        [key] = (await bob.get("/api/v1/keys")).json()["data"]
        answers = await asyncio.gather(
            ada.patch(f"/api/v1/people/{person.id}", json={"role": "viewer"}),
            ada.patch("/api/v1/people/bob@example.org", json={"role": "viewer"}),
            ada.delete(f"/api/v1/people/{person.id}"),
            ada.delete(f"/api/v1/account/keys/{key['public_id']}"),
            ada.post(f"/api/v1/account/keys/{key['public_id']}/rotate"),
            ada.post(f"/api/v1/keys/{key['public_id']}/rotate"),
            ada.delete(f"/api/v1/keys/{key['public_id']}"),
        )
        assert {answer.status_code for answer in answers} == {404}
        assert [each["email"] for each in (await ada.get("/api/v1/people")).json()["data"]] == ["ada@example.org"]
        assert (await bob.get("/api/v1/person")).json()["role"] == "owner"
