"""Neutral inputs, and errors in the caller's terms."""

import pytest

from penstock.catalog import known_models
from penstock.catalog.model import GenerationModel
from penstock.catalog.schema_params import ANYTHING, SchemaParams
from penstock.errors import Detail, InvalidRequest
from penstock.web.facades.neutral import in_callers_terms, to_params

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
