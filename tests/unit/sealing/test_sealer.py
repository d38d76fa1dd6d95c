"""Sealing: what opens where, and that every change is found."""

from hypothesis import given
from hypothesis import strategies as some

from penstock.errors import SecretsUnavailable
from penstock.sealing.sealer import OVERHEAD_BYTES, Sealer, SealingKey

KEY, OTHER = SealingKey(b"\1" * 8, b"k" * 32), SealingKey(b"\2" * 8, b"o" * 32)
SEALER = Sealer({KEY.id: KEY}, KEY)
NAMES = some.text(max_size=20)


def opens(sealer: Sealer, purpose: str, row_id: str, sealed: bytes) -> bytes | None:
    try:
        return sealer.open(purpose, row_id, sealed)
    except SecretsUnavailable:
        return None


@given(NAMES, NAMES, some.binary(max_size=200))
def test_what_is_sealed_opens_in_its_place(purpose: str, row_id: str, data: bytes):
    sealed = SEALER.seal(purpose, row_id, data)
    assert opens(SEALER, purpose, row_id, sealed) == data
    assert len(sealed) == len(data) + OVERHEAD_BYTES
    assert sealed != SEALER.seal(purpose, row_id, data)


@given(NAMES, NAMES, NAMES, NAMES)
def test_it_opens_nowhere_else(purpose: str, row_id: str, other_purpose: str, other_row: str):
    sealed = SEALER.seal(purpose, row_id, b"secret")
    is_its_own = (purpose, row_id) == (other_purpose, other_row)
    assert (opens(SEALER, other_purpose, other_row, sealed) is not None) is is_its_own


def test_two_names_do_not_run_into_each_other():
    assert opens(SEALER, "ab", "c", SEALER.seal("a", "bc", b"secret")) is None


@given(some.data())
def test_every_changed_byte_is_found(data: some.DataObject):
    sealed = bytearray(SEALER.seal("vendors", "row", b"secret"))
    place = data.draw(some.integers(0, len(sealed) - 1))
    sealed[place] ^= data.draw(some.integers(1, 255))
    assert opens(SEALER, "vendors", "row", bytes(sealed)) is None


@given(some.integers(0, OVERHEAD_BYTES + 5))
def test_a_cut_text_is_found(length: int):
    assert opens(SEALER, "vendors", "row", SEALER.seal("vendors", "row", b"secret")[:length]) is None


def test_another_key_does_not_open_it():
    sealed = SEALER.seal("vendors", "row", b"secret")
    assert opens(Sealer({OTHER.id: OTHER}, OTHER), "vendors", "row", sealed) is None
    assert opens(Sealer({KEY.id: SealingKey(KEY.id, OTHER.secret)}, KEY), "vendors", "row", sealed) is None


def test_earlier_keys_still_open():
    both = Sealer({KEY.id: KEY, OTHER.id: OTHER}, OTHER)
    assert opens(both, "vendors", "row", SEALER.seal("vendors", "row", b"secret")) == b"secret"
    assert opens(SEALER, "vendors", "row", both.seal("vendors", "row", b"secret")) is None


def test_a_key_is_not_shown():
    assert "k" * 32 not in repr(KEY)
    assert "k" * 32 not in repr(SEALER)
