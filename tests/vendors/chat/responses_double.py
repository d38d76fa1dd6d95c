"""A test double of an upstream that speaks OpenAI's Responses: the name of the model says how it behaves.

`plain`, `tools`, `parallel-tools`, `refusal`, `length`, `filter`, `reasoning`, `thoughtful-tools`, `custom`:
    what it answers
`late-arguments`, `mixed-arguments`, `no-index`, `only-end`, `no-usage`, `fragments`, `crlf`, `comments`:
    odd ways to say it
`cut`, `clean-cut`, `error-first`, `error-mid`, `error-event`, `limit-mid`, `not-json`:
    how it breaks
`status:N`, `context`:
    how it refuses
"""

import json
from collections.abc import Iterable
from typing import Any

import openai_replies as replies
from aiohttp import web
from openai_double import CUT, OpenAIDouble, Seen, Step, in_pieces
from openai_replies import GREETING, REFUSAL, pieces_of

Json = dict[str, Any]

USAGE: Json = {
    "input_tokens": 19,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 28,
}
THOUGHTS = ("First, I greet.", "Then I wait.")
ARGUMENTS = '{"city":"Paris","unit":"°C"}'
ENCRYPTED = "gAAAAABopaque+bytes/=="
FAILURES = {
    "error-first": ("server_error", "The server had an error."),
    "error-mid": ("server_error", "The server had an error."),
    "limit-mid": ("rate_limit_exceeded", "Rate limit reached. Please try again in 11.054s."),
}


class ResponsesDouble(OpenAIDouble):
    """Listens on 127.0.0.1 while its block runs; `url` is the base address."""

    async def _serve(self, request: web.BaseRequest, seen: Seen) -> web.StreamResponse:
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return web.json_response(self._wrong_key(request.headers.get("authorization", "")), status=401)
        if (request.method, request.path) != ("POST", "/v1/responses"):
            return web.json_response(replies.error(f"Invalid URL ({request.method} {request.path})"), status=404)
        if wrong := objection(seen.body):
            return web.json_response(replies.error(wrong), status=400)
        name, _, argument = (self.queue.pop(0) if self.queue else seen.body["model"]).partition(":")
        if refusal := self._refuse(name, argument, seen.body):
            return refusal
        if seen.body.get("stream"):
            return await self._stream(request, seen, script(name, seen.body))
        body = Answer(name, seen.body).whole()
        return web.Response(body=b"{" if name == "not-json" else body, content_type="application/json")


def objection(asked: Json) -> str | None:
    """What the live API would refuse."""
    known = {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "store"}
    known |= {"include", "max_output_tokens", "reasoning", "text", "temperature", "top_p", "metadata", "user"}
    known |= {"prompt_cache_key", "safety_identifier", "service_tier", "truncation", "client_metadata", "background"}
    if unknown := asked.keys() - known:
        return f"Unknown parameter: {', '.join(sorted(unknown))}"
    if asked.get("store") is not False:
        return "This double stores nothing: send store false."
    if any("function" in tool for tool in asked.get("tools") or ()):
        return "Missing required parameter: tools[0].name."
    return _object_to_items(asked["input"] if isinstance(asked["input"], list) else [])


def _object_to_items(items: list[Json]) -> str | None:
    called = {item.get("call_id") for item in items if str(item.get("type")).endswith("_call")}
    for item in items:
        if len(str(item.get("call_id") or "")) > 64:
            return "Invalid call_id: string too long."
        if str(item.get("type")).endswith("_output") and item["call_id"] not in called:
            return f"No tool call found for output with call_id {item['call_id']}."
        if item.get("type") == "reasoning" and item.get("encrypted_content") != ENCRYPTED:
            return "The encrypted content could not be verified."
        if item.get("type") == "reasoning" and "summary" not in item:
            return "Missing required parameter: summary."
    return None


class Answer:
    """One reply: its items, the events that build it, or all of it at once."""

    def __init__(self, name: str, asked: Json) -> None:
        self._asked = asked
        self._name = name
        self.items = _items(name, asked)
        self.events: list[Json] = []

    def response(self, status: str, **more: Any) -> Json:
        done = status in ("completed", "incomplete")
        return {
            "id": "resp_upstream",
            "object": "response",
            "created_at": 1_790_000_000,
            "status": status,
            "model": f"{self._asked['model']}-2026-11-01",
            "output": self.items if done else [],
            "parallel_tool_calls": True,
            "tool_choice": self._asked.get("tool_choice", "auto"),
            "tools": self._asked.get("tools", []),
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "usage": USAGE if done and self._name != "no-usage" else None,
            **more,
        }

    def end(self) -> Json:
        reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(self._name)
        return (
            self.response("incomplete", incomplete_details={"reason": reason}) if reason else self.response("completed")
        )

    def whole(self) -> bytes:
        if self._name in FAILURES:
            code, message = FAILURES[self._name]
            return json.dumps(self.response("failed", error={"code": code, "message": message})).encode()
        return json.dumps(self.end(), indent=2, ensure_ascii=False).encode()

    def say(self, kind: str, **fields: Any) -> None:
        if self._name == "no-index":
            fields.pop("output_index", None)
        self.events.append({"type": kind, "sequence_number": len(self.events), **fields})

    def play(self) -> list[bytes]:
        """All events."""
        for state in ("created", "in_progress"):
            self.say(f"response.{state}", response=self.response("in_progress"))
        if self._name == "mixed-arguments":
            _mix(self)
        elif self._name != "only-end":
            for index, item in enumerate(self.items):
                _play_item(self, index, item)
        last = self.end()
        self.say(f"response.{last['status']}", response=last)
        return [write(event) for event in self.events]


