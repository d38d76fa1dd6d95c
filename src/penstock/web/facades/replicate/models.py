"""Models of Replicate's API: ours, each as `penstock/<model_id>` with one version."""

import json
from collections.abc import Iterator
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.catalog.model import GenerationModel
from penstock.domain.api_keys import Scope
from penstock.domain.ids import timestamp
from penstock.errors import Detail, ModelNotAllowed, ModelNotFound, NotFound
from penstock.jobs.dialects.replicate import OWNER, version_of
from penstock.jobs.request import refuse
from penstock.vendor_api.generation import Kind
from penstock.web.auth import Caller, admit
from penstock.web.facades.describe import answer, errors
from penstock.web.facades.orders import facade_url
from penstock.web.facades.replicate.shapes import MODEL, PREFIX, PROBLEM, TAG, VERSION, page
from penstock.web.responses import Json

router = APIRouter(tags=[TAG])

SLASH: Final = "--"
"""Stands for `/` and `:` in the name of a model: clients allow neither there."""
ERRORS = errors(PROBLEM, ModelNotFound, ModelNotAllowed)


@router.get(f"{PREFIX}/models", responses={200: answer("The models.", page(MODEL)), **errors(PROBLEM)})
async def list_replicate_models(request: Request) -> Response:
    """List the models that this key may use."""
    caller = await admit(request, Scope.READ)
    models = [describe_model(caller, offer.model) for offer in caller.gateway.offers.by_model.values()
              if caller.key.allows_model(offer.model.id)]  # fmt: skip
    return Json({"next": None, "previous": None, "results": models})


@router.get(
    f"{PREFIX}/models/{{owner}}/{{name:path}}/versions/{{version_id}}",
    responses={200: answer("The version.", VERSION), **ERRORS},
)
async def get_version(owner: str, name: str, version_id: str, request: Request) -> Response:
    """Get the version of a model. Each has one."""
    caller = await admit(request, Scope.READ)
    model = _get_model(caller, owner, name)
    if version_id != version_of(model.id):
        raise NotFound(f"The model has one version, `{version_of(model.id)}`.", param="version_id")
    return Json(_describe_version(caller, model))


@router.get(
    f"{PREFIX}/models/{{owner}}/{{name:path}}/versions",
    responses={200: answer("The versions.", page(VERSION)), **ERRORS},
)
async def list_versions(owner: str, name: str, request: Request) -> Response:
    """List the one version of a model."""
    caller = await admit(request, Scope.READ)
    versions = [_describe_version(caller, _get_model(caller, owner, name))]
    return Json({"next": None, "previous": None, "results": versions})


@router.get(f"{PREFIX}/models/{{owner}}/{{name:path}}", responses={200: answer("The model.", MODEL), **ERRORS})
async def get_replicate_model(owner: str, name: str, request: Request) -> Response:
    """Get a model with the JSON Schema of its params."""
    caller = await admit(request, Scope.READ)
    return Json(describe_model(caller, _get_model(caller, owner, name)))


def find_model(caller: Caller, owner: str, name: str) -> str:
    """Return our id of a model. One that is not served here is returned as it is, to be refused by its name."""
    served = caller.gateway.offers.by_model
    for wanted in [name, *_without_version(name)] if owner == OWNER else [f"{owner}/{name}"]:
        if wanted in served:
            return wanted
        if SLASH in wanted:
            found = next((each for each in served if each.replace("/", SLASH).replace(":", SLASH) == wanted), None)
            if found is not None:
                return found
    return name if owner == OWNER else f"{owner}/{name}"


def _without_version(name: str) -> Iterator[str]:
    """Yield the name in `name:version`, if the version is that of the model."""
    rest, _, version = name.rpartition(":")
    if rest and version == version_of(rest):
        yield rest


def find_version(caller: Caller, version: str) -> str:
    """Return our id of the model that a prediction names by its version, or as `owner/name`."""
    if "/" in version:
        owner, _, name = version.partition("/")
        return find_model(caller, owner, name)
    found = next((each for each in caller.gateway.offers.by_model if version_of(each) == version), None)
    if found is None:
        allowed = "allowed are the `id` of a model's `latest_version` and `owner/name`"
        raise refuse([Detail("version", f"There is no version `{version[:80]}`; {allowed}.")])
    return found


def _get_model(caller: Caller, owner: str, name: str) -> GenerationModel:
    found = find_model(caller, owner, name)
    offer = caller.gateway.offers.get(found, caller.key.allows_model)
    if not caller.key.allows_model(found):
        raise ModelNotAllowed(f"This API key may not use `{found}`.", param="model")
    return offer.model


def describe_model(caller: Caller, model: GenerationModel) -> dict[str, Any]:
    """Return the record of a model."""
    name = model.id.replace("/", SLASH).replace(":", SLASH)
    return {
        "url": facade_url(caller.request, f"{PREFIX}/models/{OWNER}/{name}"),
        "owner": OWNER,
        "name": name,
        "description": model.title,
        "visibility": "private",
        "github_url": None,
        "paper_url": None,
        "license_url": None,
        "run_count": 0,
        "cover_image_url": None,
        "default_example": None,
        "latest_version": _describe_version(caller, model),
    }


def _describe_version(caller: Caller, model: GenerationModel) -> dict[str, Any]:
    return {
        "id": version_of(model.id),
        "created_at": timestamp(caller.gateway.started_at),
        "cog_version": "0.0.0",
        "openapi_schema": write_schema(model),
    }


def write_schema(model: GenerationModel) -> dict[str, Any]:
    """Return the OpenAPI document of a model, with the schemas `Input` and `Output`."""
    text = json.dumps(model.schema).replace('"#/$defs/', '"#/components/schemas/')
    schema = json.loads(text.replace('"#/definitions/', '"#/components/schemas/'))
    parts = {**schema.pop("$defs", {}), **schema.pop("definitions", {})}
    link = {"type": "string", "format": "uri"}
    output = {"type": "array", "items": link} if model.kind == Kind.IMAGE else link
    schemas = {**parts, "Input": {**schema, "title": "Input"}, "Output": {**output, "title": "Output"}}
    info = {"title": model.title, "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}
