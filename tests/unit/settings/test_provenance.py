"""`[provenance]`: certificates and keys that cannot sign results are refused at the start, with the setting's name."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from signers import MAKERS, Signer, issue, key_pem, make_signer, pem

from penstock.settings.problems import SettingsError
from penstock.settings.tables import Settings, load

BOTH = '[provenance]\ncertificate = "chain.pem"\nprivate_key = "key.pem"\n'


def read(folder: Path, chain: str, key: str, toml: str = BOTH) -> Settings:
    (folder / "chain.pem").write_text(chain)
    (folder / "key.pem").write_text(key)
    (folder / "penstock.toml").write_text(toml)
    return load(folder / "penstock.toml", {}, {"data": folder})


def problem_of(*given: Any) -> tuple[str, str]:
    with pytest.raises(SettingsError) as caught:
        read(*given)
    (problem,) = caught.value.problems
    assert "PRIVATE KEY" not in str(problem).replace("-----BEGIN PRIVATE KEY.", "")
    return problem.where, problem.what


@pytest.mark.parametrize("algorithm", MAKERS)
def test_a_chain_and_its_key_are_read_from_their_files(tmp_path, algorithm):
    signer = make_signer("Acme", algorithm)
    found = read(tmp_path, signer.chain, signer.key).provenance
    assert found.certificate == signer.chain
    assert found.private_key is not None
    assert found.private_key.get_secret_value() == signer.key
    assert signer.key not in repr(found)


def test_the_key_is_masked_in_logs_and_does_not_count_for_the_fingerprint(tmp_path):
    one, other = make_signer("Acme"), make_signer("Acme")
    found = read(tmp_path, one.chain, one.key)
    assert one.key in found.secrets
    assert found.fingerprint == read(tmp_path, one.chain, one.key).fingerprint
    assert found.fingerprint != read(tmp_path, other.chain, other.key).fingerprint


def self_signed() -> Signer:
    key = MAKERS["es256"]()
    leaf = issue("Alone", key, "Alone", key, purpose=ExtendedKeyUsageOID.EMAIL_PROTECTION)
    return Signer(pem(leaf), key_pem(key), "", "es256")


def weak() -> Signer:
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505  on purpose
    leaf = issue("Weak", key, "Root", MAKERS["es256"](), purpose=ExtendedKeyUsageOID.EMAIL_PROTECTION)
    return Signer(pem(leaf), key_pem(key), "", "ps256")


def odd_curve() -> Signer:
    key = ec.generate_private_key(ec.SECP256K1())
    leaf = issue("Odd", key, "Root", MAKERS["es256"](), purpose=ExtendedKeyUsageOID.EMAIL_PROTECTION)
    return Signer(pem(leaf), key_pem(key), "", "es256")


GOOD = make_signer("Acme")
WRONG = {
    "another key": (GOOD.chain, make_signer("Acme").key, "private_key", "is not the key of the first certificate"),
    "expired": (make_signer("Acme", days=-1).chain, GOOD.key, "certificate", "is valid from"),
    "no certificate": ("hello", GOOD.key, "certificate", "is not a file of PEM certificates"),
    "no key": (GOOD.chain, "hello", "private_key", "is not a private key in PEM"),
    "self-signed": (self_signed().chain, self_signed().key, "certificate", "is signed by itself"),
    "for servers": (
        make_signer("Acme", purpose=ExtendedKeyUsageOID.SERVER_AUTH).chain,
        GOOD.key,
        "certificate",
        "is not issued for signing claims",
    ),
    "weak": (weak().chain, weak().key, "private_key", "is of a kind that C2PA does not allow"),
    "odd curve": (odd_curve().chain, odd_curve().key, "private_key", "is of a kind that C2PA does not allow"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_sign_is_refused(tmp_path, case):
    chain, key, name, what = WRONG[case]
    where, said = problem_of(tmp_path, chain, key)
    assert where.endswith(f"[provenance] {name}")
    assert said.startswith(what)


def test_an_encrypted_key_is_refused(tmp_path):
    key = serialization.load_pem_private_key(GOOD.key.encode(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    assert problem_of(tmp_path, GOOD.chain, locked.decode())[1] == "is encrypted"


@pytest.mark.parametrize("name", ["certificate", "private_key"])
def test_one_without_the_other_is_refused(tmp_path, name):
    file = "chain.pem" if name == "certificate" else "key.pem"
    where, what = problem_of(tmp_path, GOOD.chain, GOOD.key, f'[provenance]\n{name} = "{file}"\n')
    assert where.endswith(("[provenance] private_key", "[provenance]"))
    assert what == "goes together with `certificate`"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"the file .*nothing\.pem is missing"):
        read(tmp_path, GOOD.chain, GOOD.key, BOTH.replace("chain.pem", "nothing.pem"))


def test_trust_takes_several_roots(tmp_path):
    roots = GOOD.root + make_signer("Other").root
    (tmp_path / "roots.pem").write_text(roots)
    found = read(tmp_path, GOOD.chain, GOOD.key, '[provenance]\ntrust = "roots.pem"\n')
    assert found.provenance.trust == roots
    where, what = problem_of(tmp_path, GOOD.chain, GOOD.key, '[provenance]\ntrust = "key.pem"\n')
    assert (where.endswith("[provenance] trust"), what) == (True, "is not a file of PEM certificates")
