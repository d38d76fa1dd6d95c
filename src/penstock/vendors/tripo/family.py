"""The 3D family in Tripo's words: paths and bodies of its orders, and requests that it cannot fulfil."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.catalog.model_family import VIEWS, asked_operation, find_skeleton_loss, offer, operation_of
from penstock.domain.files import MESH_TYPES
from penstock.domain.prices import Price
from penstock.vendor_api.generation import Order, ServedModel
from penstock.vendor_api.replies import seed_of

PATHS: Final = {
    "text_to_3d": "/v3/generation/text-to-model",
    "image_to_3d": "/v3/generation/image-to-model",
    "multiview_to_3d": "/v3/generation/multiview-to-model",
    "retexture": "/v3/models/texture",
    "remesh": "/v3/mesh/decimate",
    "rig": "/v3/animations/rig",
    "animate": "/v3/animations/retarget",
    "convert": "/v3/models/convert",
}
RELEASES: Final = {
    **dict.fromkeys(("text_to_3d", "image_to_3d", "multiview_to_3d"), "v3.1-20260211"),
    "retexture": "v3.0-20250812",
    "remesh": "v2.0",
    "rig": "v1.0-20240301",
    "animate": "retarget",
    "convert": "convert",
}
"""The release that runs each operation, which a route may change. The last two have none."""
BIPEDS_ONLY, ALL_BODIES = "v1.0-20240301", "v2.5-20260210"
PRESETS: Final = frozenset(("idle", "walk", "run", "dive", "climb", "jump", "slash", "shoot", "hurt", "fall", "turn"))
"""Animations of any rig. All others are of bipeds."""
FORMATS: Final = {"glb": "GLTF", "obj": "OBJ", "stl": "STL", "usdz": "USDZ", "fbx": "FBX"}
TAKEN: Final = {MESH_TYPES[name] for name in ("glb", "fbx", "obj", "stl")}
FEWEST_FACES, MOST_FACES, MOST_QUADS = 500, 20_000, 10_000
"""Bounds of the remesher; above, the converter reduces the faces."""
MAX_NEGATIVE: Final = 255
_MADE: Final = {"texture": "0.10", "quads": "0.05"}
PRICES: Final = {
    "text_to_3d": {"per_job": "0.10", "per_job_if": _MADE},
    "image_to_3d": {"per_job": "0.20", "per_job_if": _MADE},
    "multiview_to_3d": {"per_job": "0.20", "per_job_if": _MADE},
    "retexture": {"per_job": "0.10"},
    "remesh": {"per_job": "0.30"},
    "rig": {"per_job": "0.25"},
    "animate": {"per_job": "0.10"},
    "convert": {"per_job": "0.05", "per_job_if": {"face_limit": "0.05"}},
}
MODELS: Final = [
    ServedModel(model, Price.model_validate(PRICES[operation]), RELEASES[operation])
    for operation in PRICES
    for model in (offer("tripo", "Tripo", operation), offer("", "", operation))
]

Sources = Mapping[str, str]
"""Task ids and file tokens by the param, and for views by the role."""


def find_problem(order: Order) -> str | None:
    """Return why Tripo cannot fulfil the order; None if it may."""
    params, operation = order.params, asked_operation(order.params)
    if len(params.get("negative_prompt", "")) > MAX_NEGATIVE:
        return f"Tripo takes a `negative_prompt` of at most {MAX_NEGATIVE} characters: shorten it."
    for given in order.given("mesh"):
        origin = given.file.origin
        made_by = None if origin is None else operation_of(origin.model)
        if operation == "animate" and not (order.owns(given.file) and made_by in ("rig", None)):
            return (
                "Tripo animates only the output of a rig job of its own, made with the present key. "
                "Rig it first with `tripo_rig`, then give that job as `mesh`."
            )
        if not order.owns(given.file) and given.file.content_type not in TAKEN:
            return f"Tripo takes GLB, FBX, OBJ and STL models, not {given.file.content_type}: convert it first."
        if made_by in ("rig", "animate") and (problem := find_skeleton_loss("Tripo", operation, params)):
            return problem
    faces = params.get("face_limit")
    if operation == "remesh" and faces is not None and faces < FEWEST_FACES:
        return f"Tripo remeshes to {FEWEST_FACES} faces or more: raise `face_limit`."
    return None


def describe(order: Order, sources: Sources) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Return path and body of the order, and the warnings."""
    operation = asked_operation(order.params) or ""
    body, warnings = dict[str, Any](), tuple[str, ...]()
    match operation:
        case "text_to_3d" | "image_to_3d" | "multiview_to_3d":
            body = _make(order, operation, sources)
        case "retexture":
            body = _texture(order, sources)
        case "remesh":
            return _remesh(order, sources)
        case "rig":
            kind = order.params["rig_type"]
            release = ALL_BODIES if kind != "biped" and order.model == BIPEDS_ONLY else order.model
            body = {"model": release, "rig_type": kind, "spec": "tripo", "out_format": "glb"}
            if "height_meters" in order.params:
                warnings = ("`height_meters` is not supported by Tripo and was ignored.",)
        case "animate":
            name = _preset(order.params["animation"])
            body = {"animation": name, "out_format": "glb", "export_with_geometry": True}
        case _:
            body = {"format": FORMATS[order.params["format"]], **_faces(order)}
    return PATHS[operation], ({"input": sources["mesh"]} if "mesh" in sources else {}) | body, warnings


def _faces(order: Order) -> dict[str, Any]:
    return {name: order.params[name] for name in ("face_limit",) if name in order.params}


def _make(order: Order, operation: str, sources: Sources) -> dict[str, Any]:
    """Return the body of an order that makes a model."""
    params = order.params
    body = {"model": order.model, **_faces(order), "texture": params["texture"], "pbr": params["pbr"]}
    if params["quads"]:
        body["quad"] = True
    if "seed" in params:
        body["model_seed"] = params["seed"]
    if params["texture"]:  # ours distinguishes the order from similar ones
        body["texture_seed"] = seed_of(order)
    if operation == "text_to_3d":
        return body | {name: params[name] for name in ("prompt", "negative_prompt") if name in params}
    if operation == "image_to_3d":
        return body | {"input": sources.get("image")}
    return body | {"inputs": [sources.get(view) for view in VIEWS]}


def _texture(order: Order, sources: Sources) -> dict[str, Any]:
    params = order.params
    surface = {"text": params["prompt"]} if "prompt" in params else {"image": sources.get("image")}
    seed = params.get("seed", seed_of(order))
    return {
        "model": order.model,
        "texture": True,
        "pbr": params["pbr"],
        "texture_prompt": surface,
        "texture_seed": seed,
    }


def _remesh(order: Order, sources: Sources) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Return the order of the remesher, or of the converter where that many faces are allowed."""
    quads, limit = order.params["quads"], order.params.get("face_limit")
    body = {"input": sources.get("mesh"), **_faces(order)} | ({"quad": True} if quads else {})
    if limit is None or limit <= (MOST_QUADS if quads else MOST_FACES):
        return PATHS["remesh"], {**body, "model": order.model}, ()
    return PATHS["convert"], {**body, "format": "FBX" if quads else "GLTF"}, ()


def _preset(animation: str) -> str:
    """Return Tripo's name of an animation; one with a colon is its own already."""
    if ":" in animation:
        return animation
    return f"preset:{animation}" if animation in PRESETS else f"preset:biped:{animation}"


def views(order: Order) -> Sequence[str]:
    """Return the names of the files in `sources`, in the order in which `given` lists them."""
    return [given.role or name for name in ("mesh", "image", "images") for given in order.given(name)]
