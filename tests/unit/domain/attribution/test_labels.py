"""Texts of tags, end users and sessions: our own are refused if malformed, those of others are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.attribution.labels import (
    MAX_NAME_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    clean,
    clean_tags,
    read_tag,
    read_tags,
    unpack_user,
)

ACCOUNT = "1d7a0c3e-4a5b-4c6d-8e9f-0a1b2c3d4e5f"
SESSION = "9f8e7d6c-5b4a-4392-8170-6f5e4d3c2b1a"


@pytest.mark.parametrize(
    "text", ["", " ", "a,b", "a\nb", "a\x00b", "\u202eb", "a\u200bb", "x" * (MAX_TAG_CHARACTERS + 1)]
)
def test_a_malformed_tag_is_refused(text: str):
    with pytest.raises(ValueError, match="1 to 64 printable characters"):
        read_tag(text)


def test_tags_count_once_in_their_composed_form():
    assert read_tags([" team é", "team e\u0301", "x"]) == ("team é", "x")
    with pytest.raises(ValueError, match="at most 8 tags, got 9"):
        read_tags([str(number) for number in range(MAX_TAGS + 1)])


@given(st.text() | st.binary() | st.integers() | st.lists(st.text()))
def test_a_foreign_text_is_always_storable(value: object):
    text = clean(value)
    assert len(text) <= MAX_NAME_CHARACTERS
    assert text.isprintable()
    for tag in clean_tags(value):
        assert read_tag(tag) == tag


@given(st.text(min_size=MAX_NAME_CHARACTERS), st.text(min_size=MAX_NAME_CHARACTERS))
def test_cut_texts_stay_different(first: str, second: str):
    long, other = f"x{first}x", f"x{second}x"
    assert (clean(long) == clean(other)) is (long == other)


def test_foreign_tags_may_be_a_list_or_one_text():
    assert clean_tags("a, b,,a") == clean_tags(["a", "b", "a"]) == ("a", "b")
    assert clean_tags(["a,b", 7, None, "", "c"]) == ("a;b", "c")
    assert len(clean_tags([str(number) for number in range(1000)])) == MAX_TAGS
    assert clean_tags({"a": 1}) == clean_tags(None) == clean_tags("") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"user_{'ab12' * 16}_account_{ACCOUNT}_session_{SESSION}", (ACCOUNT, SESSION)),
        (f"user_abc_account__session_{SESSION}", ("abc", SESSION)),
        (f'{{"device_id":"dev","account_uuid":"{ACCOUNT}","session_id":"{SESSION}"}}', (ACCOUNT, SESSION)),
        (f'{{"device_id":"dev","account_uuid":"","session_id":"{SESSION}"}}', ("dev", SESSION)),
        ("{not json", ("{not json", "")),
        ("plain-user", ("plain-user", "")),
        (None, ("", "")),
        (["x"], ("", "")),
    ],
)
def test_the_user_of_claude_code(text: object, expected: tuple[str, str]):
    assert unpack_user(text) == expected
