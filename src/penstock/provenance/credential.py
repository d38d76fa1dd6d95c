"""The certificate and the private key that sign results. The key never leaves the gateway's process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

PrivateKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
CURVES: Final[dict[str, tuple[str, int, type[hashes.HashAlgorithm]]]] = {
    "secp256r1": ("ES256", 32, hashes.SHA256),
    "secp384r1": ("ES384", 48, hashes.SHA384),
    "secp521r1": ("ES512", 66, hashes.SHA512),
}
KEYS_ALLOWED: Final = "ECDSA on P-256, P-384 or P-521, Ed25519, or RSA of at least 2048 bits"
MIN_RSA_BITS: Final = 2048
CLAIM_SIGNING: Final = ObjectIdentifier("1.3.6.1.4.1.62558.2.1")
PURPOSES: Final = frozenset(
    (ExtendedKeyUsageOID.EMAIL_PROTECTION, CLAIM_SIGNING, ObjectIdentifier("1.3.6.1.5.5.7.3.36"))
)
"""Uses that C2PA allows a certificate: e-mail protection, signing of claims, signing of documents."""
OWN_YEARS: Final = 30
OWN_NAME: Final = "Penstock"


class CredentialProblem(ValueError):
    """A certificate or a key that cannot sign results. `field` names the setting at fault."""

    def __init__(self, field: str, problem: str, advice: str) -> None:
        super().__init__(problem)
        self.field, self.problem, self.advice = field, problem, advice


@dataclass(frozen=True, slots=False)
class Credential:
    """A certificate chain, the end entity's first, and its private key."""

    chain: tuple[x509.Certificate, ...]
    key: PrivateKey
    algorithm: str
    signature_bytes: int
    is_own: bool = False
    """Whether this installation made it, so that nobody else trusts it."""

    @cached_property
    def certificates(self) -> str:
        """Return the chain as PEM."""
        return "".join(_pem(one) for one in self.chain)

    @property
    def anchors(self) -> str:
        """Return the certificates above the signing one as PEM: whoever trusts them trusts the signature."""
        return "".join(_pem(one) for one in self.chain[1:] or self.chain)

    @property
    def name(self) -> str:
        """Return the name of the signer."""
        return name_of(self.chain[0])

    def sign(self, data: bytes) -> bytes:
        """Return the signature in the form of COSE and JOSE."""
        match self.key:
            case ed25519.Ed25519PrivateKey():
                return self.key.sign(data)
            case rsa.RSAPrivateKey():
                digest = hashes.SHA256()
                return self.key.sign(data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
            case _:
                _, size, digest = CURVES[self.key.curve.name]
                r, s = decode_dss_signature(self.key.sign(data, ec.ECDSA(digest())))
                return r.to_bytes(size) + s.to_bytes(size)


def read_credential(certificate: bytes, private_key: bytes, now: float, *, is_own: bool = False) -> Credential:
    """Return the credential of a PEM chain and a PEM key. Raise `CredentialProblem` if it cannot sign results."""
    chain = tuple(_load_certificates(certificate, "certificate")) if is_own else check_certificate(certificate, now)
    key = _read_key(private_key)
    if key.public_key() != chain[0].public_key():
        raise CredentialProblem(
            "private_key",
            "is not the key of the first certificate in `certificate`",
            "Give the two that belong together.",
        )
    algorithm, size = _algorithm(key)
    return Credential(chain, key, algorithm, size, is_own)


def check_certificate(pem: bytes, now: float) -> tuple[x509.Certificate, ...]:
    """Return the chain of a PEM file. Raise `CredentialProblem` if its first certificate may not sign results."""
    chain = tuple(_load_certificates(pem, "certificate"))
    _check_leaf(chain[0], datetime.fromtimestamp(now, UTC))
    return chain


def read_anchors(pem: bytes) -> str:
    """Return the certificates of a PEM file that signers may come from. Raise `CredentialProblem` if it has none."""
    return "".join(_pem(one) for one in _load_certificates(pem, "trust"))


def name_of(certificate: x509.Certificate) -> str:
    """Return the common name of a certificate, else all of its name."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else certificate.subject.rfc4514_string()


def comes_from(chain: Sequence[x509.Certificate], anchors: str, now: float) -> bool:
    """Return whether a chain is valid now and leads to one of the anchors (PEM)."""
    roots = x509.load_pem_x509_certificates(anchors.encode()) if anchors else []
    moment = datetime.fromtimestamp(now, UTC)
    below = chain[0]
    for number, certificate in enumerate(chain):
        if not certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc:
            return False
        if number > 0 and not _issued(certificate, below):
            return False
        if certificate in roots or any(_issued(root, certificate) for root in roots):
            return True
        below = certificate
    return False


def _issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Return whether an authority's certificate has signed another."""
    try:
        constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, x509.ExtensionNotFound, InvalidSignature):
        return False
    return constraints.ca


