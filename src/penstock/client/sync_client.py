"""The client that waits: every call is done when it returns. Threads may share one."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from penstock.client.calls import Calls, WebhookCalls, Wishes, make_calls
from penstock.client.chat import ChatChunk, load_sdk, sdk_arguments, stream_chat
from penstock.client.config import find_address
from penstock.client.records import Delivery, Event, FileRecord, Model, Quote, Usage, Webhook
from penstock.client.sync_job import Batch, Job, bind_job
from penstock.client.transport.sync_driver import SyncDriver

if TYPE_CHECKING:  # an optional package
    import openai


class Client:
    """A Penstock server, by one key.

    `base_url` and `api_key` come from PENSTOCK_BASE_URL and PENSTOCK_API_KEY where they are not given. `retries` is how
    often a request is tried again; `patience` how many seconds a server may be away while one waits for a job.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 4,
        patience: float = 120.0,
        connections: int = 100,
    ) -> None:
        self._address = find_address(base_url, api_key, timeout=timeout, connections=connections)
        self._driver = SyncDriver(self._address)
        self._calls: Calls[Job] = make_calls(lambda told: bind_job(self, told), self._address, retries, patience)
        self.webhooks = Webhooks(self._driver, self._calls)

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._driver.close()

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self._address.base_url

    @property
    def driver(self) -> SyncDriver:
        """What runs flows, for the records of this client."""
        return self._driver

    @property
    def calls(self) -> Calls[Job]:
        """The flows, for the records of this client."""
        return self._calls

    # -- generating

    def generate(
        self,
        model: str,
        params: Mapping[str, Any] | None = None,
        *,
        client_ref: str | None = None,
        metadata: Mapping[str, str] | None = None,
        webhook: Mapping[str, Any] | str | None = None,
        start_timeout: float | None = None,
        run_timeout: float | None = None,
        retention: float | str | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> Job:
        """Start a generation. Params are given by name; one that has the name of an option here goes into `params`."""
        wishes = Wishes(
            client_ref=client_ref,
            metadata=metadata,
            webhook=webhook,
            start_timeout=start_timeout,
            run_timeout=run_timeout,
            retention=retention,
            idempotency_key=idempotency_key,
        )
        return self._driver.run(self._calls.generate(model, {**(params or {}), **more}, wishes))

    def batch(self, model: str, inputs: Sequence[Mapping[str, Any]], **wishes: Any) -> Batch:
        """Start up to 16 generations, accepted all or none; `wishes` are the options of `generate`."""
        return Batch(self, self._driver.run(self._calls.batch(model, inputs, Wishes(**wishes))))

    def price(self, model: str, params: Mapping[str, Any] | None = None, **more: Any) -> Quote:
        """What a generation would cost; it is checked as a whole, and nothing is created."""
        return self._driver.run(self._calls.price(model, [{**(params or {}), **more}]))

    # -- jobs and events

    def job(self, job_id: str) -> Job:
        """One job."""
        return self._driver.run(self._calls.job(job_id))

    def jobs(
        self,
        *,
        status: str | None = None,
        model: str | None = None,
        client_ref: str | None = None,
        batch: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Your jobs, newest first, fetched page by page as you go; `limit` is how many at most."""
        filters = {
            "status": status,
            "model": model,
            "client_ref": client_ref,
            "batch": batch,
            "created_after": created_after,
            "created_before": created_before,
        }
        return self._driver.iterate(self._calls.jobs(limit, filters))

    def cancel(self, job_id: str) -> Job:
        """Ask for a job to be stopped."""
        return self._driver.run(self._calls.cancel(job_id))

    def rerun(self, job_id: str, **changes: Any) -> Job:
        """The same generation again, with some params changed; None takes one away."""
        return self.job(job_id).rerun(**changes)

    def delete_job(self, job_id: str) -> None:
        """Remove a finished job's params, outputs and files."""
        self._driver.run(self._calls.delete_job(job_id))

    def events(self, after: str | None = None, *, follow: bool = False) -> Iterator[Event]:
        """The account's events: those that are there, or with `follow` those to come, without an end."""
        return self._driver.iterate(self._calls.events(after, follow=follow))

    # -- files, models, usage, chat

    def upload(self, file: Any) -> FileRecord:
        """Upload a picture: a path, bytes, an open file or a PIL image."""
        return self._driver.run(self._calls.upload(file))

    def file(self, token: str) -> FileRecord:
        """What is known of an upload."""
        return self._driver.run(self._calls.file(token))

    def delete_file(self, token: str) -> None:
        """Remove an upload."""
        self._driver.run(self._calls.delete_file(token))

    def models(self) -> tuple[Model, ...]:
        """What is on offer."""
        return self._driver.run(self._calls.models())

    def model(self, model_id: str) -> Model:
        """One model, with the JSON Schema of its params."""
        return self._driver.run(self._calls.model(model_id))

    def usage(self, *, first: str | None = None, last: str | None = None, by: str = "day", **filters: str) -> Usage:
        """What was used and what it cost, from the first to the last day."""
        return self._driver.run(self._calls.usage({"from": first, "to": last, "by": by, **filters}))

    def chat_models(self) -> tuple[str, ...]:
        """The ids of the chat models that the key may use."""
        return self._driver.run(self._calls.chat_models())

    def chat(self, model: str, messages: Sequence[Mapping[str, Any]], **fields: Any) -> Iterator[ChatChunk]:
        """Stream a chat answer, piece by piece."""
        return self._driver.iterate(stream_chat(model, messages, fields, self._calls.policy))

    def openai(self, **options: Any) -> "openai.OpenAI":
        """The official SDK's client, on this server and key; the extra `openai` brings it."""
        return load_sdk().OpenAI(**{**sdk_arguments(self._address), **options})


class Webhooks:
    """The account's webhooks."""

    def __init__(self, driver: SyncDriver, calls: Calls[Any]) -> None:
        self._driver = driver
        self._calls = WebhookCalls(calls)

    def create(self, url: str, *, events: Sequence[str] | None = None, description: str | None = None) -> Webhook:
        """Make one; its `secret` is shown this once."""
        return self._driver.run(self._calls.create(url, events, description))

    def list(self, limit: int | None = None) -> Iterator[Webhook]:
        """All of them, newest first."""
        return self._driver.iterate(self._calls.list(limit))

    def get(self, webhook_id: str) -> Webhook:
        """One of them."""
        return self._driver.run(self._calls.get(webhook_id))

    def change(self, webhook_id: str, **changes: Any) -> Webhook:
        """Change `url`, `events`, `description` or `disabled`."""
        return self._driver.run(self._calls.change(webhook_id, changes))

    def delete(self, webhook_id: str) -> None:
        """Remove one."""
        self._driver.run(self._calls.delete(webhook_id))

    def ping(self, webhook_id: str) -> Delivery:
        """Try one: the delivery tells how it went."""
        return self._driver.run(self._calls.ping(webhook_id))

    def rotate(self, webhook_id: str | None = None) -> Webhook:
        """A new secret for one, or for those that generations bring along."""
        return self._driver.run(self._calls.rotate(webhook_id))

    def secret(self) -> Webhook:
        """What signs the webhooks that generations bring along, as its `secret`."""
        return self._driver.run(self._calls.secret())

    def deliveries(
        self,
        webhook_id: str | None = None,
        *,
        job_id: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Delivery]:
        """What was told or will be, newest first."""
        return self._driver.iterate(self._calls.deliveries(webhook_id, job_id, status, limit))

    def delivery(self, delivery_id: str) -> Delivery:
        """One delivery."""
        return self._driver.run(self._calls.delivery(delivery_id))

    def redeliver(self, delivery_id: str) -> Delivery:
        """Send it again now."""
        return self._driver.run(self._calls.redeliver(delivery_id))
