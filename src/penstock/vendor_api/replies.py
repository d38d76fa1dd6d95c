"""Building blocks of vendors: warnings, refusals, lists of orders, and the assets in a result."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple, cast

from penstock.catalog.model import Recipe
from penstock.catalog.params import as_object
from penstock.domain.job_errors import (
    ContentFiltered,
    JobError,
    UpstreamAuth,
    UpstreamError,
    UpstreamRejected,
    UpstreamUnavailable,
)
from penstock.vendor_api.generation import (
    Call,
    Done,
    Failed,
    Flow,
    Kind,
    Order,
    Output,
    Refused,
    Reply,
    Role,
    Unclear,
)
from penstock.vendor_api.order_lookup import CLOCK_SECONDS, ListedOrder, Listing

NO_CREDIT: Final = "This gateway's account at the vendor has no credit left. The operator has been notified."
_NO_OUTPUT: Final = "The vendor finished without an output and gave no reason."
GONE: Final = "The vendor does not know the job any more."
GONE_STATUSES: Final = {404, 410}
"""Statuses of a poll that mean, if they are repeated, that the order is gone."""
KINDS: Final = {"3d": Kind.MODEL, "video": Kind.VIDEO, "image": Kind.IMAGE}
ENDINGS: Final = {
    Kind.MODEL: (".glb", ".gltf"),
    Kind.VIDEO: (".mp4", ".mov", ".webm"),
    Kind.IMAGE: (".png", ".jpg", ".jpeg", ".webp"),
}
_VIDEO_DEFAULTS: Final = {"compressionQuality": "optimized", "personGeneration": "allow_adult"}
_MAX_DEPTH: Final = 8
_MAX_PAGES: Final = 20
"""Upper bound of pages read in search of one lost order."""
_SPLIT: Final = re.compile(r"[.\[\]]+")


# -- an order in the vendor's terms


def video_warnings(params: Mapping[str, Any], vendor: str) -> tuple[str, ...]:
    """Return a warning for each param of `vendorb_video_31` that the vendor cannot honour and does not do anyway."""
    lost = [name for name, usual in _VIDEO_DEFAULTS.items() if params.get(name, usual) != usual]
    return tuple(f"`{name}` {params[name]} is not supported by {vendor} and was ignored." for name in lost)


def seed_of(order: Order) -> int:
    """Return a seed that distinguishes the order from similar ones, so that it can be found again."""
    return int(hashlib.sha256(order.reference.encode()).hexdigest()[:7], 16)


# -- refusals and failures


def classify_refusal(reply: Reply, reason: Mapping[str, str | None]) -> Refused | Failed:
    """Classify a refused order by its status; raise `Unclear` for a status that proves no refusal."""
    match reply.status:
        case 429:
            return Refused(reply.retry_after)
        case 401 | 403:
            return Failed(UpstreamAuth(upstream=reason))
        case 402:
            return Failed(UpstreamUnavailable(NO_CREDIT, upstream=reason))
        case 408 | 409:  # from a proxy, or a duplicate is in progress
            raise Unclear(f"HTTP {reply.status}")
        case status if 400 <= status < 500:
            return Failed(UpstreamRejected(upstream=reason))
        case _:
            raise Unclear(f"HTTP {reply.status}")


def upstream_reason(code: Any, message: Any = None, upstream_id: Any = None) -> dict[str, str | None]:
    """Return a vendor's reason as the texts of `upstream`; it is redacted before a caller sees it."""
    reason = {"code": code, "message": message, "id": upstream_id}
    return {name: str(value) if isinstance(value, str | int | float) else None for name, value in reason.items()}


def fail_empty(upstream_id: str, error: type[JobError] = ContentFiltered) -> Failed:
    """Report an order that finished without an output as failed."""
    return Failed(error(_NO_OUTPUT, upstream=upstream_reason(None, "finished without an output", upstream_id)))


def fail_gone(reply: Reply, message: Any = None, upstream_id: Any = None) -> Failed:
    """Report an order as gone; the runner acts on it only after several such polls."""
    return Failed(
        UpstreamError(GONE, retryable=False, upstream=upstream_reason(reply.status, message, upstream_id)), gone=True
    )


def parse_time(text: Any) -> float | None:
    """Return a time in ISO 8601, of UTC unless it names a zone, as seconds since the epoch; None if it is no time."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def may_match(order: Order, created_at: float | None, answered_at: float | None = None) -> bool:
    """Return whether an order created then may be this one; `answered_at` is the vendor's clock at our `asked_at`."""
    ahead = 0.0 if answered_at is None or not order.asked_at else answered_at - order.asked_at
    return created_at is None or created_at >= order.placed_at + ahead - CLOCK_SECONDS


