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
RATIO_NAMES: Final = ("aspect_ratio", "aspectRatio")
PIXELS_NAME: Final = "ratio"
"""A param whose values are sizes in pixels, such as `1280:720`."""
DURATION_NAMES: Final = ("duration", "durationSeconds", "seconds")
RESOLUTION: Final = "resolution"
NAMED_SIZES: Final[Mapping[str, tuple[int, int]]] = {
    "square_hd": (1024, 1024),
    "square": (512, 512),
    "portrait_4_3": (768, 1024),
    "portrait_16_9": (576, 1024),
    "landscape_4_3": (1024, 768),
    "landscape_16_9": (1024, 576),
}
"""fal's names of sizes, in pixels."""
AS_INPUT: Final = frozenset({"auto", "adaptive", "match_input_image"})
"""Values of a ratio or size that leave the choice to the model, as absence does."""
SPELLINGS: Final[Mapping[str, str]] = {"jpg": "jpeg", "jpeg": "jpg"}
IMAGE_SIZE: Final = "image_size"
"""The param of many models at fal: a word, or an object with width and height."""
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
_LENGTH: Final = re.compile(r"(\d{1,5}(?:\.\d{1,3})?) ?s?", re.ASCII)


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


@lru_cache(1024)
def choices_for(params: type[Params] | SchemaParams, name: str) -> Sequence[Any]:
    """Return the values that a param lists, without null."""
    return choices_of(as_object(fields_of(params).get(name)))


def takes_text(field: Mapping[str, Any]) -> bool:
    """Return whether a schema allows a text. An unknown one does."""
    forms = [as_object(each) for name in ("anyOf", "oneOf") for each in field.get(name, ())]
    if forms:
        return any(takes_text(form) for form in forms if form.get("type") != "null")
    kinds = field.get("type", "string")
    return "string" in (kinds if isinstance(kinds, list) else [kinds]) and "$ref" not in field


def takes_number(field: Mapping[str, Any]) -> bool:
    """Return whether a schema allows a number."""
    forms = [as_object(each) for name in ("anyOf", "oneOf") for each in field.get(name, ())]
    kinds: Any = field.get("type", ())
    return any(kind == kinds or kind in kinds for kind in ("number", "integer")) or any(map(takes_number, forms))


def spread_size(model: GenerationModel, size: Any, name: str = SIZE) -> dict[str, Any]:
    """Return the params that mean a size in pixels, for a model without a param of this name.

    `name` is the caller's. A size is a text such as `1280x720`, an object with width and height, or a name of fal's.
    """
    names = fields_of(model.params)
    if isinstance(size, str) and size in AS_INPUT:
        return {}
    width, height = _read_size(size, name)
    is_named = isinstance(size, str) and size in NAMED_SIZES
    if free := _name_pixels(names, width, height, is_text=name != SIZE and not is_named):
        return free
    sizes = _sizes(model.params)
    if not sizes:
        raise InvalidRequest(f"`{model.id}` does not take `{name}`.", code="unknown_param", param=name)
    near = min(sizes, key=lambda each: each.distance(width, height))
    if near.distance(width, height) > TOLERANCE and is_named:
        near = min(sizes, key=lambda each: each.difference(width / height))
        if near.difference(width / height) <= TOLERANCE:  # the name of a shape, rather than of its pixels
            return {key: value for key, value in near.params.items() if key != RESOLUTION}
    if near.distance(width, height) > TOLERANCE:
        raise InvalidRequest(f"`{model.id}` has no `{name}` {width}x{height}. It has {_list(sizes)}.", param=name)
    return dict(near.params)


def _name_pixels(names: Mapping[str, Any], width: int, height: int, *, is_text: bool) -> dict[str, Any]:
    """Return the params of a model that takes any width and height; none if it has sizes of its own."""
    if "width" in names and "height" in names:
        return {"width": width, "height": height}
    if IMAGE_SIZE in names:
        return {IMAGE_SIZE: {"width": width, "height": height}}
    return {SIZE: f"{width}x{height}"} if is_text and SIZE in names else {}


def _read_size(size: Any, name: str) -> tuple[int, int]:
    """Return width and height in pixels."""
    if isinstance(size, str) and size in NAMED_SIZES:
        return NAMED_SIZES[size]
    sides = as_object(size)
    text = f"{sides.get('width')}x{sides.get('height')}" if set(sides) == {"width", "height"} else size
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        also = "" if name == SIZE else f", one of {', '.join(NAMED_SIZES)}"
        message = f'`{name}` is "auto", or width and height such as "1280x720"{also}, got {shorten(size)}.'
        raise InvalidRequest(message, param=name)
    return int(found[1]), int(found[2])


