"""Neutral inputs: names that many clients use, turned into the params of the model that they are meant for."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, cast

from penstock.catalog.file_input import SOURCES, FileSlot
from penstock.catalog.model import GenerationModel
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import SchemaParams
from penstock.errors import Detail, InvalidRequest, PenstockError
from penstock.web.facades.measures import (
    AS_INPUT,
    PIXELS_NAME,
    RATIO_NAMES,
    RESOLUTION,
    SECONDS,
    SIZE,
    choices_of,
    fields_of,
    read_length,
    read_seconds,
    read_word,
    spread_shape,
    spread_size,
)

PICTURE: Final = ("image", "file")
PICTURES: Final = ("input_references", "references", "images", "frame_images", *PICTURE)
FRAME: Final = ("frame_images", *PICTURE)
"""Params for a picture with which a film begins."""
LENGTH: Final = ("duration", "durationSeconds")
OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "prompt": ("text", "promptText"),
    "text": ("prompt", "promptText"),
    "input": ("text", "prompt", "promptText"),
    "negative_prompt": ("negativePrompt",),
    "seed": ("model_seed",),
    "duration": ("durationSeconds",),
    "seconds": LENGTH,
    "length": LENGTH,
    "duration_seconds": LENGTH,
    "video_length": LENGTH,
    "aspect_ratio": ("aspectRatio",),
    "generate_audio": ("generateAudio",),
    "num_outputs": ("n",),
    "num_images": ("n",),
    "number_of_images": ("n",),
    "image": ("file", "frame_images", "images", "input_references", "references"),
    "image_url": ("image", "file", "frame_images", "images", "input_references", "references"),
    "input_image": ("image", "file", "frame_images", "images", "input_references", "references"),
    "input_image_url": ("image", "file", "frame_images", "images", "input_references", "references"),
    "input_reference": ("frame_images", "image", "file", "images", "input_references", "references"),
    "start_image": FRAME,
    "start_image_url": FRAME,
    "first_frame": FRAME,
    "first_frame_url": FRAME,
    "first_frame_image": FRAME,
    "first_frame_image_url": FRAME,
    "end_image": ("frame_images",),
    "end_image_url": ("frame_images",),
    "last_frame": ("frame_images",),
    "last_frame_url": ("frame_images",),
    "last_frame_image": ("frame_images",),
    "last_frame_image_url": ("frame_images",),
    "tail_image": ("frame_images",),
    "tail_image_url": ("frame_images",),
    "images": ("input_references", "references", "frame_images", "image", "file"),
    "image_urls": ("images", "input_references", "references", "frame_images", "image", "file"),
    "image_input": ("images", "input_references", "references", "frame_images", "image", "file"),
    "input_images": ("images", "input_references", "references", "frame_images", "image", "file"),
    "input_image_urls": ("images", "input_references", "references", "frame_images", "image", "file"),
    "reference_image": PICTURES,
    "reference_images": PICTURES,
    "reference_image_url": PICTURES,
    "reference_image_urls": PICTURES,
    "mask_url": ("mask",),
    "mask_image": ("mask",),
    "mask_image_url": ("mask",),
    "video_url": ("video", "audio"),
    "audio_url": ("audio",),
    "audio_file": ("audio",),
    "file": ("image", "mesh", "audio", "video"),
    "mesh_url": ("mesh",),
    "model_url": ("mesh",),
    "model_mesh_url": ("mesh",),
}
"""By the caller's name: the params that it may mean, in this order, where the model has none of that name."""
COUNTS: Final = frozenset({"n", "num_outputs", "num_images", "number_of_images"})
"""How many results a caller wants. One is what a model without such a param makes."""
LAST_FRAME: Final = frozenset(name for name, params in OTHER_NAMES.items() if params == ("frame_images",))
LENGTHS: Final = frozenset({*LENGTH, *(name for name, params in OTHER_NAMES.items() if params in (LENGTH, LENGTH[1:]))})
WORDS: Final = frozenset({*RATIO_NAMES, RESOLUTION, "output_format"})
"""Params whose choices other services spell in other ways."""
SHAPES: Final = frozenset({RATIO_NAMES[0], RESOLUTION})
SIZES: Final = frozenset({SIZE, "image_size"})
FRAMES: Final = "frame_images"


@dataclass(frozen=True, slots=True)
class Given:
    """A model's params, and the caller's name of each that has another name there."""

    params: dict[str, Any] = field(default_factory=dict[str, Any])
    names: dict[str, str] = field(default_factory=dict[str, str])


def param_names(model: GenerationModel) -> frozenset[str]:
    """Return the names of a model's params."""
    params = model.params
    fields = params.schema.get("properties", {}) if isinstance(params, SchemaParams) else params.model_fields
    return frozenset(fields)


def takes_anything(model: GenerationModel) -> bool:
    """Return whether a model is declared without its params: any is passed on, and the vendor validates."""
    return isinstance(model.params, SchemaParams) and model.params.is_open


def to_params(model: GenerationModel, given: Mapping[str, Any]) -> Given:
    """Return the params that neutral inputs mean. Names that the model does not know are kept, to be refused."""
    known, slots = param_names(model), {slot.name: slot for slot in model.files}
    found, is_open = Given(), takes_anything(model)
    if not given.keys().isdisjoint(SHAPES) and PIXELS_NAME in known and known.isdisjoint(SHAPES):
        given = _put_shape(found, model, given)
    for name, value in given.items():
        target = find_param(name, known)
        if value is None or (name in COUNTS and target not in known and value == 1 and not is_open):
            continue
        if name in SIZES and name not in known and not is_open:
            for param, own in spread_size(model, value, name).items():
                _put(found, param, name, own)
            continue
        slot = slots.get(target)
        if slot is not None:
            _put_files(found, slot, name, value)
        elif name in RATIO_NAMES and _is_left_to_model(model, target, value):
            continue
        else:
            _put(found, target, name, _read(model, target, name, value) if target in known else value)
    return found


