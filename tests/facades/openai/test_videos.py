"""OpenAI Videos through OpenAI's own client for Python."""

from typing import Any

import openai
import pytest
from conftest import Server, Start
from openai_media import IMAGE, QUICK, VIDEO, connect, draw, jobs_of, script

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
NEVER = script(ending="never")


async def refusal(promise: Any) -> openai.APIStatusError:
    """Return the error of a call."""
    with pytest.raises(openai.APIStatusError) as caught:
        await promise
    return caught.value


@pytest.mark.parametrize("path", ["/v1", "/llm", "/llm/v1"])
async def test_a_film_from_its_order_to_its_deletion(server: Server, path: str) -> None:
    client = await connect(server, path)

    video = await client.videos.create(
        model=VIDEO, prompt="a boat", seconds="4", size="720x1280", input_reference=draw(), extra_body=QUICK
    )
    assert (video.status, video.seconds, video.size, video.prompt) == ("queued", "4", "720x1280", "a boat")
    done = await client.videos.poll(video.id)
    assert (done.id, done.status, done.progress, done.error) == (video.id, "completed", 100, None)
    assert done.completed_at is not None
    content = await client.videos.download_content(video.id)
    assert content.content[4:8] == b"ftyp"
    (job,) = await jobs_of(server)
    assert job["id"] == video.id
    assert job["input"]["frame_images"][0]["width"] == 64
    assert (await client.videos.delete(video.id)).deleted is True
    assert (await refusal(client.videos.retrieve(video.id))).status_code == 404
    assert [each async for each in client.videos.list()] == []


async def test_a_poll_says_when_to_ask_again(server: Server) -> None:
    client = await connect(server)
    video = await client.videos.create(model=VIDEO, prompt="a boat", extra_body=NEVER)

    raw = await client.videos.with_raw_response.retrieve(video.id)

    assert 500 <= int(raw.headers["openai-poll-after-ms"]) <= 5000


@pytest.mark.parametrize(
    ("ending", "code"), [("filtered", "moderation_blocked"), ("failed", "upstream_error"), ("wrong_size", "bad_output")]
)
async def test_a_film_that_fails(server: Server, ending: str, code: str) -> None:
    client = await connect(server)

    video = await client.videos.create_and_poll(model=VIDEO, prompt="a boat", extra_body=script(ending=ending))

    assert (video.status, video.error and video.error.code) == ("failed", code)
    error = await refusal(client.videos.download_content(video.id))
    assert (error.status_code, error.code) == (404, "asset_not_found")


async def test_a_film_that_is_being_made(server: Server) -> None:
    client = await connect(server)
    video = await client.videos.create(model=VIDEO, prompt="a boat", extra_body=NEVER)

    error = await refusal(client.videos.download_content(video.id))
    assert (error.status_code, error.code) == (409, "job_not_finished")
    assert (await client.videos.delete(video.id)).deleted is True
    assert (await refusal(client.videos.retrieve(video.id))).status_code == 404


async def test_a_canceled_film_has_failed(server: Server) -> None:
    client = await connect(server)
    video = await client.videos.create(model=VIDEO, prompt="a boat", extra_body=NEVER)

    await server.client.post(f"/api/v1/jobs/{video.id}/cancel")

    found = await client.videos.poll(video.id)
    assert (found.status, found.error and found.error.code) == ("failed", "job_canceled")


async def test_pages_of_films(server: Server) -> None:
    client = await connect(server)
    made = [(await client.videos.create(model=VIDEO, prompt=f"{number}", extra_body=NEVER)).id for number in range(5)]
    await client.images.generate(model=IMAGE, prompt="no film", extra_body=QUICK)
    other = await connect(server, account="other")

    assert [each.id async for each in client.videos.list(limit=2)] == made[::-1]
    assert [each.id async for each in client.videos.list(limit=2, order="asc")] == made
    page = await client.videos.list(limit=2)
    assert (page.has_more, page.last_id) == (True, made[3])
    assert [each.id async for each in client.videos.list(after=made[1])] == [made[0]]
    assert [each async for each in other.videos.list()] == []


async def test_what_is_not_yours_or_no_film_is_not_found(server: Server) -> None:
    client, other = await connect(server), await connect(server, account="other")
    video = await client.videos.create(model=VIDEO, prompt="a boat", extra_body=NEVER)
    await client.images.generate(model=IMAGE, prompt="no film", extra_body=QUICK)
    picture = (await jobs_of(server))[0]["id"]

    for call in (
        other.videos.retrieve(video.id),
        other.videos.delete(video.id),
        other.videos.download_content(video.id),
        other.videos.remix(video.id, prompt="mine"),
        client.videos.retrieve(picture),
        client.videos.retrieve("job_nothing"),
        client.videos.retrieve("%00"),
    ):
        assert (await refusal(call)).status_code == 404


async def test_ranges_and_variants(server: Server) -> None:
    client = await connect(server)
    video = await client.videos.create_and_poll(model=VIDEO, prompt="a boat", extra_body=QUICK)
    path = f"/v1/videos/{video.id}/content"
    whole = await server.client.get(path)

    part = await server.client.get(path, headers={"range": "bytes=4-7"})
    head = await server.client.head(path)

    assert (part.status_code, part.content) == (206, b"ftyp")
    assert (head.status_code, int(head.headers["content-length"])) == (200, len(whole.content))
    assert whole.headers["content-type"] == "video/mp4"
    assert (await server.client.get(path, params={"variant": "spritesheet"})).status_code == 404
    assert (await server.client.get(path, params={"variant": "poster"})).status_code == 400


