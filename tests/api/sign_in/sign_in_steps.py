"""Steps of tests about sign-in: a browser that signs in at a double, a gateway, and clocks that tests move."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from conftest import SIMULATOR, Server, client_of
from oidc_double import CLIENT, SECRET, DoubleServer, OidcDouble

from penstock.accounts import administration
from penstock.clocks import Clocks

ADMIN_KEY = "an-administrator's-long-key"
CSRF = {"x-penstock-csrf": "1"}
SIGN_IN = "/api/v1/sign-in"


@dataclass
class MovedClocks:
    """Clocks that run, and that tests put forward."""

    moved: float = 0.0

    def now(self) -> float:
        return time.time() + self.moved

    def steady(self) -> float:
        return time.monotonic() + self.moved

    @property
    def clocks(self) -> Clocks:
        return Clocks(self.now, self.steady)


@dataclass
class Stage:
    """A gateway with the providers `acme` and `other`."""

    server: Server
    doubles: DoubleServer
    clock: MovedClocks
    logs: list[str] = field(default_factory=list)

    @property
    def acme(self) -> OidcDouble:
        return self.doubles.doubles["acme"]

    @property
    def other(self) -> OidcDouble:
        return self.doubles.doubles["other"]

    def open_browser(self, url: str | None = None) -> "Browser":
        client = client_of(url or self.server.url, None)
        self.server.clients.push_async_callback(client.aclose)
        return Browser(client, self)

    async def make_account(self, name: str) -> None:
        def write(connection: Any) -> None:
            administration.ensure_account(connection, "cli", name, self.clock.now())

        await self.server.gateway.database.write(write)

    async def administer(self) -> httpx.AsyncClient:
        return await self.server.clients.enter_async_context(client_of(self.server.url, ADMIN_KEY))


@dataclass
class Browser:
    """A browser with its cookies, which follows redirects only as a test wants."""

    client: httpx.AsyncClient
    stage: Stage

    async def begin(self, provider: str = "acme", **query: str) -> dict[str, str]:
        """Press the button of a provider. Return the query of the provider's address."""
        answer = await self.client.get(f"{SIGN_IN}/{provider}", params=query)
        assert answer.status_code == 303, answer.text
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def come_back(self, provider: str = "acme", **query: str) -> httpx.Response:
        return await self.client.get(f"{SIGN_IN}/{provider}/callback", params=query)

    async def sign_in(self, provider: str = "acme", return_to: str | None = None, **script: Any) -> httpx.Response:
        """Sign in; `script` is for `OidcDouble.grant`."""
        query = await self.begin(provider, **({} if return_to is None else {"return_to": return_to}))
        double = self.stage.doubles.doubles[provider]
        return await self.come_back(provider, code=double.grant(query, **script), state=query["state"])

    async def is_signed_in(self) -> bool:
        status = (await self.client.get("/api/v1/session")).status_code
        assert status in (200, 401), status
        return status == 200

    async def get(self, path: str, **headers: str) -> tuple[int, str | None]:
        return read(await self.client.get(path, headers=headers))

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str] = CSRF, **more: Any
    ) -> tuple[int, str | None]:
        return read(await self.client.request(method, path, headers=dict(headers), **more))


def read(response: httpx.Response) -> tuple[int, str | None]:
    """The status and the error code."""
    if response.headers.get("content-type") != "application/json":
        return response.status_code, None
    return response.status_code, (response.json().get("error") or {}).get("code")


def write_settings(doubles: DoubleServer, extra: str = "") -> str:
    """Settings with both doubles. Acme's groups give roles in the accounts mill and weaver, and make operators."""
    acme, other = (doubles.doubles[name].issuer for name in ("acme", "other"))
    rules = [
        ("acme", 'group = "millers"', 'account = "mill"\nrole = "member"'),
        ("acme", 'group = "mill-owners"', 'account = "mill"\nrole = "owner"'),
        ("acme", 'group = "weavers"', 'account = "weaver"\nrole = "viewer"'),
        ("acme", 'group = "operators"', 'role = "operator"'),
        ("acme", 'group = "lost"', 'account = "no-such-account"\nrole = "member"'),
        ("acme", 'claim = "realm.roles"\nvalue = "billing"', 'account = "mill"\nrole = "billing"'),
        ("other", 'email_domain = "example.org"', 'account = "mill"\nrole = "viewer"'),
    ]
    written = "".join(f"[[sign_in.{name}.rules]]\n{when}\n{then}\n" for name, when, then in rules)
    client = f'client_id = "{CLIENT}"\nclient_secret = "{SECRET}"\n'
    return (
        f'{SIMULATOR}\n[server]\nadmin_key = "{ADMIN_KEY}"\n'
        f'[sign_in.acme]\ntitle = "Acme Ltd"\nissuer = "{acme}"\n{client}'
        f'[sign_in.other]\nissuer = "{other}"\n{client}{written}{extra}'
    )
