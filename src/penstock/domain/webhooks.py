"""Webhooks: the endpoints of accounts, the deliveries to them, and their signatures."""

import base64
import hashlib
import hmac
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit
from zlib import crc32

from penstock.domain.events import ENDINGS, Event, event_id, parse_event_id

PING: Final = "webhook.ping"
"""The message that tests an endpoint. It is not an event of the log."""
USUAL: Final = tuple(ENDINGS.values())
"""The events that it receives by default."""
MAX_ENDPOINTS: Final = 20
MAX_PINGS: Final = 4
"""Upper bound of an account's pings in progress, over all processes."""
PING_SECONDS: Final = 60.0
"""A ping not sent for so long no longer counts, as its sender may be gone."""
PING_RETRY_SECONDS: Final = 5
OVERLAP_SECONDS: Final = 86_400.0
"""Time for which messages are also signed with the former secret."""
MAX_SECRETS = 5
"""Upper bound of the signatures of a message."""
RETRY_SECONDS: Final = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0)
"""Backoff between attempts, plus jitter."""
PATIENCE_SECONDS: Final = 5 * 86_400.0
"""An endpoint that only failed for so long is disabled when its next delivery is given up."""
MAX_RETRY_AFTER: Final = 86_400.0
MAX_ATTEMPTS_KEPT: Final = 20
HOST_LANES: Final = 64
PATH_LANES: Final = 64
SECRET_PREFIX: Final = "whsec_"  # noqa: S105  of every secret, none itself
OWN_PREFIX: Final = "own_"


class Status(StrEnum):
    """The status of a delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class DisabledReason(StrEnum):
    """The reason for disabling an endpoint."""

    ASKED = "asked"
    GONE = "gone"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One webhook URL of an account; without a URL, the signing secret for its jobs' own webhooks."""

    id: str
    account_id: str
    url: str | None
    events: tuple[str, ...]
    description: str
    base_url: str
    """Base URL of its creation, for links in messages unless the operator sets another."""
    secret: str
    former_secret: str | None = None
    """The former secret, then older ones that still count, separated by blanks, each with `@` and its end."""
    former_until: float | None = None
    created_at: float
    disabled_at: float | None = None
    disabled_reason: DisabledReason | None = None
    failing_since: float | None = None
    """Start of the failures since the last success."""

    def secrets_at(self, now: float) -> list[str]:
        """Return the secrets that sign a message, newest first."""
        return [self.secret, *(secret for secret, until in self._former() if now < until)]

    def rotate(self, now: float) -> "Endpoint":
        """Return the endpoint with a new secret; former ones stay valid as promised."""
        kept = [(secret, until) for secret, until in self._former() if now < until][: MAX_SECRETS - 2]
        former = " ".join([self.secret, *(f"{secret}@{until!r}" for secret, until in kept)])
        return replace(self, secret=new_secret(), former_secret=former, former_until=now + OVERLAP_SECONDS)

    def _former(self) -> list[tuple[str, float]]:
        if self.former_secret is None or self.former_until is None:
            return []
        first, *others = self.former_secret.split(" ")
        pairs = (each.rpartition("@") for each in others)
        return [(first, self.former_until), *((secret, float(until)) for secret, _, until in pairs)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    """One attempt to send a message."""

    at: float
    seconds: float
    status_code: int | None = None
    error: str | None = None
    response: str = ""
    """The beginning of the response body."""

    @property
    def succeeded(self) -> bool:
        """Return whether the response was 2xx."""
        return self.error is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event to be delivered to one endpoint."""

    position: int
    webhook_id: str
    account_id: str
    subject: str
    """Id of the event's subject, a job or a notice; of a ping, its own id."""
    sequence: int
    type: str
    url: str
    lane: str
    """See `lane_of`."""
    status: Status
    tries: int
    """Number of tries since it was last requested."""
    due_at: float | None
    lease: str | None
    created_at: float
    finished_at: float | None
    attempts: tuple[DeliveryAttempt, ...]
    event_position: int | None

    @property
    def id(self) -> str:
        """Return the delivery's public id."""
        return delivery_id(self.position)

    @property
    def event_id(self) -> str:
        """Return the event's id, which is equal at every attempt, so that a receiver can deduplicate."""
        return self.subject if self.event_position is None else event_id(self.event_position)


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """A claimed delivery, with all that sending it needs; a ping has no event."""

    delivery: Delivery
    endpoint: Endpoint
    event: Event | None
    due_at: float


def delivery_id(position: int) -> str:
    """Return the public id of a position; ids sort like positions."""
    return "dlv_" + event_id(position).removeprefix("evt_")


def parse_delivery_id(text: str) -> int | None:
    """Return the position of a delivery's id; None if it is no such id."""
    return parse_event_id("evt_" + text.removeprefix("dlv_")) if text.startswith("dlv_") else None


def own_id(account_id: str) -> str:
    """Return the id under which the secret for an account's jobs' own webhooks is stored."""
    return OWN_PREFIX + account_id


def host_of(url: str) -> str:
    """Return the host and port of a URL."""
    return urlsplit(url).netloc


def lane_of(webhook_id: str, url: str | None) -> str:
    """Return the lane of a delivery, which is its share of the concurrent sends.

    A webhook is its own lane. Jobs may bring any number of URLs along, so those of an account are spread over a bounded
    number of lanes, by host and by path: the pending lanes are walked through when deliveries are claimed.
    """
    if url is None:
        return webhook_id
    parts = urlsplit(url)
    host, path = crc32(parts.netloc.encode()), crc32(f"{parts.netloc}{parts.path}".encode())
    return f"{webhook_id}#{host % HOST_LANES:02x}{path % PATH_LANES:02x}"


def ping_lane_of(account_id: str, webhook_id: str = "") -> str:
    """Name the lane of a webhook's pings: they do not wait behind other messages. All of an account begin alike."""
    return f"ping {account_id} {webhook_id}"


# -- signatures, by Standard Webhooks


def new_secret() -> str:
    """Return a new secret of 192 bits, in the format of Standard Webhooks."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(24)).decode()


def sign(keys: Sequence[str], message_id: str, moment: int, body: bytes) -> str:
    """Return the value of `webhook-signature`, with one signature for each secret."""
    message = b"%b.%d.%b" % (message_id.encode(), moment, body)
    raw = [base64.b64decode(key.removeprefix(SECRET_PREFIX)) for key in keys]
    tags = [hmac.new(key, message, hashlib.sha256).digest() for key in raw]
    return " ".join(f"v1,{base64.b64encode(tag).decode()}" for tag in tags)


# -- retries


def next_pause(tries: int, retry_after: float | None) -> float | None:
    """Return the seconds to wait after so many tries; None if the delivery is given up."""
    if tries > len(RETRY_SECONDS):
        return None
    pause = RETRY_SECONDS[tries - 1] * random.uniform(1.0, 1.2)  # noqa: S311  jitter
    return max(pause, min(retry_after or 0.0, MAX_RETRY_AFTER))
