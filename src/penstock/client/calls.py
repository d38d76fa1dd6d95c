"""Every API call as a flow that both clients run. Jobs are returned bound to their client."""

import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Semaphore
from typing import Any, Final, Generic, TypeVar

from penstock.client import file_inputs, waiting
from penstock.client.config import Address, path_to
from penstock.client.decoding import Record, decode, read, read_page
from penstock.client.errors import BadInput, UnexpectedAnswer, job_failure
from penstock.client.records import (
    Delivery,
    Event,
    FileRecord,
    JobOutput,
    JobRecord,
    Lineage,
    Model,
    Quote,
    Share,
    Usage,
    Verification,
    Webhook,
    given_params,
)
from penstock.client.resumable import LARGE_BYTES, upload_in_pieces
from penstock.client.transport.retries import Policy, send
from penstock.client.transport.steps import Emit, Flow, Reply, Request, Upload

J = TypeVar("J", bound=JobRecord)
R = TypeVar("R", bound=Record)

FILES: Final = "/api/v1/files"
VERIFY: Final = "/api/v1/verify"
MODELS: Final = "/api/v1/models"
SHARES: Final = "/api/v1/shares"
WEBHOOKS: Final = "/api/v1/webhooks"
INLINE_BYTES: Final = 20_000_000
"""Bytes of pictures sent inside one request body. The largest picture that a server accepts fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """Options of a generation, apart from the model's params."""

    client_ref: str | None = None
    metadata: Mapping[str, str] | None = None
    webhook: Mapping[str, Any] | str | None = None
    start_timeout: float | None = None
    run_timeout: float | None = None
    retention: float | str | None = None
    idempotency_key: str | None = None
    reuse: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the request fields of the options that are set."""
        names = ("client_ref", "metadata", "start_timeout", "run_timeout", "retention", "reuse")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields["webhook"] = {"url": self.webhook} if isinstance(self.webhook, str) else self.webhook
        return {name: value for name, value in fields.items() if value is not None}

    def key(self) -> str:
        """Return the idempotency key of the caller, or a new one. Raise BadInput if it is not visible ASCII."""
        given_key = self.idempotency_key
        if given_key is None:
            return f"penstock-{uuid.uuid4().hex}"
        if not given_key or not given_key.isascii() or not given_key.isprintable():
            raise BadInput("`idempotency_key` should be 1 to 255 visible ASCII characters.")
        return given_key


@dataclass(frozen=True, slots=True)
class Calls(Generic[J]):
    """API calls of one client, as flows."""

    bind: Callable[[Any], J]
    policy: Policy
    patience: float
    seats: Semaphore
    file_params: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The params that take files, by model, as far as they had to be known."""

    @property
    def patient(self) -> Policy:
        """Return the retry policy for existing jobs, which outlasts a restart of the server."""
        return replace(self.policy, retries=math.inf, patience=self.patience)

    @property
    def _waiting(self) -> waiting.Waiting[J]:
        return waiting.Waiting(self.bind, self.patient, self.seats)

    # -- generating

    def generate(self, model: str, params: Mapping[str, Any], options: GenerationOptions) -> Flow[J]:
        """Submit one generation and return its job."""
        return self.bind((yield from self._submit(model, [params], options)))

    def batch(self, model: str, inputs: Sequence[Mapping[str, Any]], options: GenerationOptions) -> Flow[tuple[J, ...]]:
        """Submit several generations. The server accepts all of them or none."""
        answer = yield from self._submit(model, inputs, options)
        jobs = answer.get("jobs") if answer.get("object") == "generation.batch" else [answer]
        return tuple(self.bind(job) for job in jobs)

    def price(self, model: str, inputs: Sequence[Mapping[str, Any]]) -> Flow[Quote]:
        """Return a price quote. Nothing is created or uploaded."""
        filled = yield from self._fill(model, inputs, hold_in_place)
        reply = yield from self._post("/model/v1/generation", {"model": model, "input": filled, "dry_run": True})
        return read(Quote, decode(reply))

    def rerun(self, job: JobRecord, changes: Mapping[str, Any], options: GenerationOptions) -> Flow[J]:
        """Submit a job's generation again with changed params."""
        return (yield from self.generate(job.model, given_params(job, changes), options))

    def _submit(self, model: str, inputs: Sequence[Mapping[str, Any]], options: GenerationOptions) -> Flow[Any]:
        key = options.key()
        filled = yield from self._fill(model, inputs, self.placement(options))
        body = {"model": model, "input": filled, **options.body()}
        answer = decode((yield from self._post("/model/v1/generation", body, **{"idempotency-key": key})))
        if not isinstance(answer, Mapping):
            raise UnexpectedAnswer("The answer to a generation is no job: is this Penstock's address?")
        return answer  # pyright: ignore[reportUnknownVariableType]

    def _fill(
        self, model: str, inputs: Sequence[Mapping[str, Any]], place: file_inputs.Place
    ) -> Flow[list[dict[str, Any]]]:
        filled: list[dict[str, Any]] = []
        for params in inputs:
            sent = yield from self.fill_params(model, params, place)
            filled.append({"params": sent})
        return filled

    def fill_params(self, model: str, params: Mapping[str, Any], place: file_inputs.Place) -> Flow[dict[str, Any]]:
        """Return params for a request, with local files replaced by `place`."""
        names = frozenset({file_inputs.FILE_PARAM})
        if any(file_inputs.has_text(name, value) for name, value in params.items()):
            names |= yield from self._file_params_of(model)
        sent: dict[str, Any] = {}
        for name, value in params.items():
            sent[name] = yield from file_inputs.fill_in(value, name, place, is_file=name in names)
        return sent

    def _file_params_of(self, model: str) -> Flow[frozenset[str]]:
        if model not in self.file_params:
            self.file_params[model] = file_inputs.file_params((yield from self.model(model)).params)
        return self.file_params[model]

    def placement(self, options: GenerationOptions) -> file_inputs.Place:
        """Return how a request sends local files."""
        return self._place if options.idempotency_key is None else self._place_inline()

    def _place(self, upload: Upload) -> Flow[Mapping[str, Any]]:
        return {"file_token": (yield from self._upload(upload)).file_token}

    def _place_inline(self) -> file_inputs.Place:
        """Return a placement that keeps pictures in the body: requests that share an idempotency key must be equal."""
        room = INLINE_BYTES

        def place(upload: Upload) -> Flow[Mapping[str, Any]]:
            nonlocal room
            room -= len(upload.content)
            return (yield from hold_in_place(upload) if room >= 0 else self._place(upload))

        return place

    # -- jobs

    def job(self, job_id: str) -> Flow[J]:
        """Return a job. Raise NotFoundError if this account has no such job."""
        return self.bind(decode((yield from self._call("GET", path_to(waiting.JOBS, job_id)))))

    def jobs(self, limit: int | None, filters: Mapping[str, Any]) -> Flow[None]:
        """Emit jobs, newest first, across all pages."""
        yield from self.pages(waiting.JOBS, limit, filters, self.bind)

    def cancel(self, job_id: str) -> Flow[J]:
        """Request cancellation and return the job. A running job may take a moment to stop."""
        return self.bind(decode((yield from self._post(path_to(waiting.JOBS, job_id, "cancel"), None))))

    def delete_job(self, job_id: str) -> Flow[None]:
        """Delete a finished job."""
        yield from self._call("DELETE", path_to(waiting.JOBS, job_id))

    def lineage(self, job_id: str) -> Flow[Lineage]:
        """Return the jobs that led to a job, and those made from its outputs."""
        return self.one(Lineage, "GET", path_to(waiting.JOBS, job_id, "lineage"))

    # -- share links

    def share(self, job_id: str, expires_in: float | None, *, include_input: bool) -> Flow[Share]:
        """Create a public link to a job's outputs."""
        body = given({"expires_in": expires_in, "include_input": include_input})
        return self.one(Share, "POST", path_to(waiting.JOBS, job_id, "shares"), body)

    def shares(self, job_id: str | None, limit: int | None) -> Flow[None]:
        """Emit the share links that work, newest first."""
        return self.many(Share, SHARES, limit, {"job": job_id})

    def revoke_share(self, share_id: str) -> Flow[None]:
        """Revoke a share link."""
        yield from self._call("DELETE", path_to(SHARES, share_id))

    # -- waiting

    def wait(self, job: J, timeout: float | None, notify: Callable[[J], object] | None, *, check: bool) -> Flow[J]:
        """Return the job once it is done. Raise JobFailed if it has no result, unless `check` is false."""
        done = yield from self._waiting.for_one(job, timeout, notify)
        if check and not done.succeeded:
            raise job_failure(done)
        return done

    def wait_for_all(
        self,
        jobs: Sequence[J],
        timeout: float | None,
        notify: Callable[[Sequence[J]], object] | None,
        *,
        check: bool,
    ) -> Flow[tuple[J, ...]]:
        """Return all jobs once they are done. Raise JobFailed if one has no result, unless `check` is false."""
        done = yield from self._waiting.for_all(jobs, timeout, notify)
        for job in done if check else ():
            if not job.succeeded:
                raise job_failure(job)
        return done

    # -- events

    def job_events(self, job_id: str, after: str | None) -> Flow[None]:
        """Emit the events of a job until it is done."""
        yield from waiting.follow_job(job_id, self.patient, after)

    def events(self, after: str | None, *, follow: bool) -> Flow[None]:
        """Emit the account's stored events, or with `follow` new events without end."""
        if follow:
            yield from waiting.follow_account(self.patient, after)
            return
        while True:
            query = {"limit": 100} if after is None else {"limit": 100, "after": after}
            listed, page = read_page((yield from self._call("GET", "/api/v1/events", query)))
            for each in listed:
                event = read(Event, each)
                after = event.id
                yield Emit(event)
            if not page.get("has_more"):
                return

    # -- files, models, usage

    def upload(self, file: Any) -> Flow[FileRecord]:
        """Upload a file and return its record. Raise BadInput if it is not a local file or image."""
        return (yield from self._upload((yield from _read_file(file))))

    def verify(self, file: Any, sidecar: str | None) -> Flow[Verification]:
        """Return who signed a file or a job's output. Raise BadInput if it is neither."""
        if isinstance(file, JobOutput):
            given: dict[str, Any] = {**file.as_input()} | ({} if sidecar is None else {"sidecar": sidecar})
            return read(Verification, decode((yield from self._post(VERIFY, given))))
        fields = {} if sidecar is None else {"sidecar": sidecar}
        upload = yield from _read_file(file)
        request = Request(method="POST", path=VERIFY, upload=upload, fields=fields, repeatable=True)
        return read(Verification, decode((yield from send(request, self.policy))))

    def _upload(self, upload: Upload) -> Flow[FileRecord]:
        if len(upload.content) > LARGE_BYTES:
            token = yield from upload_in_pieces(upload, self.policy)
            if token is not None:
                return (yield from self.file(token))
        request = Request(method="POST", path=FILES, upload=upload, repeatable=True)
        return read(FileRecord, decode((yield from send(request, self.policy))))

    def file(self, token: str) -> Flow[FileRecord]:
        """Return the record of an uploaded file. Raise NotFoundError if there is none."""
        return read(FileRecord, decode((yield from self._call("GET", path_to(FILES, token)))))

    def delete_file(self, token: str) -> Flow[None]:
        """Delete an uploaded file."""
        yield from self._call("DELETE", path_to(FILES, token))

    def models(self) -> Flow[tuple[Model, ...]]:
        """Return the models that this key may use."""
        listed, _ = read_page((yield from self._call("GET", MODELS)))
        return tuple(read(Model, each) for each in listed)

    def model(self, model_id: str) -> Flow[Model]:
        """Return one model."""
        return read(Model, decode((yield from self._call("GET", path_to(MODELS, model_id)))))

    def chat_models(self) -> Flow[tuple[str, ...]]:
        """Return the ids of the chat models."""
        listed, _ = read_page((yield from self._call("GET", "/llm/models")))
        return tuple(read(Model, each).id for each in listed)

    def usage(self, question: Mapping[str, Any]) -> Flow[Usage]:
        """Return usage and cost."""
        return read(Usage, decode((yield from self._call("GET", "/api/v1/usage", given(question)))))

    # -- requests and pagination

    def one(
        self, kind: type[R], method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None
    ) -> Flow[R]:
        """Send a request and return its answer as one record."""
        request = Request(method=method, path=path, query=query or {}, json=body)
        return read(kind, decode((yield from send(request, self.policy))))

    def many(self, kind: type[R], path: str, limit: int | None, filters: Mapping[str, Any]) -> Flow[None]:
        """Emit the records of a list across all pages."""
        yield from self.pages(path, limit, filters, lambda each: read(kind, each))

    def pages(self, path: str, limit: int | None, filters: Mapping[str, Any], make: Callable[[Any], Any]) -> Flow[None]:
        """Emit the elements of a list across all pages, each made by `make`."""
        cursor, left = None, limit
        while left is None or left > 0:
            query = given({**filters, "cursor": cursor, "limit": 100 if left is None else min(left, 100)})
            listed, page = read_page((yield from self._call("GET", path, query)))
            for each in listed:
                yield Emit(make(each))
            cursor = page.get("next_cursor")
            if not cursor:
                return
            left = None if left is None else left - len(listed)

    def _call(self, method: str, path: str, query: Mapping[str, Any] | None = None) -> Flow[Reply]:
        return (yield from send(Request(method=method, path=path, query=query or {}), self.policy))

    def _post(self, path: str, body: Any, **headers: str) -> Flow[Reply]:
        """Send a POST that is safe to retry: it has an idempotency key, or repeating it changes nothing."""
        request = Request(method="POST", path=path, json=body, headers=headers, repeatable=True)
        return (yield from send(request, self.policy))


