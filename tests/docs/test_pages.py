"""Whatever the product has is in its docs: settings, errors, endpoints, fields, metrics, scripts and commands."""

import importlib
import json
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from draw_states import PICTURE, draw, draw_picture
from prometheus_client import Counter, Gauge, Histogram
from pydantic_core import PydanticUndefined

import penstock
from penstock.catalog import known_models
from penstock.catalog.simulated import Ending, Script, Submission
from penstock.chat.request import CHECKS, ROLES
from penstock.cli.main import app as commands
from penstock.domain.prices import Price, TokenPrice
from penstock.domain.usage import ChatOutcome
from penstock.errors import PenstockError
from penstock.gateway import build_offers
from penstock.observability import metrics
from penstock.settings.guardrails import GuardrailTable
from penstock.settings.prices import PriceEntry
from penstock.settings.tables import VARIABLES, ModelEntry, RouteTable, Settings, load
from penstock.store.tables import completions
from penstock.vendor_api.chat import ChatOptions
from penstock.vendor_api.generation import VendorOptions
from penstock.vendors import load_vendor, vendor_names
from penstock.web.server.cors import EXPOSED

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # long enough, and in the format of webhooks
OTHER_TOML = ("add-a-vendor.md", "vendor-api.md")  # pages with settings of vendors that are not here
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED_JSON = re.compile(r"^`([\w-]+\.json)`:\n\n```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
SERVICE_ACCOUNT = {
    "client_email": "penstock@example.iam.gserviceaccount.com",
    "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n",
    "project_id": "example",
}
GRAPH = {
    "5": {"class_type": "EmptyVideo", "inputs": {"width": 1, "height": 1, "length": 1}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": ""}},
}
CHAT_VENDORS = sorted(name for name in vendor_names() if issubclass(load_vendor(name).options_type, ChatOptions))


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def quoted(text: str) -> set[str]:
    """Every word that stands in backticks, also inside a longer quotation."""
    found = re.findall(r"`([^`\n]+)`", text)
    return set(found) | {word for quotation in found for word in re.findall(r"[\w.-]+", quotation)}


def subclasses(kind: type) -> Iterator[type]:
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


@pytest.fixture(scope="session")
def sources() -> str:
    """All of the source, imported, so that every class there is can be found."""
    for module in pkgutil.walk_packages(penstock.__path__, "penstock."):
        if not module.name.startswith(("penstock.__main__", "penstock.store.migrations")):
            importlib.import_module(module.name)
    return "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))


# -- words


def test_the_page_of_states_is_drawn_from_the_table():
    assert PICTURE.read_text() == draw_picture(), "python tools/docs/draw_states.py draws it anew"
    assert page("states.md") == draw(), "python tools/docs/draw_states.py draws it anew"


def test_every_error_code_is_explained(sources):
    codes = {kind.code for kind in subclasses(PenstockError) if kind.code != "job_error"}
    codes |= set(re.findall(r'\bcode="([a-z_]+)"', sources))
    rows = re.findall(r"^\| `([a-z_]+)` \|", page("errors.md"), re.MULTILINE)
    assert codes - set(rows) == set()
    assert [row for row in rows if f'"{row}"' not in sources and row not in codes] == []


def test_every_error_row_tells_the_true_status_and_retry(sources):
    kinds = {kind.code: kind for kind in subclasses(PenstockError) if kind.__name__ not in ("JobError", "JobCrashed")}
    rows = re.findall(r"^\| `([a-z_]+)` \| (\d+) \| (yes|no) \|", page("errors.md"), re.MULTILINE)
    assert len(rows) > 30
    for code, status, retry in rows:
        kind = kinds.get(code)
        if kind is not None and kind.type != "job_error":
            assert (int(status), retry) == (kind.status, "yes" if kind.retryable else "no"), code


# -- settings and commands


def test_every_setting_is_explained():
    text = page("settings.md")
    for variable, path in VARIABLES.items():
        table: Any = Settings
        for name in path[:-1]:
            table = table.model_fields[name].annotation
        meaning = table.model_fields[path[-1]].description
        row = re.escape(f"| `{'.'.join(path)}` | `{variable}` |") + r" .+? \| " + re.escape(f"{meaning} |")
        assert re.search(row, text), f"{variable}: {meaning}"
    for table in (VendorOptions, ModelEntry, RouteTable, PriceEntry, GuardrailTable, Price, TokenPrice):
        for name, field in table.model_fields.items():
            assert re.search(rf"^\| `{field.alias or name}` \|", text, re.MULTILINE), name


@pytest.mark.parametrize(
    "path",
    [path for path in PAGES if path.name not in ("add-a-vendor.md", "vendor-api.md")],
    ids=lambda path: path.name,
)
def test_toml_examples_are_settings_that_start(path, tmp_path):
    """Files that an example names are those that the page shows, else ones made up here."""
    text = path.read_text()
    (tmp_path / "service-account.json").write_text(json.dumps(SERVICE_ACCOUNT))
    (tmp_path / "video.json").write_text(json.dumps(GRAPH))
    for name, document in NAMED_JSON.findall(text):
        (tmp_path / name).write_text(document)
    for number, block in enumerate(TOML.findall(text)):
        assert tomllib.loads(block)
        config = tmp_path / f"{number}.toml"
        config.write_text(block)
        secrets = dict.fromkeys(re.findall(r'"env:(\w+)"', block), SECRET)
        offers = build_offers(load(config, secrets, {"data": tmp_path}), None)
        assert offers.by_model or offers.chat
        for vendor in offers.vendors.values():
            assert vendor.models or vendor.declares


def media_sections() -> dict[str, str]:
    """What the page says of each media vendor that it lists; one that was just added may not be there yet."""
    text = page("vendors.md").partition("## Media vendors")[2].partition("\n## ")[0]
    return {section.partition("`")[0]: section for section in text.split("\n### `")[1:]}


@pytest.mark.parametrize("vendor", sorted(media_sections()))
def test_every_option_of_a_media_vendor_is_explained_with_its_default(vendor):
    section = media_sections()[vendor]
    kind = load_vendor(vendor)
    for name, field in kind.options_type.model_fields.items():
        usual = VendorOptions.model_fields.get(name)
        if usual is None or usual.default != field.default:
            default = "one per core" if (vendor, name) == ("embedded", "max_concurrent") else _write(field.default)
            assert f"\n| `{name}` | {default} |" in section, f"{name} = {field.default}"
    assert f'type = "{vendor}"' in section or vendor == "embedded"


def test_the_table_of_vendors_names_their_models():
    rows = {
        row[0]: row[1]
        for row in re.findall(r"^\| \[`(\w+)`\]\(#\w+\) \| .*? \| (.*?) \|", page("vendors.md"), re.MULTILINE)
    }
    assert set(rows) == set(media_sections())
    for vendor, told in rows.items():
        both = ("vendora_image_to_model", "vendorb_video_31") if "both below" in told else ()
        models = {served.model.id for served in getattr(load_vendor(vendor), "models", ())}
        assert models == quoted(told) | set(both), vendor


@pytest.mark.parametrize("vendor", CHAT_VENDORS)
def test_every_option_of_a_chat_vendor_is_explained_with_its_default(vendor):
    text = page("vendors.md")
    shared = text.partition("## Chat vendors")[2].partition("\n###")[0]
    own = text.partition(f"### `{vendor}`")[2].partition("\n#")[0]
    for name, field in load_vendor(vendor).options_type.model_fields.items():
        if name not in ("type", "api_key", "poll_seconds") and field.default != "":  # they are on the page of settings
            row = f"| `{name}` | {_write(field.default)} |"
            is_shared = field.default == getattr(ChatOptions.model_fields.get(name), "default", PydanticUndefined)
            assert row in (shared if is_shared else own), row


def _write(default: Any) -> str:
    match default:
        case None | {}:
            return "none"
        case bool():
            return f"`{str(default).lower()}`"
        case _:
            return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by the words that call it."""
    if not hasattr(command, "commands"):
        yield name, command
    for word, child in getattr(command, "commands", {}).items():
        yield from leaves(child, f"{name} {word}")


def test_every_command_and_option_is_explained():
    text = page("command-line.md")
    found = dict(leaves(typer.main.get_command(commands), "penstock"))
    assert len(found) >= 8
    for name, command in found.items():
        assert f"## `{name}`" in text
        section = text.partition(f"## `{name}`")[2].partition("\n## ")[0] + text.partition("\n## ")[0]
        for option in command.params:
            if option.param_type_name == "option":
                assert option.opts[0] in section, f"{name} {option.opts[0]}"
        own = text.partition(f"## `{name}`")[2].partition("\n## ")[0]
        known = {word for option in command.params for word in (*option.opts, *option.secondary_opts)}
        assert set(re.findall(r"^\| `(--[\w-]+)", own, re.MULTILINE)) <= known, name


# -- chat


def test_what_chat_checks_records_and_tells_is_explained():
    words = quoted(page("chat.md"))
    assert CHECKS.keys() <= words
    assert set(ROLES) <= words
    assert set(completions.columns.keys()) <= words
    assert set(ChatOutcome) <= words
    told = {name.strip() for name in EXPOSED.split(",")}
    elsewhere = {"idempotency-replayed", "etag", "content-range", "location", "x-fal-request-id"}
    of_files = {name for name in told if name.startswith(("tus-", "upload-")) or name.endswith("-file-token")}
    of_jobs = {name for name in told if name.endswith("-jobs") or name.startswith("reused")}
    assert told - elsewhere - of_jobs - of_files <= words
    assert of_jobs | of_files <= {word.lower() for word in quoted(page("api.md"))}


# -- the API


async def test_every_endpoint_parameter_and_field_is_explained(server):
    document = (await server.client.get("/openapi.json")).json()
    text = "".join(
        map(
            page,
            (
                "api.md",
                "pipelines.md",
                "speech.md",
                "openai-media.md",
                "replicate.md",
                "fal.md",
                "provenance.md",
                "people.md",
                "run-time-settings.md",
                "content-log.md",
                "sign-in.md",
            ),
        )
    )
    words = set[str]().union(
        *(quoted(page(name)) for name in ("models.md", "errors.md", "operations.md")), quoted(text)
    )
    words |= set(re.findall(r'"(\w+)":?', text))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert f"{method.upper()} {path}" in text
            for parameter in operation.get("parameters", ()):
                name = parameter["name"]
                assert name.lower() in {word.lower() for word in words}, f"{method} {path} {name}"
    for name, schema in document["components"]["schemas"].items():
        if not name.startswith("Sim") and name != "Script":  # they have their own page
            assert set(schema.get("properties", ())) - words == set(), name


def test_the_readme_lists_every_path():
    text = (ROOT / "README.md").read_text()
    listed = set(re.findall(r"`(?:GET|POST|DELETE) (/[^`]*)`", text)) | {"/api/v1/files/{token}"}
    described = set(re.findall(r"`(?:GET|POST|DELETE) (/[^`]*)`", page("api.md")))
    assert {path.partition("?")[0] for path in described if not path.startswith("/admin/v1/")} <= listed
    assert "`/admin/v1/…`" in text


@pytest.mark.parametrize("model", ["vendora_image_to_model", "vendorb_video_31"])
def test_every_param_and_allowed_value_is_explained(model):
    section = page("api.md").partition(f"### `{model}`")[2].partition("\n###")[0]
    schema = known_models()[model].schema
    tables = [schema, *schema.get("$defs", {}).values()]
    for name in {name for table in tables for name in table.get("properties", ())}:
        assert re.search(rf'[`."]{name}[`"]', section), name
    for value in re.findall(r'"enum": \[([^\]]*)\]', json.dumps(schema)):
        for allowed in json.loads(f"[{value}]"):
            assert allowed is None or str(allowed) in section


def test_every_script_field_and_value_is_explained():
    text = page("simulator.md")
    for name, field in Script.model_fields.items():
        default = json.dumps(field.default).strip('"')
        assert re.search(rf"^\| `{name}` \| `{default}` \|", text, re.MULTILINE), name
    for value in (*Ending, *Submission):
        assert re.search(rf"^\| `{value}` \|", text, re.MULTILINE), value
    for model in known_models().values():
        if model.id.startswith("sim_"):
            assert set(model.params.model_fields) <= quoted(text)


def test_every_metric_is_explained_with_its_labels():
    kinds = {"counter": "_total", "gauge": "", "histogram": ""}
    ours = [family for family in metrics.REGISTRY.collect() if family.name.startswith("penstock_")]
    assert len(ours) > 10
    rows = dict(re.findall(r"^\| `(penstock_\w+)` \| (.*?) \|", page("metrics.md"), re.MULTILINE))
    assert set(rows) == {family.name + kinds[family.type] for family in ours}
    for kept in vars(metrics).values():
        if isinstance(kept, Counter | Gauge | Histogram):
            (family,) = kept.collect()
            assert re.findall(r"`(\w+)`", rows[family.name + kinds[family.type]]) == list(kept._labelnames), family.name


# -- links


def anchors(path: Path) -> set[str]:
    """As GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_every_page_can_be_reached_from_the_readme():
    linked = "\n".join(path.read_text() for path in PAGES)
    for path in (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/howto/*.md")):
        assert path.name in linked.replace(path.read_text(), ""), path.name
