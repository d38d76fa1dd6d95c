"""Metrics for Prometheus; no label ever holds an id."""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

import prometheus_client
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from penstock.domain.usage import Completion

prometheus_client.disable_created_metrics()  # a second series for each one, of no use to us

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

PAGES_PER_SECOND = 3
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SLOW = (1, 2.5, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600)


class PlainCounter(Collector):
    """A counter in a plain dict, for hot paths; only on the event loop."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str]) -> None:
        self._name, self._help_text, self._labels = name, help_text, labels
        self._counts: dict[tuple[str, ...], int] = {}
        REGISTRY.register(self)

    def count(self, *values: str, number: int = 1) -> None:
        """Add one, or so many, for these labels."""
        self._counts[values] = self._counts.get(values, 0) + number

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Yield the metric for Prometheus."""
        family = CounterMetricFamily(self._name, self._help_text, labels=self._labels)
        for values, number in list(self._counts.items()):
            family.add_metric(values, number)
        yield family


# -- requests

CONNECTIONS_CUT = PlainCounter(
    "penstock_connections_cut", "Connections ended by us: too many of them, or nobody read there.", ["reason"]
)
KEY_CHECKS = PlainCounter("penstock_key_checks", "API keys checked, by outcome.", ["outcome"])
SERVED_WITHOUT_STORE = PlainCounter(
    "penstock_requests_without_store", "Requests let in by what is known of their key while the store is away.", []
)
GUARDRAIL_VERDICTS = PlainCounter(
    "penstock_guardrail_verdicts",
    "Requests that a guardrail inspected; `verdict` is allow, annotate, refuse or unavailable.",
    ["guardrail", "verdict"],
)
CONTENT_WRITTEN = Counter("penstock_content_records", "Records written to the content log.", registry=REGISTRY)
CONTENT_DROPPED = PlainCounter(
    "penstock_content_records_dropped",
    "Records that were not written; `reason` is memory, redaction, sealing, store, removed or stopped.",
    ["reason"],
)
CONTENT_HELD = Gauge(
    "penstock_content_held_bytes", "Bytes of requests and answers that wait for the content log.", registry=REGISTRY
)
EVENT_STREAMS = Gauge("penstock_event_streams_open", "Event streams open now.", registry=REGISTRY)

# -- jobs

JOBS_ACCEPTED = PlainCounter("penstock_jobs_accepted", "Jobs accepted.", ["model"])
JOBS_FINISHED = Counter(
    "penstock_jobs_finished",
    "Jobs that reached a final status; `code` is the error's, empty on success.",
    ["model", "vendor", "status", "code"],
    registry=REGISTRY,
)
RESULTS_SIGNED = Counter(
    "penstock_results_signed",
    "Results that were to be signed; `outcome` is signed or failed. Failed ones are kept unsigned.",
    ["outcome"],
    registry=REGISTRY,
)
JOB_SECONDS = Histogram(
    "penstock_job_seconds", "Time from acceptance to the final status.", ["model"], buckets=_SLOW, registry=REGISTRY
)
BYTES_STORED = Counter("penstock_stored_bytes", "Bytes written to storage.", ["kind"], registry=REGISTRY)
STORAGE_FAILURES = Counter(
    "penstock_storage_failures", "Times that the place of files and assets did not do as asked.", registry=REGISTRY
)

# -- vendors

UPSTREAM_CALLS = Counter(
    "penstock_upstream_calls", "Calls to vendors.", ["vendor", "verb", "outcome"], registry=REGISTRY
)
UPSTREAM_SUBMITS = Counter("penstock_upstream_submits", "Paid orders sent to vendors.", ["vendor"], registry=REGISTRY)

