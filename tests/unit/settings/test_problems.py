"""Setting problems: where each mistake is told, with what remedy, and that no secret is."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError, field_validator

from penstock.settings.problems import Problem, SettingsError, explain
from penstock.settings.tables import Settings, load
from penstock.vendor_api.generation import VendorOptions

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


class Reading:
    """A folder with one file, `penstock.toml`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "penstock.toml"

    def load(self, text: str, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        self.file.write_text(text, "utf-8")
        given = {name.replace("__", "."): value for name, value in overrides.items()}
        return load(self.file, environ or {}, {"data": self.folder} | given)

    def fail(self, text: str, environ: Mapping[str, str] | None = None, **overrides: Any) -> list[Problem]:
        """The problems told, their places without the folder."""
        with pytest.raises(SettingsError) as caught:
            self.load(text, environ, **overrides)
        return [
            Problem(problem.where.removeprefix(f"{self.folder}/"), problem.what, problem.remedy)
            for problem in caught.value.problems
        ]


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    return Reading(tmp_path)


# -- mistakes and their places

VENDOR = '[vendors.mine]\ntype = "sim"\n'
MODEL = VENDOR + '[[models]]\nid = "a"\n'
SAME = MODEL + 'vendor = "mine"\n[[models]]\nid = "a"\nvendor = "mine"\n'
BOTH = MODEL + 'vendor = "mine"\nroutes = [{vendor = "mine"}]\n'
MANY = MODEL + '[[models.routes]]\nvendor = "mine"\n[[models.routes]]\nvendor = "xx"\n'
PRICE = MODEL + 'vendor = "mine"\n[models.price]\nper_jbo = "1"\n'
MISTAKES = [
    ("[server]\n\nport = 65536\n", ":3 [server] port", "less than or equal to 65535", "8787"),
    ("[server]\nport = true\n", ":2 [server] port", "should not be true or false", "8787"),
    ("[server]\nprot = 1\n", ":2 [server] prot", "is not a setting", "`port`"),
    ("#\n[sever]\nport = 1\n", ":2 sever", "is not a setting", "`server`"),
    ("[jobs]\nreply = 1\n", ":2 [jobs] reply", "is not a setting", "Known here: file_retention"),
    ("server = 5\n", ":1 server", "should be a table", "[table]"),
    ("server.prot = 5\n", ":1 [server] prot", "is not a setting", "`port`"),
    ('[server]\nlog_level = "loud"\n', ":2 [server] log_level", "'debug', 'info'", "info"),
    ('[server]\npublic_url = "https://a/b"\n', ":2 [server] public_url", "allowed", "https://"),
    ('database_url = "mysql://h/d"\n', ":1 database_url", "allowed", "postgresql"),
    ('database_url = "sqlite:///:memory:"\n', ":1 database_url", "allowed", "sqlite:///"),
    ('assets_url = "s3://Bucket"\n', ":1 assets_url", "allowed", "file://"),
    ('assets_url = "s3://bucket?region=x"\n', ":1 assets_url", "allowed", "s3://"),
    ('[assets]\ndownloads = "presigned"\n', ":1 assets", "needs a bucket", "s3://"),
    ('temporal = "localhost:7233"\n', ":1 temporal", "needs a store on PostgreSQL", "database_url"),
    ('database_url = "postgresql://h/d"\ntemporal = "localhost"\n', ":2 temporal", "allowed", "host:port"),
    ('[fetch]\nallow_networks = [\n"10.0.0.1/8"]\n', ":2 [fetch] allow_networks.0", "has host bits set", "CIDR"),
    ('[jobs]\nretention = "soon"\n', ":2 [jobs] retention", "30d", "forever"),
    ("[jobs]\nretention = 0\n", ":2 [jobs] retention", "greater than 0", "forever"),
    ("[jobs]\nmax_timeout = 60\n", ":2 [jobs] max_timeout", "less than start_timeout", "Raise"),
    ("[jobs]\nrun_timeout = '2d'\n", ":1 [jobs] max_timeout", "run_timeout", "Raise"),
    ("[vendors.mine]\nbase_url = ''\n", ":1 [vendors.mine]", "`type` is missing", "type = "),
    ('[vendors."../x"]\ntype = "sim"\n', ":1 [vendors.../x]", "not a vendor's name", "letters"),
    (MODEL + 'vendor = "mnie"\n', ":5 [[models]] 1 vendor", "no vendor `mnie`", "`mine`"),
    (MANY, ":8 [[models]] 1 routes.1.vendor", "no vendor `xx`", "mine"),
    (MODEL + 'routes = [{vendor = "mine", wieght = 2}]\n', ":5 [[models]] 1 routes.0.wieght", "setting", "`weight`"),
    (SAME, ":7 [[models]] 2 id", "`a` was given before", "one entry"),
    (BOTH, ":6 [[models]] 1 routes", "either `vendor`", "exactly one"),
    (MODEL, ":3 [[models]] 1 routes", "either `vendor`", "exactly one"),
    (VENDOR + '[[models]]\nvendor = "mine"\n', ":3 [[models]] 1 id", "is missing", "`id = …`"),
    (PRICE, ":7 [[models]] 1 price.per_jbo", "is not a setting", "`per_job`"),
    ("models = 3\n", ":1 models", "should be a list", "[[models]]"),
    ("[server]\nport = = 1\n", ":2:8", "is not TOML", "Correct the file"),
    ("[server]\nport = 1\n[server]\n", ":3:8", "is not TOML", "Correct the file"),
    ("[server]\nhosts = [\n", ":3", "is not TOML", "Correct the file"),
]


@pytest.mark.parametrize(("text", "where", "what", "remedy"), MISTAKES)
def test_mistake_in_the_file(reading: Reading, text: str, where: str, what: str, remedy: str):
    (problem,) = reading.fail(text)
    assert problem.where == f"penstock.toml{where}"
    assert what in problem.what
    assert remedy in problem.remedy


def test_mistakes_name_the_variable_or_option(reading: Reading):
    environ = {"PENSTOCK_SERVER_MAX_STREAMS": "many", "PENSTOCK_JOBS_RETENTON": "1d", "PENSTOCK_API_KEY": "client"}
    problems = {problem.where: problem for problem in reading.fail("", environ, server__port=-1)}
    assert set(problems) == {"PENSTOCK_SERVER_MAX_STREAMS", "PENSTOCK_JOBS_RETENTON", "--port"}
    assert "integer" in problems["PENSTOCK_SERVER_MAX_STREAMS"].what
    assert "`PENSTOCK_JOBS_RETENTION`" in problems["PENSTOCK_JOBS_RETENTON"].remedy


def test_named_file_must_exist(tmp_path: Path):
    for config, environ, where in (
        (tmp_path / "no.toml", {}, "--config"),
        (None, {"PENSTOCK_CONFIG": str(tmp_path / "no.toml")}, "PENSTOCK_CONFIG"),
        (tmp_path, {}, "--config"),
    ):
        with pytest.raises(SettingsError) as caught:
            load(config, environ, {})
        assert caught.value.problems[0].where == where
        assert str(tmp_path) in str(caught.value)


def test_all_problems_are_told_at_once(reading: Reading):
    text = (
        '[server]\nport = "x"\nhsot = "a"\n[vendors.mine]\napi_key = "env:NONE"\n[[models]]\nid = "a"\nvendor = "b"\n'
    )
    problems = reading.fail(text, {"PENSTOCK_NONSENSE": "1", "PENSTOCK_FETCH_SECONDS": "x"})
    assert {problem.where for problem in problems} == {
        "penstock.toml:2 [server] port",
        "penstock.toml:3 [server] hsot",
        "penstock.toml:4 [vendors.mine]",
        "penstock.toml:5 [vendors.mine] api_key",
        "penstock.toml:8 [[models]] 1 vendor",
        "PENSTOCK_NONSENSE",
        "PENSTOCK_FETCH_SECONDS",
    }
    with pytest.raises(SettingsError) as caught:
        reading.load(text)
    for problem in caught.value.problems:
        assert f"{problem.where}: {problem.what}\n    {problem.remedy}" in str(caught.value)


def test_mistakes_of_the_page_are_told_as_shown(reading: Reading):
    shown = PAGE.read_text("utf-8").split("## Mistakes")[1].split("```\n")[1]
    problems = reading.fail("\n\n\n[server]\nport = 99999\n", {"PENSTOCK_SERVR_PORT": "1"})
    assert sorted(f"{problem}\n" for problem in problems) == sorted(re.split(r"(?<=\n)(?=\S)", shown))


# -- secrets


def test_password_of_a_refused_database_does_not_show(reading: Reading):
    (problem,) = reading.fail('database_url = "mysql://me:hunter2@host/jobs"\n')
    assert "hunter2" not in str(problem)


@pytest.mark.parametrize("environ", [{}, {"MINE_KEY": " "}])
def test_missing_variable_is_told_with_vendor_key_and_remedy(reading: Reading, environ: dict[str, str]):
    (problem,) = reading.fail(VENDOR + 'api_key = "env:MINE_KEY"\n', environ)
    assert problem.where == "penstock.toml:3 [vendors.mine] api_key"
    assert "MINE_KEY is not set" in problem.what
    assert "Set MINE_KEY" in problem.remedy


def test_missing_secret_file_is_told_with_its_path(reading: Reading):
    (problem,) = reading.fail(VENDOR + 'api_key = "file:mine.key"\n')
    assert problem.where == "penstock.toml:3 [vendors.mine] api_key"
    assert str(reading.folder / "mine.key") in problem.what


# -- what a vendor finds in its own table


class PickyOptions(VendorOptions):
    """A vendor's own options, one of them checked with a message that tells the value."""

    region: str = "here"

    @field_validator("api_key")
    @classmethod
    def refuse(cls, value: str) -> str:
        raise ValueError(f"{value} is no key of ours")


def explain_vendor(found: Settings) -> list[Problem]:
    with pytest.raises(ValidationError) as caught:
        PickyOptions.model_validate(found.vendors["mine"])
    return list(explain(caught.value, "vendors.mine", found.source, PickyOptions).problems)


def test_vendor_problems_are_told_alike(reading: Reading):
    found = reading.load(VENDOR + 'max_concurrent = "x"\nregoin = "there"\n')
    number, name = explain_vendor(found)
    assert number.where == f"{reading.file}:3 [vendors.mine] max_concurrent"
    assert "100" in number.remedy
    assert name.where == f"{reading.file}:4 [vendors.mine] regoin"
    assert name.remedy == "Did you mean `region`?"


def test_secret_in_a_vendors_own_message_is_hidden(reading: Reading):
    (problem,) = explain_vendor(reading.load(VENDOR + 'api_key = "hunter2"\n'))
    assert problem.where == f"{reading.file}:3 [vendors.mine] api_key"
    assert problem.what == "*** is no key of ours"