def make_own(now: float) -> tuple[bytes, bytes]:
    """Make a certificate under a root of our own that nobody knows yet. Return PEM of the chain, and of the key."""
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _name("Penstock root")
    root = _issue(issuer, root_key, issuer, root_key, now, is_root=True)
    leaf = _issue(_name(OWN_NAME), key, issuer, root_key, now, is_root=False)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (_pem(leaf) + _pem(root)).encode(), private


def _load_certificates(pem: bytes, field: str) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise CredentialProblem(
            field, "is not a file of PEM certificates", "It begins with -----BEGIN CERTIFICATE."
        ) from None


def _read_key(pem: bytes) -> PrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, None)
    except TypeError:
        advice = "Store the key without a passphrase, readable by the server only."
        raise CredentialProblem("private_key", "is encrypted", advice) from None
    except (ValueError, UnsupportedAlgorithm):
        advice = "It begins with -----BEGIN PRIVATE KEY."
        raise CredentialProblem("private_key", "is not a private key in PEM", advice) from None
    if not isinstance(key, PrivateKey):
        raise CredentialProblem("private_key", "is of a kind that C2PA does not allow", f"Allowed: {KEYS_ALLOWED}.")
    _algorithm(key)
    return key


def _algorithm(key: PrivateKey) -> tuple[str, int]:
    """Return the algorithm by its name in C2PA, and the bytes of a signature."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return "ED25519", 64
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size >= MIN_RSA_BITS:
        return "PS256", key.key_size // 8
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in CURVES:
        name, size, _ = CURVES[key.curve.name]
        return name, 2 * size
    raise CredentialProblem("private_key", "is of a kind that C2PA does not allow", f"Allowed: {KEYS_ALLOWED}.")


def _check_leaf(leaf: x509.Certificate, now: datetime) -> None:
    if not leaf.not_valid_before_utc <= now <= leaf.not_valid_after_utc:
        raise CredentialProblem(
            "certificate",
            f"is valid from {leaf.not_valid_before_utc:%Y-%m-%d} to {leaf.not_valid_after_utc:%Y-%m-%d} only",
            "Give one that is valid today.",
        )
    if leaf.issuer == leaf.subject:
        raise CredentialProblem(
            "certificate",
            "is signed by itself, which C2PA does not allow",
            "Give one that an authority has issued, and its chain.",
        )
    try:
        purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        purposes = ()
    if not PURPOSES & set(purposes):
        raise CredentialProblem(
            "certificate",
            "is not issued for signing claims",
            "Its extended key usage must have emailProtection, documentSigning or c2pa-kp-claimSigning.",
        )


def _name(common_name: str) -> x509.Name:
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, OWN_NAME)
    return x509.Name([organization, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _issue(
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    now: float,
    *,
    is_root: bool,
) -> x509.Certificate:
    begin = datetime.fromtimestamp(now, UTC) - timedelta(days=365)  # clocks differ
    key_usage: Callable[..., x509.KeyUsage] = x509.KeyUsage
    builder = (
        x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=365 * OWN_YEARS))
        .add_extension(x509.BasicConstraints(ca=is_root, path_length=None), critical=True)
        .add_extension(
            key_usage(not is_root, False, False, False, False, is_root, is_root, False, False),  # noqa: FBT003  its order
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if not is_root:
        purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.EMAIL_PROTECTION])
        builder = builder.add_extension(purposes, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
