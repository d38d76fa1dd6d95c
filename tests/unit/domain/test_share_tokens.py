"""Tokens of share links: random, recognised by their maker only."""

from hypothesis import given
from hypothesis import strategies as some

from penstock.domain.ids import ALPHABET
from penstock.domain.sharing.links import BODY_LENGTH, TAG_LENGTH, ShareTokens, hash_token

OURS, OTHERS = ShareTokens(b"secret of one"), ShareTokens(b"secret of another")


def test_a_token_is_long_and_never_repeats():
    made = {OURS.make() for _ in range(1000)}
    assert len(made) == 1000
    assert all(OURS.is_ours(token) and len(token) == BODY_LENGTH + TAG_LENGTH for token in made)
    assert len({token[position] for token in made for position in range(2, BODY_LENGTH)}) == len(ALPHABET)


def test_another_installations_token_is_not_ours():
    assert not any(OURS.is_ours(OTHERS.make()) for _ in range(200))


def test_what_is_stored_does_not_contain_the_token():
    token = OURS.make()
    assert token not in hash_token(token)
    assert hash_token(token) == hash_token(token) != hash_token(OURS.make())


@given(some.text(max_size=60))
def test_invented_texts_are_rejected(text):
    assert not OURS.is_ours(text)


@given(position=some.integers(0, BODY_LENGTH + TAG_LENGTH - 1), sign=some.sampled_from(ALPHABET))
def test_a_changed_token_is_rejected(position, sign):
    token = OURS.make()
    changed = token[:position] + sign + token[position + 1 :]
    assert OURS.is_ours(changed) == (changed == token)
