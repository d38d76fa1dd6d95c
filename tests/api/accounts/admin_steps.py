"""What tests of administration do again and again: sign in as the administrator, make accounts and keys, look."""

import asyncio
from typing import Any

import httpx
from conftest import SIMULATOR, Server, client_of

ADMIN_KEY = "an-administrator's-long-key"
WITH_ADMIN = f'{SIMULATOR}\n[server]\nadmin_key = "{ADMIN_KEY}"\n'
JOBS = "/api/v1/jobs"


async def administer(server: Server) -> httpx.AsyncClient:
    """A client with the administrator's key."""
    return await server.clients.enter_async_context(client_of(server.url, ADMIN_KEY))


async def call(client: httpx.AsyncClient, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    """Call the admin API and read the answer."""
    response = await client.request(method, f"/admin/v1{path}", **({} if body is None else {"json": body}))
    assert response.status_code == status, response.text
    return response.json() if response.content else None


async def make_account(admin: httpx.AsyncClient, name: str = "mill", **fields: Any) -> dict[str, Any]:
    return await call(admin, "POST", "/accounts", {"name": name, **fields}, 201)


async def make_key(admin: httpx.AsyncClient, account: str = "mill", **fields: Any) -> dict[str, Any]:
    return await call(admin, "POST", "/keys", {"account": account, **fields}, 201)


async def changes(admin: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    """The audit log, newest first."""
    response = await admin.get("/admin/v1/audit", params={"limit": 100, **query})
    assert response.status_code == 200, response.text
    return response.json()["data"]


async def use(server: Server, key: str, path: str = JOBS) -> tuple[int, str | None]:
    """What a request with this key is answered: its status and error code."""
    response = await server.client.get(path, headers={"authorization": f"Bearer {key}"})
    return response.status_code, response.json().get("error", {}).get("code")


async def until_answered(server: Server, key: str, status: int, code: str | None = None) -> None:
    """Another server follows a change by itself."""
    async with asyncio.timeout(60):
        while await use(server, key) != (status, code):  # noqa: ASYNC110  a server tells nobody that it has followed
            await asyncio.sleep(0.02)
