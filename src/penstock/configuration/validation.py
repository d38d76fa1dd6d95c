"""The dry check of run-time settings: what a reload of the file checks, and addresses."""

from typing import Any

from penstock.clocks import Clocks
from penstock.domain.job_errors import UrlNotAllowed
from penstock.errors import Detail, InvalidRequest
from penstock.guardrails.build import build_guardrails
from penstock.offers.build import build_offers
from penstock.offers.offer import Offers
from penstock.safe_fetch.vendor_address import check_vendor_url
from penstock.settings.problems import Problem, SettingsError
from penstock.settings.tables import Addition, Settings


def build_checked(file: Settings, addition: Addition, former: Offers | None, clocks: Clocks) -> Offers:
    """Return the offers of these settings. Raise SettingsError if the vendors and models cannot be added.

    It blocks for some milliseconds. Call `close_new` when the offers are not needed any more.
    """
    settings = file.extend(addition)
    offers = build_offers(settings, former, clocks)
    names = {*offers.by_model, *offers.chat, *(entry.id for entry in settings.models)}
    try:
        build_guardrails(settings.guardrails, names, settings.source)
        _refuse_forbidden(settings, addition, offers)
    except SettingsError:
        close_new(offers, former)
        raise
    return offers


def check_settings(file: Settings, addition: Addition, former: Offers | None, clocks: Clocks) -> None:
    """Like `build_checked`, but keep nothing."""
    close_new(build_checked(file, addition, former, clocks), former)


def _refuse_forbidden(settings: Settings, addition: Addition, offers: Offers) -> None:
    """Raise for vendors whose address vendors of the run-time settings may not have."""
    problems: list[Problem] = []
    for name in addition.vendors:
        vendor = offers.chat_vendors.get(name) or offers.vendors[name]
        for address in _addresses(vendor):
            try:
                check_vendor_url(address, vendor.options.networks or ())
            except UrlNotAllowed as error:
                remedy = "Use another address, or have the settings file declare the vendor."
                where = settings.source.locate(("vendors", name, "base_url"))
                problems.append(Problem(where, error.message.rstrip("."), remedy))
    if problems:
        raise SettingsError(problems)


def _addresses(vendor: Any) -> list[str]:
    """Return where a vendor is; nothing for one inside this process."""
    if getattr(vendor, "server", None) is not None or getattr(vendor, "upstream", None) is not None:
        return []
    return [vendor.options.base_url, *getattr(vendor, "addresses", ())]  # chat vendors have no others


def close_new(offers: Offers, former: Offers | None) -> None:
    """Close the vendors inside this process that only these offers have."""
    kept = set(map(id, former.vendors.values())) if former else set[int]()
    for vendor in offers.vendors.values():
        if vendor.upstream is not None and id(vendor) not in kept:
            vendor.upstream.close()


def to_request_error(error: SettingsError) -> InvalidRequest:
    """Return the API's error for problems of the settings, with each field named."""
    details = [Detail(each.where, f"{each.what}. {each.remedy}") for each in error.problems]
    rest = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    first = details[0]
    return InvalidRequest(f"{first.loc}: {first.message}{rest}", param=first.loc, details=details)
