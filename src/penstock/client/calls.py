"""Every call of the API as a flow, for both clients; what belongs to a job comes back bound to its client."""

import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Semaphore
from typing import Any, Final, Generic, TypeVar

from penstock.client import file_inputs, waiting
from penstock.client.config import Address, path_to
from penstock.client.decoding import Record, decode, read, read_page
from penstock.client.errors import BadInput, UnexpectedAnswer, job_failure
from penstock.client.records import Delivery, Event, FileRecord, JobRecord, Model, Quote, Usage, Webhook, given_params
from penstock.client.transport.retries import Policy, send
from penstock.client.transport.steps import Emit, Flow, Reply, Request, Upload

J = TypeVar("J", bound=JobRecord)
R = TypeVar("R", bound=Record)

FILES: Final = "/api/v1/files"
MODELS: Final = "/api/v1/models"
WEBHOOKS: Final = "/api/v1/webhooks"
INLINE_BYTES: Final = 20_000_000
"""So much goes into one body: any one picture that a server takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a generation may ask for besides its params."""

    client_ref: str | None = None
    metadata: Mapping[str, str] | None = None
    webhook: Mapping[str, Any] | str | None = None
    start_timeout: float | None = None
    run_timeout: float | None = None
    retention: float | str | None = None
    idempotency_key: str | None = None

    def body(self) -> dict[str, Any]:
        """The fields that were given."""
        names = ("client_ref", "metadata", "start_timeout", "run_timeout", "retention")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields["webhook"] = {"url": self.webhook} if isinstance(self.webhook, str) else self.webhook
        return {name: value for name, value in fields.items() if value is not None}

    def key(self) -> str:
        """The idempotency key that was given, else a fresh one."""
        given_key = self.idempotency_key
        if given_key is None:
            return f"penstock-{uuid.uuid4().hex}"
        if not given_key or not given_key.isascii() or not given_key.isprintable():
            raise BadInput("`idempotency_key` should be 1 to 255 visible ASCII characters.")
        return given_key


