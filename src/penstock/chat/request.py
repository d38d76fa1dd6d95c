"""Reads a chat request, parsing as little as necessary, and reports exactly what is wrong with it."""

import codecs
import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import Meta

from penstock.domain.chat import Ask, guess_tokens
from penstock.errors import InvalidRequest

ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
MAX_STOPS: Final = 4
MAX_METADATA_PAIRS: Final = 16
MAX_MODEL_CHARACTERS: Final = 256
PIECE_BYTES: Final = 1 << 16
MAX_EXPLAINED_BYTES: Final = 1 << 20
"""Larger bodies are not parsed again to explain an error, because that would block the event loop."""

Checked: TypeAlias = msgspec.Raw
Check: TypeAlias = Callable[[str, msgspec.Raw], Checked]


class _Turn(msgspec.Struct):
    """The only field of a message that is read."""

    role: str


class _UsualTurn(msgspec.Struct):
    """Like `_Turn`, but with a role that is allowed."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]


class _Usual(msgspec.Struct):
    """The fields of nearly all requests, decoded and checked in one step."""

    model: Annotated[str, Meta(min_length=1, max_length=MAX_MODEL_CHARACTERS)]
    messages: Annotated[list[_UsualTurn], Meta(min_length=1)]
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None


_body = msgspec.json.Decoder(dict[str, msgspec.Raw])
_usual = msgspec.json.Decoder(_Usual)
_turns = msgspec.json.Decoder(list[_Turn])
_value = msgspec.json.Decoder()
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")
_Text = codecs.getincrementaldecoder("utf-8")


def read(body: bytes) -> Ask:
    """Return the request in this body; an error names the field, the problem and what is allowed."""
    fields = split_fields(body)
    model, stream = _read_usual(body) or _read_carefully(fields)
    for name in fields.keys() & CHECKS.keys():
        fields[name] = CHECKS[name](name, fields[name])
    if "top_logprobs" in fields:
        _check_logprobs(fields)
    return Ask(
        model=model,
        fields=fields,
        stream=stream,
        include_usage="stream_options" in fields and _include_usage(fields, stream=stream),
        max_tokens=_max_tokens(fields),
        size=len(body),
        prompt=guess_tokens(fields["messages"]),
        choices=int(bytes(fields["n"])) if "n" in fields else 1,
    )


def _read_usual(body: bytes) -> tuple[str, bool] | None:
    """Return the model and whether to stream; None if any field is unusual."""
    try:
        usual = _usual.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return usual.model, usual.stream is True


def _read_carefully(fields: dict[str, msgspec.Raw]) -> tuple[str, bool]:
    """Like `_read_usual`, but field by field, to report what is wrong."""
    model = read_model(fields)
    _check_messages(fields)
    for name in fields.keys() & USUAL.keys():
        fields[name] = USUAL[name](name, fields[name])
    return model, "stream" in fields and _peek(fields["stream"]) == b"true"


def split_fields(body: bytes) -> dict[str, msgspec.Raw]:
    """Return every top-level field of a JSON body that is not null, unparsed."""
    try:
        _check_text(body)
        found = _body.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse_surrogates(body)
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidRequest(
            f"We could not parse the JSON body of your request: {reason}.", code="", suggestion="Send a JSON object."
        ) from None
    if b"null" not in body:
        return found
    # Typed clients send null for an absent field.
    return {name: raw for name, raw in found.items() if _peek(raw) != b"null"}


def _refuse_surrogates(body: bytes) -> None:
    """Raise an error that names the field with a lone surrogate, because the parser's own message misleads."""
    if len(body) > MAX_EXPLAINED_BYTES or _SURROGATE.search(body) is None:
        return
    try:
        place = _find_surrogate(json.loads(body))
    except (ValueError, RecursionError):
        return  # something else is wrong as well
    if place is None:
        return
    raise InvalidRequest(
        f"Invalid '{place}': it contains half of a UTF-16 surrogate pair (\\ud800 to \\udfff) without the other half.",
        param=place,
        code="invalid_value",
        suggestion="Escape characters beyond U+FFFF as a pair, or send them as UTF-8.",
    )


def _find_surrogate(value: Any, place: str = "") -> str | None:
    """Return the path of the first text or name with a lone surrogate, such as `messages[0].content`."""
    if isinstance(value, str):
        return place if _LONE.search(value) else None
    if isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            shown = _LONE.sub("\N{REPLACEMENT CHARACTER}", name)[:80]
            inner = f"{place}.{shown}" if place else shown
            if (found := inner if shown != name[:80] else _find_surrogate(item, inner)) is not None:
                return found
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            if (found := _find_surrogate(item, f"{place}[{index}]")) is not None:
                return found
    return None


def _peek(raw: msgspec.Raw) -> bytes:
    """Return the first bytes of a value: enough to recognise `null`, `true`, `false` and its type."""
    return memoryview(raw)[:6].tobytes()