@dataclass(frozen=True, slots=True)
class WebhookCalls:
    """API calls about webhooks, as flows."""

    calls: Calls[Any]

    def create(self, url: str, events: Sequence[str] | None, description: str | None) -> Flow[Webhook]:
        """Register a webhook."""
        chosen = {} if events is None else {"events": [*events]}
        body = given({"url": url, "description": description}) | chosen
        return self.calls.one(Webhook, "POST", WEBHOOKS, body)

    def list(self, limit: int | None) -> Flow[None]:
        """Emit all webhooks."""
        return self.calls.many(Webhook, WEBHOOKS, limit, {})

    def get(self, webhook_id: str) -> Flow[Webhook]:
        """Return a webhook."""
        return self.calls.one(Webhook, "GET", path_to(WEBHOOKS, webhook_id))

    def change(self, webhook_id: str, changes: Mapping[str, Any]) -> Flow[Webhook]:
        """Change a webhook's fields."""
        return self.calls.one(Webhook, "PATCH", path_to(WEBHOOKS, webhook_id), dict(changes))

    def delete(self, webhook_id: str) -> Flow[None]:
        """Delete a webhook and its list of deliveries."""
        yield from send(Request(method="DELETE", path=path_to(WEBHOOKS, webhook_id)), self.calls.policy)

    def ping(self, webhook_id: str) -> Flow[Delivery]:
        """Send a test event."""
        return self.calls.one(Delivery, "POST", path_to(WEBHOOKS, webhook_id, "ping"))

    def rotate(self, webhook_id: str | None) -> Flow[Webhook]:
        """Replace a signing secret."""
        return self.calls.one(Webhook, "POST", path_to(WEBHOOKS, webhook_id or "secret", "rotate"))

    def secret(self) -> Flow[Webhook]:
        """Return the signing secret of webhooks given with a generation."""
        return self.calls.one(Webhook, "GET", f"{WEBHOOKS}/secret")

    def deliveries(
        self, webhook_id: str | None, job_id: str | None, status: str | None, limit: int | None
    ) -> Flow[None]:
        """Emit deliveries, newest first."""
        path = f"{WEBHOOKS}/deliveries" if webhook_id is None else path_to(WEBHOOKS, webhook_id, "deliveries")
        return self.calls.many(Delivery, path, limit, {"job_id": job_id, "status": status})

    def delivery(self, delivery_id: str) -> Flow[Delivery]:
        """Return a delivery."""
        return self.calls.one(Delivery, "GET", path_to(WEBHOOKS, "deliveries", delivery_id))

    def redeliver(self, delivery_id: str) -> Flow[Delivery]:
        """Send a delivery's event again."""
        return self.calls.one(Delivery, "POST", path_to(WEBHOOKS, "deliveries", delivery_id, "redeliver"))


