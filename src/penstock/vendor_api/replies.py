"""What vendors have in common: what an order loses, how a refused one is judged, where a result holds its assets."""

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

NO_CREDIT: Final = "This gateway's account at the vendor has no credit left. The operator has been told."
NO_OUTPUT: Final = "The vendor finished without an output and gave no reason."
GONE: Final = "The vendor does not know the job any more."
GONE_STATUSES: Final = {404, 410}
"""Statuses of a poll by which an order is gone, if it is asked for often enough."""
KINDS: Final = {"3d": Kind.MODEL, "video": Kind.VIDEO, "image": Kind.IMAGE}
ENDINGS: Final = {
    Kind.MODEL: (".glb", ".gltf"),
    Kind.VIDEO: (".mp4", ".mov", ".webm"),
    Kind.IMAGE: (".png", ".jpg", ".jpeg", ".webp"),
}
DONE_ANYWAY: Final = {"compressionQuality": "optimized", "personGeneration": "allow_adult"}
MAX_DEPTH: Final = 8
MAX_PAGES: Final = 20
"""Pages of a list that are read for one lost order."""
SPLIT: Final = re.compile(r"[.\[\]]+")


# -- an order in another vendor's words


def video_warnings(params: Mapping[str, Any], vendor: str) -> tuple[str, ...]:
    """What of `vendorb_video_31` a vendor has no word for, where that is not what it does anyway."""
    lost = [name for name, usual in DONE_ANYWAY.items() if params.get(name, usual) != usual]
    return tuple(f"`{name}` {params[name]} cannot be asked of {vendor}, and was left out." for name in lost)


def seed_of(order: Order) -> int:
    """A seed that tells the order apart from all others like it, so that it can be found again."""
    return int(hashlib.sha256(order.reference.encode()).hexdigest()[:7], 16)


# -- an order that was not taken


def classify_refusal(reply: Reply, said: Mapping[str, str | None]) -> Refused | Failed:
    """Why an order was not taken, by the status alone; whatever does not say so for certain is unclear."""
    match reply.status:
        case 429:
            return Refused(reply.retry_after)
        case 401 | 403:
            return Failed(UpstreamAuth(upstream=said))
        case 402:
            return Failed(UpstreamUnavailable(NO_CREDIT, upstream=said))
        case 408 | 409:  # a proxy's doubt, or one like it under way
            raise Unclear(f"HTTP {reply.status}")
        case status if 400 <= status < 500:
            return Failed(UpstreamRejected(upstream=said))
        case _:
            raise Unclear(f"HTTP {reply.status}")


def upstream_reason(code: Any, message: Any = None, upstream_id: Any = None) -> dict[str, str | None]:
    """What a vendor gave as its reason, as texts; it is redacted before a caller sees it."""
    told = {"code": code, "message": message, "id": upstream_id}
    return {name: str(value) if isinstance(value, str | int | float) else None for name, value in told.items()}


def fail_empty(upstream_id: str, error: type[JobError] = ContentFiltered) -> Failed:
    """Done, with nothing in it: that is no success."""
    return Failed(error(NO_OUTPUT, upstream=upstream_reason(None, "finished without an output", upstream_id)))


def fail_gone(reply: Reply, message: Any = None, upstream_id: Any = None) -> Failed:
    """Report an order as gone: the runner believes it only after several polls."""
    return Failed(
        UpstreamError(GONE, retryable=False, upstream=upstream_reason(reply.status, message, upstream_id)), gone=True
    )


def parse_time(told: Any) -> float | None:
    """A time in ISO 8601 as seconds since the epoch; of UTC, if it does not say of where."""
    try:
        moment = datetime.fromisoformat(told)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def may_match(order: Order, created_at: float | None, told_at: float | None = None) -> bool:
    """Tell whether what was created then may be this order; `told_at` is the vendor's clock at `asked_at` of ours."""
    ahead = 0.0 if told_at is None or not order.asked_at else told_at - order.asked_at
    return created_at is None or created_at >= order.placed_at + ahead - CLOCK_SECONDS


# -- lists of orders


class Row(NamedTuple):
    """One order in a vendor's list: its id, when it was created, and all that is told of it."""

    upstream_id: str
    created_at: float | None
    told: Any


