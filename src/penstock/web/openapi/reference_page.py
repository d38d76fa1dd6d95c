"""`GET /docs`: the reference as one page, rendered from the OpenAPI document, without external resources."""

import asyncio
import json
import re
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from penstock.web.auth import base_url

router = APIRouter(include_in_schema=False)

Schema: TypeAlias = Mapping[str, Any]
STYLE = Path(__file__).with_name("reference.css").read_text("utf-8")
SCRIPT = Path(__file__).with_name("reference.js").read_text("utf-8")
NONCE, ORIGIN = "{{nonce}}", "{{origin}}"
"""Placeholders in the cached page for values that differ between requests."""
REFERENCE = re.compile(r'"#/components/schemas/([^"]+)"')
POLICY = (
    "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

BEGINNING = f"""export PENSTOCK_API_KEY=psk_…   # printed at the first start; `penstock key create` makes more
curl {ORIGIN}/healthz"""


@router.get("/docs")
async def read_reference(request: Request) -> Response:
    """Answer with the page, which is rendered once for each version of the document."""
    state = request.app.state
    document = await asyncio.to_thread(request.app.openapi)
    if getattr(state, "reference", (None,))[0] is not document:
        state.reference = (document, await asyncio.to_thread(draw, document))
    nonce = secrets.token_urlsafe(18)
    page = state.reference[1].replace(NONCE, nonce).replace(ORIGIN, escape(base_url(request)))
    headers = {"content-security-policy": POLICY.format(nonce=nonce), "x-content-type-options": "nosniff"}
    return HTMLResponse(page, headers={**headers, "referrer-policy": "no-referrer", "cache-control": "no-cache"})


def draw(document: Schema) -> str:
    """Return the whole page."""
    operations = [
        Operation(method, path, found)
        for path, methods in document["paths"].items()
        for method, found in methods.items()
    ]
    groups: dict[str, list[Operation]] = {}
    for operation in operations:
        groups.setdefault(operation.group, []).append(operation)
    shapes = Shapes(document["components"]["schemas"], [operation.responses for operation in operations])
    info = document["info"]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(info["title"])} reference</title>
<style nonce="{NONCE}">{STYLE}</style>
</head>
<body>
<header>
<h1>{escape(info["title"])} <small>{escape(info["version"])}</small></h1>
<p>{prose(info.get("summary", ""))} This page shows what this server offers now;
<a href="/openapi.json">openapi.json</a> is the machine-readable form.</p>
<input type="search" id="filter" placeholder="Filter endpoints, params, errors…" aria-label="Filter" autocomplete="off">
</header>
<div class="columns">
<nav aria-label="Endpoints">{"".join(_links(name, found) for name, found in groups.items())}
<details><summary>Shapes</summary><ul>{"".join(f"<li>{shapes.link(name)}</li>" for name in shapes.answered)}</ul>
</details></nav>
<main>
{_introduction()}
{"".join(_group(name, found, shapes) for name, found in groups.items())}
<section><h2>Shapes</h2>{"".join(shapes.draw(name) for name in shapes.answered)}</section>
<p id="nothing" hidden>Nothing matches.</p>
</main>
</div>
<script nonce="{NONCE}">{SCRIPT}</script>
</body>
</html>
"""


def _introduction() -> str:
    return f"""<section><h2>Begin</h2>
