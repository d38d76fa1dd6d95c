"""Jobs of the built-in models, to their end."""

from typing import Any

from conftest import Server


async def finish(server: Server, model: str, **params: Any) -> dict[str, Any]:
    """The record of a job once it is done, however long that takes."""
    job = await server.submit(model, **params)
    while True:
        record = (await server.client.get(f"/api/v1/jobs/{job['id']}", params={"wait": 60})).json()
        if record["done"]:
            return record


async def download(server: Server, output: dict[str, Any]) -> bytes:
    response = await server.client.get(output["url"])
    assert response.status_code == 200
    return response.content
