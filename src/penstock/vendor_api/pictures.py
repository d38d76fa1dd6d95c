"""Orders for pictures in a vendor's terms: its names for our params, and a warning or refusal for what it cannot do."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from penstock.catalog.model import Expectation
from penstock.catalog.text_to_image import LONG_SIDE, expect_picture, picture_ratio, picture_size
from penstock.domain.files import StoredFile
from penstock.vendor_api.films import Unfit
from penstock.vendor_api.generation import DataUri, Order

USUAL: Final[Mapping[str, Any]] = {"n": 1, "output_format": "png", "background": "auto", "quality": "auto"}
"""Defaults of our params: a vendor that has no such field needs no warning."""
UNSAID: Final = {"background": "auto", "quality": "auto"}
"""Values that leave the choice to the vendor, so they are not sent."""
VALUES: Final = ("prompt", "negative_prompt", "n", "seed", "output_format", "background", "quality")
SIZES: Final = ("size", "aspect_ratio", "resolution")
SEVERAL: Final = "Send several inputs in one request for more."
CLOSE: Final = 0.02
"""Difference of two ratios that is no loss."""


@dataclass(frozen=True, slots=True)
class ParamTerm:
    """A vendor's name for a param, and its words for our values where they differ or are few."""

    name: str
    words: Mapping[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class PixelTerms:
    """Sizes in pixels: the fields for width and height, and the bounds of both."""

    write: Callable[[int, int], Mapping[str, Any]]
    step: int = 1
    sides: tuple[int, int] = (1, 1 << 14)
    pixels: tuple[int, int] = (1, 1 << 28)
    most_ratio: float = math.inf


@dataclass(frozen=True, slots=True)
class RatioTerms:
    """Sizes by ratio, and by words such as `2K` for our resolutions where the vendor has them."""

    name: str
    ratios: Sequence[str]
    resolution: ParamTerm | None = None


SizeTerms: TypeAlias = PixelTerms | RatioTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureTerms:
    """Terms of one model at one vendor."""

    vendor: str  # as warnings name it
    terms: Mapping[str, ParamTerm]
    """By param. A param without a term is reported as ignored."""
    size: SizeTerms | None = None
    most: int = 10
    """Upper bound of the pictures of one order."""
    images: str = ""
    """The field for the caller's pictures."""
    most_images: int = 0
    is_single: bool = False  # that field takes one picture, not a list
    mask: str = ""  # the field for a mask that is transparent where to paint
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class PictureOrder:
    """One order in the vendor's terms, but for its files."""

    body: dict[str, Any]
    images: tuple[StoredFile, ...]
    mask: StoredFile | None
    warnings: tuple[str, ...]
    expected: Expectation

    def files(self, terms: PictureTerms) -> dict[str, Any]:
        """Return the fields of the caller's pictures, with a `DataUri` for each."""
        images: Any = [DataUri(file) for file in self.images]
        found = {terms.images: images[0] if terms.is_single else images} if images else {}
        return found if self.mask is None else {**found, terms.mask: DataUri(self.mask)}


def is_picture(order: Order) -> bool:
    """Return whether an order is one for pictures by the catalogue's params."""
    return order.recipe is None and {"prompt", "n", "output_format"} <= order.params.keys()


def ask_picture(order: Order, terms: PictureTerms) -> PictureOrder:
    """Return the order in the vendor's terms. Raise `Unfit` rather than leave files out."""
    params = order.params
    images = tuple(given.file for name in ("images", "references") for given in order.given(name))
    mask = next((given.file for given in order.given("mask")), None)
    _check_files(params, terms, len(images), has_mask=mask is not None)
    fields, losses = _fill(params, terms)
    sized, resized = _fit_size(params, terms)
    wanted = expect_picture(params)
    if resized or isinstance(terms.size, RatioTerms):
        wanted = Expectation(ratio=None if resized else picture_ratio(params), picture_type=wanted.picture_type)
    if "output_format" in losses:
        wanted = replace(wanted, picture_type=None)
    warnings = (*losses.values(), *resized)
    return PictureOrder({**terms.fixed, **fields, **sized}, images, mask, warnings, wanted)


def find_pixels(width: int, height: int, terms: PixelTerms) -> tuple[int, int]:
    """Return the size within the bounds that is nearest in ratio and number of pixels."""
    least, most = terms.pixels
    ratio = max(1 / terms.most_ratio, min(terms.most_ratio, width / height))
    area = max(least, min(most, width * height))
    sides = math.sqrt(area * ratio), math.sqrt(area / ratio)
    scale = min(1.0, terms.sides[1] / max(sides)) * max(1.0, terms.sides[0] / min(sides))
    tried: list[tuple[int, int]] = []
    for roundings in ((round, round), (math.floor, math.floor), (math.ceil, math.ceil), (math.floor, math.ceil)):
        long, short = roundings
        each = roundings if ratio >= 1 else (short, long)
        wide, tall = (
            rounded(side * scale / terms.step) * terms.step for rounded, side in zip(each, sides, strict=True)
        )
        tried.append((wide, tall))
        if _fits(wide, tall, terms):
            return wide, tall
    return tried[0]


def _fits(wide: int, tall: int, terms: PixelTerms) -> bool:
    """Return whether a size keeps all bounds."""
    low, high = terms.sides
    short, long = sorted((wide, tall))
    return (
        low <= short
        and long <= min(high, short * terms.most_ratio)
        and terms.pixels[0] <= wide * tall <= terms.pixels[1]
    )


def find_ratio(wanted: float, ratios: Sequence[str]) -> str:
    """Return the nearest of ratios such as `16:9`."""
    return min(ratios, key=lambda ratio: abs(math.log(wanted / _parse(ratio))))


def _check_files(params: Mapping[str, Any], terms: PictureTerms, count: int, *, has_mask: bool) -> None:
    """Raise `Unfit` if the model cannot take the caller's files."""
    name = "images" if "images" in params else "references"
    if count > terms.most_images:
        most = f"at most {terms.most_images} pictures" if terms.most_images else "no pictures"
        raise Unfit(name, f"{terms.vendor} takes {most} with this model, got {count}.")
    if has_mask and not terms.mask:
        raise Unfit("mask", f"{terms.vendor} takes no mask with this model: leave it out, or use another route.")


def _fill(params: Mapping[str, Any], terms: PictureTerms) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the vendor's fields for plain params, and a warning for each param that it cannot honour."""
    fields: dict[str, Any] = {}
    losses: dict[str, str] = {}
    for name in VALUES:
        value, term = params.get(name), terms.terms.get(name)
        if name == "n" and value is not None and value > terms.most:
            losses[name] = f"`n` {value} is more than {terms.vendor} makes at once: it is {terms.most}. {SEVERAL}"
            value = terms.most
        if value is None or value == UNSAID.get(name) or (term is None and value == USUAL.get(name)):
            continue
        if term is not None and (term.words is None or value in term.words):
            fields[term.name] = value if term.words is None else term.words[value]
        elif name not in losses:
            shown = "" if name in ("negative_prompt", "seed") else f" {value}"
            losses[name] = f"`{name}`{shown} is not supported by {terms.vendor} with this model and was ignored."
    return fields, losses


def _fit_size(params: Mapping[str, Any], terms: PictureTerms) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the vendor's fields for the size, and a warning if they stand for another size."""
    wanted = picture_size(params)
    if wanted is None:
        return {}, ()
    asked = " and ".join(f"`{name}` {params[name]}" for name in SIZES if name in params)
    match terms.size:
        case None:
            return {}, (f"{asked} is not supported by {terms.vendor} with this model and was ignored.",)
        case PixelTerms():
            found = find_pixels(*wanted, terms.size)
            is_far = _differs(found[0] / found[1], wanted[0] / wanted[1])
            changed = found != wanted and ("size" in params or "resolution" in params or is_far)
            text = f"{asked} is not possible at {terms.vendor}, which was asked for {found[0]}x{found[1]}."
            return terms.size.write(*found), ((text,) if changed else ())
        case RatioTerms():
            return _fit_ratio(params, wanted, terms.size, f"{asked} is not possible at {terms.vendor}")


def _fit_ratio(
    params: Mapping[str, Any], size: tuple[int, int], terms: RatioTerms, problem: str
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    fields: dict[str, Any] = {}
    wanted, got = picture_ratio(params), ""
    if wanted is not None:
        got = find_ratio(wanted, terms.ratios)
        fields[terms.name] = got
    is_exact = "size" not in params and (not got or not _differs(_parse(got), wanted or 1.0))
    if "size" in params or "resolution" in params:
        longest = max(size)
        resolution = params.get("resolution") or next(
            (name for name, side in LONG_SIDE.items() if side >= longest), [*LONG_SIDE][-1]
        )
        word = None if terms.resolution is None else (terms.resolution.words or {}).get(resolution)
        if terms.resolution is not None and word is not None:
            fields[terms.resolution.name] = word
            got = f"{got} {resolution}".strip()
        elif resolution != "1K":
            is_exact = False
    return fields, (() if is_exact else (f"{problem}, which was asked for {got or 'its usual size'}.",))


def _parse(ratio: str) -> float:
    wide, _, high = ratio.partition(":")
    return float(wide) / float(high)


def _differs(one: float, other: float) -> bool:
    return abs(one / other - 1) > CLOSE