DETECTION_LAG = Histogram(
    "penstock_detection_lag_seconds",
    "Time from a vendor's finishing a job to our noticing: at most since the poll before, less if the vendor tells.",
    ["vendor"],
    buckets=_FAST,
    registry=REGISTRY,
)
POLL_LATE = Histogram(
    "penstock_poll_late_seconds",
    "How much later than planned vendors were asked about jobs.",
    ["vendor"],
    buckets=_FAST,
    registry=REGISTRY,
)
JOBS_REROUTED = Counter(
    "penstock_jobs_rerouted",
    "Jobs taken to another vendor, by the one that did not take them and why.",
    ["vendor", "reason"],
    registry=REGISTRY,
)
JOBS_TAKEN_OVER = Counter(
    "penstock_jobs_taken_over",
    "Jobs of workers that were gone, freed by this one.",
    registry=REGISTRY,
)
LEASES_LOST = Counter(
    "penstock_leases_lost",
    "How often this worker was silent for too long and lost its jobs to others.",
    registry=REGISTRY,
)
QUEUE_LAG = Gauge(
    "penstock_queue_lag_seconds",
    "How long the oldest job that waits to be started has waited, by vendor.",
    ["vendor"],
    registry=REGISTRY,
)
VENDOR_NOTICES = Counter(
    "penstock_vendor_notices",
    "Vendors' calls back, by what came of them.",
    ["vendor", "outcome"],
    registry=REGISTRY,
)

# -- webhooks

WEBHOOK_DELIVERIES = Counter(
    "penstock_webhook_deliveries", "Attempts to tell webhooks, by what came of them.", ["outcome"], registry=REGISTRY
)
WEBHOOK_LAG = Histogram(
    "penstock_webhook_lag_seconds",
    "Time from when a webhook delivery was due to when it was made.",
    buckets=_FAST,
    registry=REGISTRY,
)

# -- chat

CHAT_COMPLETIONS = Counter(
    "penstock_chat_completions", "Chat requests, by how they ended.", ["model", "vendor", "outcome"], registry=REGISTRY
)
CHAT_TOKENS = Counter(
    "penstock_chat_tokens",
    "Tokens of chat requests; `cached` and `cache_write` are among `prompt`, `reasoning` among `completion`.",
    ["model", "vendor", "kind"],
    registry=REGISTRY,
)
CHAT_ATTEMPTS = PlainCounter(
    "penstock_chat_attempts", "Calls to chat vendors, by what came of them.", ["vendor", "outcome"]
)
CHAT_MALFORMED = Counter(
    "penstock_chat_malformed_events", "Events of chat vendors that were skipped.", ["vendor"], registry=REGISTRY
)
CHAT_CLAIMS_CUT = Counter(
    "penstock_chat_claims_cut", "Chat vendors' counts of tokens that were not believed.", ["vendor"], registry=REGISTRY
)

# -- money

BUDGET_REFUSALS = Counter(
    "penstock_budget_refusals", "Requests refused for lack of budget, by whose it is.", ["of"], registry=REGISTRY
)
UNPRICED_MODELS = Gauge(
    "penstock_unpriced_models", "Models on offer whose price at some vendor is not known.", registry=REGISTRY
)
UNPRICED_REQUESTS = PlainCounter(
    "penstock_unpriced_requests", "Jobs accepted and chat requests answered whose cost is not known.", ["model"]
)
PRICE_DRIFT = Gauge(
    "penstock_price_drift",
    "Prices in force that are not those of the list that comes with Penstock; `origin` is file, row or vendor.",
    ["origin"],
    registry=REGISTRY,
)
JOURNAL_RECOVERED = Counter(
    "penstock_journal_recovered", "Chat requests charged from the journals of processes that died.", registry=REGISTRY
)

RECORDS_REMOVED = Counter(
    "penstock_records_removed", "Records removed because of their age, by kind.", ["kind"], registry=REGISTRY
)

# -- store and settings

STORE_BATCH = Histogram(
    "penstock_store_write_batch_size",
    "Writes committed together.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    registry=REGISTRY,
)
STORE_SECONDS = Histogram("penstock_store_write_seconds", "Time of one commit.", buckets=_FAST, registry=REGISTRY)
STORE_QUEUE = Gauge("penstock_store_queue_depth", "Writes waiting for a commit.", registry=REGISTRY)
STORE_AWAY = Gauge(
    "penstock_store_away_seconds", "Seconds since the store's last answer; 0 while it answers.", registry=REGISTRY
)
SETTINGS_RELOADS = Counter(
    "penstock_settings_reloads", "Settings read anew, by outcome.", ["outcome"], registry=REGISTRY
)

