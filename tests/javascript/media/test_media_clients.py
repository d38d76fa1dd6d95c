"""Generations as programs in JavaScript see them, through the clients of other services, unchanged."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from conftest import Server, Start
from hook_receiver import LOOPBACK

HERE = Path(__file__).parent
SETTINGS = LOOPBACK + "".join(
    f'[[models]]\nid = "{name}"\nvendor = "sim"\nprice = {{per_job = "0.05"}}\n'
    for name in ("sim_text_to_video", "sim_text_to_image", "sim_image_to_model")
)


async def keys_of(server: Server) -> dict[str, str]:
    return {
        "PENSTOCK_API_KEY": await server.new_key(),
        "PENSTOCK_POOR_API_KEY": await server.new_key(budgets={"total": "0.01"}),
        "PENSTOCK_READ_API_KEY": await server.new_key(scopes=frozenset({"read"})),
        "PENSTOCK_UNKNOWN_API_KEY": "psk_unknown",
    }


@pytest.mark.parametrize(
    "script",
    ["replicate_client.mjs", "ai_sdk_replicate.mjs", "fal_client.mjs", "openai_media.mjs", "ai_sdk_images.mjs"],
)
async def test_every_case_of_the_script(start: Start, script: str, subtests: pytest.Subtests) -> None:
    server = await start(SETTINGS)
    environment = {**os.environ, "PENSTOCK_URL": server.url, **await keys_of(server)}
    process = await asyncio.create_subprocess_exec("node", script, cwd=HERE, env=environment, stdout=PIPE, stderr=PIPE)
    output, errors = await process.communicate()
    results = [json.loads(line) for line in output.splitlines()]
    assert results, errors.decode()
    for result in results:
        with subtests.test(result["case"]):
            assert result["problem"] is None, result["problem"]
    assert process.returncode == 0, errors.decode()
