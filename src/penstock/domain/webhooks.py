"""Webhooks: the addresses that accounts want to be told at, what came of telling them, and how it is signed."""

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

from penstock.domain.events import BUDGET_EVENT, ENDINGS, Event, EventType, event_id, parse_event_id

PING: Final = "webhook.ping"
"""What is sent to try an endpoint: no event, it is only told there."""
TELLABLE: Final = (*EventType, BUDGET_EVENT)
"""What an endpoint may ask for."""
USUAL: Final = tuple(ENDINGS.values())
"""What it is told if it asks for nothing in particular."""
MAX_ENDPOINTS: Final = 20
MAX_PINGS: Final = 4
"""Pings of an account that may be under way at once, over all processes."""
PING_SECONDS: Final = 60.0
"""A ping that nobody has sent for so long no longer counts: nobody may be there to send it."""
PING_RETRY_SECONDS: Final = 5
OVERLAP_SECONDS: Final = 86_400.0
"""How long messages are signed with the former secret too."""
MAX_SECRETS = 5
"""With how many a message is signed at most."""
RETRY_SECONDS: Final = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0)
"""The pauses between attempts; with jitter, never shorter."""
PATIENCE_SECONDS: Final = 5 * 86_400.0
"""An endpoint that has done nothing but fail for so long is disabled, at the next delivery that is given up."""
MAX_RETRY_AFTER: Final = 86_400.0
MAX_ATTEMPTS_KEPT: Final = 20
HOST_LANES: Final = 64
PATH_LANES: Final = 64
SECRET_PREFIX: Final = "whsec_"  # noqa: S105  of every secret, none itself
OWN_PREFIX: Final = "own_"


class Status(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class DisabledReason(StrEnum):
    """Why an endpoint is disabled."""

    ASKED = "asked"
    GONE = "gone"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One address of an account, or, without one, what signs that account's jobs' own webhooks."""

    id: str
    account_id: str
    url: str | None
    events: tuple[str, ...]
    description: str
    base_url: str
    """The way it was asked for: where links lead that are told here, unless the operator says where."""
    secret: str
    former_secret: str | None = None
    """The one before; after a blank each those before that still count, each with `@` and until when."""
    former_until: float | None = None
    created_at: float
    disabled_at: float | None = None
    disabled_reason: DisabledReason | None = None
    failing_since: float | None = None
    """When the failures began that no success has ended."""

    def secrets_at(self, now: float) -> list[str]:
        """What a message is signed with: the newest first."""
        return [self.secret, *(secret for secret, until in self._former() if now < until)]

    def rotate(self, now: float) -> "Endpoint":
        """With a new secret; whatever was promised of the former ones is kept."""
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
    """One time that a message was sent, or could not be."""

    at: float
    seconds: float
    status_code: int | None = None
    error: str | None = None
    response: str = ""
    """The beginning of what was answered."""

    @property
    def succeeded(self) -> bool:
        """Only 2xx is success."""
        return self.error is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event on its way to one endpoint."""

    position: int
    webhook_id: str
    account_id: str
    subject: str
    """What the event is about: a job or a notice; of a ping, its own id."""
    sequence: int
    type: str
    url: str
    lane: str
    """See `lane_of`."""
    status: Status
    tries: int
    """Since it was last asked for."""
    due_at: float | None
    lease: str | None
    created_at: float
    finished_at: float | None
    attempts: tuple[DeliveryAttempt, ...]
    event_position: int | None

    @property
    def id(self) -> str:
        """How callers name it."""
        return delivery_id(self.position)

    @property
    def event_id(self) -> str:
        """The same at every attempt, so that a receiver knows it again."""
        return self.subject if self.event_position is None else event_id(self.event_position)


@dataclass(frozen=True, slots=True)
class PendingDelivery:
    """A delivery that someone has taken on, and all that it takes; no event: a ping."""

    delivery: Delivery
    endpoint: Endpoint
    event: Event | None
    due_at: float


def delivery_id(position: int) -> str:
    """Ids sort as positions do."""
    return "dlv_" + event_id(position).removeprefix("evt_")


def parse_delivery_id(text: str) -> int | None:
    """The position behind a delivery's id; None if it is no such id."""
    return parse_event_id("evt_" + text.removeprefix("dlv_")) if text.startswith("dlv_") else None


def own_id(account_id: str) -> str:
    """Under which an account's secret for its jobs' own webhooks is kept."""
    return OWN_PREFIX + account_id


def host_of(url: str) -> str:
    """Return the host and port of a URL."""
    return urlsplit(url).netloc


def lane_of(webhook_id: str, url: str | None) -> str:
    """Name the endpoint of a delivery, as far as its share of places is concerned.

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


# -- signing, as Standard Webhooks has it


def new_secret() -> str:
    """192 bits, as its verifiers read them."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(24)).decode()


def sign(keys: Sequence[str], message_id: str, moment: int, body: bytes) -> str:
    """The value of `webhook-signature`: one for each secret."""
    message = b"%b.%d.%b" % (message_id.encode(), moment, body)
    raw = [base64.b64decode(key.removeprefix(SECRET_PREFIX)) for key in keys]
    tags = [hmac.new(key, message, hashlib.sha256).digest() for key in raw]
    return " ".join(f"v1,{base64.b64encode(tag).decode()}" for tag in tags)


# -- trying again


def next_pause(tries: int, retry_after: float | None) -> float | None:
    """How long to wait after so many tries; None: it is given up."""
    if tries > len(RETRY_SECONDS):
        return None
    pause = RETRY_SECONDS[tries - 1] * random.uniform(1.0, 1.2)  # noqa: S311  jitter
    return max(pause, min(retry_after or 0.0, MAX_RETRY_AFTER))
