"""Signers beside the server: certificates of every kind, and files that they sign."""

import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import c2pa
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from penstock.provenance.credential import read_credential

NOW = datetime.now(UTC)
MAKERS: dict[str, Any] = {
    "es256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "es384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "es512": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ps256": lambda: rsa.generate_private_key(65537, 2048),
}
"""Keys by the name of their algorithm."""


@dataclass(frozen=True)
class Signer:
    """A chain of certificates and a key as PEM, and the root of the chain."""

    chain: str
    key: str
    root: str
    algorithm: str


def make_signer(
    name: str, algorithm: str = "es256", *, purpose: Any = ExtendedKeyUsageOID.EMAIL_PROTECTION, days: int = 30
) -> Signer:
    """A certificate under a root of its own. With negative `days` it has expired."""
    root_key, key = MAKERS["es256"](), MAKERS[algorithm]()
    root = issue(f"Root of {name}", root_key, f"Root of {name}", root_key, is_root=True)
    leaf = issue(name, key, f"Root of {name}", root_key, purpose=purpose, days=days)
    return Signer(pem(leaf) + pem(root), key_pem(key), pem(root), algorithm)


def issue(
    name: str, key: Any, issuer: str, issuer_key: Any, *, is_root: bool = False, purpose: Any = None, days: int = 30
) -> x509.Certificate:
    """One certificate."""
    begin = NOW - timedelta(days=60)
    builder = (
        x509.CertificateBuilder(named(issuer), named(name), key.public_key(), x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(NOW + timedelta(days=days))
        .add_extension(x509.BasicConstraints(is_root, None), critical=True)
        .add_extension(
            x509.KeyUsage(not is_root, False, False, False, False, is_root, is_root, False, False), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def named(name: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Acme"), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def key_pem(key: Any) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def sign_file(signer: Signer, content_type: str, data: bytes, extra: dict[str, Any] | None = None) -> bytes:
    """The file with a manifest of this signer, made by c2pa alone."""
    credential = read_credential(signer.chain.encode(), signer.key.encode(), NOW.timestamp())
    own = c2pa.Signer.from_callback(credential.sign, c2pa.C2paSigningAlg[credential.algorithm], signer.chain)
    assertions = [] if extra is None else [{"label": "com.acme.notes", "data": extra}]
    action = {"action": "c2pa.created", "digitalSourceType": "http://c2pa.org/digitalsourcetype/empty"}
    definition = {"claim_generator_info": [{"name": "Acme", "version": "1"}], "assertions": assertions}
    builder = c2pa.Builder(definition, context=c2pa.Context.from_dict({"verify": {"verify_after_sign": False}}))
    builder.add_action(action)
    target = io.BytesIO()
    builder.sign(own, content_type, io.BytesIO(data), target)
    return target.getvalue()
