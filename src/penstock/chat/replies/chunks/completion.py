"""Whole replies in OpenAI's own dialect: passed on unchanged, and repaired if they deviate."""

from typing import cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from penstock.chat.replies.broken import UNREPAIRABLE, Broken, Malformed
from penstock.chat.replies.chunks.reader import ChunkHead, UsageCounts, check_text, parse, read_usage
from penstock.chat.replies.chunks.repair import Json, Repairer
from penstock.chat.replies.flat_errors import read_error
from penstock.domain.chat import Ask, Usage
from penstock.vendor_api.lenient_json import MARK, UNREADABLE, write_json, write_plain


class WholeFunction(msgspec.Struct):
    """A called function."""

    name: str
    arguments: str


class WholeCall(msgspec.Struct):
    """A tool call."""

    id: str
    type: str
    function: WholeFunction | None = None


class WholeMessage(msgspec.Struct):
    """The message of a choice."""

    role: Raw
    content: str | None
    refusal: str | None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[WholeCall] | UnsetType = UNSET
    function_call: WholeFunction | None = None


class WholeChoice(msgspec.Struct):
    """One choice of a reply."""

    index: int
    message: WholeMessage
    finish_reason: str
    logprobs: Raw
    error: UnsetType = UNSET


class WholeReply(ChunkHead):
    """A whole reply."""

    choices: list[WholeChoice]
    usage: UsageCounts | UnsetType | None = UNSET
    error: UnsetType = UNSET


_completion = msgspec.json.Decoder(WholeReply)


def pass_whole(body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
    """Return the reply for the caller, its usage and its number of characters."""
    body, completion = read_completion(body, ask, reply_id, created)
    characters = sum(_count_message(choice.message) for choice in completion.choices)
    return body, find_usage(completion), characters


def read_completion(body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, WholeReply]:
    """Return a reply and its bytes, both repaired if necessary."""
    completion = None
    body = body.removeprefix(MARK)
    try:
        check_text(body)
        completion = _completion.decode(body)
    except UNREADABLE:
        pass  # repaired below
    if completion is None or not _is_whole(completion):
        return _repair_whole(body, Repairer(reply_id, created, ask.model))
    return body, completion


def find_usage(completion: WholeReply) -> Usage | None:
    """Return the vendor's count of tokens; None if it has none."""
    return read_usage(completion.usage) if isinstance(completion.usage, UsageCounts) else None


def _count_message(message: WholeMessage) -> int:
    calls = () if isinstance(message.tool_calls, UnsetType) else message.tool_calls
    called = sum(len(call.function.arguments) for call in calls if call.function is not None)
    return len(message.content or "") + len(message.reasoning_content or "") + called


def _is_whole(completion: WholeReply) -> bool:
    usage = completion.usage
    if usage is None or (isinstance(usage, UsageCounts) and not _has_counts(usage)):
        return False
    for choice in completion.choices:
        message = choice.message
        has_reasoning = message.reasoning_content or not message.reasoning
        if not choice.finish_reason or choice.finish_reason == "error" or not has_reasoning:
            return False
        if message.tool_calls == []:
            return False
        if not isinstance(message.tool_calls, UnsetType) and not all(call.id for call in message.tool_calls):
            return False
    return bool(completion.choices)


def _has_counts(usage: UsageCounts) -> bool:
    return None not in (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)


def _repair_whole(body: bytes, repairer: Repairer) -> tuple[bytes, WholeReply]:
    if error := read_error(body):
        raise Broken(error)
    found = parse(body)
    if not isinstance(found, dict):
        raise Malformed("the reply is not an object")
    try:
        whole = repairer.repair_completion(cast("Json", found))
        completion = _completion.decode(write_plain(whole))
    except UNREPAIRABLE as error:
        raise Malformed(str(error)) from None
    if not completion.choices:
        raise Malformed("the reply holds no choice")
    return write_json(whole), completion
