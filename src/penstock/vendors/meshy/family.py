"""The 3D family in Meshy's words: paths and bodies of its orders, and requests that it cannot fulfil."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.catalog.model import Expectation
from penstock.catalog.model_family import (
    OPERATIONS,
    VIEWS,
    asked_operation,
    find_skeleton_loss,
    offer,
    operation_of,
)
from penstock.domain.files import MESH_TYPES, StoredFile
from penstock.vendor_api.generation import DataUri, Order, ServedModel, SignedUrl
from penstock.vendor_api.meshy_terms import MAX_PROMPT, ask_faces, explain_actions, find_action, most_faces

LATEST: Final = "latest"
PATHS: Final = {
    "text_to_3d": "/openapi/v2/text-to-3d",
    "image_to_3d": "/openapi/v1/image-to-3d",
    "multiview_to_3d": "/openapi/v1/multi-image-to-3d",
    "retexture": "/openapi/v1/retexture",
    "remesh": "/openapi/v1/remesh",
    "rig": "/openapi/v1/rigging",
    "animate": "/openapi/v1/animations",
    "convert": "/openapi/v1/convert",
}
UNLISTED: Final = {PATHS["rig"], PATHS["animate"]}
"""Paths without a list of orders."""
RESULTS: Final = {PATHS["rig"]: "rigged_character_glb_url", PATHS["animate"]: "animation_glb_url"}
"""Fields of `result` by path. All other paths report `model_urls`."""
NAMELESS: Final = ("rig", "animate", "convert")
"""Operations whose results are sent as files: other operations do not take their ids."""
PICTURES: Final = {"image/jpeg", "image/png"}
MESHES: Final = {MESH_TYPES[name] for name in ("glb", "obj", "fbx", "stl")}
OCTETS: Final = "application/octet-stream"
MAX_INLINE: Final = 20 * 1024 * 1024
"""Upper bound of a model inside an order, in bytes; Meshy fetches a larger one from us."""
MODELS: Final = [
    ServedModel(model, name=LATEST)
    for operation in OPERATIONS
    for model in (offer("", "", operation), offer("meshy", "Meshy", operation))
    if model.id != "meshy_image_to_3d"  # which takes Meshy's own params
]


@dataclass(frozen=True, slots=True)
class FamilyOrder:
    """An order in Meshy's terms, with the facts about it that later calls need."""

    path: str
    body: Mapping[str, Any]
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warnings: tuple[str, ...] = ()


def find_problem(order: Order) -> str | None:
    """Return why Meshy cannot fulfil the order; None if it may."""
    params, operation = order.params, asked_operation(order.params)
    if len(params.get("prompt", "")) > MAX_PROMPT:
        return f"Meshy takes a `prompt` of at most {MAX_PROMPT} characters: shorten it."
    for name in ("image", "images"):
        if any(given.file.content_type not in PICTURES for given in order.given(name)):
            return f"`{name}`: Meshy takes JPEG and PNG pictures only."
    if operation == "rig" and params["rig_type"] != "biped":
        return f"Meshy rigs bipeds only, got `rig_type` {params['rig_type']}: use another vendor."
    if operation == "animate" and find_action(params["animation"]) is None:
        return f"`animation`: {explain_actions('Meshy')}"
    return next((problem for given in order.given("mesh") if (problem := _find_mesh_problem(order, given.file))), None)


def _find_mesh_problem(order: Order, file: StoredFile) -> str | None:
    operation, made_by = asked_operation(order.params), maker_of(file)
    if operation == "animate":
        if order.owns(file) and made_by == "rig":
            return None
        return (
            "Meshy animates only the output of a rig job of its own, made with the present key. "
            "Rig it first with `meshy_rig`, then give that job as `mesh`."
        )
    if file.content_type not in MESHES:
        return f"Meshy takes GLB, OBJ, FBX and STL models, not {file.content_type}: convert it first."
    if operation == "rig" and file.content_type != MESH_TYPES["glb"]:
        return f"Meshy rigs GLB models only, not {file.content_type}: convert it first."
    return find_skeleton_loss("Meshy", operation, order.params) if made_by in ("rig", "animate") else None


def maker_of(file: StoredFile) -> str | None:
    """Return the operation that made a file; a model of another family was made from a picture."""
    return None if file.origin is None else operation_of(file.origin.model) or "image_to_3d"


