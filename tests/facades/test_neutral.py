"""Neutral inputs, and errors in the caller's terms."""

import pytest

from penstock.catalog import known_models
from penstock.catalog.model import GenerationModel
from penstock.catalog.schema_params import ANYTHING, SchemaParams
from penstock.errors import Detail, InvalidRequest
from penstock.vendors import load_vendor
from penstock.web.facades.neutral import in_callers_terms, to_params

RUNWAY = load_vendor("runway").models
IN_PIXELS = next(served.model for served in RUNWAY if served.model.id == "runway_veo31_text_to_video")
PICTURE = "https://example.com/cat.png"


@pytest.mark.parametrize(
    ("model", "given", "params"),
    [
        ("vendorb_video_31", {"prompt": "a boat", "duration": 8}, {"prompt": "a boat", "durationSeconds": 8}),
        ("vendorb_video_31", {"prompt": "a boat", "aspect_ratio": "9:16"}, {"prompt": "a boat", "aspectRatio": "9:16"}),
        ("vendora_image_to_model", {"image": PICTURE}, {"file": {"url": PICTURE}}),
        ("image_to_3d", {"image_url": PICTURE}, {"image": {"url": PICTURE}}),
        ("edit_image", {"prompt": "blue", "image": "file_1"}, {"prompt": "blue", "images": [{"file_token": "file_1"}]}),
        ("remesh", {"mesh": "job_1"}, {"mesh": {"job": "job_1"}}),
        ("remesh", {"mesh": {"job": "job_1", "output": 0}}, {"mesh": {"job": "job_1", "output": 0}}),
        ("edit_image", {"prompt": "a", "image": None, "unknown": 1}, {"prompt": "a", "unknown": 1}),
    ],
)
def test_neutral_names_become_the_params_of_the_model(model: str, given: dict, params: dict) -> None:
    assert to_params(known_models()[model], given).params == params


def declared(schema: dict) -> GenerationModel:
    """Return a model with params of its own."""
    return GenerationModel(id="own", kind="video", title="Own", params=SchemaParams(schema), example={})


PIXELS = {"promptText": {}, "ratio": {"enum": ["1280:720", "720:1280"]}, "duration": {"type": "integer"}}


@pytest.mark.parametrize(
    ("fields", "given", "params"),
    [
        (PIXELS, {"prompt": "a", "size": "720x1280"}, {"promptText": "a", "ratio": "720:1280"}),
        (PIXELS, {"prompt": "a", "aspect_ratio": "9:16"}, {"promptText": "a", "ratio": "720:1280"}),
        (PIXELS, {"seconds": "4", "aspect_ratio": "16:9"}, {"duration": 4, "ratio": "1280:720"}),
        ({"image_size": {}}, {"size": "1024x768"}, {"image_size": {"width": 1024, "height": 768}}),
        ({"width": {}, "height": {}}, {"size": "1024x768"}, {"width": 1024, "height": 768}),
    ],
)
def test_a_vendors_own_names_are_found(fields: dict, given: dict, params: dict) -> None:
    assert to_params(declared({"properties": fields}), given).params == params


def test_a_model_declared_without_params_gets_what_is_given() -> None:
    given = {"prompt": "a", "size": "1024x768", "steps": 4}

    assert to_params(declared(ANYTHING), given).params == given


def test_a_size_that_is_none_of_the_pixels_is_refused_with_them() -> None:
    with pytest.raises(InvalidRequest, match="It has 1280x720, 720x1280"):
        to_params(declared({"properties": PIXELS}), {"size": "1920x1080"})


