"""The fields of a request that are about keeping, and the request with the conversation that it continues."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs

from penstock.chat.doors.responses.reader import refuse_kept
from penstock.chat.kept import items
from penstock.chat.kept.responses import KeptResponses
from penstock.domain.chat import Ask, guess_tokens
from penstock.domain.ids import new_id
from penstock.errors import InvalidRequest

FIELDS: Final = ("store", "previous_response_id", "background")
_SEALED: Final = msgspec.Raw(b'"reasoning.encrypted_content"')
_read_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_FALSE: Final = msgspec.Raw(b"false")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class KeepRequest:
    """The wishes of a request about keeping."""

    store: bool
    is_explicit: bool
    """True if the request itself says `store: true`."""
    previous_id: str | None
    is_background: bool

    def describe(self) -> dict[str, Any]:
        """Return the fields of the response object that repeat the wishes."""
        return {
            "store": self.store,
            "previous_response_id": self.previous_id,
            "background": self.is_background,
        }


class Continued(NamedTuple):
    """A request with the conversation that it continues."""

    ask: Ask
    given: bytes
    """The input items of the request alone, as JSON. They are kept with its response."""
    added_bytes: int
    """Bytes of the items that were added."""


def read_keep_request(ask: Ask, *, is_on: bool) -> KeepRequest:
    """Return the wishes of a request. Raise `InvalidRequest` for those that this server does not fulfil."""
    store, background = _read_flag(ask, "store"), _read_flag(ask, "background")
    previous_id = ask.field("previous_response_id")
    if previous_id is not None and not isinstance(previous_id, str):
        raise InvalidRequest("`previous_response_id` is a text, the id of a response.", param="previous_response_id")
    if not is_on:
        refuse_kept(ask.fields)
        return KeepRequest(store=False, is_explicit=False, previous_id=None, is_background=False)
    if background and store is False:
        raise InvalidRequest("A response in the background has to be kept: send no `store: false`.", param="store")
    if background and ask.stream:
        message = "A response in the background is not streamed: leave out `stream`, and get it by its id."
        raise InvalidRequest(message, param="stream", code="unsupported_value")
    return KeepRequest(
        store=store is not False, is_explicit=store is True, previous_id=previous_id, is_background=background is True
    )


async def continue_conversation(kept: KeptResponses, account_id: str, ask: Ask, wanted: KeepRequest) -> Continued:
    """Return the request with all items of its conversation, so that any vendor can answer it without ours."""
    raw = ask.fields.get("input")
    given = [] if raw is None else await kept.resolve(account_id, items.as_items(raw))
    own = _encode(given)
    history = [] if wanted.previous_id is None else await kept.history(account_id, wanted.previous_id)
    fields = {name: raw for name, raw in ask.fields.items() if name not in FIELDS}
    fields["store"] = _FALSE  # a vendor that speaks this dialect is to keep nothing
    if wanted.store and "reasoning" in fields:
        fields["include"] = _include_seals(fields.get("include"))  # else it could not be sent to the vendor again
    fields["input"] = joined = msgspec.Raw(_encode(history + given) if history else own)
    added = max(0, len(memoryview(joined)) - (0 if raw is None else len(memoryview(raw))))
    whole = structs.replace(
        ask,
        fields=fields,
        size=ask.size + added,
        prompt=ask.prompt + guess_tokens(joined) - (0 if raw is None else guess_tokens(raw)),
        reply_id=new_id("resp").replace("_", "-"),
    )
    return Continued(whole, own, added)


def _include_seals(raw: msgspec.Raw | None) -> msgspec.Raw:
    """Return the list `include` with encrypted reasoning."""
    if raw is not None and not bytes(raw).startswith(b"["):
        return raw  # the vendor says what is wrong with it
    found = [] if raw is None else _read_list(raw)
    return msgspec.Raw(_encode(found if _SEALED in found else [*found, _SEALED]))


def _read_flag(ask: Ask, name: str) -> bool | None:
    value = ask.field(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidRequest(f"`{name}` is true or false.", param=name, code="invalid_type")
    return value
