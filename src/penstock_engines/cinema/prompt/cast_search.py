"""Searches the cast for the nouns of a prompt that nothing drawn by hand stands for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path

from penstock_engines.cast.album import Album, open_album
from penstock_engines.cast.wordbook import ENGLISH, Names, Wordbook, fold, open_wordbook, singular_forms
from penstock_engines.cinema.prompt.grammar import ARTICLES, NAMING, PURPOSES, Vocabulary, find_nouns, is_material
from penstock_engines.cinema.prompt.languages import Text, list_synonyms
from penstock_engines.cinema.prompt.lexicon import PREPOSITIONS
from penstock_engines.cinema.prompt.nearness.guessing import has_weights, open_meaning
from penstock_engines.cinema.prompt.phrases import Found, Kind
from penstock_engines.cinema.prompt.roles import BURNING, SUBJECT_OF
from penstock_engines.cinema.subjects import Subject
from penstock_engines.cinema.subjects.sprites import is_drawable, make_sprite

PHRASE_WORDS = 3
CLOSE = 0.6
"""Closeness in meaning at which a keyword is taken for the thing itself."""
STORMS = frozenset({"tornado", "tornadoes", "tornados", "twister"})
"""Weather that the cast shows, and no scene does."""
LINKS = PREPOSITIONS | {"and", "or", "with", "is", "that", "while", "on"}
FILMING = frozenset({Kind.CAMERA, Kind.VIEWPOINT, Kind.PACE})
"""Topics whose words are things after an article, such as "a pan"."""
PARTS = frozenset(
    (
        *("head", "nose", "face", "hand", "hands", "eye", "eyes", "ear", "ears", "foot", "feet", "leg", "legs", "hair"),
        *("arm", "arms", "mouth", "tongue", "tooth", "teeth", "tail", "wing", "wings", "fur", "beak", "paw", "paws"),
        *("mane", "feathers", "fin", "fins", "shoulder", "shoulders", "finger", "fingers", "lips"),
        *("beard", "moustache", "mustache", "tusks", "cheeks", "whiskers"),
        *("neck", "belly", "skin", "claws", "snout", "muzzle"),
    )
)
"""Parts of a being. They are seen with it."""
GENDERED = ("man ", "woman ", "men ", "women ")
BY_HAND = frozenset(
    (
        *("airplane", "airplanes", "automobile", "automobiles", "motorcycle", "motorcycles", "locomotive"),
        *("locomotives", "honeybee", "honeybees", "houses", "parachute", "parachutes", "mage", "mages", "umbrella"),
        *("umbrellas", "bicycle", "bicycles", "blossom", "blossoms", "fire", "prince", "merman", "skateboard"),
        *("skateboards", "kite", "sauropod", "singer", "singers", "santa claus", "cherry blossom", "palm tree"),
        *("red apple", "ski", "skis", "bow", "fog", "rock", "rocks", "wood", "ice", "carousel", "slide", "mate"),
        *("guide", "seat", "label", "link", "mechanical", "balance", "straight", "suit", "suits", "machine", "air"),
        *("art", "arts", "light", "lights", "nature", "time", "cross", "party", "face", "faces", "sun", "moon"),
        *("star", "stars", "sky", "skies", "shadow", "shadows"),
    )
)
"""Words whose drawing by hand, or whose place in the scene, is better than the cast's picture."""


@dataclass(frozen=True)
class Cast:
    """The cast of a folder of weights."""

    album: Album
    book: Wordbook
    synonyms: Mapping[str, str]
    """Symbols by English words that the cast's names do not have."""
    near: Mapping[str, str]
    """Symbols by English words for which the cast has only something near."""
    deeds: Mapping[str, str]
    """Symbols by English verbs that are seen by a thing: yarn for "knitting"."""

    @property
    def names(self) -> Names:
        """The English names."""
        return self.book.read(ENGLISH)

    @property
    def vocabulary(self) -> Vocabulary:
        """The English words, for the grammar."""
        return Vocabulary(self.has, self.names.__contains__)

    def find(self, phrase: str) -> str | None:
        """Return the symbol that an English word or phrase names."""
        if phrase in BY_HAND:
            return None
        forms = chain((phrase,), singular_forms(phrase))
        known = (self.synonyms.get(form) or self.near.get(form) for form in forms)
        return next((symbol for symbol in known if symbol), None) or self.names.find(phrase)

    def find_exactly(self, phrase: str) -> str | None:
        """Return the symbol whose whole name or synonym a phrase is, in singular or plural."""
        if phrase in BY_HAND:
            return None
        for form in chain((phrase,), singular_forms(phrase)):
            symbol = self.synonyms.get(form) or self.names.find_name(form) or self.near.get(form)
            if symbol:
                return symbol
        return None

    def is_near(self, phrase: str) -> bool:
        """Return whether the cast has only something near for a word."""
        return any(form in self.near for form in chain((phrase,), singular_forms(phrase)))

    def has(self, word: str) -> bool:
        """Return whether one of the cast has this very name or synonym."""
        return self.find_exactly(word) is not None

    def make(self, symbol: str, word: str, seed: int) -> Subject:
        """Return a symbol as a subject that a word of the prompt names."""
        name = self.names.name_of[symbol]
        is_name = self.names.find_name(word) == symbol
        singles = () if is_name else (form for form in singular_forms(word) if self.find_exactly(form))
        words = (name, word, *singles)
        return replace(make_sprite(self.album, symbol, name, seed), words=words)


