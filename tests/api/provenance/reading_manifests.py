"""Reads signed results as others do: with c2pa's own reader, and with `cryptography` for sidecars."""

import base64
import hashlib
import io
import json
from typing import Any
from urllib.parse import urlsplit

import c2pa
from conftest import SIMULATOR, Server
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

SIGNED = f'{SIMULATOR}[provenance]\nresults = "signed"\n'
"""Settings by which the simulator's results are signed. Those of other tests are not."""


def primary(job: dict[str, Any]) -> dict[str, Any]:
    """The result of a job."""
    assert job["status"] == "succeeded", job["error"]
    return next(output for output in job["outputs"] if output["role"] == "primary")


async def download(server: Server, output: dict[str, Any]) -> bytes:
    """The bytes of an output, which are what its record says."""
    answer = await server.client.get(urlsplit(output["url"]).path)
    assert answer.status_code == 200, answer.text
    assert hashlib.sha256(answer.content).hexdigest() == output["sha256"]
    assert len(answer.content) == output["bytes"]
    return answer.content


def read_all(content_type: str, data: bytes, anchors: str = "") -> dict[str, Any]:
    """Everything in the manifest store, by a reader that trusts these anchors only."""
    settings = c2pa.Context.from_dict({"trust": {"trust_anchors": anchors}} if anchors else {})
    with c2pa.Reader(content_type, io.BytesIO(data), context=settings) as reader:
        return json.loads(reader.json())


def read_manifest(server: Server, content_type: str, data: bytes) -> dict[str, Any]:
    """The active manifest, which is valid and signed by this server."""
    found = read_all(content_type, data, server.gateway.credential.anchors)
    results = found["validation_results"]["activeManifest"]
    assert results["failure"] == []
    assert "signingCredential.trusted" in [each["code"] for each in results["success"]]
    return found["manifests"][found["active_manifest"]]


def assertion(manifest: dict[str, Any], label: str) -> Any:
    """The content of one assertion."""
    return next(each["data"] for each in manifest["assertions"] if each["label"] == label)


def read_sidecar(text: bytes) -> tuple[dict[str, Any], x509.Certificate]:
    """The content of an ES256 sidecar whose signature matches its first certificate."""
    head, payload, signature = text.decode().split(".")
    header, raw = json.loads(unpack(head)), unpack(signature)
    assert header["alg"] == "ES256"
    leaf = x509.load_der_x509_certificate(base64.b64decode(header["x5c"][0]))
    key = leaf.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    halves = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    key.verify(halves, f"{head}.{payload}".encode(), ec.ECDSA(hashes.SHA256()))
    return json.loads(unpack(payload)), leaf


def unpack(text: str) -> bytes:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def verify(server: Server, data: bytes, **fields: bytes | str) -> dict[str, Any]:
    """The server's report on a file that is uploaded for that."""
    answer = await server.client.post("/api/v1/verify", files={"file": ("file", data)}, data=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()