def make_calls(bind: Callable[[Any], J], address: Address, retries: int, patience: float) -> Calls[J]:
    """Return the calls of a client. Waiting jobs may hold at most half of its connections."""
    policy = Policy(retries, timeout=address.timeout)
    return Calls(bind, policy, patience, Semaphore(max(1, address.connections // 2)))


def given(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the query parameters that are set, with times in ISO 8601."""
    return dict(_query_items(query))


def _query_items(query: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in query.items():
        if isinstance(value, datetime):
            yield name, (value if value.tzinfo else value.astimezone()).isoformat()
        elif value is not None:
            yield name, value


def hold_in_place(upload: Upload) -> Flow[Mapping[str, Any]]:
    """Return the file as a data URI, without an upload."""
    return {"url": file_inputs.as_data_uri(upload)}
    yield


def _read_file(file: Any) -> Flow[Upload]:
    """Return the bytes of a local file or image. Raise BadInput if it is none."""
    kept: list[Upload] = []

    def place(upload: Upload) -> Flow[Mapping[str, Any]]:
        kept.append(upload)
        yield from ()
        return {}

    yield from file_inputs.fill_in(file, file_inputs.FILE_PARAM, place, is_file=True)
    if not kept:
        raise BadInput("Only a path, bytes, an open file or a PIL image can be uploaded.")
    return kept[0]
