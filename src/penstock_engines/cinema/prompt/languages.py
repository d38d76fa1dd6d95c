"""Languages of prompts: which one a prompt is in, and its words in English as far as they are known."""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from penstock_engines.cast.wordbook import ENGLISH, SCENES, UNSPACED, Names, Wordbook, fold
from penstock_engines.cinema.prompt.lexicon import COLOURS
from penstock_engines.cinema.prompt.phrases import simplify

SIGNS = "".join(chr(code) for code in range(0x300, 0xE50) if unicodedata.category(chr(code)) in {"Mn", "Mc"})
"""Accents, and the vowel signs of Arabic, Hindi, Thai and their kin. They are parts of words."""
TOKEN = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{SIGNS}])*|\d+|[.,;:!?、。،।؟]")
MARKS = {"、": ",", "。": ".", "،": ",", "।": ".", "؟": "."}
BY_HAND: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys("🐪🐫", "camel"),
        **dict.fromkeys("🚗🚙", "car"),
        **dict.fromkeys("🚂🚆", "train"),
        **dict.fromkeys("🏡🏘", "house"),
        **dict.fromkeys("☂🌂☔", "umbrella"),
        **dict.fromkeys("🐉🐲", "dragon"),
        "🎹": "piano",
        "✈": "aeroplane",
        "🏍": "motorbike",
        "☕": "coffee",
        "🦖": "tyrannosaurus",
    }
)
"""Symbols of things that are drawn by hand under another name."""
SCRIPTS: Mapping[str, str] = MappingProxyType(
    {"[\u0900-\u097f]": "hi", "[\u0600-\u06ff]": "ar", "[\u0e00-\u0e7f]": "th", "[\u0590-\u05ff]": "he"}
)
"""The commonest language of each script, by its letters."""
AUXILIARIES = frozenset(map(fold, ("रहा", "रही", "रहे")))
"""Words of Hindi after a verb."""
ARABIC_ARTICLES = ("ال", "وال", "بال", "لل", "و", "ب")
UNKNOWN = "~"
"""Prefix of a word that has no English, so that it is not read as English."""
PHRASE_WORDS = 4
UNSPACED_LETTERS = 8
ADJECTIVE_LAST = frozenset({"fr", "es", "it", "pt", "ca", "ro"})
"""Languages with most adjectives after the noun."""
PARTICLES = "のをがとはにでもへやか、。,."
"""Letters after which a Japanese or Chinese word before them is a noun."""
JOINING = frozenset("とがをはにでや")
"""Letters of Japanese between two things, as a comma is in English."""
DETERMINERS = frozenset(
    (
        *("a", "the", "its", "some", "several", "two", "three", "four", "five", "six", "seven", "of", "with", "and"),
        *("at", "in", "on", "over", "under", "through", "near", "behind", ",", "."),
    )
)
LETTERS_OF_NOUN = 4
"""Letters of the shortest word that counts as a noun in a language without a table."""


@dataclass(frozen=True, slots=True)
class Language:
    """Words of a language that the cast's names do not have, and its sentences for warnings."""

    code: str
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    """English by folded word or phrase."""
    small: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    """Endings of nouns, the longest first. What is left without them is looked up."""
    verbal: tuple[str, ...] = ()
    """Endings of verbs, in languages whose verbs would else be listed as nouns."""
    not_drawn: str = "Not drawn: {words}."
    nearest: str = "nearest: {name}"


@dataclass(slots=True)
class Text:
    """A prompt in English words. Each word has the word of the prompt that it stands for."""

    language: Language
    words: list[str] = field(default_factory=list[str])
    sources: list[str] = field(default_factory=list[str])
    nouns: set[int] = field(default_factory=set[int])
    """Positions of nouns that have no English."""
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    """Symbols of the cast by words that stand for them only in this text."""
    names: list[range] = field(default_factory=list[range])
    """Positions of capitalised names, such as "New Orleans"."""

    def add(self, words: Sequence[str], source: str) -> None:
        """Append words that stand for one of the prompt."""
        self.words += words
        self.sources += [source] * len(words)


