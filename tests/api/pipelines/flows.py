"""What tests of pipelines do again and again: run, wait, and look at steps."""

import asyncio
from typing import Any

import httpx

FAST = {"script": {"latency": 0.05}}
PICTURE = {"name": "picture", "model": "sim_text_to_image", "params": {"prompt": {"param": "prompt"}, **FAST}}
MODEL = {"name": "model", "model": "sim_image_to_model", "params": {"file": {"step": "picture"}, **FAST}}
FILM = {"name": "film", "model": "sim_model_to_video", "params": {"mesh": {"step": "model", "output": 0}, **FAST}}
FOX = {"params": {"prompt": "a red fox"}, "steps": [PICTURE, MODEL, FILM]}


async def run(client: httpx.AsyncClient, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await client.post("/api/v1/pipelines", json=body, headers=names)
    assert response.status_code == 202, response.text
    return response.json()


async def finish(client: httpx.AsyncClient, pipeline_id: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            response = await client.get(f"/api/v1/pipelines/{pipeline_id}", params={"wait": 30})
            assert response.status_code == 200, response.text
            if response.json()["done"]:
                return response.json()


def steps_of(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in record["steps"]}


def scripted(step: dict[str, Any], **script: Any) -> dict[str, Any]:
    return {**step, "params": {**step["params"], "script": {"latency": 0.05, **script}}}


PRICES = {"sim_text_to_image": "0.10", "sim_image_to_model": "0.20", "sim_model_to_video": "0.30"}
PRICED = '[vendors.sim]\ntype = "sim"\npoll_seconds = 0.05\n' + "".join(
    f'[[models]]\nid = "{name}"\nvendor = "sim"\nprice = {{per_job = "{price}"}}\n' for name, price in PRICES.items()
)


def step(name: str, model: str, **params: Any) -> dict[str, Any]:
    return {"name": name, "model": model, "params": params}