@dataclass(frozen=True, slots=True)
class Calls(Generic[J]):
    """The flows of one client."""

    bind: Callable[[Any], J]
    policy: Policy
    patience: float
    seats: Semaphore

    @property
    def patient(self) -> Policy:
        """For whoever has a job already: through restarts of the server."""
        return replace(self.policy, retries=math.inf, patience=self.patience)

    @property
    def _waiting(self) -> waiting.Waiting[J]:
        return waiting.Waiting(self.bind, self.patient, self.seats)

    # -- generating

    def generate(self, model: str, params: Mapping[str, Any], wishes: Wishes) -> Flow[J]:
        """Start one generation."""
        return self.bind((yield from self._submit(model, [params], wishes)))

    def batch(self, model: str, inputs: Sequence[Mapping[str, Any]], wishes: Wishes) -> Flow[tuple[J, ...]]:
        """Start several, accepted all or none."""
        told = yield from self._submit(model, inputs, wishes)
        jobs = told.get("jobs") if told.get("object") == "generation.batch" else [told]
        return tuple(self.bind(job) for job in jobs)

    def price(self, model: str, inputs: Sequence[Mapping[str, Any]]) -> Flow[Quote]:
        """What it would cost; nothing is created, nor uploaded."""
        filled = yield from self._fill(inputs, _hold_in_place)
        reply = yield from self._post("/model/v1/generation", {"model": model, "input": filled, "dry_run": True})
        return read(Quote, decode(reply))

    def rerun(self, job: JobRecord, changes: Mapping[str, Any], wishes: Wishes) -> Flow[J]:
        """The same generation again, with some params changed."""
        return (yield from self.generate(job.model, given_params(job, changes), wishes))

    def _submit(self, model: str, inputs: Sequence[Mapping[str, Any]], wishes: Wishes) -> Flow[Any]:
        key = wishes.key()
        filled = yield from self._fill(inputs, self._place if wishes.idempotency_key is None else self._make_same())
        body = {"model": model, "input": filled, **wishes.body()}
        told = decode((yield from self._post("/model/v1/generation", body, **{"idempotency-key": key})))
        if not isinstance(told, Mapping):
            raise UnexpectedAnswer("The answer to a generation is no job: is this Penstock's address?")
        return told  # pyright: ignore[reportUnknownVariableType]

    def _fill(self, inputs: Sequence[Mapping[str, Any]], place: file_inputs.Place) -> Flow[list[dict[str, Any]]]:
        filled: list[dict[str, Any]] = []
        for params in inputs:
            sent: dict[str, Any] = {}
            for name, value in params.items():
                sent[name] = yield from file_inputs.fill_in(value, name, place)
            filled.append({"params": sent})
        return filled

    def _place(self, upload: Upload) -> Flow[Mapping[str, Any]]:
        return {"file_token": (yield from self._upload(upload)).file_token}

    def _make_same(self) -> file_inputs.Place:
        """For requests whose key is used again: the same pictures make the same body, which uploads would not."""
        room = INLINE_BYTES

        def place(upload: Upload) -> Flow[Mapping[str, Any]]:
            nonlocal room
            room -= len(upload.content)
            return (yield from _hold_in_place(upload) if room >= 0 else self._place(upload))

        return place

    # -- jobs

    def job(self, job_id: str) -> Flow[J]:
        """One job."""
        return self.bind(decode((yield from self._call("GET", path_to(waiting.JOBS, job_id)))))

    def jobs(self, limit: int | None, filters: Mapping[str, Any]) -> Flow[None]:
        """Emit jobs, newest first."""
        yield from self._pages(waiting.JOBS, limit, filters, self.bind)

    def cancel(self, job_id: str) -> Flow[J]:
        """Ask for a job to be stopped."""
        return self.bind(decode((yield from self._post(path_to(waiting.JOBS, job_id, "cancel"), None))))

    def delete_job(self, job_id: str) -> Flow[None]:
        """Remove a finished job."""
        yield from self._call("DELETE", path_to(waiting.JOBS, job_id))

    def wait(self, job: J, timeout: float | None, hear: Callable[[J], object] | None, *, check: bool) -> Flow[J]:
        """The job once it is done; unless `check` is false, one without a result is raised."""
        done = yield from self._waiting.for_one(job, timeout, hear)
        if check and not done.succeeded:
            raise job_failure(done)
        return done

    def wait_for_all(
        self,
        jobs: Sequence[J],
        timeout: float | None,
        hear: Callable[[Sequence[J]], object] | None,
        *,
        check: bool,
    ) -> Flow[tuple[J, ...]]:
        """All of them once they are done."""
        done = yield from self._waiting.for_all(jobs, timeout, hear)
        for job in done if check else ():
            if not job.succeeded:
                raise job_failure(job)
        return done

    # -- events

    def job_events(self, job_id: str, after: str | None) -> Flow[None]:
        """Emit a job's events until it is done."""
        yield from waiting.follow_job(job_id, self.patient, after)

    def events(self, after: str | None, *, follow: bool) -> Flow[None]:
        """Emit the account's events: those that are there, or without an end those to come."""
        if follow:
            yield from waiting.follow_account(self.patient, after)
            return
        while True:
            query = {"limit": 100} if after is None else {"limit": 100, "after": after}
            listed, page = read_page((yield from self._call("GET", "/api/v1/events", query)))
            for told in listed:
                event = read(Event, told)
                after = event.id
                yield Emit(event)
            if not page.get("has_more"):
                return

    # -- files, models, usage

    def upload(self, file: Any) -> Flow[FileRecord]:
        """Upload a picture."""
        kept: list[FileRecord] = []

        def place(upload: Upload) -> Flow[Mapping[str, Any]]:
            kept.append((yield from self._upload(upload)))
            return {}

        yield from file_inputs.fill_in(file, file_inputs.FILE_PARAM, place)
        if not kept:
            raise BadInput("Only a path, bytes, an open file or a PIL image can be uploaded.")
        return kept[0]

    def _upload(self, upload: Upload) -> Flow[FileRecord]:
        request = Request(method="POST", path=FILES, upload=upload, repeatable=True)
        return read(FileRecord, decode((yield from send(request, self.policy))))

    def file(self, token: str) -> Flow[FileRecord]:
        """What is known of an upload."""
        return read(FileRecord, decode((yield from self._call("GET", path_to(FILES, token)))))

    def delete_file(self, token: str) -> Flow[None]:
        """Remove an upload."""
        yield from self._call("DELETE", path_to(FILES, token))

    def models(self) -> Flow[tuple[Model, ...]]:
        """What is on offer."""
        listed, _ = read_page((yield from self._call("GET", MODELS)))
        return tuple(read(Model, told) for told in listed)

    def model(self, model_id: str) -> Flow[Model]:
        """One model."""
        return read(Model, decode((yield from self._call("GET", path_to(MODELS, model_id)))))

    def chat_models(self) -> Flow[tuple[str, ...]]:
        """The ids of the chat models."""
        listed, _ = read_page((yield from self._call("GET", "/llm/models")))
        return tuple(read(Model, told).id for told in listed)

    def usage(self, question: Mapping[str, Any]) -> Flow[Usage]:
        """What was used and what it cost."""
        return read(Usage, decode((yield from self._call("GET", "/api/v1/usage", given(question)))))

    # -- how calls are made

    def one(
        self, kind: type[R], method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None
    ) -> Flow[R]:
        """A call that comes to one record."""
        request = Request(method=method, path=path, query=query or {}, json=body)
        return read(kind, decode((yield from send(request, self.policy))))

    def many(self, kind: type[R], path: str, limit: int | None, filters: Mapping[str, Any]) -> Flow[None]:
        """Emit the records of a list, page by page."""
        yield from self._pages(path, limit, filters, lambda told: read(kind, told))

    def _pages(
        self, path: str, limit: int | None, filters: Mapping[str, Any], make: Callable[[Any], Any]
    ) -> Flow[None]:
        cursor, left = None, limit
        while left is None or left > 0:
            query = given({**filters, "cursor": cursor, "limit": 100 if left is None else min(left, 100)})
            listed, page = read_page((yield from self._call("GET", path, query)))
            for told in listed:
                yield Emit(make(told))
            cursor = page.get("next_cursor")
            if not cursor:
                return
            left = None if left is None else left - len(listed)

    def _call(self, method: str, path: str, query: Mapping[str, Any] | None = None) -> Flow[Reply]:
        return (yield from send(Request(method=method, path=path, query=query or {}), self.policy))

    def _post(self, path: str, body: Any, **headers: str) -> Flow[Reply]:
        """A call that may be sent twice: it has a key, or does no more the second time."""
        request = Request(method="POST", path=path, json=body, headers=headers, repeatable=True)
        return (yield from send(request, self.policy))


