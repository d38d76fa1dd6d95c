"""Params told by a JSON Schema: read as forgivingly and refused as helpfully as any, and no schema can do harm."""

import json
import socket
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from jsonschema import Draft202012Validator

from penstock.catalog.declared import MAX_LENGTH, MAX_VALUES, declare, read_schema, schema_of_bindings
from penstock.catalog.model import GenerationModel, Recipe
from penstock.catalog.schema_params import ANYTHING, MAX_NESTING
from penstock.errors import Detail

FILM = {
    "title": "Film",
    "type": "object",
    "required": ["prompt"],
    "properties": {
        "prompt": {"type": "string", "minLength": 1, "maxLength": 50},
        "negative_prompt": {"type": "string"},
        "steps": {"type": "integer", "minimum": 1, "maximum": 50, "default": 20},
        "strength": {"type": "number", "default": 0.5},
        "tile": {"type": "boolean", "default": False},
        "size": {"enum": ["720p", "1080p"], "default": "720p"},
        "seed": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "image_url": {"type": "string", "format": "uri"},
        "shots": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["text"],
                "properties": {"text": {"type": "string"}, "seconds": {"type": "number"}},
            },
        },
    },
}
PLACE = "input.0.params"


def model(schema: Any = None, **recipe: Any) -> GenerationModel:
    return declare("film", "", FILM if schema is None else schema, Recipe("video", **recipe))


def fields(**properties: Any) -> dict[str, Any]:
    return {"properties": properties}


def refuse(schema: Any, **given_params: Any) -> list[Detail]:
    params, details = model(schema).read(given_params, PLACE)
    assert params is None
    assert details
    return details


def accept(schema: Any, **given_params: Any) -> dict[str, Any]:
    params, details = model(schema).read(given_params, PLACE)
    assert details == []
    assert params is not None
    return params


def locs(details: list[Detail]) -> dict[str, str]:
    return {detail.loc.removeprefix(f"{PLACE}."): detail.code for detail in details}


# -- what is taken


def test_defaults_are_filled_and_what_was_given_stays():
    defaults = {"steps": 20, "strength": 0.5, "tile": False, "size": "720p"}
    assert accept(FILM, prompt="a") == {**defaults, "prompt": "a"}
    assert accept(FILM, prompt="a", steps=5, tile=True) == {**defaults, "prompt": "a", "steps": 5, "tile": True}


def test_null_means_absent_at_any_depth():
    assert "negative_prompt" not in accept(FILM, prompt="a", negative_prompt=None)
    assert accept(FILM, prompt="a", steps=None)["steps"] == 20
    assert accept(FILM, prompt="a", shots=[{"text": "x", "seconds": None}])["shots"] == [{"text": "x"}]
    assert locs(refuse(FILM, prompt=None)) == {"prompt": "missing_required_parameter"}


def test_an_integral_number_is_an_integer_and_is_handed_on_as_one():
    for number in (8, 8.0):
        given_steps = accept(FILM, prompt="a", steps=number, seed=number)
        assert json.dumps([given_steps["steps"], given_steps["seed"]]) == "[8, 8]"
    assert json.dumps(accept(FILM, prompt="a", strength=8.0)["strength"]) == "8.0"


@pytest.mark.parametrize("wrong", [True, False, "8", 8.5, [], {}, 0, 51])
def test_nothing_else_is(wrong):
    assert locs(refuse(FILM, prompt="a", steps=wrong)) == {"steps": "invalid_params"}


@pytest.mark.parametrize("wrong", [1, 0, "true", []])
def test_a_boolean_is_true_or_false(wrong):
    assert locs(refuse(FILM, prompt="a", tile=wrong)) == {"tile": "invalid_params"}


