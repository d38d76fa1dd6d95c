"""Finds the nouns of an English prompt that no lexicon knows: every word that cannot be anything else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
ADJECTIVE_ENDINGS = (
    *("ous", "ful", "less", "esque", "like", "ible", "ward", "wards", "ese", "proof", "shaped", "coloured"),
)
LINKING = frozenset(
    (
        *("is", "are", "was", "were", "be", "been", "being", "looks", "look", "seems", "seem", "becomes", "become"),
        *("turns", "turn", "stays", "stay", "feels"),
    )
)
"""Verbs before an adjective, as in "the lake is azure"."""
PLURALS = frozenset(("people", "men", "women", "children", "mice", "geese", "oxen", "they", "we", "you", "i"))
PURPOSES = frozenset({"bag", "machine", "board", "rod", "suit", "pin", "stick", "gear", "kit", "cap", "glass"})
"""Things that a purpose before them makes other things: a bag is no punching bag."""
SHORT = 5
"""Letters of the longest word in -ed or -ly that is a noun unless a list says otherwise, as "shed" and "lily"."""


class Tag(Enum):
    """The part that a word plays in its sentence."""

    ARTICLE = auto()
    ADJECTIVE = auto()
    NOUN = auto()
    VERB = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of the cast, as the grammar asks for them."""

    is_name: Callable[[str], bool] = lambda _: False
    """Whether the cast has a thing of this name."""
    is_word: Callable[[str], bool] = lambda _: False
    """Whether any name or keyword of the cast is this word."""


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(read_english()[kind].split())


def find_nouns(
    words: Sequence[str], found: Sequence[Found], vocabulary: Vocabulary, names: Sequence[range] = ()
) -> dict[int, int]:
    """Return the positions of unknown nouns, each with the start of its compound: "conveyor belt" is one noun.

    `names` are the positions of capitalised names such as "New Orleans". Each is one noun.
    """
    covered = {index: phrase for phrase in found for index in range(phrase.start, phrase.end)}
    proper = {index: name for name in names for index in name}
    tags: list[Tag] = []
    for index, word in enumerate(words):
        phrase = covered.get(index)
        if index in proper and not phrase:
            tags.append(Tag.NOUN)
        else:
            tags.append(
                _tag_phrase(phrase) if phrase else _tag_word(words, index, tags, named=vocabulary.is_name(word))
            )
    nouns = {name[-1]: name[0] for name in names if not _is_known(name, covered)}
    inside = {index for name in names for index in name}
    nouns |= {index: index for index in range(len(words)) if index not in covered and is_material(words, index)}
    for index, tag in enumerate(tags):
        if tag is Tag.NOUN and index not in covered and index not in inside:
            known_head = index + 1 in covered and tags[index + 1] is Tag.NOUN
            alone = vocabulary.is_name(words[index]) or (known_head and vocabulary.is_word(words[index]))
            if alone or not _is_modifier(tags, index):
                describing = {phrase.start for phrase in found if phrase.is_a(Kind.SUBJECT, Kind.PLACE)}
                nouns[index] = _begin_compound(words, tags, {*covered, *inside} - describing, index)
    return nouns


def is_material(words: Sequence[str], index: int) -> bool:
    """Return whether a word says what the noun after it is made of, as in "stone road"."""
    return words[index] in _words("materials") and not _ends_noun(words, index)


def _is_known(name: range, covered: dict[int, Found]) -> bool:
    """Return whether one phrase of a lexicon is the whole of a name, or each word of it is known."""
    phrases = {covered[index].start for index in name if index in covered}
    whole = all(index in covered for index in name)
    return whole and (len(phrases) == 1 or len(name) == 1)


def _begin_compound(words: Sequence[str], tags: Sequence[Tag], covered: set[int], index: int) -> int:
    """Return the start of a compound: the nouns right before an unknown noun describe it."""
    start = index - (words[index] in PURPOSES and index > 0 and words[index - 1].endswith("ing"))
    while start and tags[start - 1] is Tag.NOUN and start - 1 not in covered:
        start -= 1
    return start


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
    if not word.isalpha() or len(word) < (2 if named else 3) or _is_small(word):
        return Tag.OTHER
    opened = _opens_noun(words, index, tags)
    made = word in _words("materials")
    if (_is_adjective(word) or made) and not ((named or made) and _ends_noun(words, index) and (opened or made)):
        return Tag.ADJECTIVE
    if word in _words("pasts") and not opened:
        return Tag.VERB
    if _is_verb(word):
        return _tag_verb(words, index, tags, named=named)
    if not named and len(word) > SHORT and word.endswith(("ly", "ing", "ed")):
        return _tag_derived(words, index, opened=opened)
    if index and words[index - 1] in LINKING and not opened:
        return Tag.ADJECTIVE
    return Tag.VERB if not opened and _acts(words, index, tags) else Tag.NOUN