@pytest.mark.parametrize(
    ("model", "given", "params"),
    [
        ("vendorb_video_31", {"length": "8s", "size": "auto"}, {"durationSeconds": 8}),
        ("vendorb_video_31", {"duration": "6", "resolution": "720P"}, {"durationSeconds": 6, "resolution": "720p"}),
        ("vendorb_video_31", {"duration": "soon"}, {"durationSeconds": "soon"}),
        ("vendorb_video_31", {"image_size": "portrait_16_9"}, {"aspectRatio": "9:16"}),
        ("text_to_image", {"image_size": "portrait_16_9"}, {"aspect_ratio": "9:16", "resolution": "1K"}),
        ("text_to_image", {"image_size": "square_hd"}, {"aspect_ratio": "1:1", "resolution": "1K"}),
        ("text_to_image", {"image_size": {"width": 1280, "height": 720}}, {"size": "1280x720"}),
        ("text_to_image", {"image_size": "auto", "num_images": 2}, {"n": 2}),
        ("text_to_image", {"output_format": "jpg", "resolution": "2k"}, {"output_format": "jpeg", "resolution": "2K"}),
        ("text_to_image", {"aspect_ratio": "match_input_image"}, {}),
        ("text_to_image", {"reference_images": [PICTURE]}, {"references": [{"url": PICTURE}]}),
        ("vendora_image_to_model", {"seed": 7, "start_image": PICTURE}, {"model_seed": 7, "file": {"url": PICTURE}}),
        ("vendora_image_to_model", {"tail_image_url": PICTURE}, {"tail_image_url": PICTURE}),
        ("whisper_speech_to_text", {"audio_url": PICTURE}, {"audio": {"url": PICTURE}}),
    ],
)
def test_what_other_services_write(model: str, given: dict, params: dict) -> None:
    assert to_params(known_models()[model], given).params == params


@pytest.mark.parametrize(
    "given",
    [
        {"image_url": "a", "tail_image_url": "b"},
        {"tail_image_url": "b", "image_url": "a"},
        {"end_image": "b", "first_frame_image": "a"},
        {"start_image": "a", "last_frame": "b"},
        {"frame_images": ["a", "b"]},
    ],
)
def test_frames_have_their_roles_in_any_order(given: dict) -> None:
    frames = to_params(known_models()["sim_text_to_video"], given).params["frame_images"]

    assert {frame["url"]: frame["role"] for frame in frames} == {"a": "first_frame", "b": "last_frame"}


@pytest.mark.parametrize(
    ("given", "params"),
    [
        ({"prompt": "a", "aspect_ratio": "9:16"}, {"promptText": "a", "ratio": "720:1280"}),
        ({"aspect_ratio": "9:16", "resolution": "1080p"}, {"ratio": "1080:1920"}),
        ({"resolution": "1080p"}, {"ratio": "1920:1080"}),
        ({"size": "1920x1080"}, {"ratio": "1920:1080"}),
        ({"aspect_ratio": "auto", "duration": "8s"}, {"duration": 8}),
    ],
)
def test_a_model_whose_sizes_are_pixels(given: dict, params: dict) -> None:
    assert to_params(IN_PIXELS, given).params == params


@pytest.mark.parametrize("given", [{"aspect_ratio": "1:1"}, {"resolution": "4k"}, {"aspect_ratio": [1]}])
def test_a_size_that_it_has_not_names_those_that_it_has(given: dict) -> None:
    with pytest.raises(InvalidRequest) as caught:
        to_params(IN_PIXELS, given)

    assert caught.value.param in given
    assert "1280x720, 720x1280" in caught.value.message


def test_views_take_their_roles_in_order() -> None:
    given = {"images": ["https://example.com/1.png", "https://example.com/2.png"]}

    params = to_params(known_models()["multiview_to_3d"], given).params

    assert [view["role"] for view in params["images"]] == ["front", "left"]


def test_two_names_of_one_param_are_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        to_params(known_models()["vendorb_video_31"], {"duration": 8, "durationSeconds": 4})

    assert "mean the same" in caught.value.message


def test_an_error_names_the_callers_field() -> None:
    error = InvalidRequest(
        "input.0.params.durationSeconds: too long.",
        param="input.0.params.durationSeconds",
        details=[Detail("input.0.params.durationSeconds", "too long.")],
    )

    found = in_callers_terms(error, {"durationSeconds": "duration"}, "input.")

    assert (found.param, found.message) == ("input.duration", "input.duration: too long.")
    assert found.details[0].loc == "input.duration"