SETTINGS_VERSION = Gauge(
    "penstock_settings_version", "Version of the run-time settings, by state.", ["state"], registry=REGISTRY
)


class _OpenJobs(Collector):
    """A gauge that is computed when it is read, so that it cannot drift."""

    count: Callable[[], Mapping[str, int]] | None = None

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily("penstock_open_jobs", "Jobs not finished yet, by state.", labels=["state"])
        counts: Mapping[str, int] = dict(self.count()) if self.count else {}
        for state, number in counts.items():
            family.add_metric([state], number)
        yield family


class _Requests(Collector):
    """Number and duration of requests, counted in plain dicts, as this is a hot path."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = {}
        self._seconds: dict[str, list[float]] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        place = (method, route, status)
        self._requests[place] = self._requests.get(place, 0) + 1
        counts = self._seconds.get(route)
        if counts is None:
            counts = self._seconds[route] = [0.0] * (len(_FAST) + 2)  # a count for each bucket, one beyond, the sum
        counts[bisect_left(_FAST, seconds)] += 1
        counts[-1] += seconds

    def collect(self) -> Iterable[CounterMetricFamily | HistogramMetricFamily]:
        requests = CounterMetricFamily(
            "penstock_http_requests", "Requests answered.", labels=["method", "route", "status"]
        )
        for (method, route, status), number in list(self._requests.items()):
            requests.add_metric([method, route, str(status)], number)
        yield requests
        times = HistogramMetricFamily(
            "penstock_http_request_seconds",
            "Time from a request's head to the end of its response.",
            labels=["route"],
        )
        for route, counts in list(self._seconds.items()):
            bounds = [*(str(float(bound)) for bound in _FAST), "+Inf"]
            times.add_metric([route], list(zip(bounds, accumulate(counts[:-1]), strict=True)), counts[-1])
        yield times


_requests = _Requests()
REGISTRY.register(_requests)
_open_jobs = _OpenJobs()
REGISTRY.register(_open_jobs)


def watch_open_jobs(count: Callable[[], Mapping[str, int]]) -> None:
    """Read the number of open jobs by state from here; it is called at each scrape and must not wait."""
    _open_jobs.count = count


def count_request(method: str, route: str | None, status: int, seconds: float) -> None:
    """Count one answered request under its route's template; None where no route matched."""
    _requests.count(method if method in METHODS else "other", route or "unmatched", status, seconds)


def count_completions(records: Iterable[Completion]) -> None:
    """Count chat requests, many at once."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for record in records:
        usage = record.usage
        found = sums.setdefault((record.model, record.vendor or "none", record.outcome), [0, 0, 0, 0, 0, 0])
        counts = (1, usage.prompt, usage.completion, usage.cached, usage.cache_writes, usage.reasoning)
        for place, number in enumerate(counts):
            found[place] += number
        if record.cost is None:
            UNPRICED_REQUESTS.count(record.model)
    for (model, vendor, outcome), (requests, *tokens) in sums.items():
        CHAT_COMPLETIONS.labels(model, vendor, outcome).inc(requests)
        for kind, number in zip(("prompt", "completion", "cached", "cache_write", "reasoning"), tokens, strict=True):
            CHAT_TOKENS.labels(model, vendor, kind).inc(number)


def render() -> tuple[bytes, str]:
    """Return the page that Prometheus reads, and its content type."""
    return prometheus_client.generate_latest(REGISTRY), prometheus_client.CONTENT_TYPE_LATEST


class RenderedPage:
    """The page of metrics, rendered a few times a second at most, and cached between."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: deque[float] = deque(maxlen=PAGES_PER_SECOND)
        self._page: tuple[bytes, str] | None = None

    def read(self) -> tuple[bytes, str]:
        """Return the page; it takes some 20 ms to make one, so this belongs into a thread."""
        now = self._clock()
        page = self._page
        if page is None or len(self._made) < PAGES_PER_SECOND or now - self._made[0] >= 1:
            self._made.append(now)
            page = self._page = render()
        return page
