"""The body of a generation request. All problems of a body are reported together."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from pydantic import BeforeValidator, Field, StrictBool, StringConstraints
from pydantic_core import PydanticCustomError

from penstock.catalog.model import GenerationModel
from penstock.catalog.params import Line, Number, Params, Text, read, shorten
from penstock.domain.api_keys import Reuse
from penstock.domain.events import EventType
from penstock.errors import Detail, InvalidRequest

MAX_INPUTS = 16
MAX_RETENTION = 10 * 365 * 86400
MAX_VALUES = 5_000
"""A request needs a few hundred values. Reading a million would block the event loop for all callers."""
REUSE = (
    "`exact`: get the kept result of an equal request of yours, free of charge; `off`: a new one; default: as the key"
)
MAX_SEPARATORS = 100_000
"""The limit before parsing, where separators inside strings count too."""


def _retention(value: Any) -> Any:
    """Check both allowed types at once, so that one message names both bounds."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value == "forever" or (number and 0 < value <= MAX_RETENTION):
        return value
    allowed = 'Input should be "forever" or more than 0 and at most {most} seconds'
    raise PydanticCustomError("retention", allowed, {"most": MAX_RETENTION})


ClientRef = Annotated[Line, Field(max_length=128)]


def _join_tags(value: Any) -> Any:
    """Return metadata whose `tags` are a list with commas between them instead."""
    tags: Any = cast("dict[str, Any]", value).get("tags") if isinstance(value, dict) else None
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in cast("list[Any]", tags)):
        return cast("Any", value)
    return {**cast("dict[str, Any]", value), "tags": ",".join(cast("list[str]", tags))}


_Texts = dict[Annotated[str, StringConstraints(max_length=64)], Annotated[Text, StringConstraints(max_length=512)]]
Metadata = Annotated[_Texts, BeforeValidator(_join_tags)]
Retention = Annotated[Annotated[float, Field(gt=0, le=MAX_RETENTION)] | Literal["forever"], BeforeValidator(_retention)]


class Webhook(Params):
    """The endpoint for the events of this request."""

    url: Text = Field(min_length=1, max_length=2048)
    events: list[EventType] | None = Field(default=None, description="default: the four that end a job")

    def keep(self, check_url: Callable[[str], str], base_url: str, dialect: str = "") -> dict[str, Any]:
        """Return the form stored with a job. `base_url` is the base of the links in its events."""
        kept = {**self.model_dump(mode="json"), "url": check_url(self.url), "base_url": base_url}
        return {**kept, "dialect": dialect} if dialect else kept


class InputItem(Params):
    """One generation."""

    params: dict[str, Any] = Field(description="the model's own params; see GET /api/v1/models/{id}")


class GenerationBody(Params):
    """`{"model": …, "input": [{"params": {…}}]}` and optional fields."""

    model: Text = Field(min_length=1, max_length=200, description="model id")
    input: list[InputItem] = Field(
        min_length=1,
        max_length=MAX_INPUTS,
        description="one element makes a job, several a batch, accepted all or none",
    )
    webhook: Webhook | None = Field(default=None)
    client_ref: ClientRef | None = Field(default=None, description="yours; echoed, and a filter of the list")
    metadata: Metadata | None = Field(default=None, max_length=16, description="yours; echoed")
    start_timeout: Number | None = Field(default=None, gt=0, description="seconds until it must have started")
    run_timeout: Number | None = Field(default=None, gt=0, description="seconds it may run once started")
    retention: Retention | None = Field(default=None, description='seconds that the finished job is kept, or "forever"')
    reuse: Reuse | None = Field(default=None, description=REUSE)
    dry_run: StrictBool | None = Field(default=None, description="validate and price, but create nothing")

    nested: ClassVar = {"input": InputItem, "webhook": Webhook}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body, and its digest, which does not depend on white space or the order of keys."""

    body: dict[str, Any]
    mark: bytes


def decode(raw: bytes) -> Decoded:
    """Return the body as a JSON object, with its digest."""
    if sum(map(raw.count, (b",", b"[", b"{"))) > MAX_SEPARATORS:
        raise _flood()
    try:
        body = msgspec.json.decode(raw)
        mark = hashlib.sha256(msgspec.json.encode(body, order="sorted")).digest()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The body is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body should be a JSON object.", code="invalid_json")
    _count_values(body)
    return Decoded(body, mark)  # pyright: ignore[reportUnknownArgumentType] JSON


def _count_values(body: Any) -> None:
    waiting, seen = [body], 0
    while waiting:
        value = waiting.pop()
        items: Any = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] JSON
        seen += len(items)
        if seen > MAX_VALUES:
            raise _flood()
        waiting.extend(items)


def _flood() -> InvalidRequest:
    return InvalidRequest(f"The body has more than {MAX_VALUES} values.")


def read_body(body: dict[str, Any], path_model: str | None) -> tuple[GenerationBody | None, list[Detail]]:
    """Return the request, or all problems of its outer shape."""
    request, details = read(GenerationBody, body, "")
    if request is not None and path_model is not None and path_model != request.model:
        raise InvalidRequest(
            f"The path names the model {shorten(path_model)}, the body {shorten(request.model)}.",
            code="model_mismatch",
            param="model",
            suggestion="Name the same model in both, or use POST /model/v1/generation.",
        )
    return request, details


def read_raw_params(body: dict[str, Any], model: GenerationModel) -> list[Detail]:
    """Return the problems of the params in a body whose outer shape is wrong."""
    items = body.get("input")
    details: list[Detail] = []
    for number, item in enumerate(cast("list[Any]", items)[:MAX_INPUTS] if isinstance(items, list) else ()):
        params = cast("dict[str, Any]", item).get("params") if isinstance(item, dict) else None
        if isinstance(params, dict):
            details += model.read(cast("dict[str, Any]", params), f"input.{number}.params")[1]
    return details


def refuse(details: list[Detail]) -> InvalidRequest:
    """Return one error for all problems. It has their code if they share one."""
    codes = {detail.code for detail in details}
    rest = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return InvalidRequest(
        f"{details[0].loc}: {details[0].message}{rest}",
        code=codes.pop() if len(codes) == 1 else "invalid_params",
        param=details[0].loc,
        details=details,
    )
