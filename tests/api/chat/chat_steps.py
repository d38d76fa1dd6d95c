"""What tests of chat do again and again: stand a gateway before an upstream's double, and sign SDK clients in."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import openai
from conftest import Server, Start
from openai_double import KEY, OpenAIDouble
from plain import NO_TLS

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
SCENARIOS = (
    *("echo", "plain", "tools", "parallel-tools", "refusal", "length", "filter", "json", "image", "reasoning"),
    *("slow:0.05", "silent:30", "think:30", "linger:30", "hang", "big:100000", "cut", "clean-cut", "no-done"),
    *("malformed", "error-first", "error-mid", "drop", "not-json", "empty", "status:400", "status:403", "status:404"),
    *("status:429", "status:500", "status:503", "retry-after:1", "401", "quota", "context", "html-502", "vllm-error"),
    *("vllm-old-error", "llamacpp-loading", "vllm", "ollama", "llamacpp", "no-usage", "crlf", "no-space", "fragments"),
    *("comments", "fields", "bom", "strict"),
)


def settings_of(
    double: OpenAIDouble, scenarios: Iterable[str] = SCENARIOS, vendor: str = "", more: str = "", price: str = ""
) -> str:
    """A gateway's settings: one model for every scenario, and `org/model-x`."""
    offered = {scenario: scenario for scenario in scenarios} | {"org/model-x": "plain"}
    models = [
        f'[[models]]\nid = "{model}"\nkind = "chat"\nvendor = "upstream"\nmodel = "{scenario}"\n{price}\n'
        for model, scenario in offered.items()
    ]
    table = f'[vendors.upstream]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n{vendor}\n'
    return "\n".join([more, table, *models])


@dataclass
class Chat:
    """A gateway, the double behind it, and a strict SDK client that does not retry."""

    server: Server
    double: OpenAIDouble
    key: str
    client: openai.AsyncOpenAI = field(init=False)
    clients: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def create(self, model: str = "plain", **fields: Any) -> Any:
        """A completion, or with `stream=True` the SDK's stream."""
        return await self.client.chat.completions.create(**{"model": model, "messages": HELLO, **fields})

    async def collect(self, model: str = "plain", **fields: Any) -> list[Any]:
        """All chunks of a stream."""
        return [chunk async for chunk in await self.create(model, stream=True, **fields)]

    async def sign_in(self, **options: Any) -> openai.AsyncOpenAI:
        """Another client; `base_url`, `api_key`, `max_retries` and the like as the SDK knows them."""
        return await self.clients.enter_async_context(
            openai.AsyncOpenAI(
                **{
                    "base_url": f"{self.server.url}/llm",
                    "api_key": self.key,
                    "max_retries": 0,
                    "_strict_response_validation": True,
                    "http_client": openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
                    **options,
                }
            )
        )

    def sync_client(self) -> openai.OpenAI:
        """A client that blocks: for a thread."""
        return openai.OpenAI(
            base_url=f"{self.server.url}/llm",
            api_key=self.key,
            max_retries=0,
            _strict_response_validation=True,
            http_client=openai.DefaultHttpxClient(trust_env=False, verify=NO_TLS),
        )


@asynccontextmanager
async def chatting(start: Start, toml: str = "", **options: Any) -> AsyncGenerator[Chat]:
    """A gateway before a double; `toml` comes first, `options` are those of `settings_of`."""
    async with OpenAIDouble() as double:
        server = await start(settings_of(double, more=toml, **options))
        chat = Chat(server, double, await server.new_key())
        async with chat.clients:
            chat.client = await chat.sign_in()
            yield chat
