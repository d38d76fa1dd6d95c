"""The list that comes with Penstock: every vendor model that it names has a price with its source, or a reason."""

import pytest

from penstock.domain.prices import write_price
from penstock.offers.price_places import find_provider
from penstock.price_lists.reading import shipped_list
from penstock.vendors import load_vendor

REMOTE = ("fal", "gemini_images", "kling", "luma", "luma_agents", "meshy", "openai_images", "replicate", "runway")
PRICED = ("tripo", "veo")


def served(vendor: str):
    kind = load_vendor(vendor)
    provider = find_provider(kind.options_type.model_fields["base_url"].default)
    return provider, [(each, {each.model.id, each.name or each.model.id}) for each in kind.models]


@pytest.mark.parametrize("vendor", [*REMOTE, *PRICED])
def test_every_model_of_a_vendor_is_in_the_list(vendor):
    listed = shipped_list()
    known = {(price.provider, price.model) for price in listed.prices} | listed.unknown.keys()
    provider, models = served(vendor)
    assert models
    assert [each.model.id for each, names in models if not known & {(provider, name) for name in names}] == []


@pytest.mark.parametrize("vendor", PRICED)
def test_a_vendors_file_has_the_lists_prices(vendor):
    listed = [price for price in shipped_list().prices if not price.in_credits]
    by_name = {(price.provider, price.model): write_price(price.price) for price in listed}
    provider, models = served(vendor)
    for each, names in models:
        found = [by_name[provider, name] for name in names if (provider, name) in by_name]
        assert all(price == write_price(each.price) for price in found)
        assert bool(found) == (each.price is not None)


def test_every_price_has_a_date_and_a_source():
    for price in shipped_list().prices:
        assert price.since is not None
        assert len(price.source) > 10
    assert all(len(why) > 10 for why in shipped_list().unknown.values())
