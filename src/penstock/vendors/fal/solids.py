"""The 3D family at fal: an app for each operation, with its own names for our params."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.catalog.model import Recipe
from penstock.catalog.model_family import asked_operation, find_skeleton_loss, offer, operation_of
from penstock.domain.files import MESH_TYPES
from penstock.vendor_api.films import Unfit
from penstock.vendor_api.generation import DataUri, Order, ServedModel
from penstock.vendor_api.meshy_terms import MAX_PROMPT, ask_faces, explain_actions, find_action, most_faces

TITLE: Final = "fal"
RELEASES: Final = ("h3.1", "p1", "p2")
APPS: Final[Mapping[str, tuple[str, ...]]] = {
    "text_to_3d": tuple(f"tripo3d/{release}/text-to-3d" for release in RELEASES),
    "image_to_3d": tuple(f"tripo3d/{release}/image-to-3d" for release in RELEASES),
    "multiview_to_3d": ("tripo3d/tripo/v2.5/multiview-to-3d",),
    "retexture": ("fal-ai/meshy/v5/retexture",),
    "remesh": ("fal-ai/meshy/v5/remesh",),
    "rig": ("fal-ai/meshy/rigging",),
    "animate": ("fal-ai/meshy/rigging",),
}
"""Apps to which a route of each operation may lead. fal has none that only converts.

Not certain, as only second-hand pages tell: the fields of `tripo3d/*`, of the remesher and of the rigging app.
"""
MODELS: Final = tuple(
    ServedModel(model, name=apps[0])
    for operation, apps in APPS.items()
    for model in (offer("", "", operation), offer("fal", TITLE, operation))
)
MESHES: Final = {
    "retexture": ("glb", "obj", "fbx", "stl"),
    "remesh": ("glb", "obj", "fbx", "stl"),
    "rig": ("glb",),
    "animate": ("glb",),
}
NO_QUADS: Final = "tripo3d/p1/"


@dataclass(frozen=True, slots=True)
class FalOrder:
    """An order in fal's terms; a file in its body is a `DataUri`."""

    model: str
    body: Mapping[str, Any]
    recipe: Recipe
    warnings: tuple[str, ...] = ()
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])


def describe(order: Order, operation: str) -> FalOrder:
    """Return the order in fal's terms. Raise `Unfit` if the app cannot make it."""
    apps = APPS.get(operation, ())
    if order.model not in apps:
        known = f"Name one of {', '.join(apps)}." if apps else "Use another vendor."
        raise Unfit("model", f"`{order.model_id}` does not know the fields of `{order.model}`. {known}")
    _check_mesh(order, operation)
    match operation:
        case "retexture":
            return _texture(order)
        case "remesh":
            return _remesh(order)
        case "rig" | "animate":
            return _rig(order, operation)
        case _:
            return _make(order, operation)


def _check_mesh(order: Order, operation: str) -> None:
    for given in order.given("mesh"):
        formats = MESHES[operation]
        if given.file.content_type not in {MESH_TYPES[name] for name in formats}:
            allowed = ", ".join(name.upper() for name in formats)
            raise Unfit("mesh", f"{TITLE} takes {allowed} models for this, not {given.file.content_type}.")
        origin = given.file.origin
        is_rigged = origin is not None and operation_of(origin.model) in ("rig", "animate")
        if is_rigged and (problem := find_skeleton_loss(TITLE, operation, order.params)):
            raise Unfit("mesh", problem)


def _make(order: Order, operation: str) -> FalOrder:
    """Return an order that makes a model, in Tripo's names."""
    params = order.params
    body = {name: params[name] for name in ("face_limit", "pbr") if name in params}
    if params["quads"]:
        if order.model.startswith(NO_QUADS):
            raise Unfit("quads", f"`{order.model}` makes triangles only.")
        body["quad"] = True
    if operation == "multiview_to_3d":
        body |= {"texture": "standard" if params["texture"] else "no"}
        body |= {"seed": params["seed"]} if "seed" in params else {}
        body |= {f"{given.role}_image_url": DataUri(given.file) for given in order.given("images")}
    else:
        body |= {"texture": params["texture"], **({"model_seed": params["seed"]} if "seed" in params else {})}
        body |= {name: params[name] for name in ("prompt", "negative_prompt") if name in params}
        for given in order.given("image"):
            body["image_url"] = DataUri(given.file)
    recipe = Recipe("3d", output="model_mesh" if params["quads"] else None, preview="rendered_image")
    return FalOrder(order.model, body, recipe)


def _texture(order: Order) -> FalOrder:
    params = order.params
    if len(params.get("prompt", "")) > MAX_PROMPT:
        raise Unfit("prompt", f"{TITLE} takes at most {MAX_PROMPT} characters here, got {len(params['prompt'])}.")
    style: dict[str, Any] = {"text_style_prompt": params.get("prompt")}
    for given in order.given("image"):
        style = {"image_style_url": DataUri(given.file)}
    body = {"model_url": _mesh(order), "enable_original_uv": True, "enable_pbr": params["pbr"], **style}
    return FalOrder(order.model, body, Recipe("3d", output="model_glb"), _ignored(params, "seed"))


def _remesh(order: Order) -> FalOrder:
    params, wanted = order.params, "fbx" if order.params["quads"] else "glb"
    faces, clamped = ask_faces(params, TITLE)
    topology = "quad" if params["quads"] else "triangle"
    body = {"model_url": _mesh(order), "topology": topology, "target_formats": [wanted], **faces}
    most = most_faces(params.get("face_limit"))
    kept = {} if most is None else {"expected": {"face_limit": most, "formats": [wanted]}}
    return FalOrder(order.model, body, Recipe("3d", output=f"model_urls.{wanted}"), clamped, kept)


def _rig(order: Order, operation: str) -> FalOrder:
    """Return an order for a skeleton, and for an animation with it: fal knows no rig of an earlier order."""
    params = order.params
    if params.get("rig_type", "biped") != "biped":
        raise Unfit("rig_type", f"{TITLE} rigs bipeds only, got {params['rig_type']}.")
    body = {"model_url": _mesh(order), **{name: params[name] for name in ("height_meters",) if name in params}}
    if operation == "rig":
        return FalOrder(order.model, body, Recipe("3d", output="rigged_character_glb"))
    action = find_action(params["animation"])
    if action is None:
        raise Unfit("animation", explain_actions(TITLE))
    body |= {"enable_animation": True, "animation_action_id": action}
    warning = "fal makes a new skeleton for an animation: that of the given model is not kept."
    return FalOrder(order.model, body, Recipe("3d", output="animation_glb"), (warning,))


def _mesh(order: Order) -> DataUri:
    return DataUri(order.given("mesh")[0].file)


def _ignored(params: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    return tuple(f"`{name}` is not supported by {TITLE} and was ignored." for name in names if name in params)


def operation_asked(order: Order) -> str | None:
    """Return the operation of the 3D family that an order is for; None for any other order."""
    return asked_operation(order.params) if order.recipe is None else None
