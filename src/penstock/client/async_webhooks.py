"""Webhooks and what they were told, for the client for event loops."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from penstock.client.calls import Calls
from penstock.client.records import Delivery, Webhook
from penstock.client.transport.async_driver import AsyncDriver
from penstock.client.webhook_calls import WebhookCalls


class AsyncWebhooks:
    """The account's webhooks."""

    def __init__(self, driver: AsyncDriver, calls: Calls[Any]) -> None:
        self._driver = driver
        self._calls = WebhookCalls(calls)

    async def create(self, url: str, *, events: Sequence[str] | None = None, description: str | None = None) -> Webhook:
        """Make one; its `secret` is shown this once."""
        return await self._driver.run(self._calls.create(url, events, description))

    def list(self, limit: int | None = None) -> AsyncIterator[Webhook]:
        """All of them, newest first."""
        return self._driver.iterate(self._calls.list(limit))

    async def get(self, webhook_id: str) -> Webhook:
        """One of them."""
        return await self._driver.run(self._calls.get(webhook_id))

    async def change(self, webhook_id: str, **changes: Any) -> Webhook:
        """Change `url`, `events`, `description` or `disabled`."""
        return await self._driver.run(self._calls.change(webhook_id, changes))

    async def delete(self, webhook_id: str) -> None:
        """Remove one."""
        await self._driver.run(self._calls.delete(webhook_id))

    async def ping(self, webhook_id: str) -> Delivery:
        """Try one: the delivery tells how it went."""
        return await self._driver.run(self._calls.ping(webhook_id))

    async def rotate(self, webhook_id: str | None = None) -> Webhook:
        """A new secret for one, or for those that generations bring along."""
        return await self._driver.run(self._calls.rotate(webhook_id))

    async def secret(self) -> Webhook:
        """What signs the webhooks that generations bring along, as its `secret`."""
        return await self._driver.run(self._calls.secret())

    def deliveries(
        self,
        webhook_id: str | None = None,
        *,
        job_id: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Delivery]:
        """What was told or will be, newest first."""
        return self._driver.iterate(self._calls.deliveries(webhook_id, job_id, status, limit))

    async def delivery(self, delivery_id: str) -> Delivery:
        """One delivery."""
        return await self._driver.run(self._calls.delivery(delivery_id))

    async def redeliver(self, delivery_id: str) -> Delivery:
        """Send it again now."""
        return await self._driver.run(self._calls.redeliver(delivery_id))