json_values = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**70), 2**70) | some.floats(-1e9, 1e9) | some.text(max_size=9),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
names = some.sampled_from(sorted(FILM["properties"])) | some.text(max_size=6)
CLOSED = Draft202012Validator({**FILM, "additionalProperties": False})


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(some.dictionaries(names, json_values, max_size=6), some.booleans())
def test_what_is_taken_is_what_another_reader_of_the_schema_takes(given_params, prompted):
    if prompted:
        given_params["prompt"] = "a mill"
    params, details = model().read(given_params, PLACE)
    asked = without_nulls(given_params)
    as_file = isinstance(asked.get("file"), dict)
    assert (params is not None) == (not as_file and CLOSED.is_valid(asked))
    assert bool(details) == (params is None)
    assert all(detail.loc == PLACE or detail.loc.startswith(f"{PLACE}.") for detail in details)
    assert len({detail.loc for detail in details}) == len(details)
    if params is not None:
        assert without_nulls(params) | asked == params


# -- what is refused, and how


def test_all_problems_are_told_at_once_each_with_its_place():
    details = refuse(FILM, negativ_prompt="x", steps=99, shots=[{"text": "x"}, {"seconds": "long", "txt": "x"}])
    assert locs(details) == {
        "negativ_prompt": "unknown_param",
        "steps": "invalid_params",
        "prompt": "missing_required_parameter",
        "shots.1.text": "missing_required_parameter",
        "shots.1.txt": "unknown_param",
        "shots.1.seconds": "invalid_params",
    }


def test_an_unknown_name_is_answered_with_the_nearest():
    (detail,) = refuse(FILM, prompt="a", negativ_prompt="x")
    assert detail.message.startswith('Unknown param "negativ_prompt". Did you mean `negative_prompt`? Known: ')
    (detail,) = refuse(FILM, prompt="a", zzz=1)
    assert "Did you mean" not in detail.message


def test_a_message_is_short_whatever_was_given():
    for details in (refuse(FILM, prompt="x" * 100_000), refuse(FILM, **{"x" * 100_000: 1})):
        assert all(len(detail.message) < 500 and len(detail.loc) < 120 for detail in details)


def test_a_flood_of_problems_is_told_in_part():
    details = refuse(fields(a={"type": "array", "items": {"type": "string"}}), a=[1] * 3000)
    assert len(details) == 100
    assert len(refuse(FILM, **{f"name{number}": 1 for number in range(3000)})) <= 101


def test_nesting_without_end_is_refused():
    deep: Any = "x"
    for _ in range(900):
        deep = {"a": deep}
    (detail,) = refuse(ANYTHING, a=deep)
    assert "deeper" in detail.message
    fine: Any = "x"
    for _ in range(MAX_NESTING - 1):
        fine = [fine]
    assert accept(ANYTHING, a=fine) == {"a": fine}


def test_where_nothing_is_known_everything_is_taken():
    given_params = {"anything": [1, {"at": "all"}], "n": 3.5}
    assert accept(ANYTHING, **given_params) == given_params


# -- files


@pytest.mark.parametrize("needed", [True, False])
def test_the_file_is_called_file_as_everywhere(needed):
    schema = {**FILM, "required": ["prompt", "image_url"]} if needed else FILM
    found = model(schema, file="image_url")
    assert "image_url" not in found.schema["properties"]
    assert ("file" in found.schema["required"]) == needed
    params, details = found.read({"prompt": "a", "file": {"url": "https://example.com/a.png"}}, PLACE)
    assert details == []
    assert params is not None
    assert params["file"] == {"url": "https://example.com/a.png"}
    _, details = found.read({"prompt": "a"}, PLACE)
    assert locs(details) == ({"file": "missing_required_parameter"} if needed else {})
    _, details = found.read({"prompt": "a", "file": {"file_token": "x"}, "image_url": "https://x"}, PLACE)
    assert locs(details) == {"image_url": "unknown_param"}


BAD_FILES = [
    ({}, "file"),
    ({"url": "https://x", "file_token": "y"}, "file"),
    ({"url": "https://x", "object": "y"}, "file"),
    ({"type": "png"}, "file"),
    ({"url": 7}, "file.url"),
    ({"url": ""}, "file.url"),
    ({"file_token": ["x"]}, "file.file_token"),
    ({"url": "https://x", "type": "gif"}, "file.type"),
    ({"url": "https://x", "tpye": "png"}, "file.tpye"),
    ({"object": {"bucket": "b"}}, "file.object.key"),
    ("https://x", "file"),
    (["https://x"], "file"),
    (7, "file"),
]


