"""A chat vendor with a meter, in a process of its own: it remembers what it answered to every request that it got.

python tests/crash/metered_chat.py prints its port. The last message of a request says what to answer: the caller's
own id of it, how many tokens, and how many seconds each takes: `ordeal-17 30 0.01`. `GET /meter` tells what was said.
"""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "sk-metered-0123456789abcdef"
PROMPT_TOKENS = 20
WORD = "word "
PER_CHUNK = 5
"""So many tokens come at once."""


@dataclass(slots=True)
class Meter:
    """What was answered, by the caller's id: how often it was asked, how many tokens, and whether all were sent."""

    asked: dict[str, int] = field(default_factory=dict[str, int])
    tokens: dict[str, int] = field(default_factory=dict[str, int])
    ended: list[str] = field(default_factory=list[str])


class MeteredChat:
    """Speaks as OpenAI does, as far as the ordeal asks."""

    def __init__(self) -> None:
        self.meter = Meter()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request."""
        if request.path == "/meter":
            meter = self.meter
            return web.json_response({"asked": meter.asked, "tokens": meter.tokens, "ended": meter.ended})
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "no such key", "type": "invalid_request_error"}}, status=401)
        asked = json.loads(await request.read())
        name, tokens, pace = asked["messages"][-1]["content"].split()
        count = min(int(tokens), asked.get("max_tokens") or int(tokens))
        self.meter.asked[name] = self.meter.asked.get(name, 0) + 1
        self.meter.tokens[name] = count
        head = {"id": f"chatcmpl-{name}", "created": int(time.time()), "model": asked["model"]}
        if asked.get("stream"):
            response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
            with suppress(ConnectionError):  # the caller has left
                await response.prepare(request)
                await self._stream(response, asked, name, count, float(pace), head)
            return response
        await asyncio.sleep(count * float(pace))
        message = {"role": "assistant", "content": WORD * count, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        self.meter.ended.append(name)
        return web.json_response({**head, "object": "chat.completion", "choices": [choice], "usage": _usage(count)})

    async def _stream(
        self, response: web.StreamResponse, asked: dict[str, Any], name: str, count: int, pace: float,
        head: dict[str, Any],
    ) -> None:  # fmt: skip
        with_usage = (asked.get("stream_options") or {}).get("include_usage")

        async def say(delta: dict[str, Any], finish: str | None = None) -> None:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            await response.write(_event(head, [choice], None) if with_usage else _event(head, [choice]))

        await say({"role": "assistant", "content": "", "refusal": None})
        for start in range(0, count, PER_CHUNK):
            here = min(PER_CHUNK, count - start)
            await asyncio.sleep(here * pace)
            await say({"content": WORD * here})
        await say({}, "stop")
        if with_usage:
            await response.write(_event(head, [], _usage(count)))
        await response.write(b"data: [DONE]\n\n")
        self.meter.ended.append(name)


def _usage(tokens: int) -> dict[str, Any]:
    return {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": tokens, "total_tokens": PROMPT_TOKENS + tokens}


def _event(head: dict[str, Any], choices: list[dict[str, Any]], *usage: dict[str, Any] | None) -> bytes:
    found = {**head, "object": "chat.completion.chunk", "choices": choices, **({"usage": usage[0]} if usage else {})}
    return b"data: " + json.dumps(found, separators=(",", ":")).encode() + b"\n\n"


async def serve() -> None:
    """Listen on a free port until the process is ended."""
    runner = web.ServerRunner(web.Server(MeteredChat().answer, handler_cancellation=True), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    print(runner.addresses[0][1], flush=True)  # noqa: T201  for whoever started it
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
