"""Words of chat: what is guessed of a request's length."""

import msgspec
from hypothesis import given
from hypothesis import strategies as some

from penstock.domain.chat import _EMBEDDED, PIECE_BYTES, guess_tokens

TEXTS = some.sampled_from([b"words and more of them. ", b"data:", b"data:image/png;base64,QUJD", b'","', b"\\n"])


@given(some.lists(some.tuples(TEXTS, some.integers(1, 9_000)), max_size=12), some.integers(0, 80))
def test_long_texts_are_measured_like_short_ones(parts, shift):
    """Whatever lies on the border between two pieces."""
    text = b"".join(part * number for part, number in parts)
    text += b"x" * (PIECE_BYTES - shift - len(text) % PIECE_BYTES) + b'data:image/png;base64,QUJD"' + b"y" * 100
    plain, pictures = _EMBEDDED.subn(b"", text)
    assert guess_tokens(msgspec.Raw(text)) == len(plain) // 4 + pictures * 1_000 + 1
