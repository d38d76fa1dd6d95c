"""Signed sidecars of files that no C2PA manifest fits into: a JSON Web Signature over the file's digest."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from penstock.provenance.credential import CURVES, Credential

NAMES: Final = {"ED25519": "EdDSA"}
"""Algorithms that JOSE names otherwise than C2PA."""
TYPE: Final = "penstock-provenance+jws"
MAX_BYTES: Final = 64 * 1024
CONTENT_TYPE: Final = "application/jose"


class SidecarBroken(ValueError):
    """A text that is no sidecar, or whose signature does not match."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The contents of a sidecar whose signature matches the certificate in it. Nobody has vouched for that yet."""

    sha256: str
    generation: dict[str, Any]
    chain: tuple[x509.Certificate, ...]
    algorithm: str


def make_sidecar(credential: Credential, sha256: str, generation: Mapping[str, Any]) -> bytes:
    """Return the sidecar of a file with this digest: a JWS in its compact form, with the chain of certificates."""
    chain = [base64.b64encode(one.public_bytes(serialization.Encoding.DER)).decode() for one in credential.chain]
    head = {"alg": NAMES.get(credential.algorithm, credential.algorithm), "typ": TYPE, "x5c": chain}
    signed = f"{_encode(_json(head))}.{_encode(_json({'sha256': sha256, 'generation': generation}))}"
    return f"{signed}.{_encode(credential.sign(signed.encode()))}".encode()


def read_sidecar(data: bytes) -> Sidecar:
    """Return the contents of a sidecar. Raise `SidecarBroken` if its signature does not match."""
    if len(data) > MAX_BYTES:
        raise SidecarBroken(f"The sidecar is larger than {MAX_BYTES >> 10} KiB.")
    try:
        head, payload, signature = data.decode("ascii").strip().split(".")
        header, content = _object(_decode(head)), _object(_decode(payload))
        chain = tuple(
            x509.load_der_x509_certificate(base64.b64decode(str(one))) for one in cast("list[Any]", header["x5c"])
        )
        algorithm = str(header["alg"])
        _check(chain[0], algorithm, f"{head}.{payload}".encode(), _decode(signature))
        return Sidecar(str(content["sha256"]), _as_object(content["generation"]), chain, algorithm)
    except InvalidSignature:
        raise SidecarBroken("The signature of the sidecar does not match its content.") from None
    except (ValueError, KeyError, IndexError, TypeError, UnsupportedAlgorithm, RecursionError):
        raise SidecarBroken("The sidecar is not a JSON Web Signature with a chain of certificates.") from None


def _check(leaf: x509.Certificate, algorithm: str, data: bytes, signature: bytes) -> None:
    """Raise unless the signature is that of the certificate's key, by the one algorithm that its kind allows."""
    key = leaf.public_key()
    match key:
        case ed25519.Ed25519PublicKey() if algorithm == "EdDSA":
            key.verify(signature, data)
        case rsa.RSAPublicKey() if algorithm == "PS256":
            digest = hashes.SHA256()
            key.verify(signature, data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
        case ec.EllipticCurvePublicKey() if CURVES.get(key.curve.name, ("",))[0] == algorithm:
            size, digest = CURVES[key.curve.name][1:]
            if len(signature) != 2 * size:
                raise InvalidSignature
            halves = int.from_bytes(signature[:size]), int.from_bytes(signature[size:])
            key.verify(encode_dss_signature(*halves), data, ec.ECDSA(digest()))
        case _:
            raise InvalidSignature


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _object(data: bytes) -> dict[str, Any]:
    return _as_object(json.loads(data))


def _as_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return cast("dict[str, Any]", value)
