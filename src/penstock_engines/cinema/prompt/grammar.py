"""Finds the nouns of an English prompt that no lexicon knows, by their place among the other words."""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import cache

from penstock_engines.cinema.prompt.languages import read_english
from penstock_engines.cinema.prompt.lexicon import NEGATIONS, PREPOSITIONS, SMALL_WORDS
from penstock_engines.cinema.prompt.phrases import Found, Kind

ARTICLES = frozenset(
    (
        *("a", "an", "the", "this", "that", "these", "those", "its", "his", "her", "their", "my", "your", "our"),
        *("some", "any", "each", "every", "no", "another", "both", "several"),
    )
)
VERB_ENDINGS = ("s", "es", "ed", "d", "ing")
NAMING = (Kind.SUBJECT, Kind.PLACE, Kind.PARTICLES, Kind.TIME, Kind.WEATHER)


class Tag(Enum):
    """The part that a word plays in its sentence."""

    ARTICLE = auto()
    ADJECTIVE = auto()
    NOUN = auto()
    VERB = auto()
    OTHER = auto()


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(read_english()[kind].split())


def find_nouns(words: Sequence[str], found: Sequence[Found], is_named: Callable[[str], bool]) -> list[int]:
    """Return the positions of unknown nouns. `is_named` says whether the cast has a thing of this name."""
    covered = {index: phrase for phrase in found for index in range(phrase.start, phrase.end)}
    tags: list[Tag] = []
    for index, word in enumerate(words):
        phrase = covered.get(index)
        tags.append(_tag_phrase(phrase) if phrase else _tag_word(words, index, tags, named=is_named(word)))
    return [
        index
        for index, tag in enumerate(tags)
        if tag is Tag.NOUN and index not in covered and (is_named(words[index]) or not _is_modifier(tags, index))
    ]


def _tag_phrase(phrase: Found) -> Tag:
    if phrase.is_a(*NAMING):
        return Tag.NOUN
    return Tag.ADJECTIVE if phrase.is_a(Kind.COUNT, Kind.COLOUR) else Tag.OTHER


def _is_modifier(tags: Sequence[Tag], index: int) -> bool:
    """Return whether another noun follows at once, which this one only describes."""
    return index + 1 < len(tags) and tags[index + 1] is Tag.NOUN


def _tag_word(words: Sequence[str], index: int, tags: Sequence[Tag], *, named: bool) -> Tag:
    word = words[index]
    if word in ARTICLES:
        return Tag.ARTICLE
    if not word.isalpha() or len(word) < 3 or word in SMALL_WORDS | NEGATIONS | PREPOSITIONS | _words("small"):
        return Tag.OTHER
    opened = _opens_noun(words, index, tags)
    if word in _words("adjectives") and not (named and opened and _ends_noun(words, index)):
        return Tag.ADJECTIVE
    if _is_verb(word):
        after_verb = named and bool(tags) and tags[-1] is Tag.VERB
        return Tag.NOUN if after_verb else _tag_verb(word, opened=opened)
    if not named and word.endswith(("ly", "ing", "ed")):
        return Tag.ADJECTIVE if opened else Tag.OTHER
    return Tag.VERB if not opened and _acts(words, index, tags) else Tag.NOUN


def _opens_noun(words: Sequence[str], index: int, tags: Sequence[Tag]) -> bool:
    """Return whether a noun must follow: after an article, an adjective or a preposition."""
    if not index or words[index - 1] == "one":
        return False
    return tags[-1] in {Tag.ARTICLE, Tag.ADJECTIVE} or words[index - 1] in (PREPOSITIONS - {"to"}) | {"of", "with"}


def _ends_noun(words: Sequence[str], index: int) -> bool:
    following = words[index + 1] if index + 1 < len(words) else "."
    return not following.isalpha() or following in PREPOSITIONS | _words("small")


def _tag_verb(word: str, *, opened: bool) -> Tag:
    if not opened:
        return Tag.VERB
    return Tag.ADJECTIVE if word.endswith(("ing", "ed")) else Tag.NOUN


def _is_verb(word: str) -> bool:
    """Return whether a word is a form of a known verb."""
    verbs = _words("verbs")
    if word in verbs:
        return True
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y" in verbs
    for ending in VERB_ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and not verbs.isdisjoint({stem, stem + "e", stem + "y", stem[:-1]}):
            return True
    return False


def _acts(words: Sequence[str], index: int, tags: Sequence[Tag]) -> bool:
    """Return whether a word after a noun, and before an article, says what the noun does."""
    if not index or tags[-1] is not Tag.NOUN:
        return False
    following = words[index + 1] if index + 1 < len(words) else "."
    plural_before, plural = words[index - 1].endswith("s"), words[index].endswith("s")
    return following in ARTICLES and plural_before != plural
