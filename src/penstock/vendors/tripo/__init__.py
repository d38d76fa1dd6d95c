"""`tripo`: 3D models by Tripo's API, version 3; version 2, for pictures only, for those who still run it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, cast
from urllib.parse import quote

import msgspec
from pydantic import Field

from penstock.catalog import image_to_model
from penstock.catalog.model_family import asked_operation
from penstock.catalog.params import as_object
from penstock.domain.files import StoredFile, ending_of
from penstock.domain.job_errors import (
    ContentFiltered,
    JobError,
    UpstreamAuth,
    UpstreamError,
    UpstreamRejected,
    UpstreamUnavailable,
)
from penstock.domain.prices import Price
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Call,
    Done,
    Failed,
    Flow,
    Form,
    GenerationDefaults,
    Kind,
    LookupUnsupported,
    Order,
    Output,
    Refused,
    Reply,
    Role,
    Running,
    ServedModel,
    Similar,
    Unclear,
    VendorFolders,
    VendorOptions,
)
from penstock.vendor_api.order_lookup import contradicts
from penstock.vendor_api.replies import (
    GONE,
    GONE_STATUSES,
    NO_CREDIT,
    Row,
    classify_refusal,
    fail_empty,
    may_match,
    parse_time,
    read_list,
    seed_of,
    server_time,
    upstream_reason,
)
from penstock.vendors.tripo import family

HOSTS: Final = {"v3": "https://openapi.tripo3d.ai", "v2": "https://api.tripo3d.ai/v2/openapi"}
SEED_ONLY: Final = "v1.4-20240625"
"""The only version that takes no param but the seed."""
PRICE: Final = Price.model_validate(
    {
        "per_job": "0.20",
        "per_job_if": {"texture": "0.10", "model_version=P1-20260311": "0.20", "model_version=P2-20260801": "0.80"},
    }
)
UNKNOWN: Final = 2001
FILES: Final = {"input", "inputs", "texture_prompt"}
"""Fields with tokens of uploads, which an order that is looked up no longer knows."""
MAX_FORM_BYTES: Final = 50 * 1024 * 1024
"""A larger file is put where Tripo says instead of sent in a form."""
FULL: Final = {1007, 2000, 2014}
"""Codes of orders that may be accepted later: rate limit, concurrency limit, moderation out of order."""
ERRORS: Final[Mapping[int, type[JobError]]] = {
    **dict.fromkeys((1002, 1005, 2013), UpstreamAuth),
    **dict.fromkeys((2010,), UpstreamUnavailable),
    **dict.fromkeys((2008,), ContentFiltered),
    **dict.fromkeys((1003, 1004, *range(2002, 2008), 2009, 2011, 2012, *range(2015, 2020)), UpstreamRejected),
}


class TripoOptions(VendorOptions):
    """Settings of `[vendors.NAME]` with type `tripo`."""

    version: Literal["v3", "v2"] = Field(
        default="v3", description="the version of Tripo's API; they have switched v2 off"
    )
    base_url: str = HOSTS["v3"]
    max_concurrent: int = Field(default=10, ge=1)
    lookup_seconds: float = Field(default=60.0, ge=0, description="how long a lost order is searched for, in seconds")


# -- replies of Tripo


class _Token(msgspec.Struct):
    file_token: str = ""
    image_token: str = ""
    presigned_url: str = ""
    upload_url: str = ""


class _Created(msgspec.Struct):
    task_id: str


class _Task(msgspec.Struct):
    status: str
    progress: float | None = None
    queuing_num: float | None = None
    running_left_time: float | None = None
    input: Any = None
    output: Any = None
    created_at: Any = None
    completed_at: Any = None
    error_code: Any = None
    error_message: Any = None
    error_msg: Any = None


class _NoList(Exception):
    """This server does not list the account's usage."""


class _Item(msgspec.Struct):
    task_id: str
    created_at: Any = None


class _Usage(msgspec.Struct):
    items: list[_Item]


class _Several(msgspec.Struct):
    tasks: dict[str, _Task]


class _ErrorBody(msgspec.Struct):
    code: Any = None
    message: Any = None