@cache
def read_languages() -> Mapping[str, Language]:
    """Return all languages that have a table or sentences, by code."""
    tables: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    sentences: dict[str, tuple[str, str]] = tables.pop("others")
    languages = {code: Language(code, not_drawn=one, nearest=two) for code, (one, two) in sentences.items()}
    for code, table in tables.items():
        words = {fold(word): english for english, text in table.get("words", {}).items() for word in text.split(", ")}
        small = frozenset(fold(word) for word in table["small"].split())
        texts = {name: table[name] for name in ("not_drawn", "nearest") if name in table}
        ends = {name: tuple(map(fold, table.get(name, "").split())) for name in ("endings", "verbal")}
        languages[code] = Language(code, words, small, **ends, **texts)
    return languages


@cache
def read_english() -> Mapping[str, Any]:
    """Return the verbs, adjectives and synonyms of English."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))[ENGLISH]


def read_text(prompt: str, book: Wordbook | None, is_known: Callable[[Sequence[str]], bool]) -> Text:
    """Return a prompt in English words. `is_known` says whether a phrase is in the English lexicon."""
    tokens = TOKEN.findall(prompt)
    code = _detect(prompt, [fold(token) for token in tokens], book, is_known)
    language = read_languages().get(code) or Language(code)
    text = Text(language)
    if code == ENGLISH:
        _put_english(text, prompt)
        return text
    names = book.read(code) if book else None
    english = book.read(ENGLISH) if book else None
    translator = _Translator(text, names, english, is_known)
    if code in UNSPACED:
        translator.translate_unspaced(prompt)
    else:
        translator.translate(tokens)
    return text


def _put_english(text: Text, prompt: str) -> None:
    """Put the words of an English prompt in their own spelling, and find the names among them."""
    for token in prompt.split():
        words = simplify(token + " ")
        letters = [word for word in words if word.isalpha()]
        spelled = re.sub(r"^\W+|(?:['\u2019]s)?\W*$", "", token)
        text.words += words
        text.sources += [spelled if len(letters) == 1 and word in letters else word for word in words]
    capital = [word.isalpha() and source[:1].isupper() for word, source in zip(text.words, text.sources, strict=True)]
    if sum(capital) * 5 < 4 * sum(word.isalpha() for word in text.words):
        text.names = list(_find_names(text.words, capital))


def _find_names(words: Sequence[str], capital: Sequence[bool]) -> Iterator[range]:
    """Yield the runs of capitalised words. A lone one at the start of a sentence is no name."""
    start = 0
    while start < len(words):
        end = start
        while end < len(words) and capital[end]:
            end += 1
        opens = start == 0 or words[start - 1] in {".", "!", "?", ":"}
        first = start + (opens and words[start] in read_languages()[ENGLISH].small)
        if end - first > (1 if opens else 0) and words[first] not in {"i", "pov"}:
            yield range(first, end)
        start = max(end, start + 1)


def _detect(
    prompt: str, folded: Sequence[str], book: Wordbook | None, is_known: Callable[[Sequence[str]], bool]
) -> str:
    """Return the code of a prompt's language: by its letters, else by its words."""
    if re.search("[\u3040-\u30ff]", prompt):
        return "ja"
    if re.search("[\uac00-\ud7a3]", prompt):
        return "ko"
    if re.search("[\u4e00-\u9fff]", prompt):
        return "zh"
    by_letters = next((code for letters, code in SCRIPTS.items() if re.search(letters, prompt)), None)
    if by_letters:
        return by_letters
    languages = read_languages()
    words = {word for word in folded if word[0].isalpha()}
    small = languages[ENGLISH].small
    english = sum(word in small or is_known([word]) for word in words)
    scores = {
        code: sum(word in language.words or word in language.small for word in words)
        for code, language in languages.items()
        if code != ENGLISH
    }
    most = max(scores.values())
    tied = [code for code, score in scores.items() if score == most]
    best = max(tied, key=lambda code: sum(word in book.read(code) for word in words) if book and most else 0)
    if scores[best] > english and scores[best] * 3 >= len(words):
        return best
    if english * 3 >= len(words) or book is None:
        return ENGLISH
    return book.detect(token.lower() for token in TOKEN.findall(prompt)) or ENGLISH


