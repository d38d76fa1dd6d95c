"""What tests of embeddings do again and again: stand a gateway before a double, and sign SDK clients in."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import openai
from conftest import Server, Start
from embedding_double import KEY, EmbeddingDouble
from plain import NO_TLS

PATH = "/llm/embeddings"
SCENARIOS = (
    *("plain", "greedy", "no-usage", "bare", "shuffled", "always-float", "always-base64", "few", "uneven"),
    *("empty-vector", "garbage", "not-json", "wrong-index", "null", "huge", "error-inside"),
    *("status:400", "status:401", "status:500", "retry-after"),
)
GEMINI = ("google-plain", "google-counted", "google-few", "google-status:400")
PRICE = 'price = {input_per_million = "1000"}'


def settings_of(double: EmbeddingDouble, more: str = "") -> str:
    """One embedding model for every scenario, `google-…` ones in Google's dialect, and a chat model."""
    tables = [
        f'[vendors.upstream]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n',
        f'[vendors.google]\ntype = "gemini"\napi_key = "{KEY}"\nbase_url = "{double.url.removesuffix("/v1")}"\n',
    ]
    tables += [f'[[models]]\nid = "{name}"\nkind = "embedding"\nvendor = "upstream"\n{PRICE}\n' for name in SCENARIOS]
    tables += [
        f'[[models]]\nid = "{name}"\nkind = "embedding"\nvendor = "google"\nmodel = "{name.removeprefix("google-")}"\n'
        for name in GEMINI
    ]
    routes = '[{vendor = "upstream", model = "status:500"}, {vendor = "google", model = "plain", order = 2}]'
    tables.append(f'[[models]]\nid = "twice"\nkind = "embedding"\nroutes = {routes}\n')
    tables.append('[[models]]\nid = "talker"\nvendor = "upstream"\n')
    return "\n".join([more, *tables])


@dataclass
class Embedding:
    """A gateway, the double behind it, and an SDK client that does not retry.

    It is not strict: the SDK's types know no base64, which it asks for and decodes.
    """

    server: Server
    double: EmbeddingDouble
    client: openai.AsyncOpenAI
    clients: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def post(self, given: Any = "Hello", model: str = "plain", **fields: Any) -> httpx.Response:
        return await self.server.client.post(PATH, json={"model": model, "input": given, **fields})

    async def vectors(self, given: Any = "Hello", model: str = "plain", **fields: Any) -> list[Any]:
        response = await self.post(given, model, **fields)
        assert response.status_code == 200, response.text
        return [item["embedding"] for item in response.json()["data"]]


def sdk_of(server: Server, key: str, base: str = "/llm") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{server.url}{base}",
        api_key=key,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
    )


@asynccontextmanager
async def embedding(start: Start, more: str = "") -> AsyncGenerator[Embedding]:
    async with EmbeddingDouble() as double:
        server = await start(settings_of(double, more))
        async with sdk_of(server, await server.new_key()) as client:
            yield Embedding(server, double, client)
