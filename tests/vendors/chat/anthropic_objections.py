"""What Anthropic's Messages API objects to in a request, as far as a gateway can get it wrong."""

import re
from typing import Any

Json = dict[str, Any]

OLD, NEW = "2023-06-01", "2026-10-21"
"""The versions of the API."""


class Objection(Exception):
    """What is wrong with a request."""


def demand(holds: object, said: str) -> None:
    if not holds:
        raise Objection(said)


FIELDS = {
    *("model", "messages", "max_tokens", "system", "stop_sequences", "stream", "tools", "tool_choice", "thinking"),
    *("output_config", "metadata", "service_tier", "speed", "cache_control", "container", "inference_geo"),
    "diagnostics",
}
BLOCKS = {
    "text": {"text"},
    "image": {"source"},
    "tool_use": {"id", "name", "input"},
    "tool_result": {"tool_use_id", "content", "is_error"},
}
SPEAKERS = {"user": ("text", "image", "tool_result"), "assistant": ("text", "tool_use")}
CHOICES = {
    "auto": {"disable_parallel_tool_use"},
    "any": {"disable_parallel_tool_use"},
    "tool": {"name", "disable_parallel_tool_use"},
    "none": set[str](),
}


def check(body: Any, version: str) -> None:
    """Object to whatever the API objects to."""
    demand(isinstance(body, dict), "The request body is not valid JSON")
    sampling = {"temperature", "top_p", "top_k"} if version == OLD else set[str]()
    check_keys("", body, FIELDS | sampling)
    for name in ("model", "messages", "max_tokens"):
        demand(name in body, f"{name}: Field required")
    demand(isinstance(body["max_tokens"], int) and body["max_tokens"] >= 1, "max_tokens: must be at least 1")
    demand(0 <= body.get("temperature", 1) <= 1, "temperature: range: 0..1")
    demand(isinstance(body.get("system", ""), str), "system: Input should be a valid string")
    demand(all(stop.strip() for stop in body.get("stop_sequences", ["x"])), "stop_sequences: must not be blank")
    check_keys("metadata.", body.get("metadata", {}), {"user_id"})
    check_turns(body["messages"], version)
    check_tools(body)
    check_output(body)


def check_keys(place: str, given: Json, allowed: set[str]) -> None:
    for name in given:
        demand(name in allowed, f"{place}{name}: Extra inputs are not permitted")


def check_turns(turns: list[Json], version: str) -> None:
    demand(turns, "messages: at least one message is required")
    merged: list[tuple[str, list[Json]]] = []
    for index, turn in enumerate(turns):
        place = f"messages.{index}."
        check_keys(place, turn, {"role", "content"})
        demand(turn["role"] in SPEAKERS, f"{place}role: Input should be 'user' or 'assistant'")
        content = turn["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        demand(blocks, f"{place}content: must not be empty")
        for number, block in enumerate(blocks):
            check_block(f"{place}content.{number}.", block, SPEAKERS[turn["role"]])
        if merged and merged[-1][0] == turn["role"]:
            merged[-1][1].extend(blocks)
        else:
            merged.append((turn["role"], list(blocks)))
    demand(merged[0][0] == "user" or version == OLD, "messages: first message must use the user role")
    open_calls: set[str] = set()
    for _, blocks in merged:
        check_results(blocks, open_calls)
        open_calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    demand(not open_calls, "messages: `tool_use` ids were found without `tool_result` blocks immediately after")


def check_block(place: str, block: Json, allowed: tuple[str, ...]) -> None:
    kind = block.get("type")
    demand(kind in allowed, f"{place}type: Input tag {kind!r} is not one of {allowed}")
    check_keys(place, block, BLOCKS[str(kind)] | {"type", "cache_control"})
    match kind:
        case "text":
            demand(block["text"].strip(), f"{place}text: text content blocks must contain non-whitespace text")
        case "image":
            check_source(f"{place}source.", block["source"])
        case "tool_use":
            demand(re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), f"{place}id: String should match pattern")
            demand(isinstance(block["input"], dict), f"{place}input: Input should be a valid dictionary")
        case _:
            for number, inner in enumerate(block.get("content", ())):
                check_block(f"{place}content.{number}.", inner, ("text", "image"))


def check_source(place: str, source: Json) -> None:
    if source["type"] == "url":
        demand(source["url"].startswith(("http://", "https://")), f"{place}url: not a URL")
        return
    demand(source["type"] == "base64", f"{place}type: unknown")
    known = ("image/jpeg", "image/png", "image/gif", "image/webp")
    demand(source["media_type"] in known, f"{place}media_type: Input should be one of {known}")
    demand(re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", source["data"]), f"{place}data: not base64")


def check_results(blocks: list[Json], open_calls: set[str]) -> None:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    for tool_use_id in results:
        demand(tool_use_id in open_calls, f"unexpected `tool_use_id` found in `tool_result` blocks: {tool_use_id}")
    demand(set(results) == open_calls, "`tool_use` ids were found without `tool_result` blocks immediately after")
    first = [block["type"] for block in blocks[: len(results)]]
    demand(first == ["tool_result"] * len(results), "`tool_result` blocks must come first in their turn")


def check_tools(body: Json) -> None:
    tools, choice = body.get("tools", []), body.get("tool_choice")
    for index, tool in enumerate(tools):
        place = f"tools.{index}."
        check_keys(place, tool, {"name", "description", "input_schema", "cache_control"})
        demand(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]), f"{place}name: String should match pattern")
        demand(tool["input_schema"].get("type") == "object", f"{place}input_schema.type: Field required")
    if choice is None:
        return
    demand(tools, "tool_choice: may only be specified while providing `tools`")
    demand(choice["type"] in CHOICES, "tool_choice.type: unknown")
    check_keys("tool_choice.", choice, CHOICES[choice["type"]] | {"type"})
    demand(choice["type"] != "tool" or choice["name"] in [tool["name"] for tool in tools], "tool_choice: no such tool")


def check_output(body: Json) -> None:
    config, thinking = body.get("output_config", {}), body.get("thinking", {"type": "disabled"})
    check_keys("output_config.", config, {"effort", "format"})
    demand(config.get("effort", "low") in ("low", "medium", "high", "xhigh", "max"), "output_config.effort: unknown")
    if "format" in config:
        check_keys("output_config.format.", config["format"], {"type", "schema"})
        demand(config["format"]["type"] == "json_schema", "output_config.format.type: unknown")
    demand(thinking["type"] in ("enabled", "adaptive", "disabled"), "thinking.type: unknown")
    if thinking["type"] == "enabled":
        budget = thinking["budget_tokens"]
        demand(1024 <= budget < body["max_tokens"], "`max_tokens` must be greater than `thinking.budget_tokens`")
