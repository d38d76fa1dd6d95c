"""fal's dialect through its client for Python, unchanged: `FAL_RUN_HOST`, `FAL_QUEUE_RUN_HOST` and TLS."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
import trustme
from conftest import SIMULATOR, Start
from tls_front import LOST, fronted

PROGRAM = Path(__file__).parent / "fal_program.py"
SETTINGS = SIMULATOR + "".join(
    f'[[models]]\nid = "{name}"\nvendor = "sim"\nprice = {{per_job = "0.05"}}\n'
    for name in ("sim_text_to_video", "sim_text_to_image", "sim_image_to_model")
)


async def test_every_case_of_the_program(start: Start, tmp_path: Path, subtests: pytest.Subtests) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with fronted(authority) as front:
        server = await start(SETTINGS, {"server.public_url": f"https://localhost:{front.port}"})
        front.target = int(server.url.rpartition(":")[2])
        environment = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            "FAL_RUN_HOST": f"localhost:{front.port}/fal/run",
            "FAL_QUEUE_RUN_HOST": f"localhost:{front.port}/fal/queue",
            "FAL_KEY": await server.new_key("program"),
            "SSL_CERT_FILE": str(tmp_path / "ca.pem"),
            "PENSTOCK_POOR_API_KEY": await server.new_key(budgets={"total": "0.01"}),
            "PENSTOCK_READ_API_KEY": await server.new_key(scopes=frozenset({"read"})),
            "PENSTOCK_UNKNOWN_API_KEY": "psk_unknown",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), env=environment, stdout=PIPE, stderr=PIPE
        )
        output, errors = await process.communicate()
        results = [json.loads(line) for line in output.splitlines()]
        assert results, errors.decode()
        for result in results:
            with subtests.test(result["case"]):
                assert result["problem"] is None, result["problem"]
        assert front.orders >= 2, "the client sent the order again"
        jobs = (await (await server.sign_in("program")).get("/api/v1/jobs?limit=100")).json()["data"]
        assert len([job for job in jobs if job["input"].get("prompt") == LOST.decode()]) == 1