@pytest.mark.parametrize(("file", "loc"), BAD_FILES, ids=str)
def test_a_file_that_is_none_is_refused_in_its_place(file, loc):
    _, details = model(file="image_url").read({"prompt": "a", "file": file}, PLACE)
    assert loc in locs(details)


@pytest.mark.parametrize(("file", "loc"), [case for case in BAD_FILES if isinstance(case[0], dict)], ids=str)
def test_also_where_nothing_is_known_of_the_params(file, loc):
    assert loc in locs(refuse(ANYTHING, file=file))


def test_where_nothing_is_known_a_text_called_file_is_the_vendors():
    assert accept(ANYTHING, file="https://x") == {"file": "https://x"}


def test_what_takes_no_file_refuses_one():
    assert locs(refuse(FILM, prompt="a", file={"url": "https://x"})) == {"file": "unknown_param"}


def test_the_published_schema_says_of_the_file_what_others_do():
    found = model(file="image_url")
    Draft202012Validator.check_schema(found.schema)
    reader = Draft202012Validator(found.schema)
    assert reader.is_valid({"prompt": "a", "file": {"url": "https://x"}})
    assert reader.is_valid({"prompt": "a", "file": {"object": {"bucket": "b", "key": "k"}}})
    assert not reader.is_valid({"prompt": "a", "file": {"ulr": "https://x"}})
    assert not reader.is_valid({"prompt": "a", "file": "https://x"})


# -- the model


def test_the_schemas_title_and_needs_make_the_model():
    found = model()
    assert (found.id, found.kind, found.title) == ("film", "video", "Film")
    assert found.read(found.example, "")[1] == []
    assert declare("film", "A film", FILM, Recipe("video")).title == "A film"
    assert declare("film", "", fields(), Recipe("3d")).title == "film"


@pytest.mark.parametrize(
    ("seed", "taken"),
    [
        ({"type": "integer"}, True),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, True),
        ({"type": ["integer", "null"], "minimum": 0, "maximum": 2147483647}, True),
        ({"type": "integer", "minimum": -1}, True),
        ({"type": "integer", "maximum": 65535}, False),
        ({"type": "integer", "minimum": 1}, False),
        ({"type": "string", "description": "an integer, as text"}, False),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, False),
        ({"type": "number"}, False),
        ({"type": "boolean"}, False),
        ({"enum": [1, 2]}, False),
        (True, False),
        ({}, False),
        (None, False),
    ],
    ids=str,
)
def test_a_seed_is_chosen_where_any_will_do(seed, taken):
    assert model(fields() if seed is None else fields(seed=seed)).seed_param == ("seed" if taken else None)


def test_bound_params_are_of_the_kind_that_the_graph_holds():
    graph = {"6": {"inputs": {"text": "a cat", "cfg": 7.5, "steps": 20, "tile": True, "clip": ["4", 1]}}}
    bind = {name: f"6.{name}" for name in graph["6"]["inputs"]} | {"file": "6.text", "gone": "9.text"}
    found = declare("film", "", schema_of_bindings(graph, bind), Recipe("video", bind=bind, file="file"))
    assert found.read({"file": {"url": "https://x"}}, "")[0] == {
        "text": "a cat",
        "cfg": 7.5,
        "steps": 20,
        "tile": True,
        "file": {"url": "https://x"},
    }
    assert locs(found.read({"steps": "many", "text": 7}, PLACE)[1]) == dict.fromkeys(
        ("steps", "text"), "invalid_params"
    )


@pytest.mark.parametrize("graph", [None, {}, {"6": 7}, {"6": {"inputs": 7}}, {"6": {}}, {"6": {"inputs": {}}}], ids=str)
def test_a_graph_that_is_none_harms_nobody(graph):
    assert schema_of_bindings(graph, {"prompt": "6.text", "odd": "6", "": ""})["properties"]["prompt"] == {}


# -- vendors' documents