class Tripo(GenerationDefaults):
    """The picture is uploaded before the order. Links to a result are valid for minutes; each poll returns new ones."""

    options_type: ClassVar[type[VendorOptions]] = TripoOptions
    models: Sequence[ServedModel] = [
        *(ServedModel(model, PRICE) for model in image_to_model.MODELS),
        *family.MODELS,
    ]

    def __init__(self, options: TripoOptions, folders: VendorFolders) -> None:
        del folders
        self._v3 = options.version == "v3"
        base = options.base_url if "base_url" in options.model_fields_set else HOSTS[options.version]
        self.options = options.model_copy(update={"base_url": base.rstrip("/").removesuffix("/v3")})
        self.lookup_seconds = options.lookup_seconds
        self.reads_objects = not self._v3
        self.batch = 50 if self._v3 else 0
        if not self._v3:
            self.models = [served for served in self.models if served not in family.MODELS]

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Upload the files, then place the order."""
        if asked_operation(order.params):
            return (yield from self._submit_family(order))
        token: str | Refused | Failed | None = None
        if order.file is not None:
            token = yield from self._upload(order.file)
            if isinstance(token, Refused | Failed):
                return token
        elif not self._v3 and not isinstance(order.params["file"].get("object"), Mapping):
            reason = upstream_reason(None, "version 2 takes an object as {bucket, key}")
            return Failed(UpstreamRejected("`file.object` should be {bucket, key} here.", upstream=reason))
        body, warnings = self._describe(order, token)
        return (yield from self._order("/v3/generation/image-to-model" if self._v3 else "/task", body, warnings))

    def _submit_family(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place an order of the 3D family: name a model of Tripo's own by its task, and upload any other file."""
        if not self._v3:
            return Failed(UpstreamRejected("Version 2 of Tripo's API makes models from pictures only."))
        if problem := family.find_problem(order):
            return Failed(UpstreamRejected(problem))
        sources = dict[str, str]()
        files = [given.file for name in ("mesh", "image", "images") for given in order.given(name)]
        for name, file in zip(family.views(order), files, strict=True):
            source = (yield from self._recall(order, file)) or (yield from self._upload(file))
            if isinstance(source, Refused | Failed):
                return source
            sources[name] = source
        return (yield from self._order(*family.describe(order, sources)))

    def _recall(self, order: Order, file: StoredFile) -> Flow[str | Failed | None]:
        """Return the task that made the file, if it is ours and Tripo still knows it."""
        if file.origin is None or not order.owns(file):
            return None
        name = file.origin.upstream_id
        reply = yield self._call("GET", f"/v3/tasks/{quote(name, safe='')}", prepares=True)
        if reply.status == 200 and not _code(reply):
            return name
        if reply.status not in GONE_STATUSES and _code(reply) != UNKNOWN:
            raise Unclear(f"HTTP {reply.status}")
        if asked_operation(order.params) != "animate":
            return None
        return Failed(UpstreamRejected("Tripo no longer has the rigged model: rig it again."))

    def _upload(self, file: StoredFile) -> Flow[str | Refused | Failed]:
        """Upload a file; return its token."""
        if self._v3 and file.bytes > MAX_FORM_BYTES:
            call = self._call("POST", "/v3/files/presign", {"format": ending_of(file.content_type)}, prepares=True)
        else:
            path = "/v3/files" if self._v3 else "/upload/sts"
            call = self._call("POST", path, form=Form("file", file), prepares=True)
        reply = yield call
        if reply.status != 200 or _code(reply):
            return _classify(reply)
        found = _data(reply, _Token)
        if place := found.presigned_url or found.upload_url:
            headers = {"content-type": file.content_type}
            reply = yield Call("PUT", place, headers, file=file, seconds=300, prepares=True)
            if not 200 <= reply.status < 300:
                raise Unclear(f"HTTP {reply.status} on upload")
        if not (token := found.file_token or found.image_token):
            raise Unclear("an upload without a token")
        return token

    def _order(
        self, path: str, body: Mapping[str, Any], warnings: tuple[str, ...]
    ) -> Flow[Accepted | Refused | Failed]:
        reply = yield self._call("POST", path, body)
        if reply.status != 200 or _code(reply):
            return _classify(reply)
        created = _data(reply, _Created)
        return Accepted(created.task_id, {"id": created.task_id}, warnings)

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Look up the order in the account's latest: the input is echoed, and mostly holds a seed of ours.

        One without that seed may be another's, with another picture: then only its absence can be proven.
        """
        if not self._v3:
            return LookupUnsupported()
        if asked_operation(order.params):
            wanted = family.describe(order, _own_tasks(order))[1]
        else:
            wanted = self._describe(order, None)[0]
        try:
            latest, listing = yield from read_list(order, lambda _, offset: self._list(offset))
        except _NoList:
            return LookupUnsupported()
        opened = [row for row in latest if row.record is not None]
        found = [row.upstream_id for row in opened if _matches(row.record.input, wanted)]
        if found and wanted.get("texture_seed") == seed_of(order):
            return Accepted(found[-1], {"id": found[-1]})
        plain = {name: value for name, value in wanted.items() if name not in FILES}
        recent = [row for row in opened if may_match(order, row.created_at, listing.answered_at)]
        if own := _own_tasks(order):  # nobody else has that task, so an equal order is as good as ours
            same = [row for row in recent if as_object(row.record.input).get("input") == own["mesh"]]
            same = [row.upstream_id for row in reversed(same) if _matches(row.record.input, wanted)]
            return Similar(
                tuple(Accepted(name, {"id": name}) for name in same), listing, _doubtful(recent, plain, same)
            )
        return Similar((), listing, _doubtful(recent, plain))

    def _list(self, offset: int) -> Flow[tuple[Sequence[Row], float | None]]:
        """Read a page of the account's usage with its orders; an item that our key cannot open is not ours."""
        reply = yield self._call("GET", f"/v3/account/usage?limit={self.batch}&offset={offset}")
        if reply.status == 404:
            raise _NoList
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        answered_at, items = server_time(reply), _data(reply, _Usage).items
        tasks = yield from self._open_all([item.task_id for item in items])  # of any time: clocks may differ
        rows = [(item, tasks.get(item.task_id)) for item in items]
        return [
            Row(item.task_id, parse_time(item.created_at) or _created(task), task) for item, task in rows
        ], answered_at

    def _open_all(self, names: Sequence[str]) -> Flow[Mapping[str, _Task]]:
        """Get several tasks in one call, and those that it misses one by one."""
        if not names:
            return {}
        reply = yield self._call("POST", "/v3/tasks/list", {"task_ids": list(names)})
        found = dict(_data(reply, _Several).tasks) if reply.status == 200 and not _code(reply) else {}
        for name in names:
            if name in found:
                continue
            reply = yield self._call("GET", f"/v3/tasks/{quote(name, safe='')}")
            if reply.status == 200 and not _code(reply):
                found[name] = _data(reply, _Task)
            elif reply.status not in GONE_STATUSES and _code(reply) != UNKNOWN:
                raise Unclear(f"HTTP {reply.status}")
        return found

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state."""
        path = "/v3/tasks" if self._v3 else "/task"
        reply = yield self._call("GET", f"{path}/{quote(operation['id'], safe='')}")
        if reply.status in GONE_STATUSES or _code(reply) == UNKNOWN:
            return Failed(UpstreamError(GONE, retryable=False, upstream=_read_reason(reply)), gone=True)
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        return _read_state(_data(reply, _Task), operation["id"])

    def poll_many(self, operations: Sequence[Mapping[str, Any]]) -> Flow[Sequence[Running | Done | Failed | None]]:
        """Return the states of several orders in one call."""
        ids = [operation["id"] for operation in operations]
        reply = yield self._call("POST", "/v3/tasks/list", {"task_ids": ids})
        if reply.status != 200 or _code(reply):
            raise Unclear(f"HTTP {reply.status}")
        found = _data(reply, _Several).tasks
        return [_read_state(found[name], name) if name in found else None for name in ids]

    def _describe(self, order: Order, token: str | None) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the body of the order, and the warnings."""
        params, version = order.params, order.params["model_version"]
        names = ("model_seed", "face_limit", "texture", "pbr") if version != SEED_ONLY else ("model_seed",)
        body = {name: params[name] for name in names if params.get(name) is not None}
        if body.get("texture"):  # random if absent; ours distinguishes the order from similar ones
            body["texture_seed"] = seed_of(order)
        lost = [name for name in ("face_limit", "texture", "pbr") if version == SEED_ONLY and name in params]
        warnings = tuple(f"`{name}` means nothing to {version}, and was left out." for name in lost)
        if self._v3:
            return {"input": token, "model": version, **body}, warnings
        kind = "image" if order.file is None else order.file.content_type.partition("/")[2]
        source = {"file_token": token} if token else {"object": params["file"].get("object")}
        return {"type": "image_to_model", "file": {"type": kind, **source}, "model_version": version, **body}, warnings

    def _call(
        self, method: str, path: str, json: Any = None, *, form: Form | None = None, prepares: bool = False
    ) -> Call:
        headers = {"authorization": f"Bearer {self.options.api_key}"}
        return Call(method, path, headers, json, form=form, seconds=120, prepares=prepares)


