"""Files of any kind and outputs of earlier jobs as inputs of the Python client and of the command."""

import io
from typing import Any

import pytest
import small_media
from flaky_front import Answer, Lose
from remote_shell import Shell

from penstock.client import AsyncClient, AsyncJob, BadInput, Client, Job, JobRecord
from penstock.client.file_inputs import file_params

IMAGE = "sim_text_to_image"
VIDEO = "sim_text_to_video"
MODEL = "sim_image_to_model"
QUICK = {"latency": 0.05}


def run(client: Client, model: str, **params: Any) -> Job:
    return client.generate(model, script=QUICK, **params).wait()


async def run_async(client: AsyncClient, model: str, **params: Any) -> AsyncJob:
    return await (await client.generate(model, script=QUICK, **params)).wait()


def digests(job: JobRecord, name: str) -> list[str]:
    return [file["sha256"] for file in job.input[name]]


def test_lists_mix_paths_records_and_outputs(client, tmp_path):
    (tmp_path / "red.png").write_bytes(small_media.picture())
    upload = client.upload(small_media.picture(colour="blue"))
    gems = run(client, IMAGE, prompt="gems", n=2, size="128x96")
    job = run(client, VIDEO, input_references=[str(tmp_path / "red.png"), upload, gems.output, gems.outputs[1]])
    assert digests(job, "input_references")[1:] == [upload.sha256, gems.outputs[0].sha256, gems.outputs[1].sha256]
    assert job.input["input_references"][0]["name"] == "red.png"
    assert job.parents == (gems.id,)


def test_files_of_other_kinds_are_uploaded_under_their_own_ending(client, tmp_path):
    (tmp_path / "clip.mp4").write_bytes(small_media.film())
    model = run(client, MODEL)
    job = run(
        client,
        VIDEO,
        prompt="video",  # a string in other params stays text
        video=str(tmp_path / "clip.mp4"),
        audio=io.BytesIO(small_media.sound()),
        mesh=model,
        frame_images=[{"file": small_media.picture(), "role": "last_frame"}],
    )
    assert (job.input["prompt"], job.input["video"]["name"]) == ("video", "clip.mp4")
    assert (job.input["audio"]["duration_seconds"], job.input["mesh"]["sha256"]) == (0.25, model.output.sha256)
    assert job.input["frame_images"][0]["role"] == "last_frame"
    with pytest.raises(BadInput, match=r"`video`.*cannot be read"):
        run(client, VIDEO, video=str(tmp_path / "missing.mp4"))


def test_a_job_with_files_is_run_again_with_the_files_that_it_had(client):
    gem = run(client, IMAGE, prompt="gem", size="128x96")
    frames = [gem.output, {"file": small_media.picture(), "role": "last_frame"}]
    job = run(client, VIDEO, frame_images=frames, audio=small_media.sound())
    again = job.rerun(prompt="again").wait()
    assert digests(again, "frame_images") == digests(job, "frame_images")
    assert [frame["role"] for frame in again.input["frame_images"]] == ["first_frame", "last_frame"]
    assert (again.input["audio"]["sha256"], again.parents) == (job.input["audio"]["sha256"], (gem.id,))


def test_a_price_needs_no_upload(client):
    quote = client.price(VIDEO, audio=small_media.sound(), input_references=[small_media.picture()])
    assert quote.valid


async def test_the_asynchronous_client_takes_outputs(server):
    async with AsyncClient(server.url, await server.new_key()) as client:
        gem = await run_async(client, IMAGE, prompt="gem", size="128x96")
        job = await run_async(client, VIDEO, input_references=gem.output)
        assert digests(job, "input_references") == [gem.output.sha256]


def test_the_schema_names_the_params_that_take_files():
    schema = {
        "properties": {"image": {"type": "string"}, "images": {"anyOf": [{"items": {"$ref": "#/$defs/Picture"}}]}},
        "$defs": {"Picture": {"properties": {"file_token": {}, "url": {}}}},
    }
    assert file_params(schema) == {"images"}


# -- large files


def test_a_large_file_goes_in_pieces_and_after_a_cut_only_what_is_missing(front, fronted):
    data = small_media.sound(2100)  # 33.6 MB
    front.upset("POST /api/v1/files/tus", Lose())
    front.upset("PATCH /api/v1/files/tus", Lose(), Answer(503), Lose())
    file = fronted.upload(data)
    assert (file.size, file.kind, file.name) == (len(data), "audio", "file.bin")
    offsets = [int(seen.headers["upload-offset"]) for seen in front.of("PATCH ")]
    assert sorted(set(offsets)) == list(range(0, len(data), 8 << 20))
    assert len(offsets) == len(set(offsets)) + 1, "only the piece that was refused was sent twice"


def test_a_large_file_goes_whole_to_a_server_that_takes_no_pieces(front, fronted):
    front.upset("POST /api/v1/files/tus", Answer(405))
    assert fronted.upload(small_media.sound(2100)).kind == "audio"
    assert [seen.path for seen in front.of("POST ")] == ["/api/v1/files/tus", "/api/v1/files"]


# -- the command


def test_the_command_takes_files_of_any_param(stage, key, client, tmp_path):
    shell = Shell(stage.url, key)
    for name, colour in (("a", "red"), ("b", "blue")):
        (tmp_path / f"{name}.png").write_bytes(small_media.picture(colour=colour))
    gems = run(client, IMAGE, prompt="gems", n=2, size="128x96")
    files = f"-i input_references={tmp_path}/a.png -i input_references=job:{gems.id}:1 -i mesh=job:none"
    refused = shell(f"generate {VIDEO} {files}", code=3)
    assert "none" not in refused.stdout
    files = f"-i frame_images:last_frame={tmp_path}/a.png"
    files += f" -i input_references={tmp_path}/b.png -i input_references=job:{gems.id}:1"
    job = shell.json(f"generate {VIDEO} script.latency=0.05 {files} -o {tmp_path}")
    assert (job["status"], job["parents"]) == ("succeeded", [gems.id])
    assert job["input"]["frame_images"][0]["role"] == "last_frame"
    assert job["input"]["input_references"][1]["sha256"] == gems.outputs[1].sha256
    assert "write NAME=FILE" in shell(f"generate {VIDEO} -i cat.png", code=2).stderr
