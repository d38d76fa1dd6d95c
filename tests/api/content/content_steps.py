"""Steps of tests about the content log: a gateway with the log on, and a person who reads it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
from conftest import Server, Start, client_of
from doubles.scripted.turns import Request, Script, Turn
from doubles.scripted.vendor import ScriptedVendor
from people_steps import ADMIN_KEY, be

from penstock.accounts import administration
from penstock.domain.accounts import KeyWish
from penstock.domain.people.roles import PersonRole

ACCOUNT = "studio"
OPENAI_KEY = "sk-proj-Zx81abcdefghijklmnop"
MAIL = "eve.smith@example.org"
CARD = "4111 1111 1111 1111"
SECRETS = (OPENAI_KEY, MAIL, CARD)
LOG = '[content_log]\nretention = "7d"\n'
MODELS = "".join(
    f'[[models]]\nid = "{name}"\nkind = "{kind}"\nvendor = "{vendor}"\n'
    for name, kind, vendor in (("talker", "chat", "scripted"), ("sim_text_to_video", "video", "sim"))
)


def repeat(request: Request) -> Turn:
    """The answer of the scripted model: the last text of the user, and secrets of its own."""
    text = request.texts[-1] if request.texts else ""
    is_cut = "cut" in text
    return Turn(text=f"You said: {text}. Call {MAIL} with {OPENAI_KEY} or {CARD}.", is_cut=is_cut)


@dataclass
class Logged:
    """A gateway whose account `studio` logs its content."""

    server: Server
    client: httpx.AsyncClient
    """With a service key of the account."""
    reader: httpx.AsyncClient
    """With a key of a person who is an owner of the account."""

    async def ask(self, text: str, *, stream: bool = False, **fields: Any) -> httpx.Response:
        """A chat request."""
        body = {"model": "talker", "messages": [{"role": "user", "content": text}], "stream": stream, **fields}
        return await self.client.post("/llm/chat/completions", json=body)

    async def listed(self, count: int, **query: Any) -> list[dict[str, Any]]:
        """The records without content, newest first, once there are so many."""
        async with asyncio.timeout(60):
            while True:
                response = await self.reader.get("/api/v1/content", params={"limit": 100, **query})
                assert response.status_code == 200, response.text
                if len(found := response.json()["data"]) >= count:
                    return found
                await asyncio.sleep(0.02)

    async def records(self, count: int) -> list[dict[str, Any]]:
        """The records with their content, oldest first, once there are so many."""
        found = [await self.reader.get(f"/api/v1/content/{each['id']}") for each in await self.listed(count)]
        assert {each.status_code for each in found} == {200}
        return [each.json() for each in reversed(found)]


@asynccontextmanager
async def logging(
    start: Start,
    dialect: str = "chat",
    toml: str = LOG,
    script: Script = repeat,
    overrides: dict[str, Any] | None = None,
) -> AsyncGenerator[Logged]:
    """Serve a scripted chat model and the simulator to an account that logs its content."""
    async with ScriptedVendor(script) as vendor:
        head = f'[server]\nadmin_key = "{ADMIN_KEY}"\n{toml}\n[vendors.sim]\ntype = "sim"\n'
        server = await start(head + vendor.settings(dialect) + MODELS, overrides)
        reader = await be(server, "owner@example.org", PersonRole.OWNER, ACCOUNT)
        await switch(server, is_on=True)
        yield Logged(server, await sign_in(server), reader)


async def switch(server: Server, account: str = ACCOUNT, *, is_on: bool) -> None:
    """Switch the log of an account on or off."""
    now = server.gateway.clock()
    await server.gateway.database.write(
        administration.change_account, "cli", account, lambda found: replace(found, content_log=is_on), now
    )
    server.gateway.keyring.forget()


async def sign_in(server: Server, account: str = ACCOUNT, **wish: Any) -> httpx.AsyncClient:
    """A client with a new service key."""
    now = server.gateway.clock()
    key, _ = await server.gateway.database.write(administration.issue_key, "cli", account, KeyWish(**wish), now)
    return await server.clients.enter_async_context(client_of(server.url, key))


def texts_of(messages: list[dict[str, Any]]) -> str:
    """All texts of messages."""
    return "\n".join(part.get("content") or "" for message in messages for part in message["parts"])