def _data(reply: Reply, shape: type[Any]) -> Any:
    """Return the envelope's `data` in this shape."""
    try:
        return msgspec.convert(reply.json()["data"], shape)
    except (msgspec.ValidationError, LookupError, TypeError) as error:
        raise Unclear(f"HTTP {reply.status}: {type(error).__name__}") from error


def _code(reply: Reply) -> int:
    """Return the envelope's code; 0 if it has none."""
    failure = reply.try_decode(_ErrorBody)
    return failure.code if failure and isinstance(failure.code, int) else 0


def _read_reason(reply: Reply) -> dict[str, str | None]:
    failure = reply.try_decode(_ErrorBody) or _ErrorBody()
    return upstream_reason(failure.code or reply.status, failure.message, reply.headers.get("x-tripo-trace-id"))


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order by Tripo's code, which is more precise than the status."""
    code, reason = _code(reply), _read_reason(reply)
    if code in FULL:
        return Refused(reply.retry_after)
    if code not in ERRORS:
        return classify_refusal(reply, reason)
    message = NO_CREDIT if ERRORS[code] is UpstreamUnavailable else None
    return Failed(ERRORS[code](message, stage="dispatching", upstream=reason))


def _read_state(task: _Task, task_id: str) -> Running | Done | Failed:
    """Map a task's status to ours; any other status is a failure."""
    match task.status:
        case "queued" | "running":
            queue, left = task.queuing_num, task.running_left_time
            return Running(
                None if task.progress is None else task.progress / 100,
                int(queue) if queue is not None and queue >= 0 else None,
                left if left is not None and left > 0 else None,
            )
        case "success":
            return _finish(task, task_id)
        case "banned":
            return Failed(ContentFiltered(upstream=_reason(task, task_id)))
        case _:
            kind = ERRORS.get(task.error_code, UpstreamError) if isinstance(task.error_code, int) else UpstreamError
            return Failed(kind(stage="generating", upstream=_reason(task, task_id)))


