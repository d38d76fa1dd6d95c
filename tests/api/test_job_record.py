"""One definition of the job record: server, OpenAPI document, Python client and console have equal fields.

`src/penstock/jobs/records.py` is the definition. Whoever adds a field there learns here what to bring up to date.
"""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from steps import FAILS, order, until

from penstock.client import records as of_client
from penstock.jobs import records as of_server

TYPES = Path(__file__).parents[2] / "console" / "src" / "api" / "schema.d.ts"
PARTS: dict[str, Any] = {
    "JobRecord": of_server.JobRecord,
    "OutputShape": of_server.OutputShape,
    "AttemptShape": of_server.AttemptShape,
    "Cost": of_server.Cost,
    "JobUrls": of_server.JobUrls,
    "JobErrorBody": of_server.JobErrorBody,
}
CLIENT: dict[str, type[of_client.Record]] = {
    "JobRecord": of_client.JobRecord,
    "OutputShape": of_client.OutputRecord,
    "AttemptShape": of_client.Attempt,
    "Cost": of_client.Cost,
    "JobErrorBody": of_client.JobError,
}
ONLY_IN_RAW = {"JobRecord": {"object", "urls"}, "JobErrorBody": {"details"}}
"""Fields that the Python client leaves to `raw` on purpose."""


def differ(found: set[str], name: str, place: str, remedy: str) -> str:
    """Return a message that names the missing and the unknown fields, and the remedy."""
    wanted = set(PARTS[name].__annotations__)
    parts = [f"{name}: {place} differs from src/penstock/jobs/records.py"]
    parts += [f"lacks {sorted(wanted - found)}"] if wanted - found else []
    parts += [f"has besides {sorted(found - wanted)}"] if found - wanted else []
    return f"{', '.join(parts)}. {remedy}"


def defined(name: str) -> set[str]:
    return set(PARTS[name].__required_keys__)


async def test_the_server_answers_every_field_and_no_other(server):
    done = await until(server.client, (await order(server.client, {}))["id"], done=True)
    failed = await until(server.client, (await order(server.client, FAILS))["id"], done=True)
    answers = {
        "JobRecord": done,
        "OutputShape": done["outputs"][0],
        "AttemptShape": done["attempts"][0],
        "Cost": done["cost"],
        "JobUrls": done["urls"],
        "JobErrorBody": failed["error"],
    }
    assert answers.keys() == PARTS.keys()
    for name, answer in answers.items():
        remedy = "Let `RecordBuilder`, or `body` of the errors, write it."
        assert set(answer) == defined(name), differ(set(answer), name, "the server's answer", remedy)


async def test_the_openapi_document_describes_every_field(server):
    schemas = (await server.client.get("/openapi.json")).json()["components"]["schemas"]
    for name in PARTS:
        described = set(schemas[name]["properties"])
        remedy = "`web/openapi/schemas.py` should import the class, not define it."
        assert described == defined(name) == set(schemas[name]["required"]), differ(
            described, name, "the OpenAPI document", remedy
        )


@pytest.mark.parametrize("name", CLIENT)
def test_the_python_client_has_every_field(name):
    known = {field.metadata.get("wire", field.name) for field in fields(CLIENT[name])} - {"raw"}
    remedy = f"Add it to `{CLIENT[name].__name__}` in src/penstock/client/records.py, or to ONLY_IN_RAW here."
    found = known | ONLY_IN_RAW.get(name, set())
    assert found == defined(name), differ(found, name, "the Python client", remedy)
    assert not known & ONLY_IN_RAW.get(name, set()), "A field that the client has is not only in `raw`."


@pytest.mark.parametrize("name", PARTS)
def test_the_console_has_every_field(name):
    written = TYPES.read_text()
    block = written.partition(f"\n        {name}: {{\n")[2].partition("\n        };")[0]
    found = set(re.findall(r"^ {12}(\w+)\??: ", block, re.MULTILINE))
    remedy = "Start a server, then run `node tools/types.mjs http://127.0.0.1:8787` in console/."
    assert found == defined(name), differ(found, name, "console/src/api/schema.d.ts", remedy)