def spread_shape(model: GenerationModel, ratio: Any, resolution: Any) -> dict[str, Any]:
    """Return the param that means a ratio, a resolution or both, for a model that has sizes in pixels only."""
    sizes = _sizes(model.params)
    wanted = _RATIO.fullmatch(ratio) if isinstance(ratio, str) else None
    lines = _LINES.fullmatch(resolution) if isinstance(resolution, str) else None
    fitting = [
        size
        for size in sizes
        if (ratio is None or (wanted and size.difference(int(wanted[1]) / int(wanted[2])) <= TOLERANCE))
        and (resolution is None or (lines and min(size.width, size.height) == int(lines[1])))
    ]
    if not fitting:
        param = RATIO_NAMES[0] if resolution is None or ratio is not None else RESOLUTION
        given = " with ".join(shorten(each) for each in (ratio, resolution) if each is not None)
        raise InvalidRequest(f"`{model.id}` has no size of {given}. It has {_list(sizes)}.", param=param)
    return dict(fitting[0].params)


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
        return self.difference(width / height)

    def difference(self, ratio: float) -> float:
        """Return the relative difference of the ratio."""
        return abs(ratio / (self.width / self.height) - 1)

    def __str__(self) -> str:
        return f"{self.width}{'x' if self.in_pixels else ':'}{self.height}"


@lru_cache(256)
def _sizes(params: type[Params] | SchemaParams) -> Sequence[_Size]:
    names = fields_of(params)
    ratio_name = next((name for name in RATIO_NAMES if name in names), None)
    if ratio_name is None:
        texts = map(str, choices_of(names.get(PIXELS_NAME, {})))
        return [
            _Size(int(match[1]), int(match[2]), in_pixels=True, params={PIXELS_NAME: text})
            for text in texts
            if (match := _RATIO.fullmatch(text))
        ]
    resolutions = choices_of(names.get(RESOLUTION, {}))
    found: list[_Size] = []
    for text in map(str, choices_of(names[ratio_name])):
        if (ratio := _RATIO.fullmatch(text)) is None:
            continue
        wide, high = int(ratio[1]), int(ratio[2])
        if not resolutions:
            found.append(_Size(wide, high, in_pixels=False, params={ratio_name: text}))
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


def _list(sizes: Sequence[_Size]) -> str:
    texts = list(dict.fromkeys(map(str, sizes)))
    more = f" and {len(texts) - MAX_SHOWN} more" if len(texts) > MAX_SHOWN else ""
    return ", ".join(texts[:MAX_SHOWN]) + more


def read_seconds(model: GenerationModel, seconds: Any) -> Any:
    """Return a length as the model writes it: `"4"` may be the number 4, or one of its texts such as `4s`."""
    number = _number(seconds)
    names = fields_of(model.params)
    name = next((each for each in DURATION_NAMES if each in names), SECONDS)
    texts = [choice for choice in choices_for(model.params, name) if isinstance(choice, str)]
    if texts:
        return next((text for text in texts if text.removesuffix("s") == f"{number:g}"), f"{number:g}")
    return int(number) if number.is_integer() else number


def _number(seconds: Any) -> float:
    if isinstance(seconds, str) and _SECONDS.fullmatch(seconds):
        return float(seconds)
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 1e6:
        return float(seconds)
    raise InvalidRequest(f'`{SECONDS}` is a length such as "4", got {shorten(seconds)}.', param=SECONDS)


def read_length(field: Mapping[str, Any], length: Any) -> Any:
    """Return a length as a param writes it: 5, `"5"` and `"5s"` are one. What is no length is left as it is."""
    choices = choices_of(field)
    if length in choices or isinstance(length, bool):
        return length
    found = _LENGTH.fullmatch(length) if isinstance(length, str) else None
    if found is None and not isinstance(length, int | float):
        return length
    number = float(found[1]) if found else float(length)
    texts = [choice for choice in choices if isinstance(choice, str)]
    if texts:
        return next((text for text in texts if text.removesuffix("s") == f"{number:g}"), length)
    if not choices and not takes_number(field):
        return length if isinstance(length, str) else f"{number:g}"
    return int(number) if number.is_integer() else number


def read_word(field: Mapping[str, Any], value: Any) -> Any:
    """Return one of a param's choices as it is written there: `4k` may be `4K`, and `jpg` may be `jpeg`."""
    choices = choices_of(field)
    if not isinstance(value, str) or not choices or value in choices:
        return value
    word = value.lower()
    wanted = {word, SPELLINGS.get(word, word)}
    return next((each for each in choices if isinstance(each, str) and each.lower() in wanted), value)


def sizes_of(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the size that params mean, if they mean one."""
    size = params.get(SIZE)
    if isinstance(size, str) and _SIZE.fullmatch(size):
        yield size
    ratio = next((found for name in RATIO_NAMES if (found := _RATIO.fullmatch(str(params.get(name, ""))))), None)
    pixels_of = _RATIO.fullmatch(str(params.get(PIXELS_NAME, "")))
    if pixels_of:
        yield f"{pixels_of[1]}x{pixels_of[2]}"
    resolution = params.get(RESOLUTION)
    if ratio and isinstance(resolution, str) and (pixels := _pixels(int(ratio[1]), int(ratio[2]), resolution)):
        yield f"{pixels[0]}x{pixels[1]}"
