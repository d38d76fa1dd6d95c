"""Asynchronous client for asyncio and trio. Calls are awaited, lists are async iterators."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from penstock.client.async_job import AsyncBatch, AsyncJob, bind_async_job
from penstock.client.calls import Calls, GenerationOptions, WebhookCalls, make_calls
from penstock.client.chat import ChatChunk, load_sdk, sdk_arguments, stream_chat
from penstock.client.config import find_address
from penstock.client.pipelines.async_pipeline import AsyncPipeline, AsyncPipelines
from penstock.client.pipelines.calls import PipelineRequest, Steps
from penstock.client.records import (
    Delivery,
    Event,
    FileRecord,
    Lineage,
    Model,
    Quote,
    Share,
    Usage,
    Verification,
    Webhook,
)
from penstock.client.transport.async_driver import AsyncDriver

if TYPE_CHECKING:  # an optional package
    import openai


class AsyncClient:
    """A Penstock server, accessed with one API key.

    `base_url` and `api_key` default to the environment variables PENSTOCK_BASE_URL and PENSTOCK_API_KEY.
    `timeout` is the number of seconds to wait for an answer, `connections` the size of the connection pool.
    `retries` limits how often a failed request is sent again. `patience` is the number of seconds that a server may be
    unreachable while you wait for a job. Raises BadInput if the address or the key is missing or malformed.
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
        self._driver = AsyncDriver(self._address)
        self._calls: Calls[AsyncJob] = make_calls(
            lambda data: bind_async_job(self, data), self._address, retries, patience
        )
        self.webhooks = AsyncWebhooks(self._driver, self._calls)
        self.pipelines = AsyncPipelines(self, self._driver)

    def __repr__(self) -> str:
        return f"AsyncClient({self.base_url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._driver.close()

    @property
    def base_url(self) -> str:
        """The server's address, without a trailing slash."""
        return self._address.base_url

    @property
    def driver(self) -> AsyncDriver:
        """The driver that runs flows. Used by this client's jobs and outputs."""
        return self._driver

    @property
    def calls(self) -> Calls[AsyncJob]:
        """The API calls as flows. Used by this client's jobs and outputs."""
        return self._calls

    # -- generating

    async def generate(
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
        reuse: str | None = None,
        **more: Any,
    ) -> AsyncJob:
        """Start a generation and return its job at once.

        Pass the model's params as keywords, or in `params` if a name is also an option here. Timeouts are in seconds.
        `retention` is the number of seconds to keep the finished job, or "forever". Without `idempotency_key` a new one
        is made. With `reuse="exact"` an earlier job with an equal input may be returned, free of charge. Raises
        BadInput if a file is unreadable. Raises InvalidRequestError, BudgetError or LimitError if the server refuses.
        """
        options = GenerationOptions(
            client_ref=client_ref,
            metadata=metadata,
            webhook=webhook,
            start_timeout=start_timeout,
            run_timeout=run_timeout,
            retention=retention,
            idempotency_key=idempotency_key,
            reuse=reuse,
        )
        return await self._driver.run(self._calls.generate(model, {**(params or {}), **more}, options))

    async def batch(self, model: str, inputs: Sequence[Mapping[str, Any]], **options: Any) -> AsyncBatch:
        """Start up to 16 generations, of which the server accepts all or none. Takes the options of `generate`."""
        return AsyncBatch(self, await self._driver.run(self._calls.batch(model, inputs, GenerationOptions(**options))))

    async def price(self, model: str, params: Mapping[str, Any] | None = None, **more: Any) -> Quote:
        """Return the price of a generation without creating it. Raises InvalidRequestError if it is not valid."""
        return await self._driver.run(self._calls.price(model, [{**(params or {}), **more}]))

    async def pipeline(
        self,
        steps: Steps | None = None,
        *,
        template: str | None = None,
        version: int | None = None,
        params: Mapping[str, Any] | None = None,
        on_error: str | None = None,
        **options: Any,
    ) -> AsyncPipeline:
        """Start a pipeline and return it at once. The server accepts all of its jobs or none.

        `steps` are by name, or a list; `template` names a stored pipeline instead. `params` are the pipeline's own.
        Takes the options of `generate`. Raises as `generate` does.
        """
        request = PipelineRequest(steps=steps, template=template, version=version, params=params, on_error=on_error)
        return await self._driver.run(self.pipelines.calls.run(request, GenerationOptions(**options)))

    # -- jobs and events

    async def job(self, job_id: str) -> AsyncJob:
        """Return a job. Raise NotFoundError if this account has no such job."""
        return await self._driver.run(self._calls.job(job_id))

    def jobs(
        self,
        *,
        search: str | None = None,
        status: str | None = None,
        model: str | None = None,
        client_ref: str | None = None,
        batch: str | None = None,
        pipeline: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[AsyncJob]:
        """Iterate over your jobs, newest first. Pages are fetched as you go. `limit` is the maximum number of jobs.

        `search` finds words of the prompt, the input's file name, the client ref, or the beginning of the job's id.
        """
        filters = {
            "q": search,
            "status": status,
            "model": model,
            "client_ref": client_ref,
            "batch": batch,
            "pipeline": pipeline,
            "created_after": created_after,
            "created_before": created_before,
        }
        return self._driver.iterate(self._calls.jobs(limit, filters))

    async def cancel(self, job_id: str) -> AsyncJob:
        """Request cancellation and return the job. A running job may take a moment to stop."""
        return await self._driver.run(self._calls.cancel(job_id))

    async def rerun(self, job_id: str, **changes: Any) -> AsyncJob:
        """Run a generation again as a new job. Keywords replace params, None removes one."""
        return await (await self.job(job_id)).rerun(**changes)

    async def lineage(self, job_id: str) -> Lineage:
        """Return the jobs whose outputs led to a job, and those that were made from its outputs."""
        return await self._driver.run(self._calls.lineage(job_id))

    async def delete_job(self, job_id: str) -> None:
        """Delete a finished job with its params, outputs and files. Raises ConflictError while it runs."""
        await self._driver.run(self._calls.delete_job(job_id))

    async def share(self, job_id: str, *, expires_in: float | None = None, include_input: bool = False) -> Share:
        """Create a public link to a job's outputs. Keep its `url`, which is returned only once.

        `expires_in` is in seconds, at most 90 days; by default the link works for a week. It ends with the job if that
        is earlier. `include_input` also shows the prompt or the input picture. Raises ConflictError unless the job has
        succeeded.
        """
        return await self._driver.run(self._calls.share(job_id, expires_in, include_input=include_input))

    def shares(self, job_id: str | None = None, *, limit: int | None = None) -> AsyncIterator[Share]:
        """Iterate over the share links that work, newest first: all of the account, or those of one job."""
        return self._driver.iterate(self._calls.shares(job_id, limit))

    async def revoke_share(self, share_id: str) -> None:
        """End a share link at once. Revoking it again changes nothing."""
        await self._driver.run(self._calls.revoke_share(share_id))

    def events(self, after: str | None = None, *, follow: bool = False) -> AsyncIterator[Event]:
        """Iterate over the account's stored events, or with `follow` over new events without end.

        `after` is the id of the last event that you have seen.
        """
        return self._driver.iterate(self._calls.events(after, follow=follow))

    # -- files, models, usage, chat

    async def upload(self, file: Any) -> FileRecord:
        """Upload a picture: a path, bytes, an open binary file or a PIL image. Raises BadInput if it cannot be read."""
        return await self._driver.run(self._calls.upload(file))

    async def verify(self, file: Any, sidecar: str | None = None) -> Verification:
        """Report who signed a file or an output, and whether it was changed. A 3D model needs its `sidecar`'s text."""
        return await self._driver.run(self._calls.verify(file, sidecar))

    async def file(self, token: str) -> FileRecord:
        """Return the record of an uploaded file. Raise NotFoundError if there is none."""
        return await self._driver.run(self._calls.file(token))

    async def delete_file(self, token: str) -> None:
        """Delete an uploaded file."""
        await self._driver.run(self._calls.delete_file(token))

    async def models(self) -> tuple[Model, ...]:
        """Return the models that this key may use."""
        return await self._driver.run(self._calls.models())

    async def model(self, model_id: str) -> Model:
        """Return a model with the JSON Schema of its params. Raises NotFoundError if there is none."""
        return await self._driver.run(self._calls.model(model_id))

    async def usage(
        self, *, first: str | None = None, last: str | None = None, by: str = "day", **filters: str
    ) -> Usage:
        """Return usage and cost in USD, from the `first` to the `last` day, written YYYY-MM-DD and both included."""
        return await self._driver.run(self._calls.usage({"from": first, "to": last, "by": by, **filters}))

    async def chat_models(self) -> tuple[str, ...]:
        """Return the ids of the chat models that this key may use."""
        return await self._driver.run(self._calls.chat_models())

    def chat(self, model: str, messages: Sequence[Mapping[str, Any]], **fields: Any) -> AsyncIterator[ChatChunk]:
        """Stream a chat answer. `fields` are further fields of the OpenAI request, such as `temperature`."""
        return self._driver.iterate(stream_chat(model, messages, fields, self._calls.policy))

    def openai(self, **options: Any) -> "openai.AsyncOpenAI":
        """Return the official OpenAI SDK's client for this server and key.

        Raises MissingExtra unless `penstock[openai]` is installed.
        """
        return load_sdk().AsyncOpenAI(**{**sdk_arguments(self._address), **options})


class AsyncWebhooks:
    """Webhooks of the account and their deliveries."""

    def __init__(self, driver: AsyncDriver, calls: Calls[Any]) -> None:
        self._driver = driver
        self._calls = WebhookCalls(calls)

    async def create(self, url: str, *, events: Sequence[str] | None = None, description: str | None = None) -> Webhook:
        """Register a webhook. Keep its `secret`, which is shown only once. By default it receives the ends of jobs."""
        return await self._driver.run(self._calls.create(url, events, description))

    def list(self, limit: int | None = None) -> AsyncIterator[Webhook]:
        """Iterate over all webhooks, newest first."""
        return self._driver.iterate(self._calls.list(limit))

    async def get(self, webhook_id: str) -> Webhook:
        """Return a webhook."""
        return await self._driver.run(self._calls.get(webhook_id))

    async def change(self, webhook_id: str, **changes: Any) -> Webhook:
        """Change `url`, `events`, `description` or `disabled` and return the webhook."""
        return await self._driver.run(self._calls.change(webhook_id, changes))

    async def delete(self, webhook_id: str) -> None:
        """Delete a webhook and its list of deliveries."""
        await self._driver.run(self._calls.delete(webhook_id))

    async def ping(self, webhook_id: str) -> Delivery:
        """Send a test event and return its delivery with the receiver's answer."""
        return await self._driver.run(self._calls.ping(webhook_id))

    async def rotate(self, webhook_id: str | None = None) -> Webhook:
        """Replace a webhook's secret, or without an id the secret for webhooks given with generations."""
        return await self._driver.run(self._calls.rotate(webhook_id))

    async def secret(self) -> Webhook:
        """Return the `secret` that signs webhooks given with generations."""
        return await self._driver.run(self._calls.secret())

    def deliveries(
        self,
        webhook_id: str | None = None,
        *,
        job_id: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Delivery]:
        """Iterate over deliveries, newest first, pending ones included."""
        return self._driver.iterate(self._calls.deliveries(webhook_id, job_id, status, limit))

    async def delivery(self, delivery_id: str) -> Delivery:
        """Return a delivery."""
        return await self._driver.run(self._calls.delivery(delivery_id))

    async def redeliver(self, delivery_id: str) -> Delivery:
        """Send the delivery again now and return it."""
        return await self._driver.run(self._calls.redeliver(delivery_id))
