"""The models that OpenAI's endpoints for pictures and films serve, and the one that a request means."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from penstock.catalog.model import GenerationModel
from penstock.catalog.params import shorten
from penstock.domain.files import FileKind
from penstock.errors import InvalidRequest, ModelNotAllowed
from penstock.web.auth import Caller
from penstock.web.facades.measures import DURATION_NAMES, PIXELS_NAME, RATIO_NAMES, SECONDS, SIZE, required_of
from penstock.web.facades.neutral import find_param, param_names, takes_anything

MAX_SHOWN: Final = 20
PROMPT: Final = "prompt"
SHAPE_NAMES: Final = (*RATIO_NAMES, PIXELS_NAME)
USUAL: Final = {SECONDS: "4", SIZE: "720x1280"}
"""OpenAI's own length and size of a film."""
PATHS: Final[Mapping[str, str]] = {"image": "/v1/images/generations", "video": "/v1/videos"}
"""The endpoint of each kind of model."""
NAMES: Final[Mapping[str, str]] = {"image": "an image", "video": "a video"}
Fits = Callable[[GenerationModel], bool]


def takes_pictures(model: GenerationModel) -> bool:
    """Return whether a model takes a picture."""
    return _takes(model, "image")


def needs_files(model: GenerationModel) -> bool:
    """Return whether a model cannot work without a file."""
    return any(slot.name in required_of(model.params) for slot in model.files)


def makes_from_text(model: GenerationModel) -> bool:
    """Return whether a model works with a prompt alone."""
    return not needs_files(model) and find_param(PROMPT, names := param_names(model)) in names


def has_what_it_needs(model: GenerationModel, body: Mapping[str, Any]) -> bool:
    """Return whether a request gives the files without which the model cannot work."""
    names, required = param_names(model), required_of(model.params)
    given = {find_param(name, names) for name, value in body.items() if value}
    return all(slot.name in given for slot in model.files if slot.name in required)


def edits_pictures(model: GenerationModel) -> bool:
    """Return whether a model exists to change pictures by a prompt."""
    return needs_files(model) and PROMPT in param_names(model)


def takes_films(model: GenerationModel) -> bool:
    """Return whether a model takes a film."""
    return _takes(model, "video")


def _takes(model: GenerationModel, kind: FileKind) -> bool:
    """Return whether a model has a param for files of this kind. One that takes anything has none that is known."""
    names = param_names(model)
    return any(kind in slot.kinds and slot.name in names for slot in model.files)


def choose(
    caller: Caller, body: Mapping[str, Any], kind: str, fits: Fits, task: str, prefer: Fits | None = None
) -> GenerationModel:
    """Return the model that a request names, or the first that is preferred or fits. `task` is what it has to do."""
    name = body.get("model")
    fitting = [model.id for model in _models(caller, kind) if fits(model)]
    if name is None:
        if not fitting:
            message = f"No model that this key may use can {task}."
            raise InvalidRequest(message, code="missing_required_parameter", param="model")
        models = [caller.gateway.offers.get(each).model for each in fitting]
        return next((model for model in models if prefer is None or prefer(model)), models[0])
    if not isinstance(name, str):
        raise InvalidRequest(f"`model` is the id of a model, got {shorten(name)}.", param="model")
    model = caller.gateway.offers.get(name, caller.key.allows_model).model
    if not caller.key.allows_model(name):
        raise ModelNotAllowed(f"This API key may not use `{name}`.", param="model")
    if model.kind != kind or not fits(model):
        raise InvalidRequest(_explain(model, kind, task, fitting), code="unsupported_value", param="model")
    return model


def _models(caller: Caller, kind: str) -> list[GenerationModel]:
    offers = caller.gateway.offers.by_model.values()
    return [offer.model for offer in offers if offer.kind == kind and caller.key.allows_model(offer.id)]


def _explain(model: GenerationModel, kind: str, task: str, fitting: list[str]) -> str:
    what = f"`{model.id}` cannot {task}"
    if model.kind != kind:
        article = NAMES.get(model.kind, f"a {model.kind}")
        what = f"`{model.id}` is {article} model: use POST {PATHS.get(model.kind, '/model/v1/generation')}"
    shown = ", ".join(f"`{name}`" for name in fitting[:MAX_SHOWN])
    return f"{what}. Models that can {task}: {shown}." if shown else f"{what}. No model that this key may use can."


def split_hints(
    model: GenerationModel, body: Mapping[str, Any], own: Collection[str], hints: Collection[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the inputs of a request without its `own` fields, and the hints that the model does not take.

    Nulls are left out, and `auto` where the model has no such choice. The prompt of a model that takes anything is
    no hint.
    """
    known = param_names(model)
    given, left_out = dict[str, Any](), list[str]()
    for name, value in body.items():
        is_known = find_param(name, known) in known or (name == PROMPT and takes_anything(model))
        if value is None or name in own or (value == "auto" and not is_known):
            continue
        if is_known or name not in hints:
            given[name] = value
        elif value != "":
            left_out.append(name)
    return given, sorted(left_out)


def usual_measures(model: GenerationModel, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return OpenAI's own defaults for the length and the size that a model requires and the request leaves out."""
    known = param_names(model)
    absent = required_of(model.params) - {find_param(name, known) for name in given}
    if not given.keys().isdisjoint({SIZE, *RATIO_NAMES}):
        absent -= {*SHAPE_NAMES}
    usual = {SECONDS: DURATION_NAMES, SIZE: SHAPE_NAMES}
    return {name: USUAL[name] for name, params in usual.items() if not absent.isdisjoint(params)}