class Rows(NamedTuple):
    """The orders of a list as far as it was read, and what it proves."""

    rows: Sequence[Row]
    listing: Listing


def read_list(order: Order, ask: Callable[[int, int], Flow[tuple[Sequence[Row], float | None]]]) -> Flow[Rows]:
    """Read a list until it is certainly older than the order, or ends; `ask` gets the page's number and its offset.

    Only an empty page is an end: a vendor may give fewer than it was asked for. Rows that come twice are kept once:
    orders placed meanwhile move the others to the next page. A vendor that repeats itself twice is not asked again.
    """
    rows: dict[str, Row] = {}
    told_at: float | None = None
    is_whole = False
    offset = repeats = 0
    for number in range(MAX_PAGES):
        page, now = yield from ask(number, offset)
        told_at = told_at if number else now
        if not page:
            is_whole = "" not in rows
            break
        fresh = [row for row in page if row.upstream_id not in rows]
        rows |= {row.upstream_id: row for row in fresh}
        offset += len(page)
        repeats = 0 if fresh else repeats + 1
        if repeats > 1 or (fresh and not any(may_match(order, row.created_at, told_at) for row in fresh)):
            break
    entries = tuple(ListedOrder(row.upstream_id, row.created_at) for row in rows.values())
    return Rows([row for row in rows.values() if row.upstream_id], Listing(entries, is_whole, told_at))


def server_time(reply: Reply) -> float | None:
    """Return the vendor's clock, in seconds since the epoch, from `Date`."""
    try:
        return parsedate_to_datetime(reply.headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


# -- where a result holds its assets


def pick_outputs(result: Any, recipe: Mapping[str, Any]) -> tuple[Output, ...]:
    """The outputs in a model's result: where the recipe, as `keep_recipe` keeps it, says; else what fits its kind."""
    kind = KINDS[recipe["kind"]]
    found = list(_urls(_follow(result, recipe["output"]) if recipe.get("output") else result))
    if not recipe.get("output"):
        fitting = [url for url in found if _ending(url).endswith(ENDINGS[kind])]
        found = fitting[:1] or [url for url in found if not _fits_another(url, kind)][:1]
    outputs = [Output(kind, Role.PRIMARY, Call("GET", url, seconds=300)) for url in found]
    if outputs and recipe.get("preview"):
        previews = list(_urls(_follow(result, recipe["preview"])))[:1]
        outputs += [Output(Kind.IMAGE, Role.PREVIEW, Call("GET", url)) for url in previews]
    return tuple(outputs)


def finish(result: Any, recipe: Mapping[str, Any], upstream_id: str, finished_at: float | None = None) -> Done | Failed:
    """The end of a job whose result holds its assets somewhere."""
    outputs = pick_outputs(result, recipe)
    return Done(outputs, finished_at=finished_at) if outputs else fail_empty(upstream_id)


def keep_recipe(recipe: Recipe) -> dict[str, str]:
    """What of a recipe `pick_outputs` needs, to be kept in an operation."""
    kept = {"kind": recipe.kind, "output": recipe.output, "preview": recipe.preview}
    return {name: value for name, value in kept.items() if value is not None}


def _follow(result: Any, path: str) -> Any:
    """What stands at `video.url`, `images[0].url` or `outputs.0`."""
    for part in filter(None, SPLIT.split(path)):
        if isinstance(result, list) and part.isdigit():
            items = cast("list[Any]", result)
            result = items[int(part)] if int(part) < len(items) else None
        else:
            result = as_object(result).get(part)
    return result


def _urls(value: Any, depth: int = MAX_DEPTH) -> Iterator[str]:
    """Every address in a value; of an object with a `url` only that."""
    if isinstance(value, str):
        if value.startswith(("http://", "https://")):
            yield value
    elif depth and isinstance(value, Mapping):
        told = cast("Mapping[str, Any]", value)
        for item in [told["url"]] if isinstance(told.get("url"), str) else told.values():
            yield from _urls(item, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from _urls(item, depth - 1)


def _ending(url: str) -> str:
    return url.partition("?")[0].partition("#")[0].lower()


def _fits_another(url: str, kind: Kind) -> bool:
    return any(_ending(url).endswith(endings) for other, endings in ENDINGS.items() if other is not kind)
