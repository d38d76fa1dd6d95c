"""Pictures by the catalogue's params at vendors with queues: their words, several results, and what is held back."""

import base64
import io
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from doubles.comfyui import BLENDING, DRAWING, ComfyUIDouble, table
from doubles.fal import FalDouble
from doubles.media import MediaDouble, Plan, draw_picture, listening
from doubles.replicate import ReplicateDouble
from PIL import Image
from vendors.double import drop_after


def data_uri(width: int = 64, height: int = 48, **how: Any) -> dict[str, str]:
    return {"url": "data:image/png;base64," + base64.b64encode(draw_picture(width, height, "png", **how)).decode()}


async def open_outputs(server: Any, job: dict[str, Any]) -> list[Image.Image]:
    """The pictures of a job, opened by another reader than ours."""
    assert job["status"] == "succeeded", job["error"]
    found = [Image.open(io.BytesIO((await server.client.get(one["url"])).content)) for one in job["outputs"]]
    for picture in found:
        picture.load()
    return found


def losses(job: dict[str, Any]) -> list[str]:
    return [warning for warning in job["warnings"] if not warning.startswith("The price of")]


def body_of(double: MediaDouble) -> Any:
    (order,) = double.orders.values()
    return order.body


@pytest.fixture
async def fal() -> AsyncGenerator[MediaDouble]:
    async with listening(FalDouble()) as double:
        yield double


# -- fal


async def test_fal_makes_several_pictures_of_a_size(start, fal):
    server = await start(fal.settings())
    job = await server.generate("fal_flux_image", prompt="a fox", size="640x480", n=3)
    pictures = await open_outputs(server, job)
    assert [(one.size, one.format) for one in pictures] == [((640, 480), "PNG")] * 3
    assert (losses(job), job["seed"]) == ([], 77)
    size = {"width": 640, "height": 480}
    assert body_of(fal) == {"prompt": "a fox", "num_images": 3, "image_size": size, "output_format": "png"}


async def test_fal_says_what_its_model_cannot_do(start, fal):
    server = await start(fal.settings())
    job = await server.generate("fal_flux_image", prompt="a fox", n=9, quality="high", output_format="webp")
    assert len(await open_outputs(server, job)) == 4
    assert [warning.split(" ", 1)[0] for warning in losses(job)] == ["`n`", "`output_format`", "`quality`"]


async def test_fal_edits_pictures(start, fal):
    server = await start(fal.settings())
    images = [data_uri(), data_uri(32, 32)]
    job = await server.generate("edit_image", prompt="a hat", images=images, resolution="2K", aspect_ratio="16:9")
    assert job["vendor"] == "fal"
    body = body_of(fal)
    assert (body["resolution"], body["aspect_ratio"]) == ("2K", "16:9")
    sent = [Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).size for uri in body["image_urls"]]
    assert sent == [(64, 48), (32, 32)]
    assert len(await open_outputs(server, job)) == 1


async def test_references_go_to_an_apps_endpoint_of_edits(start, fal):
    server = await start(fal.settings())
    job = await server.generate("fal_nano_banana_image", prompt="a fox", references=[data_uri()])
    await open_outputs(server, job)
    assert len(body_of(fal)["image_urls"]) == 1
    assert any(seen.path.startswith("/fal-ai/nano-banana-2/edit") for seen in fal.seen)


@pytest.mark.parametrize(
    ("model", "files"),
    [
        ("fal_flux_image", {"references": [data_uri()]}),
        ("edit_image", {"images": [data_uri()], "mask": data_uri(is_clear=True)}),
    ],
)
async def test_fal_refuses_files_that_it_cannot_take(start, fal, model, files):
    server = await start(fal.settings())
    error = (await server.generate(model, prompt="a fox", **files))["error"]
    assert (error["code"], error["stage"], error["retryable"]) == ("upstream_rejected", "dispatching", False)
    assert fal.seen == []


async def test_a_route_to_an_app_that_is_not_known_is_refused(start, fal):
    entry = '[[models]]\nid = "text_to_image"\nvendor = "fal"\nmodel = "fal-ai/of-tomorrow"\n'
    server = await start(fal.settings() + entry)
    error = (await server.generate("text_to_image", prompt="a fox"))["error"]
    assert error["code"] == "upstream_rejected"
    assert "`fal-ai/of-tomorrow`" in error["message"]
    assert fal.seen == []


async def test_black_pictures_are_not_delivered(start, fal):
    server = await start(fal.settings())
    fal.plans.extend([Plan("all black"), Plan("one black")])
    job = await server.generate("fal_flux_image", prompt="a fox", n=2)
    assert (job["error"]["code"], job["error"]["stage"], job["charged"]) == ("content_filtered", "generating", False)
    job = await server.generate("fal_flux_image", prompt="a fox", n=3)
    assert len(await open_outputs(server, job)) == 2
    assert losses(job) == ["fal's safety checker held 1 of 3 pictures back."]


async def test_only_delivered_pictures_cost_something(start, fal):
    entry = '[[models]]\nid = "fal_flux_image"\nvendor = "fal"\nprice = {per_image = "0.02"}\n'
    server = await start(fal.settings() + entry)
    fal.plans.append(Plan("one black"))
    job = await server.generate("fal_flux_image", prompt="a fox", n=3)
    assert (job["cost"]["estimated"], job["cost"]["final"]) == ("0.06", "0.04")