class _Translator:
    """Translates one text word by word, the longest known phrase first."""

    def __init__(
        self, text: Text, names: Names | None, english: Names | None, is_known: Callable[[Sequence[str]], bool]
    ) -> None:
        self._text, self._names, self._english, self._is_known = text, names, english, is_known
        self._language = text.language
        self._has_no_articles = self._language.code == "de" or "the" not in self._language.words.values()
        self._ended = 0  # the end of the last thing
        self._last = 0  # the first English word of the last noun

    def translate(self, tokens: Sequence[str]) -> None:
        """Translate a text with spaces between its words."""
        folded = [fold(token) for token in tokens]
        start = 0
        while start < len(tokens):
            ends = range(min(len(tokens), start + PHRASE_WORDS), start, -1)
            end = next((end for end in ends if self._put(folded[start:end], tokens[start:end])), None)
            if end is None:
                self._put_unknown(folded[start], tokens[start], folded[start + 1 : start + 2])
            start = end or start + 1

    def translate_unspaced(self, prompt: str) -> None:
        """Translate a text without spaces."""
        start, rest = 0, ""
        while start < len(prompt):
            ends = range(min(len(prompt), start + UNSPACED_LETTERS), start, -1)
            known = next((end for end in ends if self._knows(prompt[start:end])), None)
            if known is None:
                rest += prompt[start]
                start += 1
                continue
            self._put_rest(rest, prompt[start : start + 1])
            rest = ""
            self._put([fold(prompt[start:known])], [prompt[start:known]])
            start = known
        self._put_rest(rest, "")

    def _knows(self, part: str) -> bool:
        if fold(part) in self._language.words or part in self._language.small or part in MARKS:
            return True
        if self._names is None or self._names.find_name(fold(part)) is not None:
            return self._names is not None and (part[0] >= "\u30a0" or len(part) > 2)
        return min(part) >= "\u30a0" and self._names.find_exactly(fold(part)) is not None

    def _put_rest(self, rest: str, following: str) -> None:
        """Put the nouns of an unknown stretch: letters other than hiragana before a particle or the end."""
        for match in re.finditer("[\u30a0-\u30ff\u4e00-\u9fff]+", rest):
            after = rest[match.end() : match.end() + 1] or following
            if not after or after in PARTICLES:
                self._text.nouns.add(len(self._text.words))
                self._text.add([UNKNOWN + match.group()], match.group())
        if not JOINING.isdisjoint(rest):
            self._text.add([","], rest)

    def _put(self, folded: Sequence[str], tokens: Sequence[str]) -> bool:
        """Put a known phrase in English. Return False if it is not known."""
        phrase, source = " ".join(folded), " ".join(tokens)
        if phrase in MARKS or not phrase[0].isalnum():
            self._text.add([MARKS.get(phrase, phrase)], source)
            return len(tokens) == 1
        if phrase in self._language.words:
            self._put_table_word(simplify(self._language.words[phrase]), source)
            return True
        if phrase in self._language.small or phrase.isdigit():
            self._text.add([phrase] if phrase.isdigit() else [], source)
            return True
        symbol = None if len(tokens) == 1 and self._is_verb(phrase) else self._find(phrase, tokens)
        if symbol is not None:
            self._put_symbol(symbol, source)
            return True
        if len(tokens) > 1 or not any(self._put([bare], [source]) for bare in self._strip(phrase)):
            return False
        self._text.add([","], "")  # a noun with an ending is no part of a compound
        return True

    def _strip(self, word: str) -> Iterator[str]:
        """Yield a word without the article or the ending that its language writes together with it."""
        if self._language.code == "ar":
            yield from (
                word[len(part) :] for part in ARABIC_ARTICLES if word.startswith(part) and len(word) > len(part) + 1
            )
        for ending in self._language.endings:
            if word.endswith(ending) and len(word) > len(ending):
                yield word.removesuffix(ending)
                return

    def _is_verb(self, word: str) -> bool:
        """Return whether a word can only be a verb: by its ending, or in Arabic by its first letter."""
        if self._language.code == "ar":
            return len(word) > 3 and word[0] in "يت" and word not in self._language.words
        return len(word) > 1 and word.endswith(self._language.verbal or ("\0",))

    def _find(self, phrase: str, tokens: Sequence[str]) -> str | None:
        if self._names is None or (len(phrase) < 2 and phrase[0] < "\u3040"):
            return None
        if len(tokens) > 1 or self._language.code in UNSPACED:
            return self._names.find_exactly(phrase)
        if self._language.code == "de" and not tokens[0][0].isupper():
            return None
        if not self._follows_article():
            return self._names.find_number(phrase)
        return self._names.find(phrase) or self._names.find_by_topic(phrase)

    def _put_table_word(self, english: Sequence[str], source: str) -> None:
        is_colour = len(english) == 1 and english[0] in COLOURS
        if is_colour and self._language.code in ADJECTIVE_LAST and self._last < len(self._text.words):
            self._text.words.insert(self._last, english[0])
            self._text.sources.insert(self._last, source)
            return
        is_noun = bool(self._language.endings) and not is_colour and not DETERMINERS.intersection(english)
        if is_noun and self._ended == len(self._text.words) > 0:
            self._text.add([","], "")  # two things, not a compound
        self._note(english)
        self._text.add(english, source)
        if is_noun:
            self._ended = len(self._text.words)

    def _put_symbol(self, symbol: str, source: str) -> None:
        name = (
            SCENES.get(symbol)
            or BY_HAND.get(symbol)
            or (self._english.name_of.get(symbol, "") if self._english else "")
        )
        english = simplify(name.removesuffix(" face"))
        if not self._is_known(english):
            english = [name.replace(" ", "_")]
            self._text.symbols[english[0]] = symbol
        if self._ended == len(self._text.words) > 0:
            self._text.add([","], "")  # two things, not a compound
        self._note(english)
        self._text.add(english, source)
        self._ended = len(self._text.words)

    def _put_unknown(self, folded: str, token: str, following: Sequence[str]) -> None:
        is_verb = self._is_verb(folded) or not AUXILIARIES.isdisjoint(following)
        if self._is_noun(token) and not is_verb:
            self._text.nouns.add(len(self._text.words))
        self._text.add([UNKNOWN + folded], token)
        self._last = len(self._text.words)

    def _note(self, english: Sequence[str]) -> None:
        """Remember where a noun begins, as a colour after it belongs before it."""
        is_noun = not DETERMINERS.intersection(english)
        self._last = len(self._text.words) if is_noun else len(self._text.words) + len(english)

    def _follows_article(self) -> bool:
        return self._has_no_articles or (bool(self._text.words) and self._text.words[-1] in DETERMINERS)

    def _is_noun(self, token: str) -> bool:
        if self._language.code == "de":
            return token[0].isupper()
        fewest = 2 if token[0] >= "\u0590" else LETTERS_OF_NOUN if self._has_no_articles else 3
        return len(token) >= fewest and self._follows_article()


def name_in(language: str, symbol: str, book: Wordbook) -> str:
    """Return the name of a symbol in a language, else in English."""
    return book.read(language).name_of.get(symbol) or book.read(ENGLISH).name_of[symbol]


def list_synonyms(table: str) -> Iterator[tuple[str, str]]:
    """Yield each English word of a table ("same", "near" or "does") with the cast's name for it."""
    for name, text in read_english()[table].items():
        for word in text.split(", "):
            yield word, name
