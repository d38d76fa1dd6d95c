"""A program that uses fal's client for Python, unchanged: only the environment leads it here."""

import asyncio
import json
import os
import sys
import traceback
import urllib.request
from typing import Any

import fal_client

FILM, PICTURE, SOLID = "penstock/sim_text_to_video", "penstock/sim_text_to_image", "penstock/sim_image_to_model"
QUICK = {"latency": 0.05}
NEVER = {"ending": "never"}


def refusal(work: Any) -> Any:
    try:
        work()
    except fal_client.FalClientHTTPError as error:
        return error
    raise AssertionError("it was not refused")


def a_run() -> None:
    result = fal_client.run(FILM, {"prompt": "a boat", "script": QUICK})
    assert read(result["video"]["url"])[4:8] == b"ftyp"


def a_subscription() -> None:
    seen: list[Any] = []
    result = fal_client.subscribe(
        PICTURE, {"prompt": "a boat", "script": {"latency": 0.6}}, with_logs=True, on_queue_update=seen.append
    )
    assert read(result["images"][0]["url"])
    assert isinstance(seen[-1], fal_client.Completed)
    assert seen[-1].logs[-1]["message"] == "100% done"
    assert seen[-1].metrics["inference_time"] > 0


def a_handle() -> None:
    handle = fal_client.submit(FILM, {"prompt": "a fox", "script": QUICK}, path="image-to-video", priority="low")
    result = handle.get()
    assert result["video"]["content_type"] == "video/mp4"
    again = fal_client.SyncClient().get_handle(FILM, handle.request_id)
    assert again.get()["video"]["file_name"] == result["video"]["file_name"]
    assert fal_client.result(FILM, handle.request_id)["video"]
    assert isinstance(fal_client.status(FILM, handle.request_id, with_logs=True), fal_client.Completed)


def a_cancel() -> None:
    handle = fal_client.submit(FILM, {"prompt": "canceled", "script": NEVER})
    handle.cancel()
    while not isinstance(status := handle.status(), fal_client.Completed):
        pass
    assert status.error_type == "canceled"
    assert refusal(handle.get).status_code == 400


def a_failure() -> None:
    for ending, kind in (("failed", "upstream_error"), ("filtered", "content_policy_violation")):
        handle = fal_client.submit(FILM, {"script": {**QUICK, "ending": ending}})
        error = refusal(handle.get)
        assert (error.status_code, error.error_type) == (422, kind), error
        assert handle.status().error


def a_picture_as_an_input() -> None:
    drawn = fal_client.run(PICTURE, {"prompt": "a boat", "script": QUICK})["images"][0]["url"]
    assert fal_client.run(SOLID, {"image_url": drawn, "script": QUICK})["model_mesh"]["url"]
    inline = fal_client.encode(read(drawn), "image/png")
    assert fal_client.run(SOLID, {"image_url": inline, "script": QUICK})["model_mesh"]["url"]


def a_retry_of_the_client_is_one_job() -> None:
    """The first answer is lost on the way: the client sends the order again."""
    handle = fal_client.submit(FILM, {"prompt": "cut the answer", "script": QUICK})
    assert handle.get()["video"]["url"]


def a_run_that_is_killed() -> None:
    """The gateway is killed while it holds the connection: the client runs it again."""
    result = fal_client.run(FILM, {"prompt": "killed in a run", "script": {"latency": 3}})
    assert read(result["video"]["url"])


def a_subscription_that_is_killed() -> None:
    """The gateway is killed between two polls."""
    result = fal_client.subscribe(FILM, {"prompt": "killed in a queue", "script": {"latency": 3}})
    assert read(result["video"]["url"])


def what_is_refused() -> None:
    assert refusal(lambda: fal_client.submit(FILM, {"duration": 99})).status_code == 422
    assert refusal(lambda: fal_client.submit("penstock/nothing", {})).status_code == 404
    for name, status in (("POOR", 402), ("READ", 403), ("UNKNOWN", 401)):
        client = fal_client.SyncClient(key=os.environ[f"PENSTOCK_{name}_API_KEY"])
        error = refusal(lambda client=client: client.submit(FILM, {"script": QUICK}))
        assert error.status_code == status, error
        assert len(str(error)) > 10


def the_asynchronous_client() -> None:
    async def run() -> Any:
        client = fal_client.AsyncClient()
        handle = await client.submit(FILM, {"prompt": "async", "script": QUICK}, start_timeout=30)
        seen = [event async for event in handle.iter_events(with_logs=True)]
        assert isinstance(seen[-1], fal_client.Completed)
        return await handle.get()

    assert asyncio.run(run())["video"]["url"]


def read(url: str) -> bytes:
    with urllib.request.urlopen(url) as response:  # noqa: S310  of the gateway
        return response.read()


CASES = (
    a_run,
    a_subscription,
    a_handle,
    a_cancel,
    a_failure,
    a_picture_as_an_input,
    a_retry_of_the_client_is_one_job,
    what_is_refused,
    the_asynchronous_client,
)

if __name__ == "__main__":
    for case in [globals()[name] for name in sys.argv[1:]] or CASES:
        problem = None
        try:
            case()
        except Exception:  # noqa: BLE001  told by the line below
            problem = traceback.format_exc()
        print(json.dumps({"case": case.__name__, "problem": problem}), flush=True)  # noqa: T201  for the test