# -- lists of orders


class Row(NamedTuple):
    """One order in a vendor's list; `record` is all that the list holds of it."""

    upstream_id: str
    created_at: float | None
    record: Any


class Rows(NamedTuple):
    """The orders of a list as far as it was read, and the listing that may prove an absence."""

    rows: Sequence[Row]
    listing: Listing


def read_list(order: Order, ask: Callable[[int, int], Flow[tuple[Sequence[Row], float | None]]]) -> Flow[Rows]:
    """Read a list until its orders are older than this one, or it ends; `ask` takes a page's number and offset.

    Only an empty page is the end, as a vendor may return short pages. Rows that come twice are kept once, as new orders
    push others to the next page. Reading stops after two pages without a new row.
    """
    rows: dict[str, Row] = {}
    answered_at: float | None = None
    is_whole = False
    offset = repeats = 0
    for number in range(_MAX_PAGES):
        page, now = yield from ask(number, offset)
        answered_at = answered_at if number else now
        if not page:
            is_whole = "" not in rows
            break
        fresh = [row for row in page if row.upstream_id not in rows]
        rows |= {row.upstream_id: row for row in fresh}
        offset += len(page)
        repeats = 0 if fresh else repeats + 1
        if repeats > 1 or (fresh and not any(may_match(order, row.created_at, answered_at) for row in fresh)):
            break
    entries = tuple(ListedOrder(row.upstream_id, row.created_at) for row in rows.values())
    return Rows([row for row in rows.values() if row.upstream_id], Listing(entries, is_whole, answered_at))


def server_time(reply: Reply) -> float | None:
    """Return the vendor's clock, in seconds since the epoch, from `Date`."""
    try:
        return parsedate_to_datetime(reply.headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


# -- assets in a result


def pick_outputs(result: Any, recipe: Mapping[str, Any]) -> tuple[Output, ...]:
    """Return the outputs in a result: at the paths of the kept recipe, or else by their kind."""
    kind = KINDS[recipe["kind"]]
    found = list(_urls(value_at(result, recipe["output"]) if recipe.get("output") else result))
    if not recipe.get("output"):
        fitting = [url for url in found if _ending(url).endswith(ENDINGS[kind])]
        found = fitting[:1] or [url for url in found if not _fits_another(url, kind)][:1]
    outputs = [Output(kind, Role.PRIMARY, Call("GET", url, seconds=300)) for url in found]
    if outputs and recipe.get("preview"):
        previews = list(_urls(value_at(result, recipe["preview"])))[:1]
        outputs += [Output(Kind.IMAGE, Role.PREVIEW, Call("GET", url)) for url in previews]
    return tuple(outputs)


def finish(result: Any, recipe: Mapping[str, Any], upstream_id: str, finished_at: float | None = None) -> Done | Failed:
    """Return `Done` with the outputs in a result, or `Failed` if it has none."""
    outputs = pick_outputs(result, recipe)
    return Done(outputs, finished_at=finished_at) if outputs else fail_empty(upstream_id)


def keep_recipe(recipe: Recipe) -> dict[str, str]:
    """Return the fields of a recipe that `pick_outputs` needs, to be kept in an operation."""
    kept = {"kind": recipe.kind, "output": recipe.output, "preview": recipe.preview}
    return {name: value for name, value in kept.items() if value is not None}


def value_at(result: Any, path: str) -> Any:
    """Return the value at a path such as `video.url`, `images[0].url` or `outputs.0`."""
    for part in filter(None, _SPLIT.split(path)):
        if isinstance(result, list) and part.isdigit():
            items = cast("list[Any]", result)
            result = items[int(part)] if int(part) < len(items) else None
        else:
            result = as_object(result).get(part)
    return result


def _urls(value: Any, depth: int = _MAX_DEPTH) -> Iterator[str]:
    """Yield every URL in a value; of an object with a `url` only that."""
    if isinstance(value, str):
        if value.startswith(("http://", "https://")):
            yield value
    elif depth and isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        for item in [fields["url"]] if isinstance(fields.get("url"), str) else fields.values():
            yield from _urls(item, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from _urls(item, depth - 1)


def _ending(url: str) -> str:
    return url.partition("?")[0].partition("#")[0].lower()


def _fits_another(url: str, kind: Kind) -> bool:
    return any(_ending(url).endswith(endings) for other, endings in ENDINGS.items() if other is not kind)