def _check_text(body: bytes) -> None:
    """Check that the body is UTF-8: msgspec does not check raw fields."""
    if not body.isascii():
        decoder = _Text()
        for start in range(0, len(body), PIECE_BYTES):
            decoder.decode(body[start : start + PIECE_BYTES])
        decoder.decode(b"", final=True)


def read_model(fields: Mapping[str, msgspec.Raw]) -> str:
    """Return the model that a request names."""
    raw = fields.get("model")
    if raw is None:
        raise missing_field("model")
    model = parse_field("model", raw)
    if not isinstance(model, str):
        raise wrong_type("model", "a string", model)
    if not 0 < len(model) <= MAX_MODEL_CHARACTERS:
        raise InvalidRequest(
            f"Invalid 'model': 1 to {MAX_MODEL_CHARACTERS} characters.", param="model", code="invalid_value"
        )
    return model


_PLACE = re.compile(r"`\$((?:\[\d+\])?)(?:\.(\w+))?`")


def _check_messages(fields: Mapping[str, msgspec.Raw]) -> None:
    raw = fields.get("messages")
    if raw is None:
        raise missing_field("messages")
    try:
        turns = _turns.decode(raw)
    except msgspec.ValidationError as error:
        raise _explain_messages(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"Invalid 'messages': {error}.", param="messages", code="invalid_value") from None
    if not turns:
        raise InvalidRequest(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param="messages",
            code="empty_array",
        )
    for index, turn in enumerate(turns):
        if turn.role not in ROLES:
            allowed = ", ".join(f"'{role}'" for role in ROLES)
            raise InvalidRequest(
                f"Invalid value: '{turn.role[:80]}'. Supported values are: {allowed}.",
                param=f"messages[{index}].role",
                code="invalid_value",
            )


def _explain_messages(message: str) -> InvalidRequest:
    """Translate msgspec's message, such as "Object missing required field `role` - at `$[0]`"."""
    found = _PLACE.search(message)
    place = "messages" + (found[1] if found else "")
    if "missing required field" in message:
        return missing_field(f"{place}.role")
    name = f"{place}.{found[2]}" if found and found[2] else place
    wanted, _, got = message.partition(" - ")[0].removeprefix("Expected ").partition(", got ")
    return InvalidRequest(
        f"Invalid type for '{name}': expected {_name_type(wanted)}, but got {_name_type(got)} instead.",
        param=name,
        code="invalid_type",
    )


def _name_type(kind: str) -> str:
    word = {"str": "string", "int": "integer", "float": "decimal", "bool": "boolean"}.get(kind.strip("`"))
    word = word or kind.strip("`")
    return word if word == "null" else f"an {word}" if word[:1] in "aeiou" else f"a {word}"


def _check_logprobs(fields: Mapping[str, msgspec.Raw]) -> None:
    wanted, enabled = fields.get("top_logprobs"), fields.get("logprobs")
    if wanted is not None and _peek(wanted) != b"0" and (enabled is None or _peek(enabled) != b"true"):
        raise InvalidRequest(
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
            param="top_logprobs",
            code="invalid_value",
        )


def _include_usage(fields: Mapping[str, msgspec.Raw], *, stream: bool) -> bool:
    raw = fields.get("stream_options")
    if raw is None:
        return False
    if not stream:
        raise InvalidRequest(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
            code="invalid_value",
        )
    options = parse_field("stream_options", raw)
    if not isinstance(options, dict):
        raise wrong_type("stream_options", "an object", options)
    include = cast("dict[str, Any]", options).get("include_usage")
    if include is not None and not isinstance(include, bool):
        raise wrong_type("stream_options.include_usage", "a boolean", include)
    return include is True


def _max_tokens(fields: Mapping[str, msgspec.Raw]) -> int | None:
    """Return the token limit of the reply; the newer of the two names wins."""
    raw = fields.get("max_completion_tokens") or fields.get("max_tokens")
    return None if raw is None else int(bytes(raw))


# -- values


def parse_field(name: str, raw: msgspec.Raw) -> Any:
    """Return the value of a field; an error names the field."""
    try:
        return _value.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"Invalid '{name}': {error}.", param=name, code="invalid_value") from None