# -- replicate


@pytest.fixture
async def replicate() -> AsyncGenerator[MediaDouble]:
    async with listening(ReplicateDouble()) as double:
        yield double


async def test_replicate_makes_several_pictures(start, replicate):
    server = await start(replicate.settings())
    job = await server.generate(
        "replicate_flux_image", prompt="a fox", aspect_ratio="1:1", n=3, seed=7, output_format="jpeg"
    )
    pictures = await open_outputs(server, job)
    assert [(one.size, one.format) for one in pictures] == [((512, 512), "JPEG")] * 3
    asked = {"prompt": "a fox", "aspect_ratio": "1:1", "num_outputs": 3, "seed": 7, "output_format": "jpg"}
    assert (body_of(replicate)["input"], losses(job)) == (asked, [])


async def test_replicate_edits_pictures(start, replicate):
    server = await start(replicate.settings())
    job = await server.generate(
        "edit_image", prompt="a hat", images=[data_uri(), data_uri(32, 32)], size="640x480", quality="high", n=2
    )
    (picture,) = await open_outputs(server, job)
    assert picture.size == (640, 480)
    body = body_of(replicate)["input"]
    assert (body["aspect_ratio"], body["width"], body["height"]) == ("custom", 640, 480)
    assert [slot for slot, _ in replicate.inputs] == ["input_images.0", "input_images.1"]
    assert [warning.split(" ", 1)[0] for warning in losses(job)] == ["`n`", "`quality`"]


async def test_a_lost_order_of_pictures_is_found_again(start, replicate):
    server = await start(replicate.settings(lookup_seconds=1))
    replicate.fault(drop_after, "POST", "/v1/models/")
    job = await server.generate("replicate_flux_image", prompt="a fox")
    assert (job["status"], len(replicate.orders)) == ("succeeded", 1), job["error"]


@pytest.mark.parametrize(
    ("model", "files", "problem"),
    [
        ("replicate_flux_image", {"references": [data_uri()]}, "`references`: Replicate takes no pictures"),
        ("replicate_flux2_edit", {"images": [data_uri()] * 9}, "`images`: Replicate takes at most 8 pictures"),
        ("edit_image", {"images": [data_uri()], "mask": data_uri(is_clear=True)}, "`mask`: Replicate takes no mask"),
    ],
)
async def test_replicate_refuses_files_that_it_cannot_take(start, replicate, model, files, problem):
    server = await start(replicate.settings())
    error = (await server.generate(model, prompt="a fox", **files))["error"]
    assert (error["code"], error["message"].startswith(problem)) == ("upstream_rejected", True), error["message"]
    assert replicate.seen == []


# -- ComfyUI


@pytest.fixture
async def comfyui() -> AsyncGenerator[MediaDouble]:
    async with listening(ComfyUIDouble()) as double:
        yield double


def serve(double: MediaDouble, **workflow: Any) -> str:
    """The vendor's table with one graph for a model of the catalogue."""
    whole = double.settings()
    return whole[: whole.index("[vendors.comfyui.workflows")] + table("[vendors.comfyui.workflows.own]", **workflow)


SIZED = {"prompt": "6.text", "width": "5.width", "height": "5.height", "n": "5.batch_size", "seed": "3.seed"}


async def test_a_graph_makes_pictures_of_a_size(start, comfyui):
    server = await start(serve(comfyui, model="text_to_image", workflow=DRAWING, bind=SIZED))
    job = await server.generate("text_to_image", prompt="a fox", aspect_ratio="3:2", seed=7, quality="high")
    (picture,) = await open_outputs(server, job)
    assert (picture.size, losses(job)) == ((1024, 688), ["`quality` is not bound in the workflow and was ignored."])
    graph = body_of(comfyui)["prompt"]
    assert graph["3"]["inputs"]["seed"] == 7
    assert graph["5"]["inputs"] == {"width": 1024, "height": 688, "batch_size": 1}


async def test_a_graph_keeps_its_own_size(start, comfyui):
    server = await start(serve(comfyui, model="text_to_image", workflow=DRAWING, bind=SIZED))
    (picture,) = await open_outputs(server, await server.generate("text_to_image", prompt="a fox"))
    assert picture.size == (512, 512)


async def test_a_graph_takes_a_picture_and_a_mask(start, comfyui):
    bind = {"prompt": "6.text", "image": "10.image", "mask": "11.image"}
    server = await start(serve(comfyui, model="edit_image", workflow=BLENDING, bind=bind))
    job = await server.generate("edit_image", prompt="a hat", images=[data_uri()], mask=data_uri(is_clear=True))
    await open_outputs(server, job)
    graph = body_of(comfyui)["prompt"]
    first, mask = (graph[node]["inputs"]["image"] for node in ("10", "11"))
    assert first != mask
    assert {first, mask} == set(comfyui.uploads)


async def test_a_graph_is_not_given_more_pictures_than_it_takes(start, comfyui):
    bind = {"prompt": "6.text", "image": "10.image"}
    server = await start(serve(comfyui, model="edit_image", workflow=BLENDING, bind=bind))
    job = await server.generate("edit_image", prompt="a hat", images=[data_uri(), data_uri(32, 32)])
    assert job["error"]["message"] == "The workflow of this model takes no `image_2`: the settings bind image, prompt."
    assert comfyui.orders == {}
