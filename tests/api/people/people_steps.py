"""Steps of tests about people: add them, give them roles, and act with their keys."""

from typing import Any

import httpx
from conftest import SIMULATOR, Server, client_of

from penstock.accounts import administration, people
from penstock.domain.accounts import KeyWish
from penstock.domain.people.roles import Person, PersonRole

ADMIN_KEY = "an-administrator's-long-key"
WITH_ADMIN = f'{SIMULATOR}\n[server]\nadmin_key = "{ADMIN_KEY}"\n'


async def enroll(server: Server, email: str, role: PersonRole, account: str = "mill") -> tuple[Person, str]:
    """A person with a role, and a key of theirs."""
    now = server.gateway.clock()

    def write(connection: Any) -> tuple[Person, str]:
        place = administration.ensure_account(connection, "cli", account, now)
        person = people.ensure_person(connection, "cli", email, "", now)
        people.set_role(connection, "cli", person, place, role, now)
        if role in (PersonRole.BILLING, PersonRole.VIEWER):  # they may make none: theirs are from before
            people.set_role(connection, "cli", person, place, PersonRole.MEMBER, now)
        text, _ = people.issue_own_key(connection, "cli", person.id, place.id, KeyWish(), now)
        people.set_role(connection, "cli", person, place, role, now)
        return person, text

    return await server.gateway.database.write(write)


async def be(server: Server, email: str, role: PersonRole, account: str = "mill") -> httpx.AsyncClient:
    """A client with the key of a person who has this role."""
    _, key = await enroll(server, email, role, account)
    return await server.clients.enter_async_context(client_of(server.url, key))
