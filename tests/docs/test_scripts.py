"""The table of docs/simulator.md, "What a script comes to", row by row."""

import json
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()
ROWS = re.findall(r"^\| `(\{.*?\})`(?: with `run_timeout` (\d+))? \| `(\w+)` \| (?:`(\w+)`)? ?\|", PAGE, re.MULTILINE)


def test_the_table_is_read():
    assert len(ROWS) == 17


@pytest.mark.parametrize(("script", "run_timeout", "status", "code"), ROWS)
async def test_a_script_comes_to_what_the_page_says(start, script, run_timeout, status, code):
    server = await start('[vendors.sim]\ntype = "sim"\npoll_seconds = 0.02\n')
    params = {"script": {"latency": 0.05, **json.loads(script)}}
    body = {"model": "sim_text_to_video", "input": [{"params": params}]}
    if run_timeout:
        body["run_timeout"] = int(run_timeout)
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 202, response.text
    record = await server.finish(response.json()["id"])
    assert record["status"] == status
    assert (record["error"] or {}).get("code", "") == code
