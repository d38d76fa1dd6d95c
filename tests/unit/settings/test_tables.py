"""Settings: which source wins, what every value may be, and that no secret shows."""

import json
import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from penstock.settings.content_log import ContentLogTable
from penstock.settings.problems import Problem
from penstock.settings.sign_in import Sessions
from penstock.settings.tables import (
    VARIABLES,
    AssetDownloads,
    Chat,
    Facades,
    Fetch,
    Jobs,
    ModelEntry,
    Provenance,
    Records,
    RouteTable,
    RunTime,
    Sealing,
    Server,
    Settings,
    SettingsError,
    load,
)
from penstock.settings.values import LONGEST, parse_duration, parse_retention
from penstock.vendor_api.generation import VendorOptions

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"
SECTIONS = {
    "server": Server,
    "fetch": Fetch,
    "run_time": RunTime,
    "assets": AssetDownloads,
    "jobs": Jobs,
    "chat": Chat,
    "records": Records,
    "content_log": ContentLogTable,
    "provenance": Provenance,
    "facades": Facades,
    "sealing": Sealing,
    "sessions": Sessions,
}


class Reading:
    """A folder with one file, `penstock.toml`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "penstock.toml"

    def load(self, text: str, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        self.file.write_text(text, "utf-8")
        given = {name.replace("__", "."): value for name, value in overrides.items()}
        return load(self.file, environ or {}, {"data": self.folder} | given)


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    return Reading(tmp_path)


# -- where values come from


def test_defaults_stand_in_the_data_folder(tmp_path: Path):
    found = load(None, {}, {"data": tmp_path})
    assert found.data == tmp_path
    assert found.database_url == f"sqlite:///{tmp_path}/penstock.db"
    assert found.assets_url == f"file://{tmp_path}/assets"
    assert (found.server.host, found.server.port) == ("127.0.0.1", 8787)
    assert found.jobs.retention == 7 * 86400
    assert found.vendors == {}
    assert found.models == ()


def test_command_line_wins_over_environment_over_file_over_default(reading: Reading):
    text = '[server]\nport = 1\nmax_streams = 1\nhost = "file"\n'
    environ = {"PENSTOCK_SERVER_PORT": "2", "PENSTOCK_SERVER_MAX_STREAMS": "2"}
    server = reading.load(text, environ, server__port=3, server__host=None).server
    assert (server.port, server.max_streams, server.host, server.max_body_mb) == (3, 2, "file", 32)


def test_environment_is_parsed_by_type_and_empty_counts_as_unset(tmp_path: Path):
    environ = {
        "PENSTOCK_DATA": str(tmp_path),
        "PENSTOCK_FETCH_ALLOW_NETWORKS": "10.0.0.0/8, fd00::/8",
        "PENSTOCK_JOBS_RETENTION": "forever",
        "PENSTOCK_JOBS_RUN_TIMEOUT": "2h",
        "PENSTOCK_SERVER_PORT": "",
    }
    found = load(None, environ, {})
    assert [str(network) for network in found.fetch.allow_networks] == ["10.0.0.0/8", "fd00::/8"]
    assert found.jobs.retention is None
    assert found.jobs.run_timeout == 7200
    assert found.server.port == 8787


def test_file_in_the_data_folder_is_read_and_a_named_one_replaces_it(tmp_path: Path):
    (tmp_path / "config.toml").write_text("[server]\nport = 1\n")
    named = tmp_path / "named.toml"
    named.write_text("[server]\nport = 2\n")
    data = {"PENSTOCK_DATA": str(tmp_path)}
    assert load(None, data, {}).server.port == 1
    assert load(None, data | {"PENSTOCK_CONFIG": str(named)}, {}).server.port == 2
    assert load(named, data | {"PENSTOCK_CONFIG": "nowhere"}, {}).server.port == 2


def test_file_in_the_current_folder_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "penstock.toml").write_text("[server]\nport = 1\n")
    (tmp_path / "config.toml").write_text("[server]\nport = 1\n")
    monkeypatch.chdir(tmp_path)
    assert load(None, {}, {"data": "data"}).server.port == 8787


def test_relative_data_starts_from_the_file_but_on_the_command_line_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    file = tmp_path / "penstock.toml"
    file.write_text('data = "kept"\n')
    assert load(file, {}, {}).data == tmp_path / "kept"
    assert load(file, {}, {"data": "kept"}).data == tmp_path / "here" / "kept"


def test_settings_are_frozen(reading: Reading):
    found = reading.load("")
    with pytest.raises(ValidationError):
        found.server.port = 1  # pyright: ignore[reportAttributeAccessIssue]  # this is the test


# -- models

VENDOR = '[vendors.mine]\ntype = "sim"\n'


def test_both_forms_of_a_model_become_routes(reading: Reading):
    found = reading.load(
        VENDOR
        + '[[models]]\nid = "a"\nvendor = "mine"\n'
        + '[[models]]\nid = "b"\nkind = "3d"\nvendor = "mine"\nmodel = "upstream"\nprice = {per_job = "0.20"}\n'
        + '[[models]]\nid = "c"\nroutes = [{vendor = "mine", weight = 3}, {vendor = "mine", model = "x", order = 2}]\n'
    )
    first, second, third = found.models
    assert first.routes == (RouteTable(vendor="mine", model="a"),)
    assert second.routes == (RouteTable(vendor="mine", model="upstream"),)
    assert second.price is not None
    assert second.price.per_job == 200_000_000
    assert third.routes == (
        RouteTable(vendor="mine", model="c", weight=3),
        RouteTable(vendor="mine", model="x", order=2),
    )


# -- secrets

SECRETS = {"MINE_KEY": "from-the-environment", "PENSTOCK_ADMIN_KEY": "from-the-administrator"}
WITH_SECRETS = """
[server]
admin_key = "env:PENSTOCK_ADMIN_KEY"
[vendors.mine]
type = "sim"
api_key = "env:MINE_KEY"
service_account = "file:account.json"
client_secret = "written-in-the-file"
[vendors.mine.headers]
authorization = ["env:MINE_KEY"]
"""


def test_secrets_are_resolved_and_listed(reading: Reading):
    (reading.folder / "account.json").write_text('{"private": "key"}\n')
    found = reading.load(WITH_SECRETS, SECRETS)
    assert found.vendors["mine"]["api_key"] == "from-the-environment"
    assert found.vendors["mine"]["service_account"] == '{"private": "key"}'
    assert found.vendors["mine"]["headers"] == {"authorization": ["from-the-environment"]}
    assert found.server.admin_key is not None
    assert found.server.admin_key.get_secret_value() == "from-the-administrator"
    assert found.secrets == {*SECRETS.values(), '{"private": "key"}', "written-in-the-file"}


def test_secrets_do_not_show(reading: Reading):
    (reading.folder / "account.json").write_text("from-the-disk")
    found = reading.load(WITH_SECRETS, SECRETS)
    shown = f"{found} {found!r} {found.source!r} {found.server!r}"
    with pytest.raises(SettingsError) as caught:
        reading.load(WITH_SECRETS + "[[models]]\nid = 5\n", SECRETS, server__port="x")
    shown += "".join(traceback.format_exception(caught.value))
    assert "id" in shown
    for secret in found.secrets:
        assert secret not in shown


def test_variable_that_a_secret_refers_to_may_have_our_prefix(reading: Reading):
    found = reading.load(VENDOR + 'api_key = "env:PENSTOCK_MINE"\n', {"PENSTOCK_MINE": "secret"})
    assert found.secrets == {"secret"}


def test_fingerprint_follows_settings_but_not_secrets(reading: Reading):
    (reading.folder / "account.json").write_text("one")
    first = reading.load(WITH_SECRETS, SECRETS).fingerprint
    (reading.folder / "account.json").write_text("two")
    assert reading.load(WITH_SECRETS, dict.fromkeys(SECRETS, "another-that-is-long")).fingerprint == first
    assert reading.load(WITH_SECRETS, SECRETS, server__max_streams=1).fingerprint != first
    assert reading.load(WITH_SECRETS, SECRETS, server__port=1, jobs__run="workers").fingerprint == first
    assert re.fullmatch(r"[0-9a-f]{12}", first)


# -- anything at all


@given(st.integers(0, 10**6), st.sampled_from(["", "s", "m", "h", "d", "w"]))
def test_duration_is_its_number_times_its_unit(number: int, unit: str):
    seconds = number * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[unit]
    if seconds <= LONGEST:
        assert parse_duration(f"{number}{unit}") == seconds
        assert parse_duration(seconds) == seconds
    else:
        with pytest.raises(ValueError, match="at most"):
            parse_duration(f"{number}{unit}")


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["12h", "forever", "-1", "1e3", "٣", "env:X", "file:x", "file:\0", "~nobody/x", "a", "b"])
    | st.sampled_from([10**400, float("inf"), "sqlite:///x", "https://host", "10.0.0.0/8", "chat", "0.40"])
)


@given(SCALARS)
def test_duration_is_seconds_within_bounds_or_a_value_error(value: Any):
    try:
        seconds = parse_retention(value)
    except ValueError:
        return
    assert (seconds is None and value in {None, "forever"}) or (seconds is not None and 0 <= seconds <= LONGEST)


NAMES = st.sampled_from(
    [
        *Settings.model_fields,
        *(name for form in (*SECTIONS.values(), ModelEntry, RouteTable) for name in form.model_fields),
        *("type", "api_key", "per_job", "a.b", "", "\0", "[key]"),
    ]
)
VALUES = st.recursive(
    SCALARS.filter(lambda value: value is not None),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def write(value: Any) -> str:
    """The value as TOML, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{write(name)} = {write(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(write(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def attempt(reading: Reading, text: str, environ: dict[str, str]) -> Settings | tuple[Problem, ...]:
    try:
        return reading.load(text, environ)
    except SettingsError as error:
        return error.problems


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=6), st.dictionaries(st.sampled_from([*VARIABLES]), st.text(max_size=8)))
def test_any_values_load_or_raise_a_settings_error(reading: Reading, values: dict[str, Any], environ: dict[str, str]):
    text = "".join(f"{write(name)} = {write(value)}\n" for name, value in values.items())
    found = attempt(reading, text, environ)
    if isinstance(found, Settings):
        assert found.fingerprint
    else:
        assert found
        assert all(problem.where and problem.what and problem.remedy for problem in found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(alphabet=st.sampled_from("[]{}=\"'.\n# server12ab\\"), max_size=60))
def test_any_text_loads_or_raises_a_settings_error(reading: Reading, text: str):
    found = attempt(reading, text, {})
    assert isinstance(found, Settings) or all(problem.where.startswith(str(reading.file)) for problem in found)


# -- the page

ROWS = {
    tuple(cells[:2]): cells[2:]
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| `") and len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 4
}


@pytest.mark.parametrize(("variable", "path"), VARIABLES.items())
def test_setting_is_in_the_page_with_its_default_and_meaning(variable: str, path: tuple[str, ...], tmp_path: Path):
    default, meaning = ROWS[f"`{'.'.join(path)}`", f"`{variable}`"]
    form = SECTIONS[path[0]] if len(path) > 1 else Settings
    assert meaning == form.model_fields[path[-1]].description
    if len(path) > 1:
        environ = {} if default == "none" else {variable: default.strip("`")}
        plain = load(None, {}, {"data": tmp_path})
        assert load(None, environ, {"data": tmp_path}).fingerprint == plain.fingerprint
        if default == "none":
            assert not getattr(getattr(plain, path[0]), path[1])


def test_page_has_no_setting_that_is_gone():
    assert {variable.strip("`") for _, variable in ROWS} == set(VARIABLES)


@pytest.mark.parametrize(
    ("heading", "form"), [("## Vendors", VendorOptions), ("## Models", ModelEntry), ("Each of", RouteTable)]
)
def test_page_has_every_key_of_a_table(heading: str, form: type[VendorOptions | ModelEntry | RouteTable]):
    table = PAGE.read_text("utf-8").split(f"\n{heading}")[1].split("|---|---|---|\n")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [*form.model_fields]


def test_example_of_the_page_loads(reading: Reading):
    example = PAGE.read_text("utf-8").split("```toml\n")[1].split("```")[0]
    found = reading.load(example, {"MINE_KEY": "one", "PENSTOCK_ADMIN_KEY": "one-that-is-long-enough"})
    assert [route.vendor for model in found.models for route in model.routes] == ["mine"] * 3
    VendorOptions.model_validate(found.vendors["mine"])


# -- models that the settings declare

DECLARED = '[[models]]\nid = "film"\nkind = "video"\nvendor = "sim"\n'
SCHEMA = {"properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}


def test_params_are_a_table_a_file_or_the_vendors(reading: Reading):
    folder = reading.folder / "models"
    folder.mkdir()
    (folder / "film.json").write_text(json.dumps(SCHEMA))
    table = '[models.params]\nrequired = ["prompt"]\nproperties = {prompt = {type = "string"}}\n'
    for text in (table, 'params = "file:models/film.json"\n', f'params = "file:{folder}/film.json"\n'):
        assert reading.load(DECLARED + text).models[0].params == SCHEMA
    assert reading.load(DECLARED + 'params = "vendor"\n').models[0].params == "vendor"
    assert reading.load(DECLARED).models[0].params is None


def test_a_graph_is_a_table_or_a_file(reading: Reading):
    graph = {"6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a", "clip": ["4", 1]}}}
    (reading.folder / "graph.json").write_text(json.dumps(graph))
    found = reading.load(DECLARED + 'workflow = "file:graph.json"\nbind = {prompt = "6.text"}\n').models[0]
    assert (found.workflow, found.bind) == (graph, {"prompt": "6.text"})


def test_what_stands_in_such_a_file_is_no_secret_and_no_reference_to_one(reading: Reading):
    schema = {"properties": {"api_key": {"default": "env:HOME"}, "token": {"default": "file:/etc/hostname"}}}
    (reading.folder / "film.json").write_text(json.dumps(schema))
    found = reading.load(DECLARED + 'params = "file:film.json"\n')
    assert found.models[0].params == schema
    assert found.secrets == frozenset()


@pytest.mark.parametrize("name", ["nowhere.json", "", "/", "."])
@pytest.mark.parametrize("setting", ["params", "workflow"])
def test_a_file_that_cannot_be_read_is_told_with_its_place(reading: Reading, setting: str, name: str):
    with pytest.raises(SettingsError) as told:
        reading.load(f'{DECLARED}{setting} = "file:{name}"\n')
    (problem,) = told.value.problems
    assert problem.where == f"{reading.file}:5 [[models]] 1 {setting}"
    assert "missing or unreadable" in problem.what
    assert "JSON file" in problem.remedy


def test_the_models_of_a_settings_file_change_its_fingerprint(reading: Reading):
    prints = {reading.load(DECLARED + more).fingerprint for more in ("", 'params = "vendor"\n', 'output = "x"\n')}
    assert len(prints) == 3
