"""Orders for pictures in a vendor's terms: sizes stay within bounds, and every loss is reported once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.catalog.model import Expectation
from penstock.catalog.text_to_image import RATIOS, TextToImageParams
from penstock.vendor_api.generation import Order
from penstock.vendor_api.pictures import (
    ParamTerm,
    PictureOrder,
    PictureTerms,
    PixelTerms,
    RatioTerms,
    ask_picture,
    find_pixels,
    find_ratio,
)

STRICT = PixelTerms(
    lambda width, height: {"size": f"{width}x{height}"},
    step=16,
    sides=(16, 3840),
    pixels=(655_360, 8_294_400),
    most_ratio=3.0,
)
FREE = PixelTerms(lambda width, height: {"width": width, "height": height})
sides = some.integers(64, 4096)


def ask(terms: PictureTerms, **params: Any) -> PictureOrder:
    resolved = TextToImageParams.model_validate({"prompt": "a fox", **params}).resolved()
    return ask_picture(Order("job_1-1", "m", resolved), terms)


@given(width=sides, height=sides)
def test_a_size_is_moved_into_the_bounds(width, height):
    wide, tall = find_pixels(width, height, STRICT)
    assert wide % 16 == tall % 16 == 0
    assert 655_360 <= wide * tall <= 8_294_400
    assert max(wide, tall) <= 3840
    assert 1 / 3 <= wide / tall <= 3


@given(width=some.integers(52, 135), height=some.integers(52, 135))
def test_a_size_within_the_bounds_stays(width, height):
    width, height = width * 16, height * 16
    assert find_pixels(width, height, STRICT) == (width, height)
    assert find_pixels(width - 1, height - 1, FREE) == (width - 1, height - 1)


@given(width=sides, height=sides)
def test_the_nearest_ratio_is_as_near_from_both_sides(width, height):
    wide, _, tall = find_ratio(width / height, RATIOS).partition(":")
    assert find_ratio(height / width, RATIOS) == f"{tall}:{wide}"


def test_plain_params_have_the_vendors_names_and_words():
    terms = PictureTerms(
        vendor="Acme",
        terms={
            "prompt": ParamTerm("text"),
            "n": ParamTerm("count"),
            "output_format": ParamTerm("type", {"jpeg": "jpg"}),
        },
        most=4,
        fixed={"safe": True},
    )
    asked = ask(terms, n=3, output_format="jpeg")
    assert asked.body == {"safe": True, "text": "a fox", "count": 3, "type": "jpg"}
    assert asked.warnings == ()
    assert asked.expected == Expectation(picture_type="jpeg")


def test_every_loss_is_reported_once():
    terms = PictureTerms(vendor="Acme", terms={"prompt": ParamTerm("prompt"), "n": ParamTerm("n")}, most=2)
    asked = ask(terms, n=5, seed=7, quality="high", background="transparent", output_format="webp", size="64x64")
    assert [warning.split(" ", 1)[0] for warning in asked.warnings] == [
        *("`n`", "`seed`", "`output_format`", "`background`", "`quality`", "`size`"),
    ]
    assert asked.body["n"] == 2
    assert asked.expected == Expectation(), "what is reported already is not compared again"


@pytest.mark.parametrize(
    ("params", "fields", "warnings"),
    [
        ({}, {}, 0),
        ({"aspect_ratio": "16:9"}, {"ratio": "16:9"}, 0),
        ({"aspect_ratio": "21:9"}, {"ratio": "16:9"}, 1),
        ({"resolution": "2K"}, {"scale": "two"}, 0),
        ({"resolution": "4K"}, {}, 1),
        ({"aspect_ratio": "1:1", "resolution": "1K"}, {"ratio": "1:1"}, 0),
        ({"size": "1920x1080"}, {"ratio": "16:9", "scale": "two"}, 1),
        ({"size": "auto"}, {}, 0),
    ],
)
def test_sizes_by_ratio(params, fields, warnings):
    size = RatioTerms("ratio", ("1:1", "16:9"), ParamTerm("scale", {"2K": "two"}))
    asked = ask(PictureTerms(vendor="Acme", terms={"prompt": ParamTerm("prompt")}, size=size), **params)
    assert asked.body == {"prompt": "a fox", **fields}
    assert len(asked.warnings) == warnings, asked.warnings


@given(ratio=some.sampled_from(RATIOS), resolution=some.sampled_from(["512", "1K", "2K", "4K"]))
def test_an_operation_keeps_the_expected_result(ratio, resolution):
    asked = ask(
        PictureTerms(vendor="Acme", terms={"prompt": ParamTerm("prompt")}, size=STRICT),
        aspect_ratio=ratio,
        resolution=resolution,
    )
    assert Expectation(**asked.expected.kept) == asked.expected
