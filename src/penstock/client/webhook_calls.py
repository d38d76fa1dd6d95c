"""The calls about webhooks as flows, for both clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.client.calls import Calls, given
from penstock.client.records import Delivery, Webhook
from penstock.client.resource_paths import path_to
from penstock.client.transport.retries import send
from penstock.client.transport.steps import Flow, Request

ROOT = "/api/v1/webhooks"


@dataclass(frozen=True, slots=True)
class WebhookCalls:
    """The flows about webhooks of one client."""

    calls: Calls[Any]

    def create(self, url: str, events: Sequence[str] | None, description: str | None) -> Flow[Webhook]:
        """Make one."""
        told = None if events is None else [*events]
        body = given({"url": url, "description": description}) | ({} if told is None else {"events": told})
        return self.calls.one(Webhook, "POST", ROOT, body)

    def list(self, limit: int | None) -> Flow[None]:
        """Emit all of them."""
        return self.calls.many(Webhook, ROOT, limit, {})

    def get(self, webhook_id: str) -> Flow[Webhook]:
        """One of them."""
        return self.calls.one(Webhook, "GET", path_to(ROOT, webhook_id))

    def change(self, webhook_id: str, changes: Mapping[str, Any]) -> Flow[Webhook]:
        """Change one."""
        return self.calls.one(Webhook, "PATCH", path_to(ROOT, webhook_id), dict(changes))

    def delete(self, webhook_id: str) -> Flow[None]:
        """Remove one."""
        yield from send(Request(method="DELETE", path=path_to(ROOT, webhook_id)), self.calls.policy)

    def ping(self, webhook_id: str) -> Flow[Delivery]:
        """Try one."""
        return self.calls.one(Delivery, "POST", path_to(ROOT, webhook_id, "ping"))

    def rotate(self, webhook_id: str | None) -> Flow[Webhook]:
        """A new secret."""
        return self.calls.one(Webhook, "POST", path_to(ROOT, webhook_id or "secret", "rotate"))

    def secret(self) -> Flow[Webhook]:
        """The secret of the account."""
        return self.calls.one(Webhook, "GET", f"{ROOT}/secret")

    def deliveries(
        self, webhook_id: str | None, job_id: str | None, status: str | None, limit: int | None
    ) -> Flow[None]:
        """Emit what was told."""
        path = f"{ROOT}/deliveries" if webhook_id is None else path_to(ROOT, webhook_id, "deliveries")
        return self.calls.many(Delivery, path, limit, {"job_id": job_id, "status": status})

    def delivery(self, delivery_id: str) -> Flow[Delivery]:
        """One delivery."""
        return self.calls.one(Delivery, "GET", path_to(ROOT, "deliveries", delivery_id))

    def redeliver(self, delivery_id: str) -> Flow[Delivery]:
        """Send it again."""
        return self.calls.one(Delivery, "POST", path_to(ROOT, "deliveries", delivery_id, "redeliver"))