REPLICATE = {
    "openapi": "3.0.2",
    "info": {"title": "Cog", "version": "0.1.0"},
    "paths": {"/predictions": {"post": {"requestBody": {"content": {"application/json": {"schema": {"type": "x"}}}}}}},
    "components": {
        "schemas": {
            "Input": {
                "type": "object",
                "title": "Input",
                "required": ["prompt"],
                "properties": {
                    "prompt": {"type": "string", "title": "Prompt", "x-order": 0},
                    "resolution": {
                        "allOf": [{"$ref": "#/components/schemas/resolution"}],
                        "default": "720p",
                        "x-order": 1,
                    },
                    "quality": {"$ref": "#/components/schemas/a~1b", "description": "how fine"},
                    "seed": {"type": "integer", "nullable": True, "x-order": 2},
                },
            },
            "resolution": {"enum": ["720p", "1080p"], "type": "string", "title": "resolution"},
            "a/b": {"enum": [1, 2], "type": "integer"},
            "Output": {"type": "string", "format": "uri"},
        }
    },
}
FAL = {
    "openapi": "3.1.0",
    "paths": {
        "/fal-ai/film/requests/{request_id}/status": {"get": {}},
        "/fal-ai/film": {
            "post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}}}
        },
    },
    "components": {
        "schemas": {
            "In": {
                "type": "object",
                "required": ["prompt"],
                "properties": {
                    "prompt": {"type": "string"},
                    "image_size": {
                        "anyOf": [{"$ref": "#/components/schemas/Size"}, {"enum": ["square", "wide"]}],
                        "default": "wide",
                    },
                },
            },
            "Size": {"type": "object", "properties": {"width": {"type": "integer", "maximum": 14142}}},
        }
    },
}


def test_a_replicate_document():
    found = model(REPLICATE)
    assert (found.title, found.seed_param) == ("film", "seed")
    assert found.read({"prompt": "a"}, "")[0] == {"prompt": "a", "resolution": "720p"}
    assert found.schema["properties"]["quality"]["description"] == "how fine"
    assert locs(refuse(REPLICATE, prompt="a", resolution="4k", quality=3, sed=1)) == {
        "resolution": "invalid_params",
        "quality": "invalid_params",
        "sed": "unknown_param",
    }
    assert "$ref" not in json.dumps(found.schema)


def test_a_fal_document():
    assert accept(FAL, prompt="a") == {"prompt": "a", "image_size": "wide"}
    assert accept(FAL, prompt="a", image_size={"width": 640})["image_size"] == {"width": 640}
    assert locs(refuse(FAL, image_size={"width": "wide"})) == {
        "image_size": "invalid_params",
        "prompt": "missing_required_parameter",
    }


def openapi(**schemas: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "components": {"schemas": schemas}}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


# -- documents that do harm, or would

BOMB = {f"n{number}": {"allOf": [ref(f"n{number + 1}")] * 6} for number in range(9)} | {"n9": {}}
WIDE = fields(**{f"p{number}": {"type": "string"} for number in range(MAX_VALUES)})
DEEP: dict[str, Any] = {}
for _ in range(200):
    DEEP = fields(a=DEEP)
