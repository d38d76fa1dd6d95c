"""The OpenAPI document is true: a fuzzer that knows only the document finds no crash and no undocumented answer."""

import asyncio
import sys
from pathlib import Path

import pytest

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


@pytest.mark.timeout(180)
async def test_a_fuzzer_that_reads_the_document_finds_nothing(server, tmp_path):
    key = await server.new_key()
    process = await asyncio.create_subprocess_exec(
        *(SCHEMATHESIS, "run", f"{server.url}/openapi.json", "--header", f"Authorization: Bearer {key}"),
        *("--checks", ",".join(CHECKS), "--max-time", "25", "--request-timeout", "65", "--no-color", "--no-shrink"),
        *("--seed", "20261115", "--generation-database", "none"),
        *("--exclude-path-regex", "events$"),  # streams, of which some never end; test_events.py follows them
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    assert b"Tested: 20" in output