def _reason(task: _Task, task_id: str) -> dict[str, str | None]:
    return upstream_reason(task.error_code or task.status, task.error_message or task.error_msg, task_id)


def _finish(task: _Task, task_id: str) -> Done | Failed:
    output = as_object(task.output)
    names = ("model", "rigged_model", "pbr_model", "base_model")
    urls = [output.get(f"{name}{end}") for name in names for end in ("_url", "")]
    several = output.get("model_urls")
    urls += cast("list[Any]", several)[:1] if isinstance(several, list) else []
    url = next((url for url in urls if isinstance(url, str) and url), None)
    if url is None:
        return fail_empty(task_id)
    outputs = [Output(Kind.MODEL, Role.PRIMARY, Call("GET", url, seconds=300))]
    preview = output.get("rendered_image_url") or output.get("rendered_image")
    if isinstance(preview, str):
        outputs.append(Output(Kind.IMAGE, Role.PREVIEW, Call("GET", preview)))
    return Done(tuple(outputs), finished_at=parse_time(task.completed_at))


def _created(task: _Task | None) -> float | None:
    return None if task is None else parse_time(task.created_at)


def _own_tasks(order: Order) -> dict[str, str]:
    """Return Tripo's own task of the model to work on, if it has one."""
    for given in order.given("mesh"):
        if given.file.origin is not None and order.owns(given.file):
            return {"mesh": given.file.origin.upstream_id}
    return {}


def _doubtful(recent: Sequence[Row], plain: Mapping[str, Any], known: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the orders that may be this one, for all that their inputs say."""
    others = [row for row in recent if row.upstream_id not in known]
    return tuple(row.upstream_id for row in others if not contradicts(as_object(row.record.input), plain))


def _matches(echo: Any, wanted: Mapping[str, Any]) -> bool:
    """Return whether an echoed input is that of the order, except for the picture's token, which is not kept."""
    fields = as_object(echo)
    return all(fields.get(name) == value for name, value in wanted.items() if name not in FILES)


VENDOR = Tripo
