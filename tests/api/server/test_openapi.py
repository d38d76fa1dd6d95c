"""The OpenAPI document is true: a fuzzer that knows only the document finds no crash and no undocumented answer."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from admin_steps import ADMIN_KEY, WITH_ADMIN
from conftest import Server

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
)


async def fuzz(server: Server, key: str, folder: Path, *paths: str) -> int:
    """Have the fuzzer attack some paths with a key; how many operations it has tested."""
    process = await asyncio.create_subprocess_exec(
        *(SCHEMATHESIS, "run", f"{server.url}/openapi.json", "--header", f"Authorization: Bearer {key}"),
        *("--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--max-examples", "3"),
        *("--request-timeout", "65"),
        *("--no-color", "--no-shrink", "--seed", "20261115", "--generation-database", "none", *paths),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    found = re.search(rb"Tested: (\d+)", output)
    assert found, output.decode()
    return int(found[1])


async def count_operations(server: Server, begin: str) -> int:
    paths = (await server.client.get("/openapi.json")).json()["paths"]
    return sum(len(methods) for path, methods in paths.items() if path.startswith(begin))


@pytest.mark.timeout(1800)  # it is bounded by the number of requests, not by time
@pytest.mark.long
async def test_a_fuzzer_that_reads_the_document_finds_nothing(server, tmp_path):
    # Streams never end, of which test_events.py follows some; what administrators do is attacked below. The fuzzer
    # cannot write the body of a resumable upload: test_resumable.py does.
    uploads = ("--exclude-name", "PATCH /api/v1/files/tus/{upload_id}")
    left_out = ("--exclude-path-regex", "events$|^/admin/", *uploads)
    tested = await fuzz(server, await server.new_key(), tmp_path, *left_out)
    streams, pieces = 3, 1
    own = await count_operations(server, "/") - await count_operations(server, "/admin/")
    assert tested == own - streams - pieces


@pytest.mark.timeout(1800)  # it is bounded by the number of requests, not by time
@pytest.mark.long
async def test_a_fuzzer_with_the_administrators_key_finds_nothing(start, tmp_path):
    server = await start(WITH_ADMIN)
    tested = await fuzz(server, ADMIN_KEY, tmp_path, "--include-path-regex", "^/admin/")
    assert tested == await count_operations(server, "/admin/")