def _read(model: GenerationModel, target: str, name: str, value: Any) -> Any:
    """Return a value as the param writes it."""
    if name == SECONDS:
        return read_seconds(model, value)
    if name in LENGTHS:
        return read_length(as_object(fields_of(model.params)[target]), value)
    return read_word(as_object(fields_of(model.params)[target]), value) if target in WORDS else value


def _is_left_to_model(model: GenerationModel, target: str, value: Any) -> bool:
    """Return whether a ratio means that of the input, and the model has no such choice: to leave it out means it."""
    return (
        isinstance(value, str)
        and value in AS_INPUT
        and value not in choices_of(as_object(fields_of(model.params).get(target)))
    )


def _put_shape(found: Given, model: GenerationModel, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the size that a ratio and a resolution mean, and return the other inputs."""
    ratio, resolution = (given.get(name) for name in (RATIO_NAMES[0], RESOLUTION))
    ratio = None if isinstance(ratio, str) and ratio in AS_INPUT else ratio
    if ratio is not None or resolution is not None:
        for param, own in spread_shape(model, ratio, resolution).items():
            _put(found, param, RATIO_NAMES[0] if ratio is not None else RESOLUTION, own)
    return {name: value for name, value in given.items() if name not in SHAPES}


def find_param(name: str, known: Collection[str]) -> str:
    """Return the param that a caller's name means; the name itself if there is none."""
    return next((each for each in (name, *OTHER_NAMES.get(name, ())) if each in known), name)


def _put(found: Given, target: str, name: str, value: Any) -> None:
    if target in found.params:
        raise InvalidRequest(f"`{name}` and `{found.names.get(target, target)}` mean the same: give one.", param=name)
    found.params[target] = value
    if target != name:
        found.names[target] = name


def _put_files(found: Given, slot: FileSlot, name: str, value: Any) -> None:
    """Add files to a param. A text is a URL, a token or a job's id; files by several names form one list."""
    entries = [_read_file(entry) for entry in (cast("list[Any]", value) if isinstance(value, list) else [value])]
    if slot.most == 1:
        _put(found, slot.name, name, entries[0] if len(entries) == 1 else entries)
        return
    held = cast("list[Any]", found.params.setdefault(slot.name, []))
    if not entries and slot.name != name:
        found.names[slot.name] = name
    for place, entry in enumerate(entries):
        if slot.name != name:
            found.names[f"{slot.name}.{len(held)}"] = f"{name}.{place}" if isinstance(value, list) else name
        held.append(_with_role(entry, slot, name, held))


def _with_role(entry: Any, slot: FileSlot, name: str, held: Sequence[Any]) -> Any:
    """Return a file with the role that its name means, or else the first that is left."""
    file = as_object(entry)
    if not slot.roles or not file or "role" in file:
        return entry
    if slot.name == FRAMES and name in LAST_FRAME:
        return {**file, "role": "last_frame"}
    taken = {as_object(each).get("role") for each in held}
    return {**file, "role": next((role for role in slot.roles if role not in taken), slot.roles[-1])}


def _read_file(value: Any) -> Any:
    """Return the file object that a text or another service's object means."""
    if isinstance(value, str):
        if value.startswith("file_"):
            return {"file_token": value}
        return {"job": value} if value.startswith("job_") else {"url": value}
    fields = as_object(value)
    if fields and not any(name in fields for name in SOURCES):
        if isinstance(fields.get("file_id"), str):  # OpenAI's name of an upload
            return {"file_token": fields["file_id"]}
        inner = fields.get("image_url") or fields.get("video_url")  # OpenAI's and OpenRouter's parts
        return {"url": as_object(inner).get("url", inner)} if inner else fields
    return fields or value


# -- errors in the caller's terms

INPUT: Final = "input.0.params."
NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


def in_callers_terms(
    error: PenstockError, names: Mapping[str, str], prefix: str = "", outer: Mapping[str, str] = NO_NAMES
) -> PenstockError:
    """Return the error with the caller's own names of fields. `prefix` is where they stand in the request.

    `outer` has the caller's names of the fields beside the params.
    """
    if not error.details and not (error.param or "").startswith(INPUT):
        return error
    details = [Detail(outer.get(d.loc) or _rename(d.loc, names, prefix), d.message, d.code) for d in error.details]
    param = outer.get(error.param or "") or _rename(error.param or "", names, prefix)
    return type(error)(
        _reword(error, param),
        code=error.code,
        param=param or None,
        details=details,
        suggestion=error.suggestion,
        retry_after=error.retry_after,
        headers=error.headers,
    )


def _reword(error: PenstockError, param: str) -> str:
    """Return the message; one that begins with a field's place begins with the caller's name of it."""
    return (
        f"{param}{error.message[len(error.param) :]}"
        if error.param and error.message.startswith(error.param)
        else error.message
    )


def _rename(place: str, names: Mapping[str, str], prefix: str) -> str:
    if not place.startswith("input.") or ".params." not in place:
        return place
    rest = place.partition(".params.")[2]
    return prefix + next(_candidates(rest, names), rest)


def _candidates(place: str, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the caller's name of the longest beginning of a place that has one."""
    for name in sorted(names, key=len, reverse=True):
        if place == name or place.startswith(f"{name}."):
            yield names[name] + place[len(name) :]
