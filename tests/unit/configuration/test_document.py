"""Documents of run-time settings: their shape, their secrets, their differences."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.configuration.document import compare, find_secrets, normalise, without_secrets
from penstock.configuration.draft import make_draft, to_addition
from penstock.errors import InvalidRequest, SecretsUnavailable, SettingFromFile
from penstock.gateway import FIXED
from penstock.settings.live_limits import LIVE_LIMITS, split_limit
from penstock.settings.tables import Settings

FILE = Settings.model_validate({"vendors": {"acme": {"type": "sim"}}, "models": []})
NO_FILE = Settings.model_validate({})
VALUES = some.none() | some.booleans() | some.integers() | some.text(max_size=5)
JSON = some.recursive(
    VALUES, lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner)
)


def of(**vendors: Any) -> dict[str, Any]:
    return {"vendors": vendors}


@given(some.dictionaries(some.sampled_from(["vendors", "models", "limits", "prices"]), JSON))
def test_any_document_is_taken_whole_or_refused_with_a_field(document: dict[str, Any]):
    try:
        found = normalise(document)
    except InvalidRequest as error:
        found, param = None, error.param
    else:
        param = None
    if found is None:
        assert param
    else:
        assert normalise(found) == found
        assert compare(found, found) == []


@pytest.mark.parametrize(
    ("document", "param"),
    [
        ({"prices": {}}, "prices"),
        ({"vendors": []}, "vendors"),
        (of(mine=1), "vendors.mine"),
        (of(mine={"enabled": 1}), "vendors.mine.enabled"),
        (of(mine={"api_key": "env:HOME"}), "vendors.mine.api_key"),
        (of(mine={"api_key": "file:/etc/passwd"}), "vendors.mine.api_key"),
        ({"models": {"a": {"id": "b"}}}, "models.a.id"),
        ({"vendors": {"a b": {}}}, "vendors.a b"),
        ({"vendors": {"__proto__": {}}}, "vendors.__proto__"),
        (of(mine={"poll_seconds": float("inf")}), "vendors.mine.poll_seconds"),
        (of(mine={"poll_seconds": float("nan")}), "vendors.mine.poll_seconds"),
        (of(mine={"max_concurrent": 10**400}), "vendors.mine.max_concurrent"),
        (of(mine={"organization": "a\0b"}), "vendors.mine.organization"),
        (of(mine={"organization": "\ud800"}), "vendors.mine.organization"),
        ({"models": {"a": {"workflow": {"1": {"x": [float("inf")]}}}}}, "models.a.workflow.1.x.0"),
        ({"models": {"a": {"workflow": {"\0": 1}}}}, "models.a.workflow"),
        ({"models": {"a": {"title": "x" * (5 << 20)}}}, "vendors"),
        ({"limits": {"server.admin_key": "mine"}}, "limits.server.admin_key"),
        ({"limits": {"jobs.max_waiting": True}}, "limits.jobs.max_waiting"),
        ({"limits": {"jobs.max_waiting": float("inf")}}, "limits.jobs.max_waiting"),
        ({"limits": {"jobs.max_waiting": 10**400}}, "limits.jobs.max_waiting"),
        ({"limits": {"jobs.retention": "1\0d"}}, "limits.jobs.retention"),
        ({"limits": {"jobs.max_waiting": "env:HOME"}}, "limits.jobs.max_waiting"),
        ({"limits": {"jobs.max_waiting": {"a": 1}}}, "limits.jobs.max_waiting"),
    ],
)
def test_a_wrong_document_names_the_field(document: dict[str, Any], param: str):
    with pytest.raises(InvalidRequest) as raised:
        normalise(document)
    assert raised.value.param == param


def test_a_secret_leaves_the_document_and_its_placeholder_keeps_it():
    first = make_draft({}, of(mine={"type": "sim", "api_key": "sk-secret"}), NO_FILE)
    [name] = find_secrets(first.document)
    assert first.new == {name: "sk-secret"}
    assert "sk-secret" not in str(first.document) + repr(first)
    shown = without_secrets(first.document)
    assert shown["vendors"]["mine"]["api_key"] == {"$secret": "kept"}
    second = make_draft(first.document, shown, NO_FILE)
    assert (second.document, second.new) == (first.document, {})


@pytest.mark.parametrize(
    "table",
    [
        {"type": "sim", "api_key": {"$secret": "kept"}, "base_url": "https://evil.example"},
        {"type": "other", "api_key": {"$secret": "kept"}},
        {"type": "sim", "api_key": {"sealed": "sec_of_another"}},
        {"type": "sim", "api_key": ""},
        {"type": "sim", "api_key": 5},
    ],
)
def test_a_stored_secret_is_not_sent_elsewhere(table: dict[str, Any]):
    first = make_draft({}, of(mine={"type": "sim", "api_key": "sk-secret"}), NO_FILE)
    with pytest.raises(InvalidRequest) as raised:
        make_draft(first.document, of(mine=table), NO_FILE)
    assert raised.value.param == "vendors.mine.api_key"


def test_a_placeholder_without_a_secret_is_refused():
    with pytest.raises(InvalidRequest, match="no secret is stored"):
        make_draft({}, of(mine={"type": "sim", "api_key": {"$secret": "kept"}}), NO_FILE)


def test_what_the_file_has_is_changed_there():
    with pytest.raises(SettingFromFile):
        make_draft({}, of(acme={"type": "sim"}), FILE)


def test_what_the_file_has_comes_first():
    document = normalise(of(acme={"type": "other"}, mine={"type": "sim"}))
    assert set(to_addition(document, {}, FILE).vendors) == {"mine"}


def test_a_disabled_vendor_takes_its_routes_along():
    routes = [{"vendor": "off"}, {"vendor": "on"}]
    document = normalise(
        {
            "vendors": {"off": {"type": "sim", "enabled": False}, "on": {"type": "sim"}},
            "models": {
                "both": {"routes": routes},
                "one": {"vendor": "off"},
                "none": {"vendor": "on", "enabled": False},
                "lost": {"routes": [{"vendor": "off"}]},
            },
        }
    )
    found = to_addition(document, {}, NO_FILE)
    assert list(found.vendors) == ["on"]
    assert list(found.models) == [{"id": "both", "routes": [{"vendor": "on"}]}]
    assert found.hidden == {"one", "none", "lost"}


def test_a_missing_secret_is_reported():
    document = normalise(of(mine={"type": "sim", "api_key": {"sealed": "sec_1"}}))
    with pytest.raises(SecretsUnavailable):
        to_addition(document, {}, NO_FILE)


def test_differences_show_no_secret():
    before = make_draft({}, of(mine={"type": "sim", "api_key": "sk-one", "max_concurrent": 1}), NO_FILE).document
    after = make_draft({}, of(mine={"type": "sim", "api_key": "sk-two", "poll_seconds": 3}), NO_FILE).document
    assert compare(before, after) == [
        {"path": "vendors.mine.api_key", "change": "changed", "before": "(secret)", "after": "(secret)"},
        {"path": "vendors.mine.max_concurrent", "change": "removed", "before": 1},
        {"path": "vendors.mine.poll_seconds", "change": "added", "after": 3},
    ]


def test_limits_join_the_files_tables_and_the_file_wins():
    file = Settings.model_validate({"jobs": {"max_waiting": 7}})
    given = {"limits": {"jobs.max_waiting": 5, "jobs.retention": "30d", "chat.cache_mb": 12}}
    extended = file.extend(to_addition(given, {}, file))
    assert (extended.jobs.max_waiting, extended.jobs.retention, extended.chat.cache_mb) == (7, 30 * 86_400, 12)
    assert extended.is_from_file("limits", "jobs.max_waiting")
    assert not extended.is_from_file("limits", "jobs.retention")
    assert extended.extend(to_addition({}, {}, file)).chat.cache_mb == 0, "a limit that is gone leaves nothing"


def test_a_limit_of_the_file_cannot_be_set():
    file = Settings.model_validate({"jobs": {"max_waiting": 7}})
    with pytest.raises(SettingFromFile):
        make_draft({}, {"limits": {"jobs.max_waiting": 5}}, file)
    former = {"limits": {"jobs.max_waiting": 5}}
    assert make_draft(former, former, file).document["limits"] == former["limits"], "it waits until the file lets go"


def test_every_limit_is_a_number_of_the_settings_that_needs_no_restart():
    settings = Settings.model_validate({})
    for name in LIVE_LIMITS:
        table, key = split_limit(name)
        assert isinstance(getattr(getattr(settings, table), key), int | float | None), name
        assert name not in FIXED


def test_a_document_without_limits_is_one_of_an_earlier_version():
    earlier = {"vendors": {"mine": {"type": "sim", "enabled": True}}, "models": {}}
    assert without_secrets(earlier)["limits"] == {}
    assert compare(earlier, {**earlier, "limits": {"jobs.max_waiting": 5}}) == [
        {"path": "limits.jobs.max_waiting", "change": "added", "after": 5}
    ]
    assert to_addition(earlier, {}, NO_FILE).limits == {}
