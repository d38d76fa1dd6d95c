"""Neutral inputs: names that many clients use, turned into the params of the model that they are meant for."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, cast

from penstock.catalog.file_input import SOURCES, FileSlot
from penstock.catalog.model import GenerationModel
from penstock.catalog.params import Params, as_object
from penstock.catalog.schema_params import SchemaParams
from penstock.errors import Detail, InvalidRequest, PenstockError
from penstock.web.facades.measures import RATIO_NAMES, SECONDS, SIZE, read_ratio, read_seconds, spread_size

OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "prompt": ("text", "promptText"),
    "text": ("prompt", "promptText"),
    "input": ("text", "prompt", "promptText"),
    "negative_prompt": ("negativePrompt",),
    "duration": ("durationSeconds",),
    "seconds": ("duration", "durationSeconds"),
    "aspect_ratio": ("aspectRatio", "ratio"),
    "generate_audio": ("generateAudio",),
    "num_outputs": ("n",),
    "num_images": ("n",),
    "number_of_images": ("n",),
    "image": ("file", "frame_images", "images", "input_references", "references"),
    "image_url": ("image", "file", "frame_images", "images", "input_references", "references"),
    "input_image": ("image", "file", "frame_images", "images", "input_references", "references"),
    "input_reference": ("frame_images", "image", "file", "images", "input_references", "references"),
    "start_image": ("frame_images",),
    "first_frame_image": ("frame_images",),
    "end_image": ("frame_images",),
    "last_frame": ("frame_images",),
    "last_frame_image": ("frame_images",),
    "end_image_url": ("frame_images",),
    "images": ("input_references", "references", "frame_images", "image", "file"),
    "image_urls": ("images", "input_references", "references", "frame_images", "image", "file"),
    "image_input": ("images", "input_references", "references", "frame_images", "image", "file"),
    "input_images": ("images", "input_references", "references", "frame_images", "image", "file"),
    "mask_url": ("mask",),
    "mask_image": ("mask",),
    "video_url": ("video", "audio"),
    "audio_url": ("audio",),
    "file": ("image", "mesh", "audio", "video"),
    "mesh_url": ("mesh",),
    "model_url": ("mesh",),
    "model_mesh_url": ("mesh",),
}
"""By the caller's name: the params that it may mean, in this order, where the model has none of that name."""
COUNTS: Final = frozenset({"n", "num_outputs", "num_images", "number_of_images"})
"""How many results a caller wants. One is what a model without such a param makes."""
LAST_FRAME: Final = frozenset({"end_image", "last_frame", "last_frame_image", "end_image_url"})
FRAMES: Final = "frame_images"


@dataclass(frozen=True, slots=True)
class Given:
    """A model's params, and the caller's name of each that has another name there."""

    params: dict[str, Any] = field(default_factory=dict[str, Any])
    names: dict[str, str] = field(default_factory=dict[str, str])


def param_names(model: GenerationModel) -> frozenset[str]:
    """Return the names of a model's params."""
    return _names_of(model.params)


@lru_cache(256)
def _names_of(params: type[Params] | SchemaParams) -> frozenset[str]:
    fields = params.schema.get("properties", {}) if isinstance(params, SchemaParams) else params.model_fields
    return frozenset(fields)


def takes_anything(model: GenerationModel) -> bool:
    """Return whether a model is declared without its params: any is passed on, and the vendor validates."""
    return isinstance(model.params, SchemaParams) and model.params.is_open


def to_params(model: GenerationModel, given: Mapping[str, Any]) -> Given:
    """Return the params that neutral inputs mean. Names that the model does not know are kept, to be refused."""
    known, slots = param_names(model), {slot.name: slot for slot in model.files}
    found, is_open = Given(), takes_anything(model)
    for name, value in given.items():
        target = find_param(name, known)
        if value is None or (name in COUNTS and target not in known and value == 1 and not is_open):
            continue
        if name == SIZE and SIZE not in known and not is_open:
            for param, own in spread_size(model, value).items():
                _put(found, param, SIZE, own)
            continue
        slot = slots.get(target)
        if slot is None:
            _put(found, target, name, _read_value(model, target, name, value))
        else:
            _put_files(found, slot, name, value)
    return found


def find_param(name: str, known: Collection[str]) -> str:
    """Return the param that a caller's name means; the name itself if there is none."""
    if name in known:
        return name
    return next((each for each in OTHER_NAMES.get(name, ()) if each in known), name)


def _read_value(model: GenerationModel, target: str, name: str, value: Any) -> Any:
    """Return a value as the model writes it, if the caller's name has a form of its own."""
    if name == SECONDS:
        return read_seconds(model, value)
    return read_ratio(model, value) if target != name and target in RATIO_NAMES else value


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
        held.append(_with_role(entry, slot, name, len(held)))


def _with_role(entry: Any, slot: FileSlot, name: str, place: int) -> Any:
    """Return a file with the role that its name or its place in the list means."""
    file = as_object(entry)
    if not slot.roles or not file or "role" in file:
        return entry
    if slot.name == FRAMES and name in LAST_FRAME:
        return {**file, "role": "last_frame"}
    return {**file, "role": slot.roles[min(place, len(slot.roles) - 1)]}


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
