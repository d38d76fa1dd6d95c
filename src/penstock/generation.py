"""The generation request: the one body shape behind both paths, read with every problem told at once."""

import hashlib
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from pydantic import Field, StrictBool, StrictFloat, StrictInt, StringConstraints

from penstock.catalog.params import Params, Text, read, shorten
from penstock.errors import Detail, InvalidRequest
from penstock.events import EventType

MAX_INPUTS = 16
MAX_RETENTION = 10 * 365 * 86400

Seconds = StrictInt | StrictFloat


class Webhook(Params):
    """Where this request's events are to be delivered."""

    url: Text = Field(min_length=1, max_length=2048)
    events: list[EventType] | None = Field(default=None, description="default: the four that end a job")


class InputItem(Params):
    """One generation."""

    params: dict[str, Any] = Field(description="the model's own params; see GET /api/v1/models/{id}")


class GenerationBody(Params):
    """`{"model": …, "input": [{"params": {…}}]}` and what may stand beside it."""

    model: Text = Field(min_length=1, max_length=200, description="model id")
    input: list[InputItem] = Field(
        min_length=1,
        max_length=MAX_INPUTS,
        description="one element makes a job, several a batch, accepted all or none",
    )
    webhook: Webhook | None = Field(default=None)
    client_ref: Text | None = Field(default=None, max_length=128, description="yours; echoed, and a filter of the list")
    metadata: (
        dict[Annotated[str, StringConstraints(max_length=64)], Annotated[Text, StringConstraints(max_length=512)]]
        | None
    ) = Field(default=None, max_length=16, description="yours; echoed")
    start_timeout: Seconds | None = Field(default=None, gt=0, description="seconds until it must have started")
    run_timeout: Seconds | None = Field(default=None, gt=0, description="seconds it may run once started")
    retention: Seconds | Literal["forever"] | None = Field(
        default=None, description='seconds that the finished job is kept, or "forever"'
    )
    dry_run: StrictBool | None = Field(default=None, description="validate and price, but create nothing")

    nested: ClassVar = {"webhook": Webhook}

    @classmethod
    def conflicts(cls, given: Any) -> Any:
        """Retention is told apart from its two types here, so that its bounds are told in one sentence."""
        retention = given.get("retention")
        if isinstance(retention, int | float) and not 0 < retention <= MAX_RETENTION:
            message = f'`retention` is 1 to {MAX_RETENTION} seconds or "forever", got {shorten(retention)}.'
            yield Detail("retention", message)


def decode(raw: bytes) -> dict[str, Any]:
    """The body as a JSON object."""
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The body is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(body, dict):
        raise InvalidRequest("The body should be a JSON object.", code="invalid_json")
    return body  # pyright: ignore[reportUnknownVariableType] JSON


def fingerprint(body: dict[str, Any]) -> bytes:
    """The same for the same body, however it was spelled."""
    return hashlib.sha256(msgspec.json.encode(body, order="sorted")).digest()


def read_body(body: dict[str, Any], path_model: str | None) -> GenerationBody:
    """The request, or every problem of its outer shape."""
    request, details = read(GenerationBody, body, "")
    if request is None:
        raise refuse(details)
    if path_model is not None and path_model != request.model:
        raise InvalidRequest(
            f"The path names the model {shorten(path_model)}, the body {shorten(request.model)}.",
            code="model_mismatch",
            param="model",
            suggestion="Name the same model in both, or use POST /model/v1/generation.",
        )
    return request


def refuse(details: list[Detail]) -> InvalidRequest:
    """One error for all problems: named by its code if all share one."""
    codes = {detail.code for detail in details}
    rest = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return InvalidRequest(
        f"{details[0].loc}: {details[0].message}{rest}",
        code=codes.pop() if len(codes) == 1 else "invalid_params",
        param=details[0].loc,
        details=details,
    )
