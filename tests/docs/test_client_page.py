"""The page of the Python client: its programs run, one after the other, and it names all that there is."""

import inspect
import re
import sys
from pathlib import Path

import pytest
from conftest import SIMULATOR
from openai_double import KEY, OpenAIDouble
from openai_replies import GREETING
from PIL import Image
from test_examples import ROOT, blocks, run

import penstock.client
from penstock.client import Batch, Client, Job, Output, Pipeline
from penstock.client.pipelines.sync_pipeline import Pipelines, Templates
from penstock.client.sync_client import Webhooks

PAGE = (ROOT / "docs" / "client.md").read_text("utf-8")


async def test_the_programs_of_the_page(start, tmp_path: Path):
    Image.radial_gradient("L").save(tmp_path / "cat.png")
    async with OpenAIDouble() as double:
        vendor = f'[vendors.v]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{double.url}"\n'
        chat = '[[models]]\nid = "fast-chat"\nkind = "chat"\nvendor = "v"\nmodel = "plain"\n'
        simulated = ("sim_text_to_video", "sim_text_to_image", "sim_image_to_model", "sim_model_to_video")
        media = ("vendora_image_to_model", "vendorb_video_31", *simulated)
        models = "".join(f'[[models]]\nid = "{model}"\nvendor = "sim"\n' for model in media)
        server = await start(SIMULATOR + "script = {latency = 0.05}\n" + vendor + chat + models)
        program = "\n".join(blocks("docs/client.md", "python"))
        out = await run(server, tmp_path, sys.executable, "-c", program)
    assert "failed content_filtered" in out
    assert "invalid_params [('input.0.params.prompt'" in out
    assert out.count(GREETING) == 2
    assert (tmp_path / "cat.glb").read_bytes()[:4] == b"glTF"
    assert len(saved(tmp_path / "films")) == 2
    assert saved(tmp_path / "fox") == ["film.mp4"]
    assert len([name for name in saved(tmp_path) if name.startswith("job_")]) == 3


def saved(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize(
    "kind", [Client, Job, Output, Batch, Pipeline, Pipelines, Templates, Webhooks], ids=lambda kind: kind.__name__
)
def test_every_method_and_option_is_named(kind):
    inner = ("driver", "calls")
    members = [name for name in vars(kind) if not name.startswith("_") and name not in (*inner, "client")]
    for name in members:
        assert re.search(rf"\b{name}\b", PAGE), name
    methods = (Client, Client.generate, Client.pipeline)
    for option in (name for method in methods for name in inspect.signature(method).parameters):
        assert option in ("self", "more", "options", "model", "params") or f"`{option}`" in PAGE, option


def test_everything_it_exports_is_named_or_described():
    records = {
        "Budget",
        "Delivery",
        "Event",
        "FileRecord",
        "JobRecord",
        "Model",
        "OutputRecord",
        "PipelineRecord",
        "Quote",
        "Usage",
        "Verification",
        "Webhook",
    }
    for name in set(penstock.client.__all__) - records:
        assert f"`{name}`" in PAGE, name
    for name in penstock.client.__all__:
        assert getattr(penstock.client, name).__doc__
