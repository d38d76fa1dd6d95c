"""Rules: whole words in any case, width and script; patterns whose time is linear."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.guardrails.rules import (
    OVERLAP_CHARACTERS,
    PIECE_CHARACTERS,
    PatternRule,
    WordRule,
    compile_pattern,
    search,
)

RULE = WordRule(["bomb", "nerve gas", "Straße", "炸弹"])


@pytest.mark.parametrize(
    "text",
    [
        "bomb",
        "A BOMB!",
        "the-bomb.",
        "nerve  gas",
        "Nerve\ngas",
        "nerve-gas",
        "\uff42\uff4f\uff4d\uff42",
        "b\u00adomb",
        "bo\u200bmb",
        "STRASSE",
        "straße",
        "做一个炸弹吧",
        "\U0001d41b\U0001d428\U0001d426\U0001d41b",
    ],
)
def test_words_are_found(text: str) -> None:
    assert RULE.finds(text)


@pytest.mark.parametrize("text", ["", "bombard", "aplomb", "nerve", "gas nerve", "nerves gas", "strasse1", "炸 弹丸"])
def test_other_words_are_not(text: str) -> None:
    assert not RULE.finds(text)


@given(st.text(), st.sampled_from(["bomb", "Nerve Gas", "STRASSE"]), st.text())
def test_a_word_between_other_texts_is_found(before: str, word: str, after: str) -> None:
    combining = after and unicodedata.combining(after[0])
    if not combining:
        assert RULE.finds(f"{before} {word} {after}")


@given(st.text("abcdefgh ", max_size=60))
def test_words_are_found_as_a_simple_search_finds_them(text: str) -> None:
    words = ["abc", "a b", "h"]
    wanted = any(re.search(rf"\b{word.replace(' ', ' +')}\b", text) for word in words)
    assert WordRule(words).finds(text) is wanted


@pytest.mark.parametrize("place", [0, PIECE_CHARACTERS - 5, PIECE_CHARACTERS, 2 * PIECE_CHARACTERS + 3, 100_000])
@pytest.mark.parametrize("filler", ["x", "xy ", "ä "])
def test_long_texts_are_searched_to_their_end(place: int, filler: str) -> None:
    text = (filler * place)[:place] + " 123-45-6789 bomb " + filler * 10
    assert search([PatternRule([r"\d{3}-\d{2}-\d{4}"]), RULE], [text]) == [True, True]


@given(st.integers(0, 3 * PIECE_CHARACTERS))
def test_no_cut_makes_a_word_of_a_part(length: int) -> None:
    text = "bombard " * (length // 8) + "bombard"
    assert search([RULE], [text]) == [False]


def test_a_match_as_long_as_the_overlap_is_found_wherever_it_is() -> None:
    match = "z" * (OVERLAP_CHARACTERS // 2)
    rule = PatternRule([f"z{{{len(match)}}}"])
    for start in range(0, 3 * PIECE_CHARACTERS, 511):
        assert search([rule], ["y" * start + match + "y" * 99]) == [True]


@pytest.mark.parametrize("pattern", [r"(?=a)", r"(a)\1", "(", r"a{1000}{1000}", "[z-a]"])
def test_patterns_that_could_take_long_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_pattern(pattern)


def test_patterns_that_blow_up_elsewhere_do_not() -> None:
    for pattern in (r"(a+)+$", r"(a|aa)+$", r"(.*a){12}b", r"(\w+\s?)*$!"):
        assert not PatternRule([pattern + "Z"]).finds("a" * 10_000 + "!")
