"""The 3D family at each vendor: every operation in the vendor's words, chains by its own ids, and refusals."""

import base64
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest
from conftest import Server, Start
from doubles.fal import FalDouble
from doubles.media import MediaDouble, listening
from doubles.meshy import MeshyDouble
from doubles.tripo import TripoDouble
from small_media import model, picture, solid
from vendors.double import drop, drop_after
from vendors.media.test_film_inputs import Made, digest, fill, warnings_of

RED, BLUE = picture(colour="red"), picture(colour="blue")
WEBP = picture("WEBP")
MESH = model()
FOX = {"prompt": "a red fox"}

MESHY = {
    "text_to_3d": Made(
        FOX | {"face_limit": 10_000, "negative_prompt": "a wolf", "seed": 3},
        "/openapi/v2/text-to-3d",
        {
            "mode": "preview",
            "prompt": "a red fox",
            "ai_model": "latest",
            "should_remesh": True,
            "topology": "triangle",
            "target_polycount": 9500,
            "target_formats": ["glb"],
        },
        warned=(
            "`negative_prompt` is not supported by Meshy",
            "`seed` is not supported",
            "`texture` is a second order",
        ),
    ),
    "image_to_3d": Made(
        {"image": RED, "quads": True, "pbr": False},
        "/openapi/v1/image-to-3d",
        {"topology": "quad", "should_texture": True, "enable_pbr": False, "target_formats": ["fbx"]},
        {"image_url": RED},
    ),
    "multiview_to_3d": Made(
        {"images": [(BLUE, "back"), (RED, "front")], "texture": False},
        "/openapi/v1/multi-image-to-3d",
        {"should_texture": False, "enable_pbr": False, "target_formats": ["glb"]},
        {"image_urls.0": RED, "image_urls.1": BLUE},
    ),
    "retexture": Made(
        {"mesh": MESH, "prompt": "bronze", "pbr": False},
        "/openapi/v1/retexture",
        {"text_style_prompt": "bronze", "enable_pbr": False, "enable_original_uv": True},
        {"model_url": MESH},
    ),
    "retexture by a picture": Made(
        {"mesh": MESH, "image": RED, "seed": 4},
        "/openapi/v1/retexture",
        {"enable_pbr": True},
        {"model_url": MESH, "image_style_url": RED},
        warned=("`seed` is not supported",),
    ),
    "remesh": Made(
        {"mesh": MESH, "face_limit": 48},
        "/openapi/v1/remesh",
        {"target_polycount": 100, "topology": "triangle"},
        {"model_url": MESH},
        warned=("`face_limit` 48 is not supported by Meshy: about 100",),
    ),
    "rig": Made(
        {"mesh": MESH, "height_meters": 1.8}, "/openapi/v1/rigging", {"height_meters": 1.8}, {"model_url": MESH}
    ),
    "convert": Made(
        {"mesh": MESH, "format": "stl"}, "/openapi/v1/convert", {"target_formats": ["stl"]}, {"model_url": MESH}
    ),
    "convert with fewer faces": Made(
        {"mesh": MESH, "format": "obj", "face_limit": 1000},
        "/openapi/v1/remesh",
        {"target_formats": ["obj"], "target_polycount": 950},
        {"model_url": MESH},
    ),
}
TRIPO = {
    "text_to_3d": Made(
        FOX | {"face_limit": 10_000, "negative_prompt": "a wolf", "seed": 3, "pbr": False},
        "/v3/generation/text-to-model",
        {"prompt": "a red fox", "negative_prompt": "a wolf", "face_limit": 10_000, "model_seed": 3, "pbr": False},
    ),
    "image_to_3d": Made(
        {"image": RED, "quads": True}, "/v3/generation/image-to-model", {"quad": True, "texture": True}, {"file": RED}
    ),
    "multiview_to_3d": Made(
        {"images": [(BLUE, "back"), (RED, "front")], "texture": False},
        "/v3/generation/multiview-to-model",
        {"texture": False, "pbr": False},
        {"file": RED},
    ),
    "retexture": Made(
        {"mesh": MESH, "prompt": "bronze", "seed": 4},
        "/v3/models/texture",
        {"texture_prompt": {"text": "bronze"}, "texture_seed": 4, "pbr": True},
        {"file": MESH},
    ),
    "remesh": Made(
        {"mesh": MESH, "face_limit": 5000}, "/v3/mesh/decimate", {"face_limit": 5000, "model": "v2.0"}, {"file": MESH}
    ),
    "remesh to many faces": Made(
        {"mesh": MESH, "face_limit": 50_000},
        "/v3/models/convert",
        {"face_limit": 50_000, "format": "GLTF"},
        {"file": MESH},
    ),
    "rig": Made(
        {"mesh": MESH, "height_meters": 1.8},
        "/v3/animations/rig",
        {"model": "v1.0-20240301", "rig_type": "biped", "spec": "tripo"},
        {"file": MESH},
        ("`height_meters` is not supported by Tripo",),
    ),
    "rig of an animal": Made(
        {"mesh": MESH, "rig_type": "quadruped"}, "/v3/animations/rig", {"model": "v2.5-20260210"}, {"file": MESH}
    ),
    "convert": Made({"mesh": MESH, "format": "stl"}, "/v3/models/convert", {"format": "STL"}, {"file": MESH}),
}
FAL = {
    "text_to_3d": Made(
        FOX | {"face_limit": 10_000, "seed": 3},
        "/tripo3d/h3.1/text-to-3d",
        {"prompt": "a red fox", "face_limit": 10_000, "model_seed": 3, "texture": True, "pbr": True},
    ),
    "image_to_3d": Made({"image": RED, "quads": True}, "/tripo3d/h3.1/image-to-3d", {"quad": True}, {"image_url": RED}),
    "multiview_to_3d": Made(
        {"images": [(BLUE, "back"), (RED, "front")], "texture": False},
        "/tripo3d/tripo/v2.5/multiview-to-3d",
        {"texture": "no"},
        {"front_image_url": RED, "back_image_url": BLUE},
    ),
    "retexture": Made(
        {"mesh": MESH, "prompt": "bronze"},
        "/fal-ai/meshy/v5/retexture",
        {"text_style_prompt": "bronze", "enable_pbr": True},
        {"model_url": MESH},
    ),
    "retexture by a picture": Made(
        {"mesh": MESH, "image": RED, "seed": 4},
        "/fal-ai/meshy/v5/retexture",
        {},
        {"model_url": MESH, "image_style_url": RED},
        ("`seed` is not supported by fal",),
    ),
    "remesh": Made(
        {"mesh": MESH, "quads": True, "face_limit": 1000},
        "/fal-ai/meshy/v5/remesh",
        {"target_polycount": 950, "topology": "quad", "target_formats": ["fbx"]},
        {"model_url": MESH},
    ),
    "rig": Made(
        {"mesh": MESH, "height_meters": 1.8}, "/fal-ai/meshy/rigging", {"height_meters": 1.8}, {"model_url": MESH}
    ),
    "animate": Made(
        {"mesh": MESH, "animation": "walk"},
        "/fal-ai/meshy/rigging",
        {"enable_animation": True, "animation_action_id": 30},
        {"model_url": MESH},
        ("fal makes a new skeleton",),
    ),
}
VENDORS: Mapping[type[MediaDouble], Mapping[str, Made]] = {MeshyDouble: MESHY, TripoDouble: TRIPO, FalDouble: FAL}
LOST_PATHS: Mapping[type[MediaDouble], str] = {
    MeshyDouble: "/openapi/v2/text-to-3d",
    TripoDouble: "/v3/generation/text-to-model",
    FalDouble: "/tripo3d/h3.1/text-to-3d",
}
"""Where each takes an order of `text_to_3d`."""
OWN_RIGS = (MeshyDouble, TripoDouble)
"""Vendors that animate only what they rigged themselves."""
EVERY = [
    pytest.param(kind, name.partition(" ")[0], made, id=f"{kind.vendor}-{name}")
    for kind, operations in VENDORS.items()
    for name, made in operations.items()
]


