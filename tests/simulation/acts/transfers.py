"""Callers that upload pictures, use them by their tokens, and download outputs."""

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from simulation.machine import PNG

if TYPE_CHECKING:
    from simulation.callers import Caller

UNREADABLE: Final = (400,)
"""A picture whose child is killed twice counts as unreadable."""
BOUNDARY: Final = "simulated-boundary"


async def upload(caller: "Caller", number: int) -> None:
    """Upload a picture. Some pictures have the same bytes as an earlier one."""
    picture = PNG + json.dumps({"picture": number % 5, "of": caller.account}).encode()
    body = (
        f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\n'.encode()
        + picture
        + f"\r\n--{BOUNDARY}--\r\n".encode()
    )
    content_type = f"multipart/form-data; boundary={BOUNDARY}"
    answer = await caller.ask("POST", "/api/v1/files", body, allowed=UNREADABLE, **{"content-type": content_type})
    if answer is None or answer.status != 201:
        return
    if answer.json["sha256"] != hashlib.sha256(picture).hexdigest():
        caller.world.violate("an upload has its bytes", answer.json["file_token"])
    caller.files.append(answer.json["file_token"])


async def drop(caller: "Caller") -> None:
    """Delete an upload. Jobs that use it have their own copy."""
    if caller.files:
        token = caller.dice.choice(caller.files)
        caller.files.remove(token)
        await caller.ask("DELETE", f"/api/v1/files/{token}")


async def download(caller: "Caller") -> None:
    """Download the outputs of a job by their links, some of them in part."""
    if (found := caller.some_job()) is None:
        return
    answer = await caller.ask("GET", f"/api/v1/jobs/{found[1]}")
    if answer is None or answer.status != 200 or answer.json["status"] != "succeeded":
        return
    for output in answer.json["outputs"]:
        await _check_output(caller, found[1], output)


async def _check_output(caller: "Caller", job_id: str, output: dict[str, Any]) -> None:
    parts = urlsplit(output["url"])
    is_part = caller.dice.random() < 0.3
    headers = {"range": "bytes=3-9"} if is_part else {}
    answer = await caller.ask("GET", f"{parts.path}?{parts.query}", **headers)
    if answer is None or answer.status not in (200, 206, 404):
        return
    if answer.status == 404:
        caller.world.violate("every output can be downloaded", f"{job_id}: {output['id']}")
    elif answer.status == 206 and len(answer.body) != 7:
        caller.world.violate("a part has its length", f"{job_id}: {len(answer.body)}")
    elif answer.status == 200 and hashlib.sha256(answer.body).hexdigest() != output["sha256"]:
        caller.world.violate("an output has its hash", f"{job_id}: {output['id']}")