def missing_field(name: str) -> InvalidRequest:
    """Return the error for an absent field."""
    return InvalidRequest(f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter")


def wrong_type(name: str, expected: str, value: Any) -> InvalidRequest:
    """Return the error for a value of another type than the expected one."""
    match value:
        case None:
            got = "null"
        case bool():
            got = "a boolean"
        case int() | float():
            got = "an integer" if isinstance(value, int) else "a decimal"
        case str():
            got = "a string"
        case _:
            got = "an array" if isinstance(value, list) else "an object"
    return InvalidRequest(
        f"Invalid type for '{name}': expected {expected}, but got {got} instead.", param=name, code="invalid_type"
    )


def out_of_bounds(name: str, kind: str, side: str, bound: float, value: float) -> InvalidRequest:
    """Return the error for a number `above` or `below` its bound. The kind is `integer` or `decimal`."""
    word, sign, code = ("above maximum", "<=", "max") if side == "above" else ("below minimum", ">=", "min")
    return InvalidRequest(
        f"Invalid '{name}': {kind} {word} value. Expected a value {sign} {bound}, but got {value} instead.",
        param=name,
        code=f"{kind}_{side}_{code}_value",
    )


def integer(low: int, high: int) -> Check:
    """Return a check of integers within these bounds."""

    def check(name: str, raw: msgspec.Raw) -> Checked:
        value = parse_field(name, raw)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
            raw = msgspec.Raw(str(value).encode())
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type(name, "an integer", value)
        _bound(name, "integer", value, low, high)
        return raw

    return check


def _decimal(low: int, high: int) -> Check:
    def check(name: str, raw: msgspec.Raw) -> Checked:
        value = parse_field(name, raw)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_type(name, "a decimal", value)
        _bound(name, "decimal", value, low, high)
        return raw

    return check


def _bound(name: str, kind: str, value: float, low: int, high: int) -> None:
    if value < low:
        raise out_of_bounds(name, kind, "below", low, value)
    if value > high:
        raise out_of_bounds(name, kind, "above", high, value)


def _boolean(name: str, raw: msgspec.Raw) -> Checked:
    if _peek(raw) not in (b"true", b"false"):
        raise wrong_type(name, "a boolean", parse_field(name, raw))
    return raw


def _stop(name: str, raw: msgspec.Raw) -> Checked:
    value = parse_field(name, raw)
    if isinstance(value, str):
        return raw
    if not isinstance(value, list):
        raise wrong_type(name, "a string or an array of strings", value)
    stops = cast("list[Any]", value)
    if len(stops) > MAX_STOPS:
        raise InvalidRequest(
            f"Invalid '{name}': array too long. Expected an array with maximum length {MAX_STOPS}, "
            f"but got an array with length {len(stops)} instead.",
            param=name,
            code="array_above_max_length",
        )
    for index, stop in enumerate(stops):
        if not isinstance(stop, str):
            raise wrong_type(f"{name}[{index}]", "a string", stop)
    return raw


def _text(longest: int) -> Check:
    def check(name: str, raw: msgspec.Raw) -> Checked:
        _measure(name, parse_field(name, raw), longest)
        return raw

    return check


def _measure(name: str, value: Any, longest: int) -> None:
    if not isinstance(value, str):
        raise wrong_type(name, "a string", value)
    if len(value) > longest:
        raise InvalidRequest(
            f"Invalid '{name}': string too long. Expected a string with maximum length {longest}, "
            f"but got a string with length {len(value)} instead.",
            param=name,
            code="string_above_max_length",
        )


def _metadata(name: str, raw: msgspec.Raw) -> Checked:
    value = parse_field(name, raw)
    if not isinstance(value, dict):
        raise wrong_type(name, "an object", value)
    pairs = cast("dict[str, Any]", value)
    if isinstance(tags := pairs.get("tags"), list) and all(isinstance(tag, str) for tag in cast("list[Any]", tags)):
        pairs["tags"] = ",".join(cast("list[str]", tags))  # vendors take only texts here
        raw = msgspec.Raw(msgspec.json.encode(pairs))
    if len(pairs) > MAX_METADATA_PAIRS:
        raise InvalidRequest(
            f"Invalid '{name}': too many properties. Expected an object with at most {MAX_METADATA_PAIRS} properties, "
            f"but got an object with {len(pairs)} properties instead.",
            param=name,
            code="object_above_max_properties",
        )
    for key, text in pairs.items():
        _measure(f"{name}.{key[:80]}", text, 512)
        _measure(f"{name} key", key, 64)
    return raw


def _array(name: str, raw: msgspec.Raw) -> Checked:
    if not _peek(raw).startswith(b"["):
        raise wrong_type(name, "an array", parse_field(name, raw))
    return raw


def _object(name: str, raw: msgspec.Raw) -> Checked:
    if not _peek(raw).startswith(b"{"):
        raise wrong_type(name, "an object", parse_field(name, raw))
    return raw


_INT64 = 2**63
USUAL: Mapping[str, Check] = {
    "frequency_penalty": _decimal(-2, 2),
    "presence_penalty": _decimal(-2, 2),
    "stream": _boolean,
    "temperature": _decimal(0, 2),
    "top_p": _decimal(0, 1),
}
CHECKS: Mapping[str, Check] = {
    "logit_bias": _object,
    "logprobs": _boolean,
    "max_completion_tokens": integer(1, _INT64 - 1),
    "max_tokens": integer(1, _INT64 - 1),
    "metadata": _metadata,
    "n": integer(1, 128),
    "parallel_tool_calls": _boolean,
    "response_format": _object,
    "safety_identifier": _text(128),
    "seed": integer(-_INT64, _INT64 - 1),
    "stop": _stop,
    "tools": _array,
    "top_logprobs": integer(0, 20),
}
"""Checks of the fields besides model and messages; all other fields go to the vendor unchecked."""