@pytest.fixture
async def double(kind: type[MediaDouble]) -> AsyncGenerator[MediaDouble]:
    async with listening(kind()) as double:
        yield double


def bodies(double: MediaDouble) -> list[Any]:
    return [order.body for order in double.orders.values()]


async def refused(server: Server, model: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The error of a request that is refused before a job is made."""
    body = {"model": model, "input": [{"params": await fill(server, dict(params))}]}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 400, response.text
    return response.json()["error"]


@pytest.mark.parametrize(("kind", "operation", "made"), EVERY)
async def test_an_operation(start: Start, double: MediaDouble, operation: str, made: Made):
    server = await start(double.settings())
    job = await server.generate(operation, **await fill(server, dict(made.params)))
    assert job["status"] == "succeeded", job["error"]
    (body,) = bodies(double)
    assert {name: body.get(name) for name in made.body} == made.body
    assert any((seen.method, seen.path) == ("POST", made.path) for seen in double.seen)
    if isinstance(double, TripoDouble):  # uploads have no slots: the order names their tokens
        assert {each for _, each in double.inputs} >= {digest(data) for data in made.inputs.values()}
    else:
        assert dict(double.inputs) == {slot: digest(data) for slot, data in made.inputs.items()}
    found = warnings_of(job)
    assert len(found) == len(made.warned), found
    for warning, begin in zip(sorted(found), sorted(made.warned), strict=True):
        assert warning.startswith(begin)


CHAINS = [
    pytest.param(MeshyDouble, "input_task_id", "rig_task_id", id="meshy"),
    pytest.param(TripoDouble, "input", "input", id="tripo"),
]


@pytest.mark.parametrize(("kind", "task", "rig"), CHAINS)
async def test_a_chain_goes_by_the_vendors_own_ids(start: Start, double: MediaDouble, task: str, rig: str):
    server = await start(double.settings())
    job = await server.generate("image_to_3d", image=(await fill(server, {"image": RED}))["image"])
    double.inputs.clear()
    for operation, params in (
        ("retexture", {"prompt": "bronze"}),
        ("remesh", {"face_limit": 5000}),
        ("rig", {}),
        ("animate", {"animation": "walk"}),
    ):
        job = await server.generate(operation, mesh={"job": job["id"]}, **params)
        assert job["status"] == "succeeded", (operation, job["error"])
    *_, made, textured, thin, rigged, moved = double.orders.values()
    assert [textured.body[task], thin.body[task], rigged.body[task]] == [made.id, textured.id, thin.id]
    assert moved.body[rig] == rigged.id
    assert double.inputs == [], "nothing was sent again"
    (primary,) = (output for output in job["outputs"] if output["role"] == "primary")
    assert primary["mesh"]["clips"], primary


@pytest.mark.parametrize("kind", OWN_RIGS)
async def test_a_model_of_another_vendor_cannot_be_animated(start: Start, double: MediaDouble):
    server = await start(double.settings())
    params = await fill(server, {"mesh": solid("rigged"), "animation": "walk"})
    job = await server.generate("animate", **params)
    assert (job["status"], job["error"]["code"], job["charged"]) == ("failed", "upstream_rejected", False)
    assert "rig it first" in job["error"]["message"].lower()
    assert double.orders == {}


WRONG = [
    ("image_to_3d", {"image": MESH}, "image.file_token"),
    ("retexture", {"mesh": RED, "prompt": "x"}, "mesh.file_token"),
    ("remesh", {"mesh": solid("glb"), "face_limit": 3}, "face_limit"),
    ("rig", {"mesh": [solid("glb")]}, "mesh"),
    ("multiview_to_3d", {"images": [(RED, "top"), (BLUE, "front")]}, "images.0.role"),
    ("multiview_to_3d", {"images": [(RED, "left"), (BLUE, "back")]}, "images"),
    ("convert", {"mesh": MESH, "format": "blend"}, "format"),
    ("animate", {"mesh": MESH}, "animation"),
]


@pytest.mark.parametrize(
    ("kind", "operation", "params", "param"),
    [(kind, *each) for kind in VENDORS for each in WRONG if (kind, each[0]) != (FalDouble, "convert")],
)
async def test_what_no_vendor_takes_is_refused_at_once(
    start: Start, double: MediaDouble, operation: str, params: Any, param: str
):
    server = await start(double.settings())
    error = await refused(server, operation, params)
    assert error["param"] == f"input.0.params.{param}", error
    assert error["message"]
    assert double.seen == []


@pytest.mark.parametrize("kind", VENDORS)
async def test_what_is_too_large_is_refused_at_once(start: Start, double: MediaDouble):
    server = await start(double.settings())
    heavy = base64.b64encode(RED + bytes(20 << 20)).decode()
    body = {"model": "image_to_3d", "input": [{"params": {"image": {"data": heavy}}}]}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code in (400, 413), response.text
    assert "at most 20971520 are allowed" in response.json()["error"]["message"]
    assert double.seen == []


# -- lost answers


@pytest.mark.parametrize(
    ("kind", "model", "params", "fault", "ending"),
    [
        pytest.param(MeshyDouble, "text_to_3d", FOX, drop, ("succeeded", 1), id="meshy never got it"),
        pytest.param(
            MeshyDouble, "text_to_3d", FOX, drop_after, ("upstream_outcome_unknown", 1), id="meshy may have it"
        ),
        pytest.param(MeshyDouble, "rig", {"mesh": MESH}, drop, ("upstream_outcome_unknown", 0), id="meshy lists none"),
        pytest.param(TripoDouble, "text_to_3d", FOX, drop_after, ("succeeded", 1), id="tripo by its input"),
        pytest.param(FalDouble, "text_to_3d", FOX, drop_after, ("upstream_outcome_unknown", 1), id="fal has no list"),
    ],
)
async def test_an_order_whose_answer_is_lost(
    start: Start, double: MediaDouble, model: str, params: Any, fault: Any, ending: tuple[str, int]
):
    more = {} if isinstance(double, FalDouble) else {"lookup_seconds": 0.5}
    server = await start(double.settings(**more))
    given = await fill(server, dict(params))
    path = {"rig": "/openapi/v1/rigging", "text_to_3d": ""}[model] or LOST_PATHS[type(double)]
    if fault is drop and model == "text_to_3d":  # an empty list proves less than one that reaches back
        await server.generate(model, **given)
    before = len(double.orders)
    double.fault(fault, "POST", path)
    job = await server.generate(model, **given)
    found = job["status"] if job["error"] is None else job["error"]["code"]
    assert (found, len(double.orders) - before) == ending, job["error"]


# -- Meshy


@pytest.fixture
async def meshy() -> AsyncGenerator[MeshyDouble]:
    async with listening(MeshyDouble()) as double:
        yield double


@pytest.mark.parametrize(
    ("operation", "params", "problem"),
    [
        ("text_to_3d", {"prompt": "x" * 601}, "at most 600 characters"),
        ("image_to_3d", {"image": WEBP}, "`image`: Meshy takes JPEG and PNG"),
        ("rig", {"mesh": MESH, "rig_type": "quadruped"}, "bipeds only, got `rig_type` quadruped"),
        ("rig", {"mesh": solid("obj")}, "rigs GLB models only, not model/obj"),
        ("convert", {"mesh": solid("usdz"), "format": "glb"}, "not model/vnd.usdz+zip"),
        ("animate", {"mesh": solid("rigged"), "animation": "swim"}, "`animation`: Meshy takes attack, dance, idle"),
    ],
)
async def test_meshy_is_not_asked_for_what_it_cannot_do(
    start: Start, meshy: MeshyDouble, operation: str, params: Any, problem: str
):
    server = await start(meshy.settings())
    job = await server.generate(operation, **await fill(server, dict(params)))
    assert (job["status"], job["error"]["code"], job["error"]["retryable"]) == ("failed", "upstream_rejected", False)
    assert problem in job["error"]["message"]
    assert meshy.seen == []


async def test_a_rigged_model_keeps_its_skeleton(start: Start, meshy: MeshyDouble):
    server = await start(meshy.settings())
    rigged = await server.generate("rig", **await fill(server, {"mesh": MESH}))
    for operation, params in (("remesh", {}), ("retexture", {"prompt": "x"}), ("convert", {"format": "stl"})):
        job = await server.generate(operation, mesh={"job": rigged["id"]}, **params)
        assert (job["status"], job["error"]["code"]) == ("failed", "upstream_rejected")
    job = await server.generate("convert", mesh={"job": rigged["id"]}, format="fbx")
    assert job["status"] == "succeeded", job["error"]
    assert "model_url" in bodies(meshy)[-1], "an id of a rigged model is not taken there: the file is sent"


async def test_a_model_that_meshy_forgot_is_sent_again(start: Start, meshy: MeshyDouble):
    server = await start(meshy.settings())
    made = await server.generate("image_to_3d", **await fill(server, {"image": RED}))
    rigged = await server.generate("rig", mesh={"job": made["id"]})
    for order in meshy.orders.values():
        order.canceled = True  # it keeps them for three days
    job = await server.generate("remesh", mesh={"job": made["id"]}, face_limit=1000)
    assert job["status"] == "succeeded", job["error"]
    assert "model_url" in bodies(meshy)[-1]
    job = await server.generate("animate", mesh={"job": rigged["id"]}, animation="walk")
    assert job["error"]["message"] == "Meshy no longer has the rigged model: rig it again."


async def test_meshys_numbers_of_animations_are_taken(start: Start, meshy: MeshyDouble):
    server = await start(meshy.settings())
    rigged = await server.generate("rig", **await fill(server, {"mesh": MESH}))
    for animation in ("92", "-2", "run"):
        job = await server.generate("animate", mesh={"job": rigged["id"]}, animation=animation)
        assert job["status"] == "succeeded", job["error"]
    assert [body["action_id"] for body in bodies(meshy)[1:]] == [92, -2, 14]


# -- fal


@pytest.mark.parametrize(
    ("operation", "params", "problem"),
    [
        ("rig", {"mesh": MESH, "rig_type": "avian"}, "`rig_type`: fal rigs bipeds only, got avian"),
        ("animate", {"mesh": MESH, "animation": "swim"}, "`animation`: fal takes attack"),
        ("remesh", {"mesh": solid("usdz")}, "`mesh`: fal takes GLB, OBJ, FBX, STL models for this"),
        ("retexture", {"mesh": MESH, "prompt": "x" * 601}, "`prompt`: fal takes at most 600 characters"),
    ],
)
async def test_fal_is_not_asked_for_what_it_cannot_do(start: Start, operation: str, params: Any, problem: str):
    async with listening(FalDouble()) as fal:
        server = await start(fal.settings())
        job = await server.generate(operation, **await fill(server, dict(params)))
        assert (job["status"], job["error"]["code"]) == ("failed", "upstream_rejected")
        assert problem in job["error"]["message"]
        assert fal.seen == []


async def test_a_route_leads_to_another_app_of_the_operation(start: Start):
    async with listening(FalDouble()) as fal:
        entry = '[[models]]\nid = "{}"\nvendor = "fal"\nmodel = "{}"\n'
        routes = entry.format("image_to_3d", "tripo3d/p2/image-to-3d") + entry.format("rig", "fal-ai/unirig")
        server = await start(fal.settings() + routes)
        job = await server.generate("image_to_3d", **await fill(server, {"image": RED}))
        assert job["status"] == "succeeded", job["error"]
        assert any(seen.path.startswith("/tripo3d/p2/image-to-3d") for seen in fal.seen)
        job = await server.generate("rig", **await fill(server, {"mesh": MESH}))
        assert "`rig` does not know the fields of `fal-ai/unirig`" in job["error"]["message"]