@cache
def open_cast(weights: Path) -> Cast | None:
    """Return the cast of a folder of weights, or None if a part of it is missing."""
    album = open_album(weights)
    if album is None:
        return None
    drawable = frozenset(symbol for symbol in album.symbols if is_drawable(album, symbol))
    book = open_wordbook(weights, drawable)
    if book is None:
        return None
    english = book.read(ENGLISH)
    tables: list[dict[str, str]] = []
    for table in ("same", "near", "does"):
        found = ((word, english.find_name(fold(name))) for word, name in list_synonyms(table))
        tables.append({word: symbol for word, symbol in found if symbol})
    return Cast(album, book, *tables)


def search(text: Text, found: Sequence[Found], cast: Cast) -> dict[tuple[str, ...], str]:
    """Return the symbols of the phrases of a text that name one of the cast, such as "fire engine" and "cupcakes"."""
    phrases: dict[tuple[str, ...], str] = {(word,): symbol for word, symbol in text.symbols.items()}
    words = text.words
    for size in range(PHRASE_WORDS, 1, -1):
        for start in range(len(words) - size + 1):
            part = tuple(words[start : start + size])
            symbol = cast.find_exactly(" ".join(part)) if all(word.isalpha() for word in part) else None
            if symbol and not _is_drawn_better(part, found, cast, symbol):
                phrases[part] = symbol
    fire = cast.names.find_name("fire")
    phrases |= {(word,): fire for word in words if fire and word in BURNING}
    phrases |= dict(_find_deeds(words, found, cast))
    unknown = find_nouns(words, found, cast.vocabulary, text.names) if text.language.code == ENGLISH else ()
    for index in (*_find_better(words, found, cast), *_find_named(text, found, cast), *unknown):
        loose = cast.find(words[index])
        named = loose if loose and not cast.names.name_of[loose].startswith(GENDERED) else None
        if index + 1 in unknown or any(phrase.start == index + 1 and phrase.is_a(*NAMING) for phrase in found):
            named = None  # it only describes the next noun
        symbol = cast.find_exactly(words[index]) or named
        if symbol and not _is_other(words, index, found):
            phrases.setdefault((words[index],), symbol)
    return phrases


def _find_deeds(words: Sequence[str], found: Sequence[Found], cast: Cast) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the verbs that are seen by a thing, with its symbol."""
    drawn = {index for phrase in found if phrase.is_a(Kind.SUBJECT) for index in range(phrase.start, phrase.end)}
    for index, word in enumerate(words):
        before = words[index - 1] if index else "."
        if word in cast.deeds and index not in drawn and before not in ARTICLES | PREPOSITIONS | {"no", "without"}:
            yield (word,), cast.deeds[word]


def _is_other(words: Sequence[str], index: int, found: Sequence[Found]) -> bool:
    """Return whether a thing is not the one that its name says: a "punching bag", the nose of a snowman."""
    word, before = words[index], words[index - 1] if index else "."
    beings = any(phrase.is_a(Kind.SUBJECT) and not phrase.start <= index < phrase.end for phrase in found)
    return (word in PURPOSES and before.endswith("ing")) or (word in PARTS and beings) or is_material(words, index)


def _is_drawn_better(part: tuple[str, ...], found: Sequence[Found], cast: Cast, symbol: str) -> bool:
    """Return whether these very words are drawn by hand, under the cast's name or as more than a subject."""
    text = " ".join(part)
    known = any(phrase.texts.keys() - {Kind.SUBJECT} and text in phrase.texts.values() for phrase in found)
    return known or (text in SUBJECT_OF and SUBJECT_OF[text] == fold(cast.names.name_of[symbol]))


def _find_better(words: Sequence[str], found: Sequence[Found], cast: Cast) -> Iterator[int]:
    """Yield the positions of words that the lexicons take for something less exact than the cast has."""
    for phrase in found:
        word = words[phrase.start]
        if phrase.end - phrase.start != 1 or not cast.find_exactly(word):
            continue
        following = words[phrase.end] if phrase.end < len(words) else "."
        is_storm = word in STORMS and not phrase.is_a(Kind.SUBJECT)
        is_fruit = set(phrase.texts) == {Kind.COLOUR} and (not following.isalpha() or following in LINKS)
        symbol = cast.find_exactly(word) or ""
        is_loose = set(phrase.texts) == {Kind.SUBJECT} and not _is_drawn_better((word,), (), cast, symbol)
        is_named = set(phrase.texts) <= FILMING and phrase.start > 0 and words[phrase.start - 1] in ARTICLES
        if is_storm or is_fruit or is_loose or is_named:
            yield phrase.start


def _find_named(text: Text, found: Sequence[Found], cast: Cast) -> Iterator[int]:
    """Yield the positions of words that a table translated, and that only the cast has."""
    if text.language.code != ENGLISH:
        known = {index for phrase in found for index in range(phrase.start, phrase.end)}
        yield from (index for index, word in enumerate(text.words) if index not in known and cast.has(word))


def search_by_topic(
    words: Sequence[str], found: Sequence[Found], nouns: Iterable[int], cast: Cast, weights: Path
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the symbols of nouns that are only keywords, if the language model finds name and noun close."""
    asked = [index for index in nouns if words[index] not in BY_HAND and not _is_other(words, index, found)]
    found_by_topic = [(words[index], cast.names.find_by_topic(words[index])) for index in asked]
    pairs = [(word, symbol) for word, symbol in found_by_topic if symbol]
    if not pairs or not has_weights(weights):
        return
    names = [cast.names.name_of[symbol] for _, symbol in pairs]
    near = open_meaning(weights).compare([word for word, _ in pairs], names)
    for number, (word, symbol) in enumerate(pairs):
        if near[number, number] >= CLOSE:
            yield (word,), symbol
