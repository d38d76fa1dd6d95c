"""Names and keywords of the cast in many languages. Each language is read when it is first needed."""

import re
import unicodedata
import zipfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType

WORDS = "cast-words.zip"
ENGLISH = "en"
VARIANT = "\ufe0f"
MAX_SHARED = 7
"""Symbols that may share a keyword. A keyword of more is a topic ("sport"), not a thing."""
STEM_LETTERS = 4
"""Letters of the shortest stem that is looked up in place of an inflected word."""
MAX_ENDING = 2
VOWELS = frozenset("aeiouy\u0430\u0435\u0438\u043e\u0443\u044b\u044e\u044f\u0439\u044c")
"""Letters that end a noun in its plain form, where another form has another ending."""
LINKS = re.compile(" (?:with|of|in|on|without) ")
"""Words of English after which a name only describes."""
HEAD_LAST = frozenset({"en", "de", "nl", "sv", "da", "no", "nn", "fi", "hu", "et", "tr", "is"})
"""Languages in which the last word of a name is its noun. In the others it is the first."""
UNSPACED = frozenset({"ja", "zh"})
"""Languages without spaces between words."""
COMMON = ("en", "es", "fr", "de", "pt", "it", "nl", "ru", "pl", "sv", "da", "no", "fi", "cs", "tr", "uk", "id", "vi")
"""Languages that come first when several know a prompt's words equally well."""
COMPOUNDING = frozenset({"de", "nl", "sv", "da", "no", "nn", "fi", "is"})
"""Languages that write compound nouns in one word."""


SCENES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("🌧", "🌦"), "rain"),
        **dict.fromkeys(("🌨", "❄"), "snow"),
        **dict.fromkeys(("⛈", "🌩"), "storm"),
        **dict.fromkeys(("🌃", "🌉"), "night"),
        **dict.fromkeys(("🏔", "⛰"), "mountains"),
        "🌫": "fog",
        "🌙": "moon",
        "🌅": "dawn",
        "🌇": "sunset",
        "🌊": "sea",
        "🏖": "beach",
        "🏜": "desert",
        "🏙": "city",
        "🏝": "island",
        "🌋": "volcano",
        "🛣": "highway",
    }
)
"""Symbols of places, hours and weather, by their meaning in English. They translate words, and are no things."""


