"""The server behind the console's tests: the simulator makes films and models, a double chats."""

import asyncio
import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from calm_loop import CalmLoop
from conftest import SIMULATOR
from openai_double import OpenAIDouble
from PIL import Image
from plain import NO_TLS
from stage import Stage, staged

ADMIN_KEY = "psk_chosen_by_an_administrator"  # looks like an account's, and is none
CHAT, SLOW_CHAT = "echo", "slow:1"
FILM, DEAR_FILM = "sim_text_to_video", "vendorb_video_31"
GEM, MODEL = "sim_image_to_model", "vendora_image_to_model"


def picture(name: str = "ball.png") -> dict[str, Any]:
    """A picture to choose in a file field."""
    buffer = io.BytesIO()
    Image.radial_gradient("L").convert("RGB").save(buffer, "PNG")
    return {"name": name, "mimeType": "image/png", "buffer": buffer.getvalue()}


@dataclass
class Theatre:
    """A running server and what it was filled with."""

    stage: Stage
    double: OpenAIDouble
    account: str
    """A key of the account `default`."""

    @property
    def url(self) -> str:
        return self.stage.url

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Speak to the server as any client would."""
        headers = {"authorization": f"Bearer {key or (ADMIN_KEY if path.startswith('/admin') else self.account)}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=300, trust_env=False, verify=NO_TLS) as client:
            response = client.request(method, path, json=body)
        assert response.is_success, response.text
        return response.json()

    def order(self, prompt: str, latency: float = 0, **script: Any) -> str:
        """A film by the simulator; returns the job's id."""
        params = {"prompt": prompt, "script": {"latency": latency, **script}}
        return self.call("POST", "/model/v1/generation", {"model": FILM, "input": [{"params": params}]})["id"]

    def finish(self, job: str) -> dict[str, Any]:
        while not (record := self.call("GET", f"/api/v1/jobs/{job}?wait=30"))["done"]:
            pass
        return record

    def until_refused(self, key: str) -> None:
        """Wait until the server has followed the change of a key."""
        deadline = time.monotonic() + 300
        headers = {"authorization": f"Bearer {key}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=300, trust_env=False, verify=NO_TLS) as client:
            while client.get("/api/v1/jobs").status_code != httpx.codes.UNAUTHORIZED:
                assert time.monotonic() < deadline, "the key still works"
                time.sleep(0.02)

    def until_upstream(self, count: str, at_least: int) -> None:
        """Wait until the double has seen so many `requests` or callers `gone`."""
        deadline = time.monotonic() + 300
        while len(getattr(self.double, count)) < at_least:
            assert time.monotonic() < deadline, f"{count}: {getattr(self.double, count)}"
            time.sleep(0.01)


def make_gem(theatre: Theatre, name: str) -> str:
    """Make a 3D model of a picture; returns the job's id."""
    chosen = picture(name)
    headers = {"authorization": f"Bearer {theatre.account}"}
    with httpx.Client(base_url=theatre.url, headers=headers, timeout=300, trust_env=False, verify=NO_TLS) as client:
        answer = client.post("/api/v1/files", files={"file": (name, chosen["buffer"], chosen["mimeType"])})
    params = {"file": {"file_token": answer.json()["file_token"]}, "script": {"latency": 0}}
    job = theatre.call("POST", "/model/v1/generation", {"model": GEM, "input": [{"params": params}]})["id"]
    return theatre.finish(job)["id"]


@contextmanager
def playing(folder: Path, weights: Path, more: str = "") -> Iterator[Theatre]:
    """The server until the block ends; `more` are further settings."""
    with _doubling() as double, staged(folder, weights, _settings(double) + more) as stage:
        yield Theatre(stage, double, stage.key())


def _settings(double: OpenAIDouble) -> str:
    upstream = f'[vendors.double]\ntype = "openai_compatible"\napi_key = "{double.key}"\nbase_url = "{double.url}"\n'
    price = 'price = {input_per_million = "1", output_per_million = "2"}'
    chats = [f'[[models]]\nid = "{model}"\nkind = "chat"\nvendor = "double"\n{price}\n' for model in (CHAT, SLOW_CHAT)]
    films = [
        f'[[models]]\nid = "{DEAR_FILM}"\nvendor = "sim"\nprice = {{per_job = "0.30"}}\n',
        *(f'[[models]]\nid = "{model}"\nvendor = "sim"\n' for model in (FILM, MODEL, GEM)),
    ]
    server = f'[server]\nadmin_key = "{ADMIN_KEY}"\n[fetch]\nallow_networks = ["127.0.0.0/8"]\n'
    content = '[content_log]\nretention = "1d"\n'
    return "\n".join([SIMULATOR, upstream, server, content, *chats, *films])


@contextmanager
def _doubling() -> Iterator[OpenAIDouble]:
    """The double in a loop of its own."""
    loop, double = CalmLoop(), OpenAIDouble()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(double.__aenter__(), loop).result(300)
    finally:
        asyncio.run_coroutine_threadsafe(double.close(), loop).result(300)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