def find_named_path(order: Order) -> tuple[str, str] | None:
    """Return path and id of Meshy's own task of the model to work on, if an order may name it."""
    operation = asked_operation(order.params)
    for given in order.given("mesh"):
        origin, made_by = given.file.origin, maker_of(given.file)
        if origin is None or made_by is None or not order.owns(given.file):
            continue
        if operation == "animate" or made_by not in NAMELESS:
            return PATHS[made_by], origin.upstream_id
    return None


def describe(order: Order, task: str | None) -> FamilyOrder:
    """Return the order. `task` is Meshy's own task of the model to work on; without it, the file is sent."""
    operation = asked_operation(order.params) or ""
    path = PATHS[operation]
    source = {"input_task_id": task} if task else {"model_url": _refer(order)} if order.given("mesh") else {}
    params, wanted = order.params, "fbx" if order.params.get("quads") else "glb"
    match operation:
        case "retexture":
            body, losses = _texture(order), _losses(params, "seed")
        case "remesh":
            faces, losses = ask_faces(params, "Meshy")
            body = {"topology": "quad" if params["quads"] else "triangle", **faces}
        case "rig":
            height = {name: params[name] for name in ("height_meters",) if name in params}
            return FamilyOrder(path, {**source, **height}, {"path": path})
        case "animate":
            return FamilyOrder(path, {"rig_task_id": task, "action_id": find_action(params["animation"])}, _at(path))
        case "convert":
            wanted, (body, losses) = params["format"], ask_faces(params, "Meshy")
            path = PATHS["remesh"] if body else path  # the converter changes no faces
        case _:
            body, losses = _make(order, operation)
    kept = {**_at(path), "format": wanted, "faces": params.get("face_limit")}
    return FamilyOrder(path, {**source, **body, "target_formats": [wanted]}, kept, losses)


def _at(path: str) -> dict[str, str]:
    return {"path": path}


def _refer(order: Order) -> DataUri | SignedUrl:
    """Return the model to work on, inline or by a link of ours."""
    file = order.given("mesh")[0].file
    return SignedUrl(file) if file.bytes > MAX_INLINE else DataUri(replace(file, content_type=OCTETS))


def _make(order: Order, operation: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body of an order that makes a model, and the warnings."""
    params = order.params
    faces, clamped = ask_faces(params, "Meshy")
    if faces or params["quads"]:
        faces |= {"should_remesh": True, "topology": "quad" if params["quads"] else "triangle"}
    body: dict[str, Any] = {"ai_model": order.model, **faces}
    losses = (*_losses(params, "negative_prompt", "seed"), *clamped)
    if operation == "text_to_3d":
        if params["texture"]:
            advice = "give this job as `mesh` to `meshy_retexture`"
            losses = (*losses, f"`texture` is a second order at Meshy and was left out: {advice}.")
        return {"mode": "preview", "prompt": params["prompt"], **body}, losses
    body |= {"should_texture": params["texture"], "enable_pbr": params["pbr"]}
    if operation == "image_to_3d":
        return {"image_url": DataUri(order.given("image")[0].file), **body}, losses
    views = sorted(order.given("images"), key=lambda given: VIEWS.index(given.role or VIEWS[0]))
    return {"image_urls": [DataUri(given.file) for given in views], **body}, losses


def _texture(order: Order) -> dict[str, Any]:
    style: dict[str, Any] = {"text_style_prompt": order.params.get("prompt")}
    for given in order.given("image"):
        style = {"image_style_url": DataUri(given.file)}
    return {"ai_model": order.model, "enable_original_uv": True, "enable_pbr": order.params["pbr"], **style}


def _losses(params: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    return tuple(f"`{name}` is not supported by Meshy and was ignored." for name in names if name in params)


def limit_faces(limit: int | None) -> tuple[dict[str, Any], list[str]]:
    """Return the fields by which a new model has at most so many faces, and the warnings."""
    fields, warnings = ask_faces({"face_limit": limit}, "Meshy")
    return ({"should_remesh": True, "topology": "triangle", **fields} if fields else {}), [*warnings]


def expect(operation: Mapping[str, Any]) -> Expectation | None:
    """Return the expectation of a result whose face limit could not be requested."""
    most = most_faces(operation.get("faces"))
    return None if most is None else Expectation(face_limit=most, formats=(operation.get("format", "glb"),))
