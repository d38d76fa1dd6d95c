"""Draws the pages of the reference that come from code: docs/models.md, docs/endpoints.md and docs/roles.md.

python tools/docs/reference_pages.py
"""

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from penstock.catalog import known_models
from penstock.catalog.model import GenerationModel
from penstock.cli.models import list_params
from penstock.gateway import Gateway
from penstock.settings.tables import load
from penstock.vendors import load_vendor, vendor_names
from penstock.web.app import create_app
from penstock.web.permissions import PARTIES, PERMISSIONS, Permission
from penstock.web.server.serving import serve
from penstock_engines.llama.profiles import PROFILES

DOCS = Path(__file__).parents[2] / "docs"

# -- models

MODELS = """# Models and their params

Drawn from the code by `python tools/docs/reference_pages.py`; a test holds the two equal. `GET /api/v1/models` lists
what a server offers, and at what price. Models of fal, Replicate and ComfyUI that are not here can be
[declared](vendors.md#declared-models).

`null` means absent. [Files among the params](api.md#files-among-the-params) explains the fields of files.
`script` is the [simulator's](simulator.md#the-script).

| Model | Makes | Vendors |
|---|---|---|
{models}

Built-in [chat models](engines.md#chat), which take [OpenAI's request](chat.md#requests):

| Model | Title | Description |
|---|---|---|
{chat}
{sections}"""


def draw_models() -> str:
    """The whole page."""
    served = list_served()
    rows = [
        f"| [`{model.id}`](#{model.id}) | {model.title} ({model.kind}) | {_word_vendors(vendors)} |"
        for model, vendors in served
    ]
    chat = [f"| `{Path(name).stem}` | {each.title} | {each.description} |" for name, each in PROFILES.items()]
    sections = "".join(draw_model(model, vendors) for model, vendors in served)
    return MODELS.format(models="\n".join(rows), chat="\n".join(chat), sections=sections)


def list_served() -> list[tuple[GenerationModel, list[str]]]:
    """Every model that a vendor's file knows, and the vendors' names; those that several serve come first."""
    models: dict[str, GenerationModel] = dict(sorted(known_models().items(), reverse=True))
    vendors: dict[str, list[str]] = defaultdict(list)
    told = (DOCS / "vendors.md").read_text()  # a vendor that was just added is not there yet
    for name in sorted(name for name in vendor_names() if f"| [`{name}`]" in told or f"| `{name}` |" in told):
        for served in getattr(load_vendor(name), "models", ()):
            models.setdefault(served.model.id, served.model)
            vendors[served.model.id].append(name)
    every = sorted(models.values(), key=lambda model: (-len(vendors[model.id]), vendors[model.id]))
    return [(model, vendors[model.id]) for model in every]


def _word_vendors(names: list[str]) -> str:
    return ", ".join(f"[`{name}`]({'simulator.md' if name == 'sim' else f'vendors.md#{name}'})" for name in names)


def draw_model(model: GenerationModel, vendors: list[str]) -> str:
    """A section of the page; what has a place of its own is not told again."""
    rows = [
        f"| `{name}` | {kinds} | {_word_default(default)} | {_cell(allowed)} | {_cell(meaning)} |"
        for name, kinds, default, allowed, meaning in list_params(model.schema, model.schema)
        if "." not in name or name.partition(".")[0] not in {"script", *(slot.name for slot in model.files)}
    ]
    head = ["", f"## `{model.id}`", "", f"{model.title}. Served by {_word_vendors(vendors)}.", ""]
    return "\n".join([*head, "| Param | Type | Default | Allowed | Meaning |", "|---|---|---|---|---|", *rows, ""])


def _word_default(default: str) -> str:
    return f"`{default}`" if default not in ("", "required") else default


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# -- endpoints

ENDPOINTS = """# Endpoints

Drawn from the server's own `/openapi.json` by `python tools/docs/reference_pages.py`; a test holds the two equal.
The [API](api.md) explains each of them, with its fields. A running server has all of it, with the models that it
offers, at `/docs`.
{sections}
"""


def draw_endpoints(document: Mapping[str, Any]) -> str:
    """The whole page."""
    by_tag: dict[str, list[str]] = defaultdict(list)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag[operation["tags"][0]].append(_draw_endpoint(f"{method.upper()} {path}", operation))
    head = "| Endpoint | What it does | Answers |\n|---|---|---|"
    parts = [f"\n## {tag}\n\n{head}\n" + "\n".join(rows) for tag, rows in by_tag.items()]
    return ENDPOINTS.format(sections="\n".join(parts))


def _draw_endpoint(name: str, operation: Mapping[str, Any]) -> str:
    told = " ".join(operation.get("description", "").split())
    answers = ", ".join(sorted(operation["responses"]))
    return f"| `{name}` | {_cell(told)} | {answers} |"


async def read_document() -> dict[str, Any]:
    """What a server out of the box says of itself."""
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    with tempfile.TemporaryDirectory() as folder:
        gateway = await Gateway.open(load(None, {}, {"data": Path(folder)}))
        told = {"on_ready": ready.set_result, "on_drain": gateway.drain, "stop": stop}
        serving = asyncio.create_task(serve(create_app(gateway), host="127.0.0.1", port=0, drain_seconds=1, **told))
        try:
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{await ready}", trust_env=False, timeout=60
            ) as client:
                return (await client.get("/openapi.json")).json()
        finally:
            stop.set()
            await serving
            await gateway.close()


# -- roles

ROLES = """# Roles

What each role may do. The tables are drawn from the one that the server enforces by
`python tools/docs/reference_pages.py`; tests hold them equal, and ask the server about every cell.

A **person** has one role in each of their [accounts](people.md). An **operator** administers the whole server: it is
somebody with the [administrator's key](api.md#administration), or a person who is an
operator, with a key for all endpoints and models. A
**service key** belongs to an account instead of a person; its [`endpoints`](api.md#keys) narrow what is listed here. A
key of a person may do what the role of its person may, at most.

| Role | In short |
|---|---|
| operator | everything below `/admin/v1`: accounts, budgets, people, vendors, the ledger |
| owner | everything in the account |
| admin | everything in the account, except making, changing and removing owners |
| billing | usage and cost; sees all keys, and sets the limits for people's keys |
| member | generates, chats, shares; has keys of their own |
| viewer | looks at work and usage, changes nothing |
{sections}"""


def draw_roles() -> str:
    """The whole page."""
    return ROLES.format(sections="".join(map(_draw_permission, PERMISSIONS)))


def _draw_permission(permission: Permission) -> str:
    head = f"\n## {permission.title}\n\n"
    if permission.parties is None:
        return head + "".join(f"- `{endpoint}`\n" for endpoint in permission.endpoints)
    cells = " | ".join("yes" if party in permission.parties else "" for party in PARTIES)
    rows = "".join(f"| `{endpoint}` | {cells} |\n" for endpoint in permission.endpoints)
    return f"{head}| Endpoint | {' | '.join(PARTIES)} |\n|---|{'---|' * len(PARTIES)}\n{rows}"


def draw() -> Iterator[tuple[Path, str]]:
    yield DOCS / "models.md", draw_models()
    yield DOCS / "roles.md", draw_roles()
    yield DOCS / "endpoints.md", draw_endpoints(asyncio.run(read_document()))


if __name__ == "__main__":
    for path, text in draw():
        path.write_text(text)