def _is_small(word: str) -> bool:
    return word in SMALL_WORDS | NEGATIONS | PREPOSITIONS | _words("small")


def _is_adjective(word: str) -> bool:
    return word in _words("adjectives") or (len(word) > SHORT and word.endswith(ADJECTIVE_ENDINGS))


def _tag_derived(words: Sequence[str], index: int, *, opened: bool) -> Tag:
    """Tag an unknown word in -ly, -ing or -ed: a noun only at the end of a noun phrase, as "the ceiling"."""
    after_article = index > 0 and words[index - 1] in ARTICLES
    if words[index].endswith("ing") and after_article and _ends_noun(words, index):
        return Tag.NOUN
    return Tag.ADJECTIVE if opened else Tag.OTHER


def _opens_noun(words: Sequence[str], index: int, tags: Sequence[Tag]) -> bool:
    """Return whether a noun must follow: after an article, an adjective or a preposition."""
    if not index or words[index - 1] == "one":
        return False
    return tags[-1] in {Tag.ARTICLE, Tag.ADJECTIVE} or words[index - 1] in (PREPOSITIONS - {"to"}) | {"of", "with"}


def _ends_noun(words: Sequence[str], index: int) -> bool:
    following = words[index + 1] if index + 1 < len(words) else "."
    return not following.isalpha() or following in PREPOSITIONS | _words("small")


def _tag_verb(words: Sequence[str], index: int, tags: Sequence[Tag], *, named: bool) -> Tag:
    """Tag a word that may be a verb or, by its place in the sentence, a noun."""
    word = words[index]
    before = tags[-1] if tags else Tag.OTHER
    if _opens_noun(words, index, tags):
        if not word.endswith(("ing", "ed")):
            return Tag.NOUN
        return _tag_derived(words, index, opened=True)
    if before is Tag.VERB and (named or not word.endswith(("ing", "ed"))):
        return Tag.NOUN if words[index - 1] != "to" else Tag.VERB
    if word.endswith(("ing", "ed")):
        return Tag.VERB
    if before is Tag.NOUN:
        following = words[index + 1] if index + 1 < len(words) else "."
        acts = following in ARTICLES or _agrees(words[index - 1], word) or _is_third_person(word)
        return Tag.VERB if acts else Tag.NOUN
    return _tag_first(words, index, tags)


def _agrees(noun: str, verb: str) -> bool:
    """Return whether a verb has the number of the noun before it: "dogs bark", but a "tram stop" is a noun."""
    plural = noun in PLURALS or (noun.endswith("s") and not noun.endswith("ss"))
    return plural != (verb.endswith("s") and not verb.endswith("ss"))


def _is_third_person(word: str) -> bool:
    """Return whether a word in -s is hardly ever a plural: "a duck with ducklings swims"."""
    return word.endswith("s") and word.removesuffix("s") in _words("verbs") - _words("nouns_too")


def _tag_first(words: Sequence[str], index: int, tags: Sequence[Tag]) -> Tag:
    """Tag a word that may be a verb, after neither a noun nor a verb: "steam rises", "bread and rolls"."""
    word, before = words[index], words[index - 1] if index else "."
    singular = word in _words("nouns_too") or word.removesuffix("s") in _words("nouns_too")
    if before in {"to", "they", "we", "you", "i", "he", "she", "it", "who", "that"}:
        return Tag.VERB
    if before in {"and", "or", "then"}:
        start = max((place for place in range(index) if words[place] in {".", ",", ";"}), default=0)
        return Tag.VERB if Tag.VERB in tags[start:] and not singular else Tag.NOUN
    if index and before.isalpha() and not singular:
        return Tag.VERB
    following = words[index + 1] if index + 1 < len(words) else "."
    return Tag.VERB if not singular and following in ARTICLES | PREPOSITIONS else Tag.NOUN


def _is_verb(word: str) -> bool:
    """Return whether a word is a form of a known verb."""
    verbs = _words("verbs")
    if word in verbs or word in _words("pasts"):
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