<p>Every call but those under Operations carries <code>Authorization: Bearer psk_…</code>, those under Administration
the administrator's key. A generation is a job:
<code>POST /model/v1/generation</code> answers at once with its record; follow it until <code>done</code> is true.
Every error has one shape, <code>{{"error": {{…}}}}</code>.</p>{code(BEGINNING)}</section>"""


# -- endpoints


class Operation:
    """One method of one path."""

    def __init__(self, method: str, path: str, found: Schema) -> None:
        self.method = method.upper()
        self.path = path
        self.found = found
        self.group: str = found.get("tags", ["Other"])[0]
        self.anchor = re.sub(r"[^a-z0-9]+", "-", f"{method} {path}".lower()).strip("-")
        self.parameters: Sequence[Schema] = found.get("parameters", ())
        self.body: Schema = found.get("requestBody", {}).get("content", {})
        self.responses: Mapping[str, Schema] = found["responses"]

    def curl(self, example: Schema | None) -> str:
        """A command to paste into a shell; what it cannot know stands there as a variable."""
        known = {"model_id": example["model"]} if example and "model" in example else {}
        path = re.sub(r"\{(\w+)\}", lambda name: known.get(name[1], f"${name[1].upper()}"), self.path)
        words = [f'curl "{ORIGIN}{path}"']
        if "401" in self.responses:
            key = "PENSTOCK_ADMIN_KEY" if self.path.startswith("/admin/") else "PENSTOCK_API_KEY"
            words.append(f'-H "Authorization: Bearer ${key}"')
        if "multipart/form-data" in self.body:
            words.append("-F file=@picture.png")
        elif example is not None:
            words += ['-H "Content-Type: application/json"', f"-d {shlex.quote(json.dumps(example))}"]
        if self.method not in ("GET", "POST") or (self.method == "POST" and not self.body):
            words.insert(1, f"-X {self.method}")
        kinds = self.responses.get("200", {}).get("content", {})
        if list(kinds) == ["text/event-stream"]:
            words.insert(1, "-N")
        if "application/octet-stream" in kinds:
            words.insert(1, "-OJ")
        return " \\\n  ".join(words)


def _links(name: str, operations: Sequence[Operation]) -> str:
    items = "".join(
        f'<li data-for="{found.anchor}"><a href="#{found.anchor}"><b class="{found.method}">{found.method}</b> '
        f"<span>{_breakable(found.path)}</span></a></li>"
        for found in operations
    )
    return f"<h2>{escape(name)}</h2><ul>{items}</ul>"


def _group(name: str, operations: Sequence[Operation], shapes: "Shapes") -> str:
    return f"<section><h2>{escape(name)}</h2>{''.join(_article(found, shapes) for found in operations)}</section>"


def _effort(example: Schema) -> tuple[bool, bool, int]:
    """Return what it takes to run an example: real models without a file come first, then short ones."""
    text = json.dumps(example)
    return '"script"' in text, '"file"' in text, len(text)


def _article(operation: Operation, shapes: "Shapes") -> str:
    body = operation.body.get("application/json", {}).get("schema")
    requests = [] if body is None else shapes.variants(body)
    examples = [request["example"] for request in requests if "example" in request]
    simplest = min(examples, key=_effort, default=None)
    key = "" if "401" in operation.responses else "<span>no key needed</span>"
    return f"""<article id="{operation.anchor}">
<h3><b class="{operation.method}">{operation.method}</b> <code>{_breakable(operation.path)}</code> {key}</h3>
{prose(operation.found.get("description", ""))}
{code(operation.curl(simplest))}
{_parameters(operation, shapes)}
{"".join(_request(request, shapes) for request in requests)}
{_answers(operation, shapes)}
</article>"""


def _parameters(operation: Operation, shapes: "Shapes") -> str:
    rows = [
        (
            f"<code>{escape(found['name'])}</code>",
            escape(found["in"]),
            shapes.word(found["schema"]),
            _default(found["schema"], required=found.get("required", False)),
            prose(found.get("description", "")),
        )
        for found in operation.parameters
    ]
    return table(("Parameter", "In", "Type", "Default", "Meaning"), rows)


def _request(request: Schema, shapes: "Shapes") -> str:
    """One model's body: its params, then what may stand beside them."""
    fields: Schema = request.get("properties", {})
    if "items" not in fields.get("input", {}):  # not a generation
        example = f"<h4>example</h4>{code(json.dumps(request['example'], indent=2))}" if "example" in request else ""
        shape = shapes.table(request) if fields else shapes.word(request)
        return f"<details><summary>Body</summary>{shape}{example}</details>"
    params = fields["input"]["items"]["properties"]["params"]
    model = escape(str(fields["model"]["const"]))
    beside = {name: field for name, field in fields.items() if name not in ("model", "input")}
    example = code(json.dumps(request["example"], indent=2)) if "example" in request else ""
    return f"""<details><summary>Body for <code>{model}</code></summary>
<h4>params</h4>{shapes.table(shapes.follow(params), nested=True)}
<h4>beside <code>model</code> and <code>input</code></h4>{shapes.table({"properties": beside}, nested=True)}
<h4>example</h4>{example}</details>"""


def _answers(operation: Operation, shapes: "Shapes") -> str:
    good = {status: found for status, found in operation.responses.items() if status < "400"}
    bad = {status: found for status, found in operation.responses.items() if status >= "400"}
    answers = [(escape(status), shapes.content(found), prose(found["description"])) for status, found in good.items()]
    errors = [(escape(status), prose(found["description"])) for status, found in sorted(bad.items())]
    problems = f"<details><summary>Errors</summary>{table(('Status', 'Code and meaning'), errors)}</details>"
    return table(("Answer", "Body", "Meaning"), answers) + (problems if errors else "")


# -- shapes


