"""Redaction: what is found, what is not, and that no text and no pattern can make it slow."""

from collections import Counter

import pytest
from work import count_lines

from penstock.domain.content.redaction import MAX_FOUND, NAMES, ContentRedactor, compile_redaction

ALL = ContentRedactor(NAMES)


def redact(text: str) -> str:
    return ALL.redact(text, Counter())


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("write to a.b+c@mail.example.co.uk, now", "write to [redacted:email], now"),
        ("<jörg@müller.de>", "<[redacted:email]>"),
        ("4111111111111111", "[redacted:card]"),
        ("card 12 4111 1111 1111 1111 99", "card 12 [redacted:card] 99"),
        ("3782-822463-10005", "[redacted:card]"),
        ("IBAN DE89 3704 0044 0532 0130 00 THANKS", "IBAN [redacted:iban] THANKS"),
        ("AB12 de89370400440532013000.", "AB12 [redacted:iban]."),
        ("psk_5h989ejrceh2wnrsx8_0123456789abcdefghijklmnopqrstuvwxyzab", "[redacted:api_key]"),
        ("key=sk-proj-Zx81abcdefghijklmnop", "key=[redacted:api_key]"),
        ("AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghijABCDEFGHIJ", "[redacted:api_key] [redacted:api_key]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2ln", "[redacted:api_key]"),
        ("Authorization: Bearer abc.def-123456", "Authorization: [redacted:bearer]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY----- after",
            "[redacted:api_key] after",
        ),
        ("call +49 151 23456789", "call [redacted:phone]"),
        ("half \ud83d and \0", "half \ufffd and \ufffd"),
    ],
)
def test_what_is_found(text, redacted):
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",  # a wrong check digit
        "DE88 3704 0044 0532 0130 00",
        "order 1234567890123",
        "sk-learn is a library, task-force, bearer of news",
        "user@localhost",
        "0000 0000 0000 0000",
        "2026-11-19 20:31:26.860",
    ],
)
def test_what_is_left_alone(text):
    assert redact(text) == text


def test_a_text_that_is_cut_never_ends_in_half_of_a_secret():
    secret = "sk-" + "a1B2" * 40
    for length in (50, 100, 200):
        text = "x " * 25 + secret + " y" * 5_000
        kept, is_cut = ALL.redact_part(text, Counter(), length)
        assert is_cut
        assert "a1B2" not in kept


def test_a_text_with_too_much_to_redact_is_left_out():
    counts: Counter[str] = Counter()
    kept, is_cut = ALL.redact_part("a@b.co " * (MAX_FOUND + 1), counts, 1 << 20)
    assert (kept, is_cut) == ("", True)


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "(", "a*", ""])
def test_patterns_that_cannot_be_used_are_refused(pattern):
    with pytest.raises(ValueError, match=r"\w"):
        compile_redaction(pattern)


@pytest.mark.parametrize(
    "unit", ["1 ", "4 4", "DE11 ", "AA11", "a@", "-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaa.", "4" * 64 + "x"]
)
def test_work_grows_with_the_text_alone(unit):
    redactor = ContentRedactor(NAMES, [r"(a+)+$", r"(x+x+)+y"])
    short, long = (unit * (size // len(unit)) for size in (4_000, 32_000))
    small = count_lines(lambda: redactor.redact_part(short, Counter(), 1 << 20))
    large = count_lines(lambda: redactor.redact_part(long, Counter(), 1 << 20))
    assert large < 10 * small + 1_000