def fold(text: str) -> str:
    """Return a text in lower case and without accents on Latin, Greek, Cyrillic, Hebrew and Arabic letters."""
    letters = unicodedata.normalize("NFKC", text).casefold()
    if any("\u3040" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7a3" for letter in letters):
        return letters
    plain = (letter for letter in unicodedata.normalize("NFD", letters) if not _is_accent(letter))
    return " ".join("".join(plain).replace("-", " ").replace("\u2019", "'").split())


def _is_accent(letter: str) -> bool:
    """Return whether a mark may be left out. The vowel signs of Hindi, Thai and their kin may not."""
    return unicodedata.category(letter) == "Mn" and letter < "\u0900"


class Names:
    """The words of one language."""

    def __init__(self, language: str, table: str, known: frozenset[str]) -> None:
        self.language = language
        self.name_of: dict[str, str] = {}
        self._named: dict[str, list[str]] = {}
        self._heads: dict[str, list[str]] = {}
        self._topics: dict[str, list[str]] = {}
        for line in table.split("\n"):
            symbol, name, *keywords = line.split("\t")
            plain = symbol.replace(VARIANT, "")
            if name and plain in known:
                self._add(plain, name, keywords)
        self._sorted = sorted({*self._named, *self._topics})

    def _add(self, symbol: str, name: str, keywords: Iterable[str]) -> None:
        self.name_of[symbol] = name
        folded = fold(name)
        self._named.setdefault(folded, []).append(symbol)
        parts = LINKS.split(folded)[0].split() if self.language == ENGLISH else folded.split()
        if len(parts) > 1 or len(parts) < len(folded.split()):
            self._heads.setdefault(parts[-1 if self.language in HEAD_LAST else 0], []).append(symbol)
        for keyword in dict.fromkeys(map(fold, keywords)):
            self._topics.setdefault(keyword, []).append(symbol)

    def __contains__(self, word: str) -> bool:
        return word in self._named or word in self._topics

    def find(self, word: str) -> str | None:
        """Return the symbol that a folded word or phrase names, also if it is inflected."""
        named = (self._look_up(form) for form in self._forms(word))
        return next((symbol for symbol in named if symbol is not None), None) or self._find_in_compound(word)

    def find_name(self, word: str) -> str | None:
        """Return the first symbol whose whole folded name this is."""
        return self._named.get(word, [None])[0]

    def find_number(self, word: str) -> str | None:
        """Like `find_name`, but also for a plural that is one or two letters longer."""
        names = (self.find_name(form) for form in (word, word[:-1], word[:-2]) if len(form) > 2)
        return next((symbol for symbol in names if symbol), None)

    def find_exactly(self, word: str) -> str | None:
        """Return the symbol that has this folded name, or has its name and a keyword in common with the word."""
        return self._look_up(word)

    def find_by_topic(self, word: str) -> str | None:
        """Return the likeliest symbol that has a folded word as a keyword only."""
        forms = self._forms(word) if self.language == ENGLISH else (word,)
        for form in forms:
            topics = self._topics.get(form, [])
            if 0 < len(topics) <= MAX_SHARED:
                return topics[0]
        return None

    def _look_up(self, word: str) -> str | None:
        """Return the symbol of this name, or the first whose name has this word in it and means it."""
        if word in self._named:
            return self._named[word][0]
        topics = self._topics.get(word, ())
        heads = (symbol for symbol in self._heads.get(word, ()) if symbol in topics)
        loose = () if self.language in HEAD_LAST else topics
        inside = (symbol for symbol in loose if word in fold(self.name_of[symbol]).split())
        scenes = (symbol for symbol in topics if symbol in SCENES)
        opened = topics if self.language in UNSPACED else ()
        prefixed = (symbol for symbol in opened if self.name_of[symbol].startswith(word))
        return next(chain(scenes, heads, inside, prefixed), None)

    def _forms(self, word: str) -> Iterator[str]:
        """Yield a word, and the words that it may be a form of."""
        yield word
        if self.language == ENGLISH:
            yield from singular_forms(word)
            return
        if self.language == "fr" and word.endswith("aux"):
            yield word[:-3] + "al"
        for cut in range(1, MAX_ENDING + 1):
            stem = word[:-cut]
            if self.language == "ko" and stem:
                yield stem
            if len(stem) < STEM_LETTERS:
                continue
            yield from self._extend(stem, cut)

    def _extend(self, stem: str, cut: int) -> Iterator[str]:
        """Yield the known words that are a stem and a short ending."""
        start = bisect_left(self._sorted, stem)
        for other in self._sorted[start : start + 12]:
            if not other.startswith(stem):
                return
            ending = other[len(stem) :]
            if not ending or (len(ending) <= cut and ending in VOWELS):
                yield other

    def _find_in_compound(self, word: str) -> str | None:
        """Return the symbol of the noun at the end of a compound, as of "Kuchen" in "Kirschkuchen"."""
        if self.language not in COMPOUNDING or " " in word:
            return None
        ends = (word[start:] for start in range(3, len(word) - STEM_LETTERS + 1))
        return next((self._named[end][0] for end in ends if end in self._named), None)


def singular_forms(word: str) -> Iterator[str]:
    """Yield the singulars that an English word may be the plural of."""
    for many, one in (("ves", "f"), ("ves", "fe"), ("ies", "y"), ("es", ""), ("s", ""), ("men", "man")):
        if word.endswith(many) and len(word) - len(many) > 1:
            yield word.removesuffix(many) + one


class Wordbook:
    """The names of the symbols that have a picture, in every language of the folder's archive."""

    def __init__(self, archive: zipfile.ZipFile, known: frozenset[str]) -> None:
        self._archive = archive
        self._known = known
        self.languages = frozenset(name.removesuffix(".tsv") for name in archive.namelist())
        self._names: dict[str, Names] = {}

    def read(self, language: str) -> Names:
        """Return the words of a language. One that is not there has no words."""
        if language not in self._names:
            table = self._archive.read(f"{language}.tsv").decode() if language in self.languages else ""
            known = self._known - SCENES.keys() if language == ENGLISH else self._known | SCENES.keys()
            self._names[language] = Names(language, table or "\t", known)
        return self._names[language]

    def detect(self, words: Iterable[str]) -> str | None:
        """Return the language that has most of these words, in lower case, among its names and keywords."""
        wanted = [f"\t{word}\t" for word in dict.fromkeys(words) if len(word) > 1]
        best, most = None, 0
        for language in (*(code for code in COMMON if code in self.languages), *sorted(self.languages - {*COMMON})):
            table = self._archive.read(f"{language}.tsv").decode().lower().replace("\n", "\t")
            known = sum(word in table for word in wanted)
            if known > most:
                best, most = language, known
        return best


@cache
def open_wordbook(weights: Path, known: frozenset[str]) -> Wordbook | None:
    """Return the wordbook of a folder of weights, or None if it has none."""
    try:
        return Wordbook(zipfile.ZipFile(weights / WORDS), known)
    except (OSError, zipfile.BadZipFile):
        return None