async def test_films_are_changed_and_continued(server: Server) -> None:
    client = await connect(server)
    video = await client.videos.create_and_poll(model=VIDEO, prompt="a boat", extra_body=QUICK)
    film = (await client.videos.download_content(video.id)).content

    remixed = await client.videos.remix(video.id, prompt="at night")
    edited = await client.videos.edit(prompt="in snow", video=("boat.mp4", film))
    extended = await client.videos.extend(prompt="it sails on", seconds="4", video=film)
    body = {"prompt": "and on", "seconds": 4, "video": {"id": video.id}}
    by_id = (await server.client.post("/v1/videos/extensions", json=body)).json()

    assert (remixed.remixed_from_video_id, remixed.prompt, remixed.model) == (video.id, "at night", VIDEO)
    assert (edited.prompt, edited.remixed_from_video_id) == ("in snow", None)
    assert extended.seconds == "4"
    assert (by_id["remixed_from_video_id"], by_id["seconds"]) == (video.id, "4")


WRONG: list[tuple[dict[str, Any], int, str, str]] = [
    ({"size": "1024x1792"}, 400, "invalid_params", "size"),
    ({"size": "wide"}, 400, "invalid_params", "size"),
    ({"seconds": "long"}, 400, "invalid_params", "seconds"),
    ({"seconds": "9"}, 400, "invalid_params", "seconds"),
    ({"model": IMAGE}, 400, "unsupported_value", "model"),
    ({"model": "sora-2"}, 404, "model_not_found", "model"),
    ({"input_reference": {"image_url": "file:///etc/passwd"}}, 400, "url_not_allowed", "input_reference.url"),
    ({"input_reference": {"file_id": "file_nothing"}}, 404, "file_not_found", "input_reference.file_token"),
    ({"mood": "sad"}, 400, "unknown_param", "mood"),
]


async def test_what_is_wrong_with_an_order_is_named(server: Server, subtests: pytest.Subtests) -> None:
    for wrong, status, code, param in WRONG:
        with subtests.test(str(wrong)):
            body = {"model": VIDEO, "prompt": "a boat", **QUICK, **wrong}
            response = await server.client.post("/v1/videos", json=body)

            error = response.json()["error"]
            assert (response.status_code, error["code"], error["param"]) == (status, code, param), error


async def test_a_size_that_a_model_has_not_is_refused_with_those_that_it_has(server: Server) -> None:
    client = await connect(server)

    error = await refusal(client.videos.create(model=VIDEO, prompt="a boat", size="1024x1792"))

    assert "1280x720" in error.message
    assert "1080x1920" in error.message


async def test_keys_without_scope_or_money_are_refused(start: Start) -> None:
    priced = f'[[models]]\nid = "{VIDEO}"\nvendor = "sim"\nprice = {{per_job = "0.60"}}\n'
    server = await start(f'[vendors.sim]\ntype = "sim"\n{priced}')
    reader = await connect(server, scopes=frozenset({"read"}))
    poor = await connect(server, budgets={"total": "1.00"})
    await poor.videos.create(model=VIDEO, prompt="a boat", extra_body=NEVER)

    assert (await refusal(reader.videos.create(model=VIDEO, prompt="a boat"))).status_code == 403
    assert (await refusal(poor.videos.create(model=VIDEO, prompt="two boats"))).status_code == 402
    assert len([each async for each in reader.videos.list()]) == 1


async def test_a_retry_of_the_client_finds_the_job(server: Server) -> None:
    client = await connect(server)
    one: dict[str, Any] = {
        "model": VIDEO,
        "prompt": "a boat",
        "input_reference": ("a.png", draw()),
        "extra_body": NEVER,
    }
    first = await client.videos.create(**one)

    second = await client.videos.create(**one, extra_headers={"x-stainless-retry-count": "1"})
    third = await client.videos.create(**one)

    assert second.id == first.id != third.id


async def test_a_film_of_a_3d_model(server: Server) -> None:
    client = await connect(server)
    mesh = await server.generate("sim_image_to_model", script={})

    video = await client.videos.create_and_poll(
        model="sim_model_to_video", prompt="", extra_body={"mesh": mesh["id"], **QUICK}
    )

    assert video.status == "completed", video


# -- the list of models


async def test_all_models_are_listed_for_pictures_and_films(server: Server) -> None:
    listed = {model.id: model.to_dict() async for model in (await connect(server)).models.list()}
    narrow = [model.id async for model in (await connect(server, scopes=frozenset({"generate"}))).models.list()]
    chat = (await server.client.get("/llm/models")).json()["data"]

    assert listed["sketch_1"]["kind"] == "image"
    assert listed["still_film"]["kind"] == "video"
    assert "inflate_1" not in listed
    assert set(narrow) == {name for name, model in listed.items() if model["kind"] in ("image", "video")}
    assert [model["id"] for model in chat] == [name for name in listed if name not in narrow]
    assert (await (await connect(server)).models.retrieve("sketch_1")).id == "sketch_1"
