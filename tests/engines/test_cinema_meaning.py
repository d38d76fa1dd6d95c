"""Word pieces as BERT cuts them, and how near phrases are in meaning."""

from pathlib import Path

import numpy as np
import pytest

from penstock_engines.cinema.prompt.nearness.meaning import PROTOTYPES, TOKENS_AT_MOST, Meaning
from penstock_engines.minilm.model_facts import MODEL, VOCABULARY
from penstock_engines.minilm.word_pieces import Tokenizer

PHRASES = ("beach", "cat", "city", "sea shore", "snow covered peaks")


@pytest.fixture(scope="module")
def tokenizer(weights: Path) -> Tokenizer:
    return Tokenizer(weights / VOCABULARY)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello, y'all! How are you 😁 ?", "hello , y ' all ! how are you [UNK] ?"),
        ("I have a new GPU!", "i have a new gp ##u !"),
        ("unaffable", "una ##ffa ##ble"),
        ("Héllò hôw are Ü?", "hello how are u ?"),
        ("snowflake", "snow ##fl ##ake"),
        ("日本の海 abc", "日 本 の 海 abc"),
        ("a\x00b\tc\u200dd\u00a0e", "ab cd e"),
        ("$5-£6", "$ 5 - £ ##6"),
        ("“quoted”…", "“ quoted ” …"),
        ("x" * 101, "[UNK]"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_cuts_as_bert_does(tokenizer: Tokenizer, text: str, pieces: str):
    assert tokenizer.pieces(text) == pieces.split()


def test_numbers_stand_between_the_marks(tokenizer: Tokenizer):
    assert tokenizer.numbers("Hello, world!", TOKENS_AT_MOST) == [101, 7592, 1010, 2088, 999, 102]
    assert len(tokenizer.numbers("sea " * 1000, TOKENS_AT_MOST)) == 128


@pytest.fixture
def own_weights(weights: Path, tmp_path: Path) -> Path:
    """A folder of the test's own, for what is kept beside the model."""
    for name in (MODEL, VOCABULARY):
        (tmp_path / name).symlink_to(weights / name)
    return tmp_path


def test_what_is_alike_is_near(own_weights: Path):
    near = Meaning(own_weights).closeness(["Waves roll onto the sand", "a kitten plays"], PHRASES)
    assert near.shape == (2, len(PHRASES))
    shore, kitten = near.argmax(axis=1).tolist()
    assert (PHRASES[shore] in {"beach", "sea shore"}, PHRASES[kitten]) == (True, "cat")  # 8-bit weights round variously
    assert (np.abs(near) <= 1.0001).all()


def test_the_phrases_vectors_are_kept_and_made_anew_when_the_phrases_change(own_weights: Path):
    meaning = Meaning(own_weights)
    first = meaning.closeness(["a dog"], PHRASES)
    kept = own_weights / PROTOTYPES
    written = kept.read_bytes()
    assert np.array_equal(Meaning(own_weights).closeness(["a dog"], PHRASES), first)
    assert kept.read_bytes() == written
    meaning.closeness(["a dog"], PHRASES[:2])
    assert kept.read_bytes() != written
    assert [path.name for path in own_weights.iterdir() if path.suffix == ".part"] == []


def test_a_broken_file_of_vectors_is_made_anew(own_weights: Path):
    (own_weights / PROTOTYPES).write_bytes(b"no archive")
    Meaning(own_weights).closeness(["a dog"], PHRASES[:1])
    assert (own_weights / PROTOTYPES).read_bytes()[:2] == b"PK"


def test_a_folder_that_takes_no_files_is_no_fault(own_weights: Path):
    (own_weights / PROTOTYPES).mkdir()
    (own_weights / PROTOTYPES / "in the way").touch()
    assert Meaning(own_weights).closeness(["a dog"], PHRASES[:1]).shape == (1, 1)
    assert sorted(path.name for path in own_weights.iterdir()) == sorted((MODEL, VOCABULARY, PROTOTYPES))
