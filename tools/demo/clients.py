"""One unchanged Python client for each name. It prints what it did, and the one line that it needs for Penstock.

GATEWAY=http://127.0.0.1:8787 KEY=psk_… python tools/demo/clients.py openai
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import Callable
from typing import Final

GATEWAY: Final = os.environ["GATEWAY"]
KEY: Final = os.environ["KEY"]
SECURE_HOST: Final = os.environ.get("SECURE_HOST", "")


def ask_openai() -> tuple[str, str, str]:
    """Stream a chat, and make a picture."""
    from openai import OpenAI

    client = OpenAI(base_url=f"{GATEWAY}/v1", api_key=KEY)
    words = client.chat.completions.create(
        model="smollm2-135m", messages=[{"role": "user", "content": "Say hello."}], stream=True, max_tokens=16
    )
    chunks = sum(1 for _ in words)
    picture = client.images.generate(model="sketch_1", prompt="a red fox", size="256x256")
    size = len(base64.b64decode(picture.data[0].b64_json or ""))
    return "openai-python", f"chat in {chunks} chunks, picture of {size // 1024} KB", 'base_url="…/v1"'


def ask_anthropic() -> tuple[str, str, str]:
    """Ask for a message."""
    from anthropic import Anthropic

    client = Anthropic(base_url=GATEWAY, api_key=KEY)
    said = client.messages.create(
        model="smollm2-135m", max_tokens=16, messages=[{"role": "user", "content": "Say hello."}]
    )
    return "anthropic-python", f"message of {said.usage.output_tokens} tokens", 'base_url="…"'


def ask_replicate() -> tuple[str, str, str]:
    """Run a model and wait for its result."""
    from replicate import Client

    client = Client(api_token=KEY, base_url=f"{GATEWAY}/replicate")
    output = client.run("penstock/sketch_1", input={"prompt": "a blue owl", "size": "256x256"})
    found = str(output[0] if isinstance(output, list) else output)
    name = found.partition("?")[0].rpartition("/")[2]
    return "replicate-python", f"picture at {name}", 'base_url="…/replicate"'


def ask_fal() -> tuple[str, str, str]:
    """Subscribe to a model's queue. Its hosts come from the environment, and are read at import."""
    os.environ["FAL_KEY"] = KEY
    os.environ["FAL_RUN_HOST"] = f"{SECURE_HOST}/fal/run"
    os.environ["FAL_QUEUE_RUN_HOST"] = f"{SECURE_HOST}/fal/queue"
    import fal_client

    result = fal_client.subscribe("penstock/sketch_1", arguments={"prompt": "a green frog", "size": "256x256"})
    return "fal-client (Python)", f"{len(result['images'])} picture", "FAL_QUEUE_RUN_HOST=…/fal/queue"


def ask_mcp() -> tuple[str, str, str]:
    """List the tools, and make a picture with one."""
    return asyncio.run(_ask_mcp())


async def _ask_mcp() -> tuple[str, str, str]:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    http = httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=120)
    async with Client(streamable_http_client(f"{GATEWAY}/mcp", http_client=http)) as client:
        tools = (await client.list_tools()).tools
        arguments = {"model": "sketch_1", "params": {"prompt": "a yellow duck", "size": "256x256"}}
        result = await client.call_tool("generate_image", arguments)
    kinds = ", ".join(part.type for part in result.content)
    return "mcp (Python)", f"{len(tools)} tools; a picture as {kinds}", 'url="…/mcp"'


CLIENTS: Final[dict[str, Callable[[], tuple[str, str, str]]]] = {
    "openai": ask_openai,
    "anthropic": ask_anthropic,
    "replicate": ask_replicate,
    "fal": ask_fal,
    "mcp": ask_mcp,
}


if __name__ == "__main__":
    client, did, changed = CLIENTS[sys.argv[1]]()
    print(json.dumps({"client": client, "did": did, "changed": changed}))
