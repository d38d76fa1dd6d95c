"""Sizes and lengths as other services write them, in the params and the values that a model has."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from penstock.catalog.model import GenerationModel
from penstock.catalog.params import Params, as_object, shorten
from penstock.catalog.schema_params import SchemaParams
from penstock.errors import InvalidRequest

SIZE: Final = "size"
SECONDS: Final = "seconds"
RATIO_NAMES: Final = ("aspect_ratio", "aspectRatio", "ratio")
DURATION_NAMES: Final = ("duration", "durationSeconds", "seconds")
RESOLUTION: Final = "resolution"
IMAGE_SIZE: Final = "image_size"
"""The param of many models at fal: a word, or an object with width and height."""
MIN_PIXELS: Final = 100
"""From this number on, the sides of a ratio such as `1280:720` are pixels."""
LONG_SIDES: Final = {"512": 512, "1K": 1024, "2K": 2048, "4K": 4096}
"""Resolutions of pictures: pixels of the long side."""
SHORT_SIDES: Final = {"4k": 2160, "2k": 1440}
"""Resolutions of films that are no number of lines: pixels of the short side."""
TOLERANCE: Final = 0.025
"""The part by which a side may differ, as models round them."""
MAX_SHOWN: Final = 12
_SIZE: Final = re.compile(r"([1-9]\d{0,4})[xX]([1-9]\d{0,4})")
_RATIO: Final = re.compile(r"([1-9]\d{0,3}):([1-9]\d{0,3})")
_LINES: Final = re.compile(r"([1-9]\d{2,3})p")
_SECONDS: Final = re.compile(r"\d{1,5}(?:\.\d{1,3})?", re.ASCII)


@lru_cache(256)
def fields_of(params: type[Params] | SchemaParams) -> Mapping[str, Any]:
    """Return the JSON Schema of each param. Making it is expensive, so it is kept."""
    schema = params.schema if isinstance(params, SchemaParams) else params.model_json_schema()
    return schema.get("properties", {})


@lru_cache(256)
def required_of(params: type[Params] | SchemaParams) -> frozenset[str]:
    """Return the names of the params that must be given."""
    schema = params.schema if isinstance(params, SchemaParams) else params.model_json_schema()
    return frozenset(schema.get("required", ()))


def choices_of(field: Mapping[str, Any]) -> list[Any]:
    """Return the values that a schema lists, without null."""
    found = list(field.get("enum", ())) or ([field["const"]] if "const" in field else [])
    if not found:
        found = [value for name in ("anyOf", "oneOf") for each in field.get(name, ()) for value in choices_of(each)]
    return [value for value in found if value is not None]


@lru_cache(256)
def text_names(params: type[Params] | SchemaParams) -> frozenset[str]:
    """Return the names of the params that may be a text."""
    return frozenset(name for name, field in fields_of(params).items() if takes_text(as_object(field)))


def takes_text(field: Mapping[str, Any]) -> bool:
    """Return whether a schema allows a text. An unknown one does."""
    forms = [as_object(each) for name in ("anyOf", "oneOf") for each in field.get(name, ())]
    if forms:
        return any(takes_text(form) for form in forms if form.get("type") != "null")
    kinds = field.get("type", "string")
    return "string" in (kinds if isinstance(kinds, list) else [kinds]) and "$ref" not in field


def spread_size(model: GenerationModel, size: Any) -> dict[str, Any]:
    """Return the params that mean a size in pixels, for a model without a param of this name."""
    names = fields_of(model.params)
    if size == "auto":
        return {}
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if found is None:
        message = f'`{SIZE}` is "auto", or width and height such as "1280x720", got {shorten(size)}.'
        raise InvalidRequest(message, param=SIZE)
    width, height = int(found[1]), int(found[2])
    if "width" in names and "height" in names:
        return {"width": width, "height": height}
    if IMAGE_SIZE in names:
        return {IMAGE_SIZE: {"width": width, "height": height}}
    sizes = _sizes(model.params)
    if not sizes:
        raise InvalidRequest(f"`{model.id}` does not take `{SIZE}`.", code="unknown_param", param=SIZE)
    near = min(sizes, key=lambda each: each.distance(width, height))
    if near.distance(width, height) > TOLERANCE:
        raise InvalidRequest(f"`{model.id}` has no `{SIZE}` {size}. It has {_list(sizes)}.", param=SIZE)
    return dict(near.params)


@dataclass(frozen=True, slots=True)
class _Size:
    """A size that a model has: in pixels, or a ratio whose pixels the model chooses."""

    width: int
    height: int
    in_pixels: bool
    params: Mapping[str, Any]

    def distance(self, width: int, height: int) -> float:
        """Return the largest relative difference of a side, or that of the ratio."""
        if self.in_pixels:
            return max(abs(width / self.width - 1), abs(height / self.height - 1))
        return abs((width / height) / (self.width / self.height) - 1)

    def __str__(self) -> str:
        return f"{self.width}{'x' if self.in_pixels else ':'}{self.height}"


@lru_cache(256)
def _sizes(params: type[Params] | SchemaParams) -> Sequence[_Size]:
    names = fields_of(params)
    ratio_name = next((name for name in RATIO_NAMES if name in names), None)
    if ratio_name is None:
        return []
    resolutions = choices_of(names.get(RESOLUTION, {}))
    found: list[_Size] = []
    for text in map(str, choices_of(names[ratio_name])):
        if (ratio := _RATIO.fullmatch(text)) is None:
            continue
        wide, high = int(ratio[1]), int(ratio[2])
        in_pixels = min(wide, high) >= MIN_PIXELS
        if in_pixels or not resolutions:
            found.append(_Size(wide, high, in_pixels=in_pixels, params={ratio_name: text}))
            continue
        found += [
            _Size(*pixels, in_pixels=True, params={ratio_name: text, RESOLUTION: resolution})
            for resolution in resolutions
            if (pixels := _pixels(wide, high, str(resolution)))
        ]
    return found


def _pixels(wide: int, high: int, resolution: str) -> tuple[int, int] | None:
    if (long := LONG_SIDES.get(resolution)) is not None:
        scale = long / max(wide, high)
    elif lines := _LINES.fullmatch(resolution):
        scale = int(lines[1]) / min(wide, high)
    elif (short := SHORT_SIDES.get(resolution.lower())) is not None:
        scale = short / min(wide, high)
    else:
        return None
    return round(wide * scale), round(high * scale)


@lru_cache(256)
def _texts_of(params: type[Params] | SchemaParams, names: Sequence[str]) -> Sequence[str]:
    """Return the texts that the first of these params may be."""
    fields = fields_of(params)
    field = next((as_object(fields[name]) for name in names if name in fields), as_object(None))
    return [choice for choice in choices_of(field) if isinstance(choice, str)]


def read_ratio(model: GenerationModel, ratio: Any) -> Any:
    """Return a ratio as the model writes it: `16:9` may be `1280:720`, the first of its sizes that has it."""
    asked = _RATIO.fullmatch(ratio) if isinstance(ratio, str) else None
    choices = _texts_of(model.params, RATIO_NAMES)
    if asked is None or ratio in choices:
        return ratio
    wide, high = int(asked[1]), int(asked[2])
    found = ((choice, _RATIO.fullmatch(choice)) for choice in choices)
    same = (choice for choice, each in found if each and int(each[1]) * high == int(each[2]) * wide)
    return next(same, ratio)


def _list(sizes: Sequence[_Size]) -> str:
    texts = list(dict.fromkeys(map(str, sizes)))
    more = f" and {len(texts) - MAX_SHOWN} more" if len(texts) > MAX_SHOWN else ""
    return ", ".join(texts[:MAX_SHOWN]) + more


def read_seconds(model: GenerationModel, seconds: Any) -> Any:
    """Return a length as the model writes it: `"4"` may be the number 4, or one of its texts such as `4s`."""
    number = _number(seconds)
    if texts := _texts_of(model.params, DURATION_NAMES):
        return next((text for text in texts if text.removesuffix("s") == f"{number:g}"), f"{number:g}")
    return int(number) if number.is_integer() else number


def _number(seconds: Any) -> float:
    if isinstance(seconds, str) and _SECONDS.fullmatch(seconds):
        return float(seconds)
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 1e6:
        return float(seconds)
    raise InvalidRequest(f'`{SECONDS}` is a length such as "4", got {shorten(seconds)}.', param=SECONDS)


def sizes_of(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the size that params mean, if they mean one."""
    size = params.get(SIZE)
    if isinstance(size, str) and _SIZE.fullmatch(size):
        yield size
    ratio = next((found for name in RATIO_NAMES if (found := _RATIO.fullmatch(str(params.get(name, ""))))), None)
    if ratio and min(int(ratio[1]), int(ratio[2])) >= MIN_PIXELS:
        yield f"{ratio[1]}x{ratio[2]}"
    resolution = params.get(RESOLUTION)
    if ratio and isinstance(resolution, str) and (pixels := _pixels(int(ratio[1]), int(ratio[2]), resolution)):
        yield f"{pixels[0]}x{pixels[1]}"