HOSTILE = {
    "properties of another shape": (fields() | {"properties": 7}, "properties: 7 is not"),
    "a list of properties": ({"properties": ["a"]}, "properties: "),
    "required of another shape": ({"required": 7}, "required: 7 is not"),
    "required of lists": ({"required": [["a"]]}, "required.0: "),
    "definitions of another shape": ({"$defs": 7}, r"\$defs: 7"),
    "no such type": (fields(a={"type": "strnig"}), "properties.a.type: "),
    "a type of another shape": (fields(a={"type": 7}), "properties.a.type: "),
    "an enum of another shape": ({**fields(a={"enum": 7}), "required": ["a"]}, "properties.a.enum: "),
    "examples of another shape": (fields(a={"examples": 7}), "properties.a.examples: "),
    "a broken pattern": (fields(a={"pattern": "("}), "properties.a.pattern: "),
    "a pattern without end": (fields(a={"pattern": "a{1000}{1000}{1000}"}), "properties.a.pattern: "),
    "no object": ({"type": "array"}, "its type is array"),
    "a far reference": (fields(a={"$ref": "https://example.com/s.json"}), "example.com"),
    "a reference to a file": (fields(a={"$ref": "file:///etc/passwd"}), "passwd"),
    "a reference to nowhere": (fields(a={"$ref": "#/$defs/a"}), "does not exist"),
    "an unknown dialect": ({"$schema": "https://example.com/meta"}, "example.com"),
    "too many values": (WIDE, "too large"),
    "too long": (fields(a={"description": "x" * (MAX_LENGTH + 1)}), "too large"),
    "too deep": (DEEP, "too deep"),
    "OpenAPI without anything": ({"openapi": "3.1.0"}, "no input"),
    "OpenAPI of another shape": ({"openapi": 3, "components": [], "paths": {"/": 7}}, "no input"),
    "OpenAPI with paths of another shape": ({"paths": ["/"]}, "no input"),
    "OpenAPI whose input is none": (openapi(Input=7), "no input"),
    "OpenAPI with parts of another shape": (openapi(Input={"allOf": 7}), "allOf: "),
    "OpenAPI in a circle": (openapi(Input=fields(a=ref("A")), A=ref("B"), B=ref("A")), "circular"),
    "OpenAPI around itself": (openapi(Input=fields(a=ref("Input"))), "circular"),
    "OpenAPI to nowhere": (openapi(Input=fields(a=ref("A"))), "has no target"),
    "OpenAPI to far away": (openapi(Input=fields(a={"$ref": "https://example.com/s"})), "has no target"),
    "OpenAPI that multiplies": (openapi(Input=fields(a=ref("n0")), **BOMB), "too large"),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_document_of_no_use_is_refused_and_says_why(how, monkeypatch):
    def connect(*_: Any) -> None:
        raise AssertionError("nothing is fetched")

    monkeypatch.setattr(socket.socket, "connect", connect)
    document, why = HOSTILE[how]
    with pytest.raises(ValueError, match=why) as told:
        model(document)
    assert len(str(told.value)) < 450
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("file", ["image", "file"])
def test_a_file_param_that_is_not_there_is_told(file):
    with pytest.raises(ValueError, match=f"no param `{file}`"):
        model(file=file)
    assert "file" in model(ANYTHING, file=file).schema["properties"]


@given(
    some.recursive(
        json_values,
        lambda inner: some.dictionaries(
            some.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "$defs",
                    "$ref",
                    "allOf",
                    "anyOf",
                    "enum",
                    "default",
                    "examples",
                    "components",
                    "schemas",
                    "Input",
                    "paths",
                    "post",
                    "pattern",
                    "additionalProperties",
                    "title",
                    "seed",
                ]
            ),
            inner,
            max_size=5,
        ),
        max_leaves=20,
    ).filter(lambda value: isinstance(value, dict)),
    some.booleans(),
)
def test_any_document_makes_a_model_or_says_what_is_wrong(document, as_openapi):
    if as_openapi:
        document["openapi"] = "3.1.0"
    try:
        found = model(document)
    except ValueError:
        return
    json.dumps(found.schema)
    json.dumps(found.example)
    for given_params in ({}, found.example, {"seed": 7.0, "file": {}}):
        params, details = found.read(dict(given_params), PLACE)
        assert bool(details) == (params is None)


def test_circles_of_a_plain_schema_are_no_danger():
    for schema in (
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        fields(a={"$ref": "#"}),
        fields(a={"$ref": "#/properties/a"}),
    ):
        assert model(schema).read({"a": {}}, PLACE)[1] == []


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "(.*a){20}", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_no_pattern_takes_for_ever(pattern):
    text = "a" * 50_000 + "!"
    found = model(fields(a={"type": "string", "pattern": pattern}))
    params, details = found.read({"a": text}, PLACE)  # a backtracking reader needs longer than there is time
    assert bool(details) == (params is None)


def test_reading_a_plain_document_changes_nothing_in_it():
    before = json.dumps(FILM)
    model(file="image_url")
    assert json.dumps(FILM) == before
    assert read_schema(FILM) == FILM


def test_the_library_is_loaded_at_first_use():
    program = (
        "import sys; from penstock.catalog.schema_params import SchemaParams; given = SchemaParams({}); "
        "before = 'jsonschema_rs' in sys.modules; given.read({}, ''); print(before, 'jsonschema_rs' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == ["False", "True"]