class Shapes:
    """The document's schemas, as tables and as words."""

    def __init__(self, schemas: Mapping[str, Schema], responses: Sequence[Schema]) -> None:
        self._schemas = schemas
        reached = set[str]()
        waiting = REFERENCE.findall(json.dumps(responses))
        while waiting:
            if (name := waiting.pop()) not in reached:
                reached.add(name)
                waiting += REFERENCE.findall(json.dumps(schemas[name]))
        self.answered = [name for name, found in schemas.items() if name in reached and "properties" in found]
        """The objects that answers are made of."""

    def follow(self, schema: Schema) -> Schema:
        """Return the schema that a reference names."""
        return self._schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def variants(self, schema: Schema) -> list[Schema]:
        """Every form that a body may have."""
        whole = self.follow(schema)
        return [self.follow(form) for form in whole.get("oneOf", [whole])]

    def link(self, name: str) -> str:
        """A schema's name: to its table if it has one here, else what it allows."""
        found = self._schemas[name]
        if name not in self.answered:
            return self.word(found)
        return f'<a href="#shape-{escape(name)}">{escape(found.get("title", name))}</a>'

    def draw(self, name: str) -> str:
        """A schema's own table."""
        found = self._schemas[name]
        return f"""<article id="shape-{escape(name)}"><h3>{escape(found.get("title", name))}</h3>
{prose(found.get("description", ""))}
{self.table(found)}</article>"""

    def table(self, schema: Schema, *, nested: bool = False) -> str:
        """The fields of an object; `nested` ones follow as `file.url`."""
        return table(("Field", "Type", "Default", "Meaning"), list(self._rows(schema, "", nested=nested)))

    def content(self, response: Schema) -> str:
        """Return the type of a response body as HTML."""
        kinds: Mapping[str, Schema] = response.get("content", {})
        return " or ".join(self._content(kind, found["schema"]) for kind, found in kinds.items()) or "none"

    def _content(self, kind: str, schema: Schema) -> str:
        if kind == "application/json":
            return self.word(schema)
        return f"{escape(kind)} of {self.word(schema)}" if "$ref" in schema else escape(kind)

    def _rows(self, schema: Schema, prefix: str, *, nested: bool) -> Iterator[tuple[str, ...]]:
        required = schema.get("required", ())
        for name, field in schema.get("properties", {}).items():
            inner = [form for form in self._forms(field) if "properties" in form] if nested else []
            word = "object" if inner and len(self._forms(field)) == 1 else self.word(field)
            default = _default(field, required=name in required)
            yield f"<code>{escape(prefix + name)}</code>", word, default, prose(field.get("description", ""))
            for form in inner:
                yield from self._rows(form, f"{prefix}{name}.", nested=True)

    def _forms(self, field: Schema) -> list[Schema]:
        """Every form of a field but null."""
        whole = self.follow(field)
        forms = whole.get("anyOf") or whole.get("oneOf")
        if forms is None:
            return [] if whole.get("type") == "null" else [whole]
        return [inner for form in forms for inner in self._forms(form)]

    def word(self, field: Schema) -> str:
        """A type in a few words: `integer 48 to 2000000`, `4, 6, 8`, `array of OutputShape`."""
        if "$ref" in field:
            return self.link(field["$ref"].rpartition("/")[2])
        if "enum" in field:
            return ", ".join(f"<code>{escape(str(value))}</code>" for value in field["enum"] if value is not None)
        if "const" in field:
            return f"<code>{escape(str(field['const']))}</code>"
        forms = field.get("anyOf") or field.get("oneOf")
        if forms is not None:
            return " or ".join(dict.fromkeys(self.word(form) for form in forms if form.get("type") != "null"))
        if field.get("type") == "array":
            return f"array of {self.word(field.get('items', {}))}{_bounds(field, 'Items')}"
        kind = field.get("format", field.get("type", "any"))
        return escape(kind if isinstance(kind, str) else " or ".join(kind)) + _bounds(field)


def _bounds(field: Schema, what: str = "") -> str:
    """` 48 to 2000000`, ` 1 to 4000 characters`, or nothing."""
    pairs = (("minimum", "maximum", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", ""))
    if "exclusiveMinimum" in field:
        return f" above {field['exclusiveMinimum']}"
    for low, high, unit in pairs:
        least, most = field.get(low), field.get(high)
        if what in low and (least is not None or most is not None):
            return f" {least} or more{unit}" if most is None else f" {'up' if least is None else least} to {most}{unit}"
    return ""


def _default(field: Schema, *, required: bool) -> str:
    if required:
        return "required"
    default = field.get("default")
    text = default if isinstance(default, str) else json.dumps(default)
    return "" if default is None else f"<code>{escape(text)}</code>"


# -- pieces of HTML


def prose(text: str) -> str:
    """Plain text with `code` in it."""
    parts = [re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(part)) for part in text.split("\n\n") if part.strip()]
    return parts[0] if len(parts) == 1 else "".join(f"<p>{part}</p>" for part in parts)


def code(text: str) -> str:
    """A block to copy."""
    return f'<div class="code"><button type="button">Copy</button><pre>{escape(text)}</pre></div>'


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of HTML cells, nothing if it has no rows; on a narrow screen each cell names its column itself."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ["".join(map('<td data-column="{}">{}</td>'.format, columns, row)) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _breakable(path: str) -> str:
    """A path that may wrap at its slashes."""
    return escape(path).replace("/", "<wbr>/")