def write(event: Json) -> bytes:
    data = json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()
    return b"event: " + event["type"].encode() + b"\ndata: " + data + b"\n\n"


def _message(text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def _call(number: int, name: str) -> Json:
    call = {"call_id": f"call_{number}", "name": name, "arguments": ARGUMENTS}
    return {"id": f"fc_{number}", "type": "function_call", "status": "completed", **call}


def _reasoning() -> Json:
    summary = [{"type": "summary_text", "text": text} for text in THOUGHTS]
    return {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": ENCRYPTED}


def _items(name: str, asked: Json) -> list[Json]:
    tool = next((tool["name"] for tool in asked.get("tools") or () if "name" in tool), "get_weather")
    match name:
        case "tools" | "late-arguments":
            return [_call(1, tool)]
        case "parallel-tools" | "mixed-arguments":
            return [_call(1, tool), _call(2, tool)]
        case "thoughtful-tools":
            return [_reasoning(), _call(1, tool)]
        case "reasoning":
            return [_reasoning(), _message(GREETING)]
        case "custom":
            call = {"call_id": "call_1", "name": tool, "input": 'print("é")\n'}
            return [{"id": "ctc_1", "type": "custom_tool_call", "status": "completed", **call}]
        case "refusal":
            return [{**_message(""), "content": [{"type": "refusal", "refusal": REFUSAL}]}]
        case _:
            return [_message(GREETING)]


def _play_item(answer: Answer, index: int, item: Json) -> None:
    place = {"item_id": item["id"], "output_index": index}
    begun = {**item, "status": "in_progress"} | {name: "" for name in ("arguments", "input") if name in item}
    begun |= {name: [] for name in ("content", "summary") if name in item}
    answer.say("response.output_item.added", output_index=index, item=begun)
    match item["type"]:
        case "message":
            _play_message(answer, item, place)
        case "reasoning":
            for number, part in enumerate(item["summary"]):
                where = {**place, "summary_index": number}
                answer.say("response.reasoning_summary_part.added", **where, part={**part, "text": ""})
                for piece in pieces_of(part["text"]):
                    answer.say("response.reasoning_summary_text.delta", **where, delta=piece)
                answer.say("response.reasoning_summary_text.done", **where, text=part["text"])
                answer.say("response.reasoning_summary_part.done", **where, part=part)
        case "function_call":
            if answer._name != "late-arguments":
                for start in range(0, len(item["arguments"]), 5):
                    delta = item["arguments"][start : start + 5]
                    answer.say("response.function_call_arguments.delta", **place, delta=delta)
            answer.say("response.function_call_arguments.done", **place, arguments=item["arguments"])
        case _:
            answer.say("response.custom_tool_call_input.done", **place, input=item["input"])
    answer.say("response.output_item.done", output_index=index, item=item)


def _play_message(answer: Answer, item: Json, place: Json) -> None:
    where = {**place, "content_index": 0}
    part = item["content"][0]
    kind = part["type"]
    field = "refusal" if kind == "refusal" else "text"
    logprobs = {} if kind == "refusal" else {"logprobs": []}
    answer.say("response.content_part.added", **where, part={**part, field: ""})
    for piece in pieces_of(part[field]):
        answer.say(f"response.{kind}.delta", **where, delta=piece, **logprobs)
    answer.say(f"response.{kind}.done", **where, **{field: part[field]}, **logprobs)
    answer.say("response.content_part.done", **where, part=part)


def _mix(answer: Answer) -> None:
    """Two calls whose pieces come in turns."""
    for index, item in enumerate(answer.items):
        answer.say("response.output_item.added", output_index=index, item={**item, "arguments": ""})
    for start in range(0, len(ARGUMENTS), 5):
        for index, item in enumerate(answer.items):
            place = {"item_id": item["id"], "output_index": index}
            answer.say("response.function_call_arguments.delta", **place, delta=ARGUMENTS[start : start + 5])
    for index in (1, 0):
        answer.say("response.output_item.done", output_index=index, item=answer.items[index])


def script(name: str, asked: Json) -> Iterable[Step]:
    """What it sends, step by step."""
    answer = Answer(name, asked)
    events = answer.play()
    if name in FAILURES:
        code, message = FAILURES[name]
        failed = {"type": "response.failed", "sequence_number": 6}
        event = write({**failed, "response": answer.response("failed", error={"code": code, "message": message})})
        return (event,) if name == "error-first" else (*events[:6], event)
    match name:
        case "error-event":
            return (*events[:6], write({"type": "error", "code": "server_error", "message": "Oops.", "param": None}))
        case "cut":
            return (*events[:6], CUT)
        case "clean-cut":
            return events[:6]
        case "fragments":
            return in_pieces(b"".join(events), 7)
        case "crlf":
            return [event.replace(b"\n", b"\r\n") for event in events]
        case "comments":
            return [part for event in events for part in (b": keepalive\n\n", event)]
        case _:
            return events