@dataclass(frozen=True, slots=True)
class WebhookCalls:
    """The flows about webhooks of one client."""

    calls: Calls[Any]

    def create(self, url: str, events: Sequence[str] | None, description: str | None) -> Flow[Webhook]:
        """Make one."""
        told = None if events is None else [*events]
        body = given({"url": url, "description": description}) | ({} if told is None else {"events": told})
        return self.calls.one(Webhook, "POST", WEBHOOKS, body)

    def list(self, limit: int | None) -> Flow[None]:
        """Emit all of them."""
        return self.calls.many(Webhook, WEBHOOKS, limit, {})

    def get(self, webhook_id: str) -> Flow[Webhook]:
        """One of them."""
        return self.calls.one(Webhook, "GET", path_to(WEBHOOKS, webhook_id))

    def change(self, webhook_id: str, changes: Mapping[str, Any]) -> Flow[Webhook]:
        """Change one."""
        return self.calls.one(Webhook, "PATCH", path_to(WEBHOOKS, webhook_id), dict(changes))

    def delete(self, webhook_id: str) -> Flow[None]:
        """Remove one."""
        yield from send(Request(method="DELETE", path=path_to(WEBHOOKS, webhook_id)), self.calls.policy)

    def ping(self, webhook_id: str) -> Flow[Delivery]:
        """Try one."""
        return self.calls.one(Delivery, "POST", path_to(WEBHOOKS, webhook_id, "ping"))

    def rotate(self, webhook_id: str | None) -> Flow[Webhook]:
        """A new secret."""
        return self.calls.one(Webhook, "POST", path_to(WEBHOOKS, webhook_id or "secret", "rotate"))

    def secret(self) -> Flow[Webhook]:
        """The secret of the account."""
        return self.calls.one(Webhook, "GET", f"{WEBHOOKS}/secret")

    def deliveries(
        self, webhook_id: str | None, job_id: str | None, status: str | None, limit: int | None
    ) -> Flow[None]:
        """Emit what was told."""
        path = f"{WEBHOOKS}/deliveries" if webhook_id is None else path_to(WEBHOOKS, webhook_id, "deliveries")
        return self.calls.many(Delivery, path, limit, {"job_id": job_id, "status": status})

    def delivery(self, delivery_id: str) -> Flow[Delivery]:
        """One delivery."""
        return self.calls.one(Delivery, "GET", path_to(WEBHOOKS, "deliveries", delivery_id))

    def redeliver(self, delivery_id: str) -> Flow[Delivery]:
        """Send it again."""
        return self.calls.one(Delivery, "POST", path_to(WEBHOOKS, "deliveries", delivery_id, "redeliver"))


def make_calls(bind: Callable[[Any], J], address: Address, retries: int, patience: float) -> Calls[J]:
    """The flows of a client; half of its connections may be held by those that wait."""
    policy = Policy(retries, timeout=address.timeout)
    return Calls(bind, policy, patience, Semaphore(max(1, address.connections // 2)))


def given(query: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of a query, as it is written."""
    return dict(_written(query))


def _written(query: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in query.items():
        if isinstance(value, datetime):
            yield name, (value if value.tzinfo else value.astimezone()).isoformat()
        elif value is not None:
            yield name, value


def _hold_in_place(upload: Upload) -> Flow[Mapping[str, Any]]:
    return {"url": file_inputs.as_data_uri(upload)}
    yield
