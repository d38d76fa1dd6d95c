"""Embedding models in the settings: their kind, their vendors and their prices."""

from pathlib import Path

import pytest

from penstock.offers.build import build_offers
from penstock.offers.offer import Offers
from penstock.settings.problems import SettingsError
from penstock.settings.tables import load

OPENAI = '[vendors.openai]\ntype = "openai_compatible"\napi_key = "0123456789"\n'
CLAUDE = '[vendors.claude]\ntype = "anthropic"\napi_key = "0123456789"\n'
SMALL = '[[models]]\nid = "small"\nkind = "embedding"\n'


def offers_of(folder: Path, toml: str) -> Offers:
    config = folder / "penstock.toml"
    config.write_text(toml)
    return build_offers(load(config, {}, {"data": folder}), None)


def test_a_kind_says_that_a_model_embeds(tmp_path: Path):
    offers = offers_of(tmp_path, OPENAI + SMALL + 'vendor = "openai"\nprice = {input_per_million = "0.02"}\n')
    offer = offers.get_chat("small", "embedding")
    assert (offer.kind, offer.price_at(0).input_per_million) == ("embedding", 20_000_000)  # type: ignore[union-attr]


def test_without_a_kind_it_chats(tmp_path: Path):
    offers = offers_of(tmp_path, OPENAI + '[[models]]\nid = "text-embedding-3-small"\nvendor = "openai"\n')
    assert offers.get_chat("text-embedding-3-small").kind == "chat"


@pytest.mark.parametrize("toml", ["", '[[models]]\nid = "minilm-l6"\nvendor = "minilm"\n'])
def test_a_built_in_model_needs_no_kind(tmp_path: Path, toml: str):
    offer = offers_of(tmp_path, toml).get_chat("minilm-l6")
    assert (offer.kind, offer.title) == ("embedding", "MiniLM L6, embeddings")


def test_a_built_in_model_may_have_another_name(tmp_path: Path):
    offers = offers_of(tmp_path, '[[models]]\nid = "mine"\nvendor = "minilm"\nmodel = "minilm-l6"\n')
    assert offers.get_chat("mine").kind == "embedding"


@pytest.mark.parametrize(
    ("toml", "where", "what"),
    [
        (CLAUDE + SMALL + 'vendor = "claude"\n', "[[models]] 1 id", "`claude` does not run embedding models"),
        (SMALL + 'vendor = "sim"\n', "[[models]] 1 id", "`sim` does not run embedding models"),
        ('[[models]]\nid = "x"\nkind = "chat"\nvendor = "minilm"\n', "[[models]] 1 id", "does not run chat models"),
        ('[[models]]\nid = "x"\nvendor = "minilm"\n', "[[models]] 1 id", "does not run chat models"),
        (
            OPENAI + SMALL + 'vendor = "openai"\nprice = {per_job = "1"}\n',
            "[[models]] 1 price",
            "not the price of an embedding model",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_place(tmp_path: Path, toml: str, where: str, what: str):
    with pytest.raises(SettingsError) as caught:
        offers_of(tmp_path, toml)
    assert where in str(caught.value)
    assert what in str(caught.value)
